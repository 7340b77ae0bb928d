# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes of device memory by address."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rmm_uvm.errors import DataError
from rmm_uvm.support.messages import shown

__all__ = ["Region", "checked_region", "joined"]

_ADDRESS_END = 1 << 64


class Region(NamedTuple):
    """Bytes of device memory: first address, and how many, > 0."""

    address: int
    nbytes: int

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.nbytes


def checked_region(address: object, nbytes: object) -> Region:
    """Return a region of what somebody says are an address and a size in bytes; may be empty.

    Raises
    ------
    DataError
        If they are no numbers, one is negative, or no address space has them.
    """
    try:
        region = Region(int(address), int(nbytes))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise DataError(
            f"({shown(address)}, {shown(nbytes)}): expected an address and a number of bytes"
        ) from None
    if region.address < 0 or region.nbytes < 0 or region.end > _ADDRESS_END:
        raise DataError(
            f"({shown(address)}, {shown(nbytes)}): no address space has these bytes; address and "
            "size are 0 or more"
        )
    return region


def joined(regions: Iterable[Region]) -> list[Region]:
    """Return the same bytes with every byte in one region: ascending, adjacent ones joined.

    Examples
    --------
    >>> joined([Region(100, 50), Region(0, 10), Region(120, 80)])
    [Region(address=0, nbytes=10), Region(address=100, nbytes=100)]
    """
    found: list[Region] = []
    for region in sorted(regions):
        if found and region.address <= found[-1].end:
            last = found.pop()
            region = Region(last.address, max(last.end, region.end) - last.address)
        found.append(region)
    return found
