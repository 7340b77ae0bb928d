# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Card sizes: those that a plan looks at by default, and the least with which a workload runs well.

Pure functions over sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rmm_uvm.support.units import VA_BLOCK_BYTES, whole_blocks

__all__ = ["card_sizes", "fitting_bytes", "smallest_capacity"]

_GIB = 1 << 30
# What cards are sold with, to programs; below, steps of a half, for small recordings.
_SOLD_GIB = (8, 11, 16, 24, 32, 40, 48, 80, 96, 141, 180, 288)
_SMALLEST_BYTES = 16 << 20


def fitting_bytes(slab_bytes: int) -> int:
    """Return device memory in which all slabs lie at once, with what a pool leaves free.

    Parameters
    ----------
    slab_bytes : int
        All slabs of a recording together, bytes.
    """
    return whole_blocks(slab_bytes * 1.25 + (256 << 20))


def card_sizes(peak_bytes: int) -> tuple[int, ...]:
    """Return the card sizes that tell most about a workload, in ascending order.

    From the first that holds a quarter of the peak to the first that holds all of it.

    Parameters
    ----------
    peak_bytes : int
        Most bytes allocated at a time, >= 0.

    Examples
    --------
    >>> [size >> 30 for size in card_sizes(60 << 30)]
    [16, 24, 32, 40, 48, 80]
    >>> [size >> 20 for size in card_sizes(100 << 20)]
    [32, 48, 64, 96, 128]
    """
    ladder = _ladder()
    first = next((size for size in ladder if size >= peak_bytes / 4), ladder[-1])
    last = next((size for size in ladder if size >= peak_bytes), ladder[-1])
    return tuple(size for size in ladder if first <= size <= last)


def _ladder() -> Sequence[int]:
    small = []
    size = _SMALLEST_BYTES
    while size < _SOLD_GIB[0] * _GIB:
        small += [size, size * 3 // 2]
        size *= 2
    return [*small, *(gib * _GIB for gib in _SOLD_GIB)]


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
