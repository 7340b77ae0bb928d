# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What this process holds now: resident memory, heap, descriptors, threads. Linux and glibc."""

from __future__ import annotations

import ctypes
import gc
import time
from dataclasses import dataclass
from pathlib import Path

_READINGS, _PAUSE_SECONDS = 5, 0.004
_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)


class _Mallinfo2(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


@dataclass(frozen=True)
class ProcessLevels:
    """Levels of this process.

    Attributes
    ----------
    rss_bytes : int
        Resident memory, without `besides_bytes`.
    trimmed_rss_bytes : int
        The same once malloc has given back the pages that it keeps free. It has an arena for some
        threads each, and each keeps as much as the most that any thread ever needed there.
    heap_bytes : int
        Allocated by malloc and not freed. Python's small objects come in arenas of their own.
    descriptors, threads : int
        Open files, and threads of any language. A file that another thread has open for a moment,
        as the monitor has once a second, is not held.
    """

    rss_bytes: int
    trimmed_rss_bytes: int
    heap_bytes: int
    descriptors: int
    threads: int


def process_levels(besides_bytes: int = 0) -> ProcessLevels:
    """Return what this process holds, once its garbage is collected and free memory given back.

    Parameters
    ----------
    besides_bytes : int
        Of the resident memory, what a simulated device keeps for its managed memory.
    """
    gc.collect()
    rss_bytes = _status("VmRSS") << 10
    ctypes.CDLL(None).malloc_trim(0)
    return ProcessLevels(
        rss_bytes=rss_bytes - besides_bytes,
        trimmed_rss_bytes=(_status("VmRSS") << 10) - besides_bytes,
        heap_bytes=_heap_bytes(),
        descriptors=_held_descriptors(),
        threads=_status("Threads"),
    )


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)[name].split()[0])


def _held_descriptors() -> int:
    least = _open_descriptors()
    for _ in range(_READINGS - 1):
        time.sleep(_PAUSE_SECONDS)
        least = min(least, _open_descriptors())
    return least


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) - 1  # without that of the listing


def _heap_bytes() -> int:
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    found = mallinfo2()
    return int(found.uordblks + found.hblkhd)
