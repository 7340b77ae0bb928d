# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Figures from repeated measurements: pure functions over lists of numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def summary(values: Sequence[float]) -> dict[str, float]:
    """Return count, minimum, median and maximum; the values are taken in one unit."""
    return {
        "count": len(values),
        "minimum": min(values),
        "median": statistics.median(values),
        "maximum": max(values),
    }


def line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return slope and intercept of the least-squares line; needs two different `x`."""
    fit = statistics.linear_regression(x, y)
    return fit.slope, fit.intercept


def growth_exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the exponent p of the best y = c * x**p; 1 means proportional, 0 constant."""
    return line([math.log(value) for value in x], [math.log(value) for value in y])[0]
