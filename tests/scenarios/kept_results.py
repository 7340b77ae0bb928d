# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Committed results, documents, and how a document writes figures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def kept(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return result


def document(name: str) -> str:
    return " ".join((RESULTS.parents[1] / "docs" / name).read_text().split())


def span(figures: Iterable[float]) -> str:
    there = sorted(figures)
    return f"{there[0]:.2f} to {there[-1]:.2f}"
