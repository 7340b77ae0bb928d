# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ranges of addresses: joined, without others, as whole pages or blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

PAGE_BYTES = 4096
BLOCK_BYTES = 2 << 20

Range = tuple[int, int]
"""First byte, and bytes."""


def joined(ranges: Iterable[Range], unit_bytes: int = PAGE_BYTES) -> list[Range]:
    """Return ascending ranges of whole units that hold all of some ranges, each byte once."""
    found: list[Range] = []
    begin = end = 0
    for address, nbytes in sorted(ranges):
        first = address // unit_bytes * unit_bytes
        last = -(-(address + nbytes) // unit_bytes) * unit_bytes
        if first > end or begin == end:
            if end > begin:
                found.append((begin, end - begin))
            begin, end = first, last
        else:
            end = max(end, last)
    if end > begin:
        found.append((begin, end - begin))
    return found


def without(ranges: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """Return what others do not hold; both are ascending and joined."""
    found: list[Range] = []
    taken = list(others)
    at = 0
    for address, nbytes in ranges:
        begin, end = address, address + nbytes
        while at < len(taken) and sum(taken[at]) <= begin:
            at += 1
        here = at
        while here < len(taken) and taken[here][0] < end:
            if taken[here][0] > begin:
                found.append((begin, taken[here][0] - begin))
            begin = max(begin, sum(taken[here]))
            here += 1
        if begin < end:
            found.append((begin, end - begin))
    return found


def by_block(ranges: Iterable[Range]) -> Iterator[Range]:
    """Split ranges where blocks begin: no block is of two allocations of the driver."""
    for address, nbytes in ranges:
        end = address + nbytes
        while address < end:
            next_address = min(end, (address // BLOCK_BYTES + 1) * BLOCK_BYTES)
            yield address, next_address - address
            address = next_address


def bytes_of(ranges: Iterable[Range]) -> int:
    """Return the bytes of ranges that are joined."""
    return sum(nbytes for _, nbytes in ranges)
