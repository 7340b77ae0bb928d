# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How little device memory a workload bears: a search on the curve of time against capacity."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rmm_uvm.support.units import VA_BLOCK_BYTES, whole_blocks

__all__ = ["smallest_capacity"]

_STEPS = 6


def smallest_capacity(
    slowdown: Callable[[int], float | None],
    fitting_bytes: int,
    most_slowdown: float,
    *,
    known: Iterable[int] = (),
    steps: int = _STEPS,
) -> int | None:
    """Return the least managed capacity, bytes, at which a slowdown is not passed; None if none is.

    Parameters
    ----------
    slowdown : callable
        Time with so many bytes, over the time with room for everything; None if the workload runs
        out of memory.
    fitting_bytes : int
        Capacity at which everything has room.
    most_slowdown : float
        Bound, >= 1.
    known : iterable of int
        Capacities, bytes, whose slowdown costs nothing to ask for. The result is above all of them
        that pass the bound, so that it contradicts none.
    steps : int
        The result is exact to `fitting_bytes` / 2**steps, or a block.

    Notes
    -----
    If the curve is not monotonous it is one of the places where it crosses the bound.

    Examples
    --------
    >>> smallest_capacity(lambda size: 1.0 if size >= 24 << 20 else 2.0, 64 << 20, 1.25) >> 20
    24
    >>> smallest_capacity(lambda size: None, 64 << 20, 1.25) is None
    True
    """

    def is_enough(size: int) -> bool:
        found = slowdown(size)
        return found is not None and found <= most_slowdown

    top = whole_blocks(fitting_bytes)
    if not is_enough(top):
        return None
    told = {size: is_enough(size) for size in known if size < top}
    bad = max((size for size, enough in told.items() if not enough), default=0)
    good = min((size for size, enough in told.items() if enough and size > bad), default=top)
    exact = max(top >> steps, VA_BLOCK_BYTES)
    while good - bad > exact:
        middle = whole_blocks((good + bad) / 2)
        if middle in (good, bad):
            break
        if is_enough(middle):
            good = middle
        else:
            bad = middle
    return good
