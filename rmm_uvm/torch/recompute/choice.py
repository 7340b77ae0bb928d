# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which calls of modules are run again, so that enough memory is spared in the least time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

__all__ = ["ModuleCall", "chosen"]

_LEAST_FRACTION = 1 / 256  # of what is needed, that one call spares

_LATE_PARTS = 4


@dataclass(frozen=True)
class ModuleCall:
    """A call of a module in a forward pass; calls are numbered as they begin.

    Parameters
    ----------
    end : int
        The number of the first call that begins after this one has ended: those between the two are
        calls within this one.
    spared_bytes : int
        What autograd keeps of it, that it need not keep if the module is run again.
    kept_later_bytes : int
        What autograd keeps after its end: in the backward pass that is gone before this one is run
        again.
    seconds : float
        How long it takes to run again.
    """

    end: int
    spared_bytes: int
    kept_later_bytes: int
    seconds: float


def chosen(calls: Sequence[ModuleCall | None], needed_bytes: int) -> list[int]:
    """Return the numbers of calls to run again, none within another; fewer where not enough spare.

    Those that take the least time for each byte come first, smaller ones rather than larger ones,
    and of equals the earlier one. A module that is run again needs its memory once more: what was
    kept later has to have made room for it.

    Parameters
    ----------
    calls : sequence of ModuleCall or None
        In the order in which they begin; None for those that cannot be run again.
    needed_bytes : int
        To spare.

    Examples
    --------
    A module with two calls within, and one after it:

    >>> told = (3, 50, 40, 3.0), (2, 20, 70, 0.5), (3, 20, 40, 2.5), (4, 40, 0, 2.0)
    >>> calls = [ModuleCall(*each) for each in told]
    >>> chosen(calls, 20)
    [1]
    >>> chosen(calls, 30)  # for the last one nothing would make room
    [1, 2]
    """
    sizes = [
        0
        if call is None or call.spared_bytes < needed_bytes * _LEAST_FRACTION
        else call.spared_bytes
        for call in calls
    ]
    while True:
        picked = _picked(calls, sizes, needed_bytes)
        late = _too_late(calls, sizes, picked, needed_bytes)
        if not late:
            return picked
        # The fewer there are, the less room is needed: those before the last may be right by then.
        for number in late[-(len(late) // _LATE_PARTS) - 1 :]:
            sizes[number] = 0


def _too_late(
    calls: Sequence[ModuleCall | None], sizes: Sequence[int], picked: list[int], needed_bytes: int
) -> list[int]:
    """Return those for which there is no room when they are run again."""
    late = []
    before_bytes = 0
    spared_bytes = min(needed_bytes, sum(sizes[number] for number in picked))
    for number in picked:
        call = calls[number]
        assert call is not None
        if before_bytes + call.kept_later_bytes < spared_bytes:
            late.append(number)
        before_bytes += sizes[number]
    return late


def _picked(
    calls: Sequence[ModuleCall | None], sizes: Sequence[int], needed_bytes: int
) -> list[int]:
    picked: set[int] = set()
    spared_bytes = 0
    while spared_bytes < needed_bytes:
        best = _next(calls, sizes, picked, needed_bytes)
        if best is None:
            break
        found = calls[best]
        assert found is not None
        picked -= set(range(best, found.end))
        picked.add(best)
        spared_bytes = sum(sizes[each] for each in picked)
    for number in sorted(picked, key=lambda each: _seconds(calls[each]), reverse=True):
        if spared_bytes - sizes[number] >= needed_bytes:  # those after it spare enough
            picked.remove(number)
            spared_bytes -= sizes[number]
    return sorted(picked)


def _next(
    calls: Sequence[ModuleCall | None], sizes: Sequence[int], picked: set[int], needed_bytes: int
) -> int | None:
    """Return the call that spares one more byte in the least time, of a size that suits."""
    inside = sorted(picked)
    spared = list(accumulate((sizes[each] for each in inside), initial=0))
    taken = list(accumulate((_seconds(calls[each]) for each in inside), initial=0.0))
    best, least = None, 0.0
    covered = 0  # up to which call something picked reaches
    for number, call in enumerate(calls):
        if number in picked:
            assert call is not None
            covered = max(covered, call.end)
        if call is None or not sizes[number] or number < covered:
            continue
        first, last = bisect_left(inside, number), bisect_left(inside, call.end)
        more = sizes[number] - (spared[last] - spared[first])
        longer = call.seconds - (taken[last] - taken[first])
        if more <= 0:
            continue
        cost = longer / more * (1 + sizes[number] / needed_bytes)
        if best is None or cost < least:
            best, least = number, cost
    return best


def _seconds(call: ModuleCall | None) -> float:
    return 0.0 if call is None else call.seconds
