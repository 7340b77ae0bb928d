# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which lines are behind what moved, by rules that say why.

A byte that comes to the device for the first time has to come. What leaves, and what comes back,
would not have moved if all had fitted: that is what a line can be blamed for. Three faults are
told apart, since each has another remedy:

- it grows: when it had most, it held memory from each quarter of more than half the run, and other
  lines allocated in between, so that this was not one long call. Or one of its callers did, and
  others called it in between;
- its memory comes back: more bytes than it ever allocated, or one of its callers did, so that the
  same ones came again;
- it makes the peak: where no line does either of these, the one that held most of those that
  still allocated when the footprint came to its most. What others held was there before, and had
  fitted.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from rmm_uvm.recording.line_traffic import CallPath, LineSum, LineTraffic

__all__ = ["Culprit", "Fault", "culprits"]

# Of all that could have been spared, or of the peak for what grows: below, others are to be looked
# at.
_SHARE = 0.1
_LEFT = 0.1  # of what a growing line holds: below, nearly all of it fits
_OVER = 0.05  # of a peak: below, it nearly fitted
_QUARTERS = 4


class Fault(enum.Enum):
    """The fault of a line."""

    RETURNS = "comes back"
    GROWS = "grows"
    PEAK = "makes the peak"


class Culprit(NamedTuple):
    """A line, and what is wrong with it.

    Attributes
    ----------
    line : LineSum
        With the sums of the paths that are at fault.
    fault : Fault
        What is wrong.
    paths : tuple of CallPath
        Those paths; empty for all of the line.
    """

    line: LineSum
    fault: Fault
    paths: tuple[CallPath, ...] = ()


def culprits(lines: LineTraffic) -> tuple[Culprit, ...]:
    """Return the lines to look at, the worst first; none where no line is to blame."""
    sums = lines.by_line()
    spared_bytes = sum(one.moved.avoidable_bytes for one in sums)
    if not spared_bytes:
        return ()
    allocated = _added([one.allocated for one in sums])
    least_bytes = _SHARE * spared_bytes

    def matters(one: LineSum | CallPath) -> bool:
        return one.moved.avoidable_bytes >= least_bytes or (
            one.moved.avoidable_bytes > 0 and sum(one.at_top) >= _SHARE * lines.peak_bytes
        )

    def growing(one: LineSum | CallPath) -> bool:
        left = one.moved.evicted_bytes >= _LEFT * one.peak_bytes
        return left and matters(one) and _grows(one, allocated)

    found = []
    for one in sums:
        if one.line is None or not matters(one):
            continue
        if growing(one):
            found.append(Culprit(one, Fault.GROWS))
        elif paths := tuple(filter(growing, lines.paths_of(one.line))):
            found.append(Culprit(lines.sum_of(paths), Fault.GROWS, paths))
        elif one.moved.avoidable_bytes >= least_bytes and _comes_back(one, lines):
            found.append(Culprit(one, Fault.RETURNS))
    if found:
        return tuple(sorted(found, key=lambda each: -each.line.moved.avoidable_bytes))
    highest = max(
        (one for one in sums if _at_the_peak(one, lines.peak_stretch)),
        key=lambda one: sum(one.at_top),
        default=None,
    )
    evicted_bytes = sum(one.moved.evicted_bytes for one in sums)  # the CPU takes without need
    if highest is None or evicted_bytes < _OVER * lines.peak_bytes:
        return ()
    return (Culprit(highest, Fault.PEAK),)


def _comes_back(one: LineSum, lines: LineTraffic) -> bool:
    """Return whether more came back than a line allocated, or most of it on paths of which that is.

    A function that allocates for the whole program has one caller's table, and what others free.
    """
    again_bytes = sum(
        path.moved.returned_bytes
        for path in lines.paths_of(one.line)
        if path.moved.returned_bytes > sum(path.allocated)
    )
    return one.times > 1 or 2 * again_bytes > one.moved.returned_bytes


def _grows(one: LineSum | CallPath, allocated: Sequence[int]) -> bool:
    """Return whether a line held memory of all of a long time in which others allocated too."""
    held = [number for number, nbytes in enumerate(one.held) if nbytes]
    begin, end = (held[0], held[-1] + 1) if held else (0, 0)
    length = end - begin
    if length < _QUARTERS or 2 * length <= len(allocated):
        return False
    parts = [
        range(begin + length * number // _QUARTERS, begin + length * (number + 1) // _QUARTERS)
        for number in range(_QUARTERS)
    ]
    return all(
        any(one.held[number] for number in part)
        and any(allocated[number] > one.allocated[number] for number in part)
        for part in parts
    )


def _at_the_peak(one: LineSum, peak_stretch: int | None) -> bool:
    """Return whether a line allocated, about the run's peak, what it had then."""
    if one.line is None or peak_stretch is None:
        return False
    # What came from the host is what the program works on, and not what it makes of it.
    came_bytes = one.moved.to_device_bytes - one.moved.returned_bytes
    there_then = any(one.at_top[peak_stretch : peak_stretch + 1])
    return there_then and 2 * came_bytes < sum(one.at_top)


def _added(parts: Sequence[tuple[int, ...]]) -> list[int]:
    return [sum(column) for column in zip(*parts, strict=False)]
