# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The regions of 2 MiB blocks that cover every recorded address."""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.errors import DataError
from rmm_uvm.planner.workload.events import Slab
from rmm_uvm.support.units import VA_BLOCK_BYTES

__all__ = ["LARGEST_SLABS_BYTES", "MOST_SLABS", "CoverageError", "CoveredBlocks"]

LARGEST_SLABS_BYTES = 16 << 40
"""More than any machine's memory; a replay needs 200 bytes for each 2 MiB of it."""
MOST_SLABS = 1 << 20

_Blocks: TypeAlias = NDArray[np.int64]


class CoverageError(DataError):
    """All ranges together are larger, or more regions, than a replay can hold.

    Attributes
    ----------
    place : int
        Of the range that was too much, among those that were added last.
    """

    def __init__(self, place: int, regions: int, covered_bytes: int) -> None:
        super().__init__(
            f"its addresses lie in {regions} regions of {covered_bytes >> 30} GiB in all, and at "
            f"most {MOST_SLABS} regions of {LARGEST_SLABS_BYTES >> 30} GiB can be replayed"
        )
        self.place = place


class CoveredBlocks:
    """Collects ranges; what they cover is kept as few regions apart from each other.

    Examples
    --------
    >>> covered = CoveredBlocks()
    >>> covered.add(np.array([4096, 3 << 20], np.uint64), np.array([10, 10], np.uint64))
    >>> covered.slabs()
    (Slab(address=0, nbytes=4194304),)
    """

    def __init__(self) -> None:
        self._begins: _Blocks = np.empty(0, np.int64)
        self._ends: _Blocks = np.empty(0, np.int64)

    def add(self, addresses: NDArray[np.uint64], nbytes: NDArray[np.uint64]) -> None:
        """Cover some ranges more.

        Parameters
        ----------
        addresses, nbytes : ndarray
            First byte and length, > 0; the end is below 2**63.

        Raises
        ------
        CoverageError
            If all together are larger, or more regions, than a replay can hold.
        """
        begins = (addresses // VA_BLOCK_BYTES).astype(np.int64)
        ends = ((addresses + nbytes - np.uint64(1)) // VA_BLOCK_BYTES).astype(np.int64) + 1
        if self._inside(begins, ends):
            return
        merged = self._with(begins, ends)
        if _too_large(merged):
            # With more ranges it only gets larger: the first that is too much is found by halving.
            place = bisect_left(
                range(len(begins)),
                True,  # noqa: FBT003 - what is looked for
                key=lambda last: _too_large(self._with(begins[: last + 1], ends[: last + 1])),
            )
            at_fault = self._with(begins[: place + 1], ends[: place + 1])
            raise CoverageError(place, len(at_fault[0]), _covered_bytes(at_fault))
        self._begins, self._ends = merged

    def slabs(self) -> tuple[Slab, ...]:
        """Return the regions in ascending order."""
        addresses = (self._begins * VA_BLOCK_BYTES).tolist()
        sizes = ((self._ends - self._begins) * VA_BLOCK_BYTES).tolist()
        return tuple(map(Slab, addresses, sizes))

    def _with(self, begins: _Blocks, ends: _Blocks) -> tuple[_Blocks, _Blocks]:
        return _merged(np.concatenate((self._begins, begins)), np.concatenate((self._ends, ends)))

    def _inside(self, begins: _Blocks, ends: _Blocks) -> bool:
        """Whether nothing is new, which after the first seconds of a recording is the rule."""
        if not len(self._begins):
            return not len(begins)
        region = np.searchsorted(self._begins, begins, side="right") - 1
        return bool(((region >= 0) & (ends <= self._ends[region])).all())


def _covered_bytes(regions: tuple[_Blocks, _Blocks]) -> int:
    return int((regions[1] - regions[0]).sum()) * VA_BLOCK_BYTES


def _too_large(regions: tuple[_Blocks, _Blocks]) -> bool:
    return _covered_bytes(regions) > LARGEST_SLABS_BYTES or len(regions[0]) > MOST_SLABS


def _merged(begins: _Blocks, ends: _Blocks) -> tuple[_Blocks, _Blocks]:
    order = begins.argsort(kind="stable")
    begins, reached = begins[order], np.maximum.accumulate(ends[order])
    # A region ends where the next range begins after everything before it.
    last = np.append(begins[1:] > reached[:-1], True)
    first = np.append(True, last[:-1])
    return begins[first], reached[last]
