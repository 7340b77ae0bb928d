# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Card sizes: those that a plan looks at by default, and what counts as room for everything.

Pure functions over sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmm_uvm.support.units import whole_blocks

__all__ = ["card_sizes", "fitting_bytes"]

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
