# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What ways to run cost the driver, tried with the pool itself, in the words of reasons."""

from __future__ import annotations

from rmm_uvm.planner.advice.advising import WORTH_SETTING
from rmm_uvm.report.words import clock_text

__all__ = ["compared", "time_text", "work_text"]


def compared(seconds: float | None, usual_seconds: float | None) -> str:
    """Return the work of a way against that of the defaults; times that read alike are no reason.

    Parameters
    ----------
    seconds, usual_seconds : float or None
        Of driver work; None: it ran out of memory.

    Examples
    --------
    >>> compared(0.5, 2.0)
    'with the pool itself 0.500 s of driver work, against 2.0 s by default'
    >>> compared(None, 2.0)
    'with the pool itself running out of memory, against 2.0 s by default'
    >>> compared(0.0104, 0.01041)
    'with the pool itself as much driver work as by default'
    >>> compared(0.0105, 0.0114)
    'with the pool itself 8% less driver work than by default'
    """
    usual = time_text(usual_seconds)
    if seconds is None or usual_seconds is None or time_text(seconds) != usual:
        return f"with the pool itself {work_text(seconds)}, against {usual} by default"
    change = seconds / usual_seconds - 1 if usual_seconds > 0 else 0.0
    if abs(change) < 1 - WORTH_SETTING:
        return "with the pool itself as much driver work as by default"
    more = "less" if change < 0 else "more"
    return f"with the pool itself {abs(change):.0%} {more} driver work than by default"


def work_text(seconds: float | None) -> str:
    """Return a time of driver work, and what it is of."""
    return time_text(seconds) + " of driver work" * (seconds is not None)


def time_text(seconds: float | None) -> str:
    """Return a time of driver work; None: it ran out of memory."""
    return "running out of memory" if seconds is None else clock_text(seconds)
