# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Axes with units that suit the values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CLOCK_SECONDS", "ROOM_LEFT", "ROOM_RIGHT", "memory_unit", "rate_unit", "time_tooltip"]

CLOCK_SECONDS = 300
"""Runs longer than this show h:mm:ss instead of seconds."""

ROOM_LEFT, ROOM_RIGHT = 0.02, 0.04
"""Beside the time, parts of it: half of a mark, and half of one with its number."""


def memory_unit(most_bytes: float) -> tuple[float, str]:
    """Return a binary unit in which a size is a number that one can read.

    Examples
    --------
    >>> memory_unit(3e9), memory_unit(5e6)
    ((1073741824, 'GiB'), (1048576, 'MiB'))
    """
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB")):
        if most_bytes >= 1024**power:
            return 1024**power, unit
    return 1024, "KiB"


def rate_unit(most_bytes: float) -> tuple[float, str]:
    """Return a decimal unit for bytes a second, as links and buses are specified in.

    Examples
    --------
    >>> rate_unit(2.5e10), rate_unit(0)
    ((1000000000, 'GB/s'), (1000, 'kB/s'))
    """
    for power, unit in ((3, "GB/s"), (2, "MB/s")):
        if most_bytes >= 1000**power:
            return 1000**power, unit
    return 1000, "kB/s"


def highest(columns: Sequence[NDArray[np.float64]]) -> float:
    """Return the greatest known value, 0 if there is none."""
    import numpy as np

    known = [float(np.nanmax(c)) for c in columns if len(c) and not np.all(np.isnan(c))]
    return max((value for value in known if math.isfinite(value)), default=0.0)


def time_tooltip(duration_seconds: float, field: str) -> str:
    """Return a hover text's placeholder for a time."""
    return f"@{field}{{00:00:00}}" if duration_seconds > CLOCK_SECONDS else f"@{field}{{0.00}} s"
