# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The placements that are compared, and a card that looks after what they hand out."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import rmm

from benchmarks.pool.placement_model import BLOCK_BYTES, SMALL_BYTES, PlacedPool, Rules
from benchmarks.residency.policy_card import MIB, Card

# What bins and the pool for small allocations take from below at a time.
SMALL_SLAB_BYTES = 32 * MIB
MakePool = Callable[[Any, int], Any]


def _fixed_size_bins(managed: Any, slab_bytes: int) -> Any:
    pool = rmm.mr.PoolMemoryResource(managed, slab_bytes)
    binned = rmm.mr.BinningMemoryResource(pool)
    for exponent in range(8, 20):
        nbytes = 1 << exponent
        bin_mr = rmm.mr.FixedSizeMemoryResource(pool, nbytes, BLOCK_BYTES // nbytes)
        binned.add_bin(nbytes, bin_mr)
    return binned


def _pool_for_small(managed: Any, slab_bytes: int) -> Any:
    binned = rmm.mr.BinningMemoryResource(rmm.mr.PoolMemoryResource(managed, slab_bytes))
    small = rmm.mr.PoolMemoryResource(managed, SMALL_SLAB_BYTES)
    binned.add_bin(SMALL_BYTES - 256, small)
    return binned


def _modelled(**rules: bool) -> MakePool:
    return lambda managed, slab_bytes: PlacedPool(managed, slab_bytes, Rules(**rules))


BASE = "RMM's pool"
CONTROL = "model of RMM's pool"
STOCK: Mapping[str, MakePool] = {
    BASE: rmm.mr.PoolMemoryResource,
    "fixed-size bins for small": _fixed_size_bins,
    "a pool for small": _pool_for_small,
}
ARENA = "arena"  # asks the CUDA runtime for the device: only where there is a GPU
OWN: Mapping[str, MakePool] = {
    "small apart": _modelled(small_apart=True),
    "large aligned": _modelled(large_aligned=True),
    "resident first": _modelled(resident_first=True),
    "small apart, large aligned": _modelled(small_apart=True, large_aligned=True),
    "all three": _modelled(small_apart=True, large_aligned=True, resident_first=True),
}
PLACEMENTS: Mapping[str, MakePool] = {
    **STOCK,
    ARENA: rmm.mr.ArenaMemoryResource,
    CONTROL: _modelled(),
    **OWN,
}


def lacks_gpu(error: RuntimeError) -> bool:
    """Tell whether a placement could not be made for want of a GPU."""
    return "CUDA error" in str(error)


@dataclass
class PlacedCard(Card):
    """A card that ends a program whose allocations overlap, and counts blocks with live bytes.

    Attributes
    ----------
    peak_block_bytes : int
        Most bytes of blocks of 2 MiB that had a live byte at a time: what is needed on the device
        for everything to be there.
    used_block_bytes : int
        Bytes of the blocks that were ever handed out: what a slab has to have.
    """

    peak_block_bytes: int = 0
    _used: set[int] = field(default_factory=set)
    _live: list[int] = field(default_factory=list)
    _ends: dict[int, int] = field(default_factory=dict)
    _blocks: Counter[int] = field(default_factory=Counter)

    def allocate(self, nbytes: int) -> int:
        """Allocate.

        Raises
        ------
        ValueError
            If somebody else has a byte of it.
        """
        address = super().allocate(nbytes)
        self.keep(address, nbytes)
        return address

    @property
    def used_block_bytes(self) -> int:
        """See the class."""
        return len(self._used) * BLOCK_BYTES

    def keep(self, address: int, nbytes: int) -> None:
        """Note a live allocation."""
        at = bisect.bisect_right(self._live, address)
        before = self._live[at - 1] if at else None
        over = before is not None and self._ends[before] > address
        if over or (at < len(self._live) and self._live[at] < address + nbytes):
            raise ValueError(f"{nbytes} bytes at {address:#x} are somebody else's already")
        self._live.insert(at, address)
        self._ends[address] = address + nbytes
        self._blocks.update(_blocks_of(address, nbytes))
        self._used.update(_blocks_of(address, nbytes))
        self.peak_block_bytes = max(self.peak_block_bytes, len(self._blocks) * BLOCK_BYTES)

    def free(self, address: int) -> None:
        """Free an allocation."""
        for block in _blocks_of(address, self._ends.pop(address) - address):
            self._blocks[block] -= 1
            if not self._blocks[block]:
                del self._blocks[block]
        self._live.remove(address)
        super().free(address)


def _blocks_of(address: int, nbytes: int) -> range:
    return range(address // BLOCK_BYTES, (address + nbytes - 1) // BLOCK_BYTES + 1)
