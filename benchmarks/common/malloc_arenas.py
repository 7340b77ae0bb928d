# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""malloc's arenas in this process: what is resident of them, what is allocated. Linux and glibc.

malloc has one arena at the program's break and others for threads, which come in parts. A part
begins at a multiple of its largest size and is reserved up to there; its end stays as large as the
most that any thread that met it ever needed.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

PART_BYTES = 64 << 20
_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)
_HEADING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+ *(.*)")


class Mallinfo2(ctypes.Structure):
    """glibc's ``struct mallinfo2``, over all arenas."""

    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


@dataclass(frozen=True)
class Mapping:
    """An area of addresses with one way of access, and what of it is resident."""

    begin: int
    end: int
    access: str
    name: str
    rss_bytes: int


def mallinfo2() -> Mallinfo2:
    """Return what malloc tells of itself."""
    function = ctypes.CDLL(None).mallinfo2
    function.restype = Mallinfo2
    found: Mallinfo2 = function()
    return found


def mappings(lines: Iterable[str]) -> list[Mapping]:
    """Return those in the lines of ``/proc/PID/smaps``."""
    found: list[Mapping] = []
    for line in lines:
        if heading := _HEADING.match(line):
            begin, end, access, name = heading.groups()
        elif line.startswith("Rss:"):
            rss_bytes = int(line.split()[1]) << 10
            found.append(Mapping(int(begin, 16), int(end, 16), access, name, rss_bytes))
    return found


def parts_of_arenas(areas: Iterable[Mapping]) -> list[Mapping]:
    """Return those among `areas`, in the order of addresses, that are malloc's."""
    nothing = Mapping(0, 0, "", "", 0)
    return [
        area
        for area, after in pairwise((*areas, nothing))
        if area.name == "[heap]" or _is_part_of_a_thread_arena(area, after)
    ]


def arenas_rss_bytes() -> int:
    """Return what of this process' arenas is resident."""
    with Path("/proc/self/smaps").open() as lines:
        return sum(one.rss_bytes for one in parts_of_arenas(mappings(lines)))


def _is_part_of_a_thread_arena(area: Mapping, after: Mapping) -> bool:
    if area.name or area.access != "rw-p" or area.begin % PART_BYTES:
        return False
    is_reserved = after.access == "---p" and after.begin == area.end and not after.name
    return (after.end if is_reserved else area.end) >= area.begin + PART_BYTES and (
        area.end - area.begin <= PART_BYTES
    )
