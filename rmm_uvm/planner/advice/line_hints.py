# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hints at lines of a program: which memory each is about, so that a run can be done again with it.

Covers finding the lines whose memory moved or died, and which allocations of a recording are
theirs. Does not cover doing it again, see `rmm_uvm.planner.trials.pool_trial`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.planner.workload.events import ALLOCATE, FREE, Workload
from rmm_uvm.recording.line_traffic import LineTraffic, MovedObject, ProgramLine
from rmm_uvm.report.by_line import line_title
from rmm_uvm.support.units import format_bytes

__all__ = ["LineHint", "hints_at_lines"]

_MOST_LINES = 3
_MOST_TRIMS = 100  # each looks at all that is free: nothing to be done after every small one
_TOUCH = "announce what {} allocates before kernels use it: rmm_uvm.touch"
_EVICT = "let what {} allocates leave once kernels have used it: rmm_uvm.evict"
_TRIM = "give back dead memory once what {} allocates is freed: rmm_uvm.trim()"
_TRIM_SIZE = "give back dead memory once what has {} is freed: rmm_uvm.trim()"


class LineHint(NamedTuple):
    """A hint that a program could give about what one of its lines allocates.

    Attributes
    ----------
    what : str
        What to write, and where; or after what, if the line is not known.
    hint : str
        "touch": before each use; "evict": after each use, when the next one is of other memory;
        "trim": when the last of it was freed.
    allocations : frozenset of int
        The how-manyth allocations of the recording it is about, from 1 on.
    """

    what: str
    hint: Literal["touch", "evict", "trim"]
    allocations: frozenset[int]


def hints_at_lines(lines: LineTraffic | None, workload: Workload) -> Iterator[LineHint]:
    """Yield the hints that could help a run.

    Of the lines whose memory moved most in vain: to announce it, and to let it leave after its use,
    where the recording knows of uses. Nothing of them where lines are of other allocations than the
    recording has. And to trim once the largest allocations were freed, of whatever line.
    """
    lines = lines or LineTraffic()
    events = workload.events
    sizes = events["nbytes"][events["kind"] == ALLOCATE]
    yield from _trims(lines, sizes, events["nbytes"][events["kind"] == FREE])
    of_line: dict[ProgramLine, list[MovedObject]] = {}
    for one in lines.objects:
        if one.number > len(sizes) or sizes[one.number - 1] != one.nbytes:
            return
        if (line := lines.users_line(lines.paths[one.path])) is not None:
            of_line.setdefault(line, []).append(one)
    moved = {line: sum(one.moved.avoidable_bytes for one in of_line[line]) for line in of_line}
    for line in sorted(filter(moved.get, moved), key=lambda line: -moved[line])[:_MOST_LINES]:
        numbers = frozenset(one.number for one in of_line[line])
        yield LineHint(_TOUCH.format(line_title(line)), "touch", numbers)
        if not workload.touches_assumed:
            yield LineHint(_EVICT.format(line_title(line)), "evict", numbers)


def _trims(
    lines: LineTraffic, sizes: NDArray[np.uint64], freed: NDArray[np.uint64]
) -> Iterator[LineHint]:
    """Yield a hint for the largest size that was freed, and the one of which most was."""
    of_size, counts = np.unique(freed, return_counts=True)
    seldom = counts <= _MOST_TRIMS
    of_size, counts = of_size[seldom], counts[seldom]
    if not len(of_size):
        return
    for size in dict.fromkeys((int(of_size[-1]), int(of_size[np.argmax(of_size * counts)]))):
        numbers = np.flatnonzero(sizes == size) + 1
        made = (len(numbers), len(numbers) * size)
        # Sizes of single allocations are known of few. A path that made as many, of as many bytes
        # in all, made these.
        found = [
            lines.users_line(path)
            for path in lines.paths
            if (path.allocations, sum(path.allocated)) == made
        ]
        known = found[0] if len(found) == 1 else None
        what = _TRIM_SIZE.format(format_bytes(size))
        if known is not None:
            what = _TRIM.format(line_title(known))
        yield LineHint(what, "trim", frozenset(numbers.tolist()))
