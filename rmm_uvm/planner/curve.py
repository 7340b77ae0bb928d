# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How little device memory a workload bears: a search on the curve of time against capacity."""

from __future__ import annotations

from collections.abc import Callable

from rmm_uvm.planner.capacities import BLOCK_BYTES, whole_blocks

__all__ = ["smallest_capacity"]

_STEPS = 6


def smallest_capacity(
    slowdown: Callable[[int], float | None],
    fitting_bytes: int,
    most_slowdown: float,
    *,
    steps: int = _STEPS,
) -> int:
    """Return the least managed capacity, bytes, at which a slowdown is not passed.

    Parameters
    ----------
    slowdown : callable
        Time with so many bytes, over the time with room for everything; None if the workload runs
        out of memory.
    fitting_bytes : int
        Capacity at which everything has room.
    most_slowdown : float
        Bound, >= 1.
    steps : int
        Calls of `slowdown` at most; the result is exact to `fitting_bytes` / 2**steps.

    Notes
    -----
    If the curve is not monotonous it is one of the places where it crosses the bound.

    Examples
    --------
    >>> smallest_capacity(lambda size: 1.0 if size >= 24 << 20 else 2.0, 64 << 20, 1.25) >> 20
    24
    """
    good, bad = whole_blocks(fitting_bytes), 0
    for _ in range(steps):
        middle = whole_blocks((good + bad) / 2)
        if middle in (good, bad) or good - bad <= BLOCK_BYTES:
            break
        found = slowdown(middle)
        if found is not None and found <= most_slowdown:
            good = middle
        else:
            bad = middle
    return good
