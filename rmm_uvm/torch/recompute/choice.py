# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which calls of modules are run again, so that enough memory is spared in the least time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

__all__ = ["ModuleCall", "chosen"]

_MOST_FRACTION = 1 / 2  # of what is needed, that one call spares: it comes back as a whole
_LEAST_FRACTION = 1 / 256


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
    seconds : float
        How long it takes to run again.
    """

    end: int
    spared_bytes: int
    seconds: float


def chosen(calls: Sequence[ModuleCall | None], needed_bytes: int) -> list[int]:
    """Return the numbers of calls to run again, none within another; fewer where not enough spare.

    Those that take the least time for each byte come first, and of equals the earlier one. What is
    run again comes back as a whole: so none spares more than half of what is needed, and the last
    one, for which nothing that was kept later could make room, does not count.

    Parameters
    ----------
    calls : sequence of ModuleCall or None
        In the order in which they begin; None for those that cannot be run again.
    needed_bytes : int
        To spare.

    Examples
    --------
    A module with two calls within, and a module of its own:

    >>> told = (3, 50, 3.0), (2, 20, 0.5), (3, 20, 2.5), (4, 40, 2.0)
    >>> calls = [ModuleCall(*each) for each in told]
    >>> chosen(calls, 100)  # the first as a whole: its parts alone spare too little
    [0, 3]
    >>> chosen(calls, 40)
    [1, 2]
    """
    sizes = [
        0 if call is None or not _is_fit(call.spared_bytes, needed_bytes) else call.spared_bytes
        for call in calls
    ]
    picked: set[int] = set()
    while not picked or _spared(sizes, picked) < needed_bytes:
        best = _next(calls, sizes, picked)
        if best is None:
            break
        found = calls[best]
        assert found is not None
        picked -= set(range(best, found.end))
        picked.add(best)
    return sorted(picked)


def _is_fit(spared_bytes: int, needed_bytes: int) -> bool:
    return needed_bytes * _LEAST_FRACTION <= spared_bytes <= needed_bytes * _MOST_FRACTION


def _spared(sizes: Sequence[int], picked: set[int]) -> int:
    return sum(sizes[each] for each in picked) - sizes[max(picked)]


def _next(calls: Sequence[ModuleCall | None], sizes: Sequence[int], picked: set[int]) -> int | None:
    """Return the call that spares one more byte in the least time."""
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
        if more > 0 and (best is None or longer / more < least):
            best, least = number, longer / more
    return best


def _seconds(call: ModuleCall | None) -> float:
    return 0.0 if call is None else call.seconds
