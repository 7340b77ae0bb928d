# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A pool in Python that decides where allocations go: a model of what a pool of our own could do.

For figures of traffic only. It knows what no pool does, for nothing: where each page is.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import rmm

BLOCK_BYTES = 2 << 20
SMALL_BYTES = 1 << 20
ALIGNMENT_BYTES = 256


@dataclass(frozen=True)
class Rules:
    """Where allocations go; without any of them, best fit and lowest address, as in RMM's pool.

    Attributes
    ----------
    small_apart : bool
        Allocations below 1 MiB share blocks of 2 MiB with each other only.
    large_aligned : bool
        Allocations of 1 MiB and more begin at a block, and have all of their last one.
    resident_first : bool
        The free place that is on the device with most of its bytes; then best fit.
    """

    small_apart: bool = False
    large_aligned: bool = False
    resident_first: bool = False


class FreeRanges:
    """Free memory in ascending order; neighbours join, but not over a `border`."""

    def __init__(self, is_border: Callable[[int], bool]) -> None:
        self._is_border = is_border
        self._starts: list[int] = []
        self._bytes: dict[int, int] = {}

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((start, self._bytes[start]) for start in self._starts)

    def take(self, first: int, nbytes: int) -> None:
        """Take memory out of the range that holds it."""
        at = bisect.bisect_right(self._starts, first) - 1
        start = self._starts[at]
        end = start + self._bytes.pop(start)
        left = [
            (begin, stop) for begin, stop in ((start, first), (first + nbytes, end)) if begin < stop
        ]
        self._starts[at : at + 1] = [begin for begin, _ in left]
        self._bytes.update((begin, stop - begin) for begin, stop in left)

    def give(self, first: int, nbytes: int) -> tuple[int, int]:
        """Put memory back; return the range that it is part of now."""
        at = bisect.bisect_left(self._starts, first)
        end = first + nbytes
        if at < len(self._starts) and self._starts[at] == end and not self._is_border(end):
            end += self._bytes.pop(self._starts.pop(at))
        if at > 0 and not self._is_border(first):
            before = self._starts[at - 1]
            if before + self._bytes[before] == first:
                at -= 1
                first = self._starts.pop(at)
        self._starts.insert(at, first)
        self._bytes[first] = end - first
        return first, end - first


class Space:
    """The memory of a pool, in slabs of `upstream`.

    Parameters
    ----------
    upstream : rmm.mr.DeviceMemoryResource
        Source of slabs.
    slab_bytes : int
        First slab; it grows as RMM's pool does, by as much as it has.
    rules : Rules
        Where allocations go.
    resident_bytes : callable
        How much of an address range, given by address and bytes, is on the device.
    """

    def __init__(
        self,
        upstream: rmm.mr.DeviceMemoryResource,
        slab_bytes: int,
        rules: Rules,
        resident_bytes: Callable[[int, int], int],
    ) -> None:
        self._upstream = upstream
        self._rules = rules
        self._resident_bytes = resident_bytes
        self._slabs: dict[int, int] = {}
        self._ranges = FreeRanges(self._slabs.__contains__)
        self._small_ranges = FreeRanges(lambda address: address % BLOCK_BYTES == 0)
        self._grow(slab_bytes)

    def __del__(self) -> None:
        for start, nbytes in self._slabs.items():
            self._upstream.deallocate(start, nbytes)

    def allocate(self, nbytes: int, stream: Any = None) -> int:
        """Return the address of new memory."""
        if self._is_small(nbytes):
            if (place := self._place(self._small_ranges, _up(nbytes), ALIGNMENT_BYTES)) is None:
                place = self._allocate_from_slabs(BLOCK_BYTES, BLOCK_BYTES)
                self._small_ranges.give(place, BLOCK_BYTES)
            self._small_ranges.take(place, _up(nbytes))
            return place
        step = self._step(nbytes)
        return self._allocate_from_slabs(_up(nbytes, step), step)

    def deallocate(self, address: int, nbytes: int, stream: Any = None) -> None:
        """Take memory back."""
        if not self._is_small(nbytes):
            self._ranges.give(address, _up(nbytes, self._step(nbytes)))
            return
        first, free_bytes = self._small_ranges.give(address, _up(nbytes))
        if free_bytes == BLOCK_BYTES:
            self._small_ranges.take(first, free_bytes)
            self._ranges.give(first, free_bytes)

    def _is_small(self, nbytes: int) -> bool:
        return self._rules.small_apart and nbytes < SMALL_BYTES

    def _step(self, nbytes: int) -> int:
        aligned = self._rules.large_aligned and nbytes >= SMALL_BYTES
        return BLOCK_BYTES if aligned else ALIGNMENT_BYTES

    def _grow(self, least_bytes: int) -> None:
        nbytes = _up(max(least_bytes, sum(self._slabs.values())), BLOCK_BYTES)
        start = self._upstream.allocate(nbytes)
        if start % BLOCK_BYTES:
            raise ValueError(f"a slab begins at {start:#x}, which is no multiple of 2 MiB")
        self._slabs[start] = nbytes
        self._ranges.give(start, nbytes)

    def _allocate_from_slabs(self, nbytes: int, alignment: int) -> int:
        if (place := self._place(self._ranges, nbytes, alignment)) is None:
            self._grow(nbytes)
            place = self._place(self._ranges, nbytes, alignment)
        assert place is not None
        self._ranges.take(place, nbytes)
        return place

    def _place(self, ranges: FreeRanges, nbytes: int, alignment: int) -> int | None:
        fitting = sorted(
            (free_bytes, _up(start, alignment), start + free_bytes)
            for start, free_bytes in ranges
            if _up(start, alignment) + nbytes <= start + free_bytes
        )
        if not fitting:
            return None
        if not self._rules.resident_first:
            return fitting[0][1]
        most, found = -1, 0
        for _, first, end in fitting:
            there, place = self._most_resident(first, end, nbytes)
            if there > most:
                most, found = there, place
            if most == nbytes:
                break
        return found

    def _most_resident(self, first: int, end: int, nbytes: int) -> tuple[int, int]:
        """Return how much is on the device, and from where, of the best place in a range."""
        there = self._resident_bytes(first, end - first)
        if there in (0, end - first):
            return min(there, nbytes), first
        places = [first, *range(_up(first, BLOCK_BYTES), end - nbytes + 1, BLOCK_BYTES)]
        most, at = max((self._resident_bytes(place, nbytes), -place) for place in places)
        return most, -at


class PlacedPool(rmm.mr.CallbackMemoryResource):  # type: ignore[misc]
    """A `Space` as a memory resource.

    Parameters
    ----------
    upstream : rmm_uvm.mr.ManagedMemoryResource
        On a simulated device, which tells where pages are.
    slab_bytes : int
        First slab.
    rules : Rules
        Where allocations go.
    """

    def __init__(self, upstream: Any, slab_bytes: int, rules: Rules) -> None:
        space = Space(upstream, slab_bytes, rules, upstream.driver.resident_bytes)
        super().__init__(space.allocate, space.deallocate)
        self.upstream_mr = upstream


def _up(number: int, step: int = ALIGNMENT_BYTES) -> int:
    return -(-number // step) * step
