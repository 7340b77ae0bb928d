# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How a pool's free memory lies: its slabs, what is alive in them, and the gaps between."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCK_BYTES = 2 << 20
PAGE_BYTES = 4096
_ALIGNED_BYTES = 256  # of RMM's pool


@dataclass(frozen=True)
class Extents:
    """What is free in a pool, by extents.

    Attributes
    ----------
    free_bytes, largest_free_bytes : int
        In all, and of the largest extent: an allocation of more needs another slab.
    free_extents : int
        How many there are.
    live_block_bytes : int
        Of the blocks of 2 MiB with a live byte: what is needed on a device for all to be there.
    overlaps : int
        Allocations that begin before another one ends.
    """

    free_bytes: int
    largest_free_bytes: int
    free_extents: int
    live_block_bytes: int
    overlaps: int

    @property
    def fragmentation_fraction(self) -> float:
        """What is free outside the largest extent, over all that is free; 0 is one piece."""
        return 1 - self.largest_free_bytes / self.free_bytes if self.free_bytes else 0.0


class Slabs:
    """The slabs of a pool of ours, as far as something in them was seen alive.

    Parameters
    ----------
    mr : UvmResourceAdaptor
        The pool. RMM's pools keep their slabs until they are dropped.
    """

    def __init__(self, mr: Any) -> None:
        self._managed = mr.managed_mr
        self._known: list[tuple[int, int]] = []

    def look(self, live: Iterable[tuple[int, int]]) -> None:
        """Find the slabs of these allocations, unless all are known."""
        if not self._unseen_bytes():
            return
        for address, _ in live:
            if not any(first <= address < end for first, end in self._known):
                self._known.append(self._around(address))

    def extents(self, live: Iterable[tuple[int, int]]) -> Extents:
        """Return what is free beside these allocations, which have to be all that are alive."""
        allocations = sorted(live)
        self.look(allocations)
        # Slabs in which nothing was ever seen alive are free as a whole.
        unseen_bytes = self._unseen_bytes()
        free = [unseen_bytes] if unseen_bytes else []
        overlaps = 0
        blocks: set[int] = set()
        for first, end in self._known:
            at = first
            for address, nbytes in allocations:
                if not first <= address < end:
                    continue
                overlaps += address < at
                free.append(address - at)
                at = address + -(-nbytes // _ALIGNED_BYTES) * _ALIGNED_BYTES
                blocks.update(range(address // BLOCK_BYTES, -(-at // BLOCK_BYTES)))
            free.append(end - at)
        gaps = [nbytes for nbytes in free if nbytes > 0]
        return Extents(
            free_bytes=sum(gaps),
            largest_free_bytes=max(gaps, default=0),
            free_extents=len(gaps),
            live_block_bytes=len(blocks) * BLOCK_BYTES,
            overlaps=overlaps,
        )

    def make_resident(self) -> None:
        """Take host pages for all known slabs, of a device with backing; no byte changes.

        Otherwise the resident memory of the process would grow as long as pages are written for the
        first time.
        """
        for first, end in self._known:
            pages = np.ctypeslib.as_array((ctypes.c_ubyte * (end - first)).from_address(first))
            pages[::PAGE_BYTES] |= 0

    def _unseen_bytes(self) -> int:
        return int(self._managed.slab_bytes - sum(end - first for first, end in self._known))

    def _around(self, address: int) -> tuple[int, int]:
        """Return where the slab of an address begins and ends; those known before are others."""
        block = address // BLOCK_BYTES * BLOCK_BYTES  # where slabs begin, too
        first, end = block, block + BLOCK_BYTES
        while self._holds(first - 1):
            first -= BLOCK_BYTES
        while self._holds(end):
            end += BLOCK_BYTES
        while not self._holds(end - 1):
            end -= _ALIGNED_BYTES
        return first, end

    def _holds(self, address: int) -> bool:
        known = any(first <= address < end for first, end in self._known)
        return not known and bool(self._managed.prefetcher.holds(address))
