# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The layout of a trace's events: what was allocated, freed and touched, one row each.

The compiled decoder writes the same layout (``cpp/include/rmm_uvm/monitor/trace_event.hpp``).
"""

from __future__ import annotations

import enum
import mmap
from typing import Any

import numpy as np

__all__ = ["EVENT_DTYPE", "EventFlag", "EventKind", "joined", "on_its_own"]

EVENT_DTYPE = np.dtype(
    [
        ("time_ns", "<u8"),
        ("address", "<u8"),
        ("bytes", "<u8"),
        ("stream", "<u8"),
        ("id", "<i8"),
        ("thread", "<u4"),
        ("device_id", "<i2"),
        ("kind", "u1"),
        ("flags", "u1"),
    ]
)
"""``time_ns`` counts from the trace's begin, in whole microseconds. ``stream`` is the handle, and
``thread`` the number that the kernel gave. ``id`` counts allocations from 0; a free, and a touch of
an allocation's first byte, have that of their allocation, or -1 if it is not in the trace.
``flags`` are those of `EventFlag`, added up."""


class EventKind(enum.IntEnum):
    """Values of the field ``kind``."""

    ALLOCATE = 1
    FREE = 2
    READ = 3
    """A kernel reads."""
    WRITE = 4
    """A kernel writes, or reads and writes."""
    CPU_READ = 5
    CPU_WRITE = 6
    ALLOCATE_FAILED = 7
    """Only in RMM's logs; the address is 0."""


class EventFlag(enum.IntFlag):
    """Bits of the field ``flags``: what contradicts earlier events."""

    OVERLAPS = 1
    """The allocation overlaps memory that is live."""
    OTHER_SIZE = 2
    """The free has another size than its allocation."""


def joined(
    parts: list[np.ndarray[Any, np.dtype[np.void]]], dtype: np.dtype[np.void]
) -> np.ndarray[Any, np.dtype[np.void]]:
    """Put arrays together, and empty the list meanwhile: so all is in memory once, and not twice.

    Parameters
    ----------
    parts : list of ndarray
        Nobody else should have them.
    dtype : dtype
        Of all of them.
    """
    whole = np.empty(sum(map(len, parts)), dtype)
    end = len(whole)
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole


def on_its_own(part: np.ndarray[Any, np.dtype[np.void]]) -> np.ndarray[Any, np.dtype[np.void]]:
    """Return a copy whose memory goes back to the system with it: a part that will be joined.

    The C library keeps what was freed where anything lies behind it, which depends on all that was
    allocated before. Then all parts would be in memory twice while they are joined.
    """
    # Private: neighbours become one mapping, of which a process has 65,530.
    memory = mmap.mmap(-1, max(part.nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    copy = np.frombuffer(memory, part.dtype, len(part))
    copy[:] = part
    return copy
