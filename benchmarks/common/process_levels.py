# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What this process holds now: resident memory, heap, descriptors, threads. Linux and glibc."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.malloc_arenas import arenas_rss_bytes, mallinfo2

_READINGS, _PAUSE_SECONDS = 5, 0.004


@dataclass(frozen=True)
class ProcessLevels:
    """Levels of this process.

    Attributes
    ----------
    rss_bytes : int
        Resident memory, without `besides_bytes`.
    held_bytes : int
        The same without what malloc keeps free: what is resident outside its arenas, and what is
        allocated in them. That counts where it is not resident too, so that this can be over
        `rss_bytes`: it is for how much came, not for what part of the other it is.
    heap_bytes : int
        Allocated by malloc and not freed. Python's small objects come in arenas of their own.
    descriptors, threads : int
        Open files, and threads of any language. A file that another thread has open for a moment,
        as the monitor has once a second, is not held.
    """

    rss_bytes: int
    held_bytes: int
    heap_bytes: int
    descriptors: int
    threads: int


def process_levels(besides_bytes: int = 0) -> ProcessLevels:
    """Return what this process holds, once its garbage is collected.

    Parameters
    ----------
    besides_bytes : int
        Of the resident memory, what a simulated device keeps for its managed memory.
    """
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    rss_bytes = (int(status["VmRSS"].split()[0]) << 10) - besides_bytes
    allocated = mallinfo2()
    return ProcessLevels(
        rss_bytes=rss_bytes,
        held_bytes=rss_bytes - arenas_rss_bytes() + allocated.uordblks,
        heap_bytes=allocated.uordblks + allocated.hblkhd,
        descriptors=_held_descriptors(),
        threads=int(status["Threads"]),
    )


def _held_descriptors() -> int:
    least = _open_descriptors()
    for _ in range(_READINGS - 1):
        time.sleep(_PAUSE_SECONDS)
        least = min(least, _open_descriptors())
    return least


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) - 1  # without that of the listing
