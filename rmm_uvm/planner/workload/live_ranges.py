# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which allocations are live, and which of their bytes a touch is of.

A recording may touch what it did not allocate: memory from before it began, memory that was freed.
Nothing is known of that, so it is no part of a workload.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.trace.events import EventKind

__all__ = ["LiveAllocations", "TouchedRanges"]

Rows: TypeAlias = np.ndarray[Any, np.dtype[np.void]]


class LiveAllocations:
    """Ranges of bytes that do not overlap, found by any address in them.

    Examples
    --------
    >>> live = LiveAllocations()
    >>> live.add(4096, 100)
    >>> list(live.overlapping(4000, 120)), list(live.overlapping(4196, 8))
    ([(4096, 100)], [])
    """

    def __init__(self) -> None:
        self._begins: list[int] = []  # in ascending order
        self._sizes: dict[int, int] = {}

    def add(self, address: int, nbytes: int) -> None:
        """Take in a range that overlaps none."""
        insort(self._begins, address)
        self._sizes[address] = nbytes

    def remove(self, address: int) -> None:
        """Take out the range that begins there."""
        del self._sizes[address]
        del self._begins[bisect_left(self._begins, address)]

    def bytes_at(self, address: int) -> int:
        """Return the size of the range that begins there; 0 if none does."""
        return self._sizes.get(address, 0)

    def overlapping(self, address: int, nbytes: int) -> Iterable[tuple[int, int]]:
        """Return begin and size of all ranges with a byte of those, in ascending order."""
        size = self._sizes.get(address, 0)
        if 0 < nbytes <= size:  # usually
            return ((address, size),)
        return self._found(address, nbytes)

    def _found(self, address: int, nbytes: int) -> Iterator[tuple[int, int]]:
        begins, sizes = self._begins, self._sizes
        place = max(bisect_right(begins, address) - 1, 0)
        while place < len(begins) and begins[place] < address + nbytes:
            begin = begins[place]
            if begin + sizes[begin] > address:
                yield begin, sizes[begin]
            place += 1


class TouchedRanges:
    """Follows a recording part by part, and tells what its touches are of."""

    def __init__(self) -> None:
        self._live = LiveAllocations()

    def follow(self, events: Rows) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return address and bytes of all events; touches from the first live byte to the last.

        A touch of nothing live has 0 bytes. Allocations and frees are as they were.

        Parameters
        ----------
        events : ndarray, dtype `rmm_uvm.trace.EVENT_DTYPE`
            The next of the recording. Allocations overlap nothing live, and frees are of what is.
        """
        addresses, nbytes = events["address"], events["bytes"]
        if (events["kind"] > EventKind.FREE).any():  # kinds of touches follow
            addresses, nbytes = addresses.copy(), nbytes.copy()
        else:
            events = _left(events)
        live = self._live
        columns = (events[name].tolist() for name in ("kind", "address", "bytes"))
        for place, (kind, address, size) in enumerate(zip(*columns, strict=True)):
            if kind == EventKind.ALLOCATE:
                live.add(address, size)
            elif kind == EventKind.FREE:
                live.remove(address)
            elif live.bytes_at(address) < size:  # most are of an allocation's first bytes
                found = list(live.overlapping(address, size))
                begin = max(found[0][0], address) if found else address
                end = min(sum(found[-1]), address + size) if found else address
                addresses[place], nbytes[place] = begin, end - begin
        return addresses, nbytes


def _left(events: Rows) -> Rows:
    """Return allocations and frees without the pairs: most is freed soon, and need not be taken in.

    Ids ascend, so that those of the first allocation here and above are allocated here.
    """
    allocated, ids = events["kind"] == EventKind.ALLOCATE, events["id"]
    here = ids[allocated]
    if not len(here):
        return events
    first = here[0]
    paired = np.zeros(here[-1] - first + 1, np.bool_)
    freed = ids[~allocated]
    paired[freed[freed >= first] - first] = True
    rest: Rows = events[(ids < first) | ~paired[np.maximum(ids - first, 0)]]
    return rest
