# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the CPU's page tables tell which managed pages lie on the host, and what a look costs."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .answer import Answer, Question
from .session import BLOCK_BYTES, MIB, Session

PAGE_BYTES = os.sysconf("SC_PAGESIZE")
SIZE_BYTES = 64 * MIB
COST_BLOCKS = 512
REPEATS = 5
PAGEMAP_SCAN = 0xC0606610  # Linux 6.7, include/uapi/linux/fs.h
PAGE_IS_PRESENT = 1 << 3
PRESENT_BIT = 1 << 63
READ_MOSTLY, UNSET_READ_MOSTLY = 1, 2  # CUmem_advise
_REGIONS = 1024


class PageTables:
    """The operating system's account of this process' pages, ``/proc/self/pagemap``."""

    def __init__(self) -> None:
        self._file = os.open("/proc/self/pagemap", os.O_RDONLY)
        self._regions = (ctypes.c_uint64 * (3 * _REGIONS))()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def read_unmapped(self, pointer: int, size_bytes: int) -> int:
        """Return the bytes that the CPU has not mapped, by entries of 8 bytes a page."""
        entries = os.pread(self._file, size_bytes // PAGE_BYTES * 8, pointer // PAGE_BYTES * 8)
        values = struct.unpack(f"{len(entries) // 8}Q", entries)
        return sum(not value & PRESENT_BIT for value in values) * PAGE_BYTES

    def scan_unmapped(self, pointer: int, size_bytes: int) -> int | None:
        """Return the same by one call for many pages; None where the kernel is older than 6.7."""
        unmapped, end = 0, pointer + size_bytes
        while pointer < end:
            address = ctypes.addressof(self._regions)
            categories = PAGE_IS_PRESENT, PAGE_IS_PRESENT, 0, 0  # inverted, all of, any of, told
            argument = bytearray(
                struct.pack("12Q", 96, 0, pointer, end, 0, address, _REGIONS, 0, *categories)
            )
            try:
                count = fcntl.ioctl(self._file, PAGEMAP_SCAN, argument)
            except OSError:
                return None
            pointer = struct.unpack("12Q", argument)[4]
            unmapped += sum(
                self._regions[3 * index + 1] - self._regions[3 * index] for index in range(count)
            )
        return unmapped


@contextmanager
def page_tables() -> Iterator[PageTables]:
    """Lend the account of this process' pages."""
    tables = PageTables()
    try:
        yield tables
    finally:
        tables.close()


def conclude(rows: list[dict[str, Any]], costs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return whether what is unmapped is what is not on the host, and what a look costs."""
    told = {row["after"]: row["unmapped_fraction"] for row in rows}
    blocks = {row["way"]: row["total_ns"]["median"] / row["blocks"] for row in costs}
    return {
        "what_went_to_the_host_is_mapped": told["prefetch to the host"] == 0,
        "what_a_prefetch_takes_is_unmapped": told["prefetch to the device"] == 1,
        "what_a_kernel_faults_in_is_unmapped": told["a kernel writes the first half"] == 0.5,
        "what_both_have_is_mapped": told["prefetch of what is read mostly"] == 0,
        "a_look_moves_no_bytes": all(
            row["htod_bytes"]["maximum"] == row["dtoh_bytes"]["maximum"] == 0 for row in costs
        ),
        "untouched_pages_are_made_by_a_prefetch_to_the_host": told[
            "prefetch of untouched pages to the host"
        ]
        == 0,
        "ns_per_block": {way: round(ns) for way, ns in blocks.items()},
    }


def ask(session: Session) -> Answer:
    """Look at the CPU's page tables after each way in which pages can move."""
    with page_tables() as tables:
        rows = list(_after_each_move(session, tables))
        costs = list(_costs(session, tables))
    return Answer({"moves": rows, "costs": costs}, conclude(rows, costs))


def look_after(
    session: Session,
    tables: PageTables,
    what: str,
    act: Callable[[], None],
    memory: tuple[int, int],
) -> dict[str, Any]:
    """Do something; return what it moved, and what of a memory is unmapped: address and bytes."""
    before = session.counters.read()
    act()
    session.synchronize()
    moved = session.counters.read().since(before)
    return {
        "after": what,
        "unmapped_fraction": tables.read_unmapped(*memory) / memory[1],
        "htod_bytes": moved.htod_bytes,
        "dtoh_bytes": moved.dtoh_bytes,
    }


def _after_each_move(session: Session, tables: PageTables) -> Iterator[dict[str, Any]]:
    def after(what: str, act: Callable[[], None], pointer: int) -> dict[str, Any]:
        return look_after(session, tables, what, act, (pointer, SIZE_BYTES))

    def write(pointer: int, size_bytes: int) -> None:
        session.cuda("cuMemsetD8Async", pointer, 7, size_bytes, session.stream)

    with session.managed_blocks(SIZE_BYTES) as region:
        session.fill(region, SIZE_BYTES, 1)
        to_host = lambda: session.move(region, SIZE_BYTES, session.on_host)  # noqa: E731
        to_device = lambda: session.move(region, SIZE_BYTES, session.on_device)  # noqa: E731
        yield after("prefetch to the host", to_host, region)
        yield after("prefetch to the device", to_device, region)
        to_host()
        yield after(
            "a kernel writes the first half", lambda: write(region, SIZE_BYTES // 2), region
        )
        yield after("prefetch to the host of what is there in part", to_host, region)
        session.advise(region, SIZE_BYTES, READ_MOSTLY)
        yield after("prefetch of what is read mostly", to_device, region)
        yield after("prefetch to the host of what both have", to_host, region)
        session.advise(region, SIZE_BYTES, UNSET_READ_MOSTLY)
    with session.managed_blocks(SIZE_BYTES) as region:
        yield after(
            "prefetch of untouched pages to the host",
            lambda: session.move(region, SIZE_BYTES, session.on_host),
            region,
        )


def _costs(session: Session, tables: PageTables) -> Iterator[dict[str, Any]]:
    size_bytes = COST_BLOCKS * BLOCK_BYTES
    with session.managed_blocks(size_bytes) as region:
        session.fill(region, size_bytes, 1)
        for where, place in (("host", session.on_host), ("device", session.on_device)):
            session.move(region, size_bytes, place)
            ways: dict[str, Callable[[], object]] = {
                f"read entries, on the {where}": lambda: tables.read_unmapped(region, size_bytes),
                f"scan, on the {where}": lambda: tables.scan_unmapped(region, size_bytes),
            }
            if where == "host":
                ways["prefetch to the host of what is there"] = lambda: session.move(
                    region, size_bytes, session.on_host
                )
            for way, look in ways.items():
                yield {"way": way, "blocks": COST_BLOCKS, **session.timed(look, REPEATS)}


QUESTION = Question(
    "host_mappings",
    "Do the CPU's page tables tell which managed pages lie on the host, and what does a look cost?",
    "64 MiB after each way in which pages move; 1 GiB looked at in three ways, 5 runs each.",
    ask,
)
