# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What documents say, and how they write figures."""

from __future__ import annotations

from collections.abc import Iterable

from .residency_scripts import BENCHMARKS


def document(name: str) -> str:
    """Return a document in one line: where its lines break is no matter."""
    return " ".join((BENCHMARKS.parent / "docs" / name).read_text().split())


def span(figures: Iterable[float]) -> str:
    there = sorted(figures)
    return f"{there[0]:.2f} to {there[-1]:.2f}"
