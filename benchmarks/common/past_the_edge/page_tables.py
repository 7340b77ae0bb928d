# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the CPU's page tables: which pages of managed memory the host does not hold.

A page of managed memory that was written lies on the host, where a page table says so, or on the
device. So of live memory all but what the host holds is on the device. A look moves nothing and
asks nobody: neither the manager of a budget nor libcuda. It cannot tell three things: pages that
nobody has written yet count as on the device; so do dead pages that were discarded; pages that both
have, as copies of memory that is read mostly, do not.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.common.past_the_edge.ranges import PAGE_BYTES, Range

_PAGEMAP = "/proc/self/pagemap"
_SCAN = 0xC0606610  # PAGEMAP_SCAN of linux/fs.h, Linux 6.7
_ARGUMENTS = struct.Struct("<12Q")
_PRESENT_CATEGORY = 1 << 3
_PRESENT_BIT = np.uint64(1 << 63)
_REGIONS = 1024  # that one call tells
_THREADS = 4  # a look takes a share of the time, so that less moves meanwhile
_PART_BYTES = 256 << 20  # of one call


class HostPages:
    """Looks into the page tables of this process.

    Parameters
    ----------
    scans : bool
        Ask with one call for many pages, as Linux can since 6.7; else entries are read.
    """

    def __init__(self, *, scans: bool = True) -> None:
        self._file = os.open(_PAGEMAP, os.O_RDONLY | os.O_CLOEXEC)
        self._scans = scans
        self._pool = ThreadPoolExecutor(_THREADS, "page tables")
        self._regions = threading.local()

    def not_on_host(self, ranges: Iterable[Range]) -> int:
        """Return bytes of whole pages, ascending and joined, that the host does not hold."""
        return sum(self._pool.map(self._of_part, _parts(ranges)))

    def close(self) -> None:
        """End the threads, and close the file."""
        self._pool.shutdown()
        os.close(self._file)

    def _of_part(self, part: Range) -> int:
        if self._scans:
            try:
                return self._scanned(part)
            except OSError:  # an older Linux
                self._scans = False
        return self._read(part)

    def _scanned(self, part: Range) -> int:
        regions = getattr(self._regions, "list", None)
        if regions is None:
            regions = self._regions.list = np.empty((_REGIONS, 3), np.uint64)
        at, end = part[0], sum(part)
        found = 0
        while at < end:
            present = _PRESENT_CATEGORY
            arguments = bytearray(
                _ARGUMENTS.pack(
                    *(_ARGUMENTS.size, 0, at, end, 0, regions.ctypes.data, _REGIONS),
                    *(0, present, present, 0, 0),
                )
            )
            count = fcntl.ioctl(self._file, _SCAN, arguments)
            told = regions[:count]
            found += int((told[:, 1] - told[:, 0]).sum())
            walked_to = _ARGUMENTS.unpack(arguments)[4]
            if walked_to <= at:
                raise OSError("PAGEMAP_SCAN does not go on")
            at = walked_to
        return found

    def _read(self, part: Range) -> int:
        count = part[1] // PAGE_BYTES
        entries = os.pread(self._file, 8 * count, part[0] // PAGE_BYTES * 8)
        words = np.frombuffer(entries, np.uint64)
        return int(np.count_nonzero((words & _PRESENT_BIT) == 0)) * PAGE_BYTES


def _parts(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in parts of one size at most, so that threads share them."""
    return [
        (address + offset, min(_PART_BYTES, nbytes - offset))
        for address, nbytes in ranges
        for offset in range(0, nbytes, _PART_BYTES)
    ]


@dataclass(frozen=True)
class Sample:
    """One look beside the run; all sizes in bytes."""

    seconds: float
    """When it began, by the clock of the run."""
    live_bytes: int
    """Of live managed memory, in whole blocks, and of what the host's copies stand for."""
    held_bytes: int | None
    """Of pages that the host does not hold; None where nobody looks."""
    came_bytes: int = 0
    """That moved to the device while the look lasted."""
    left_bytes: int = 0
    """That moved to the host meanwhile."""
    took_seconds: float = 0.0


class Sampler:
    """Looks every few milliseconds, from a thread.

    A look lasts some milliseconds itself, and what moves meanwhile is seen twice or not at all. So
    a sample is sure of what it saw less what came, and of no more than it saw and what left.

    Parameters
    ----------
    look : callable
        Takes a `Sample`.
    interval_seconds : float
        From the end of one look to the next; 0 starts no thread.
    """

    def __init__(self, look: Callable[[], Sample], interval_seconds: float) -> None:
        self._look, self._interval = look, interval_seconds
        self.samples: list[Sample] = []
        self.failure = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        if self._interval > 0:
            self._thread.start()

    def stop(self) -> None:
        """End looking; the thread is gone then."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def look_now(self) -> None:
        """Look from the caller's thread, where there is no other."""
        self.samples.append(self._look())

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self.look_now()
            except Exception as error:  # the run goes on, and is told to be unwatched
                self.failure = f"{type(error).__name__}: {error}"
                return
            self._ended.wait(self._interval)


def beyond(
    samples: Sequence[Sample], begin: float, end: float, budget_bytes: int, beside_bytes: int = 0
) -> dict[str, float | int | None]:
    """Return the memory beyond a budget between two times, as samples tell it.

    Parameters
    ----------
    beside_bytes : int
        Of device memory that is not managed: it counts too.

    Returns
    -------
    dict
        ``most_bytes`` as far as samples are sure, and ``most_bytes_seen``; ``average_bytes`` over
        time, of what was seen, where each sample stands until the next; ``samples``, and what a
        look took and missed. Sizes are None where there was no sample.
    """
    within = [each for each in samples if begin <= each.seconds < end]
    seen = [each for each in within if each.held_bytes is not None]
    told: dict[str, float | int | None] = {
        "samples": len(seen),
        "live_peak_bytes": max((each.live_bytes for each in within), default=None),
        "most_bytes": None,
        "most_bytes_seen": None,
        "average_bytes": None,
    }
    if not seen or end <= begin:
        return told

    def over(held: int) -> int:
        return max(0, held + beside_bytes - budget_bytes)

    until = [each.seconds for each in seen[1:]] + [end]
    held = [each.held_bytes or 0 for each in seen]
    # The first stands from the beginning on.
    since = [begin, *until[:-1]]
    total = sum(over(h) * (b - a) for h, a, b in zip(held, since, until, strict=True))
    told["most_bytes"] = max(over(h - s.came_bytes) for h, s in zip(held, seen, strict=True))
    told["most_bytes_seen"] = max(map(over, held))
    told["average_bytes"] = round(total / (end - begin))
    told["look_seconds"] = float(np.median([each.took_seconds for each in seen]))
    told["moved_while_looking_bytes"] = int(
        np.median([each.came_bytes + each.left_bytes for each in seen])
    )
    return told
