# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The measurements, one after the other, on a workbench.

Each figure is the median of some rounds; a round begins from the same state, so that what one
figure leaves behind is not in the next. At most `region_bytes` of managed memory are live at once,
and no page of it is ever evicted: evictions are the one thing that is not measured, since they need
a full card.

Covers the order of operations. Does not cover what follows from the figures
(`rmm_uvm.simulator.measuring.derivation`).
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rmm_uvm.simulator.measuring.figures import PAGE_BYTES, MeasuredFigures, Timing
from rmm_uvm.simulator.measuring.workbench import Workbench
from rmm_uvm.support.units import VA_BLOCK_BYTES

__all__ = ["LEAST_REGION_BYTES", "ROUNDS", "Progress", "take_figures"]

MIB = 1 << 20
LEAST_REGION_BYTES = 256 * MIB

ROUNDS = 5
_CALL_ROUNDS = 25  # of what takes microseconds
_CALL_BYTES = (2 * MIB, 16 * MIB, 64 * MIB)  # of single prefetches
_QUEUED_BYTES = (2 * MIB, 8 * MIB, 16 * MIB, 64 * MIB)  # of those that follow one another
_MOST_CALLING_FRACTION = 0.75  # of their time, which queued calls spend in the caller's thread
_DEFERRED_BYTES = 32 * MIB
_BUSY_SECONDS = 0.01
_SPARSE_BLOCKS = 64  # fewer pages than a kernel may wait for at once
_DISCARDED_BYTES = 32 * MIB  # written page by page afterwards: 15 us each on an H200
_CPU_BYTES = 256 * MIB
_ALLOCATION_BYTES = 64 * MIB
_SMALL_COPY_BYTES, _SMALL_COPIES = 4096, 200
_WORD_BYTES = 8

Progress = Callable[[str], None]
"""Told what is measured next."""


class _Round:
    """Times operations by name, as often as they are done; `figures` has the medians."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._nbytes: dict[str, int] = {}

    def keep(self, name: str, nbytes: int, seconds: float) -> None:
        """Keep one time of a figure."""
        self._seconds[name].append(seconds)
        self._nbytes[name] = nbytes

    @contextmanager
    def timed(self, name: str, nbytes: int, *, call_only: bool = False) -> Iterator[None]:
        """Time what is in the scope, to completion, or the call only."""
        self.bench.synchronize()
        begin = self.bench.seconds()
        yield
        if call_only:
            self.keep(name, nbytes, self.bench.seconds() - begin)
        self.bench.synchronize()
        if not call_only:
            self.keep(name, nbytes, self.bench.seconds() - begin)

    def timing(self, name: str) -> Timing | None:
        """Return the median of a figure; None if it was not taken."""
        if not self._seconds[name]:
            return None
        return Timing(self._nbytes[name], statistics.median(self._seconds[name]))


def take_figures(
    bench: Workbench,
    region_bytes: int,
    *,
    copy_bytes: int = 256 * MIB,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> MeasuredFigures:
    """Measure.

    Parameters
    ----------
    bench : Workbench
        The device, otherwise idle.
    region_bytes : int
        Most managed memory at once, bytes; a multiple of 16 MiB, >= 256 MiB. The caller has
        checked that the device has it free.
    copy_bytes : int
        Size of the pinned copies, bytes; a multiple of 16 MiB.
    rounds : int
        Times that each figure is taken, >= 1.
    progress : callable, optional
        Called with a line before each part.

    Returns
    -------
    Figures

    Raises
    ------
    DriverError, MemoryError
        If an operation fails. Everything has been freed then.
    """
    tell = progress or (lambda _: None)
    times = _Round(bench)
    tell("copies of pinned memory")
    for _ in range(rounds):
        _copies(times, copy_bytes)
    tell("allocations and launches")
    for _ in range(_CALL_ROUNDS):
        _allocations(times)
    tell("migration by prefetch, discards")
    for _ in range(rounds):
        with _region(bench, region_bytes) as address:
            _prefetches(times, address, region_bytes)
            _single_calls(times, address)
            _queued_calls(times, address, region_bytes)
            if bench.has_discard:
                _discards(times, address, region_bytes)
    tell("page faults")
    for _ in range(rounds):
        _first_touches(times, region_bytes)
        with _region(bench, region_bytes) as address:
            _faults(times, address, region_bytes)
    return _figures(times)


def _figures(times: _Round) -> MeasuredFigures:
    """Return what was kept under the names that `MeasuredFigures` has."""
    bench = times.bench
    single, queued = (
        tuple(filter(None, (times.timing(f"{kind}_{nbytes}") for nbytes in sizes)))
        for kind, sizes in (("single", _CALL_BYTES), ("queued", _QUEUED_BYTES))
    )
    launch = times.timing("launch")
    names = set(MeasuredFigures.__dataclass_fields__) - {
        *("device_bytes", "devices", "prefetch_calls", "queued_prefetches", "launch")
    }
    return MeasuredFigures(
        device_bytes=bench.device_bytes,
        devices=bench.devices,
        prefetch_calls=single,
        queued_prefetches=queued,
        launch=launch.seconds if launch else None,
        **{name: times.timing(name) for name in names},
    )


@contextmanager
def _region(bench: Workbench, nbytes: int) -> Iterator[int]:
    address = bench.allocate_managed(nbytes)
    try:
        yield address
    finally:
        bench.synchronize()
        bench.free_managed(address, nbytes)


def _copies(times: _Round, nbytes: int) -> None:
    bench = times.bench
    times.keep("copy_to_device", nbytes, bench.copy_seconds(nbytes, "device"))
    times.keep("copy_to_host", nbytes, bench.copy_seconds(nbytes, "host"))
    times.keep("duplex", nbytes, bench.duplex_seconds(nbytes))
    seconds = bench.small_copy_seconds(_SMALL_COPY_BYTES, _SMALL_COPIES)
    times.keep("small_copy", _SMALL_COPY_BYTES, seconds / _SMALL_COPIES)
    times.keep("remote_read", nbytes, bench.remote_read_seconds(nbytes))


def _allocations(times: _Round) -> None:
    bench = times.bench
    with times.timed("allocate_managed", _ALLOCATION_BYTES, call_only=True):
        managed = bench.allocate_managed(_ALLOCATION_BYTES)
    with times.timed("free_managed", _ALLOCATION_BYTES, call_only=True):
        bench.free_managed(managed, _ALLOCATION_BYTES)
    with times.timed("allocate_device", _ALLOCATION_BYTES, call_only=True):
        device = bench.allocate_device(_ALLOCATION_BYTES)
    with times.timed("free_device", _ALLOCATION_BYTES, call_only=True):
        bench.free_device(device)
    with times.timed("launch", 1):
        bench.nothing()


def _prefetches(times: _Round, address: int, nbytes: int) -> None:
    """One region, from fresh to the host and back; leaves it on the device, with host pages."""
    bench = times.bench
    with times.timed("prefetch_fresh", nbytes):
        bench.prefetch(address, nbytes, "device")
    with times.timed("prefetch_to_cold_host", nbytes):
        bench.prefetch(address, nbytes, "host")
    with times.timed("prefetch_to_device", nbytes):
        bench.prefetch(address, nbytes, "device")
    with times.timed("prefetch_to_host", nbytes):
        bench.prefetch(address, nbytes, "host")
    bench.prefetch(address, nbytes, "device")
    with times.timed("prefetch_resident", nbytes):
        bench.prefetch(address, nbytes, "device")
    with times.timed("resident_read", nbytes):
        bench.read(address, nbytes)


def _single_calls(times: _Round, address: int) -> None:
    """Time calls of one size each; the region is on the device before and after."""
    bench = times.bench
    for _ in range(_CALL_ROUNDS):
        with times.timed("prefetch_call", VA_BLOCK_BYTES, call_only=True):
            bench.prefetch(address, VA_BLOCK_BYTES, "device")
    for nbytes in _CALL_BYTES:
        bench.prefetch(address, nbytes, "host")
        with times.timed(f"single_{nbytes}", nbytes):
            bench.prefetch(address, nbytes, "device")
    bench.prefetch(address, _DEFERRED_BYTES, "host")
    bench.synchronize()
    bench.keep_busy(_BUSY_SECONDS)
    begin = bench.seconds()
    bench.prefetch(address, _DEFERRED_BYTES, "device")
    times.keep("deferred_call", _DEFERRED_BYTES, bench.seconds() - begin)
    bench.synchronize()


def _queued_calls(times: _Round, address: int, nbytes: int) -> None:
    """Time the way to the device in many calls, which find their stream busy with the last one.

    Where the driver's work outlasts the copies, as it does behind a fast link, the stream is idle
    when a call returns, and the next works in the caller's thread: such a call is a single one,
    which is timed already; taken for a queued one it would hide what those take more.
    """
    bench = times.bench
    for call_bytes in _QUEUED_BYTES:
        bench.prefetch(address, nbytes, "host")
        bench.synchronize()
        begin = bench.seconds()
        for offset in range(0, nbytes, call_bytes):
            bench.prefetch(address + offset, call_bytes, "device")
        calling_seconds = bench.seconds() - begin
        bench.synchronize()
        seconds = bench.seconds() - begin
        if calling_seconds < _MOST_CALLING_FRACTION * seconds:
            times.keep(f"queued_{call_bytes}", call_bytes, seconds * call_bytes / nbytes)


def _discards(times: _Round, address: int, nbytes: int) -> None:
    bench = times.bench
    with times.timed("discard_call", VA_BLOCK_BYTES, call_only=True):
        bench.discard(address, VA_BLOCK_BYTES)
    bench.prefetch(address, nbytes, "device")
    with times.timed("discard", nbytes):
        bench.discard(address, nbytes)
    with times.timed("discarded_to_host", nbytes):
        bench.prefetch(address, nbytes, "host")
    bench.prefetch(address, nbytes, "device")
    with times.timed("discard_and_prefetch_on_device", nbytes):
        bench.discard_and_prefetch(address, nbytes)
    bench.touch(address, nbytes, PAGE_BYTES)
    bench.prefetch(address, nbytes, "host")
    with times.timed("discard_and_prefetch_on_host", nbytes):
        bench.discard_and_prefetch(address, nbytes)
    bench.discard(address, _DISCARDED_BYTES)
    with times.timed("discarded_write", _DISCARDED_BYTES):
        # Not one that reads: what a read brings back is mapped for reading, and faults again.
        bench.write(address, _DISCARDED_BYTES)


def _first_touches(times: _Round, nbytes: int) -> None:
    """Kernels on memory that nobody has touched: it is allocated for each."""
    bench = times.bench
    sparse_bytes = _SPARSE_BLOCKS * VA_BLOCK_BYTES
    for name, touched in (("first_touch", VA_BLOCK_BYTES), ("first_touches", sparse_bytes)):
        with _region(bench, sparse_bytes) as address, times.timed(name, touched):
            bench.touch(address, touched, VA_BLOCK_BYTES)
    with _region(bench, nbytes) as address, times.timed("first_touch_stream", nbytes):
        bench.touch(address, nbytes, _WORD_BYTES)


def _faults(times: _Round, address: int, nbytes: int) -> None:
    """Kernels, then the CPU, on memory that lies on the other side."""
    bench = times.bench
    bench.cpu_touch(address, nbytes)
    with times.timed("fault_stream", nbytes):
        bench.touch(address, nbytes, _WORD_BYTES)
    sparse_bytes = _SPARSE_BLOCKS * VA_BLOCK_BYTES
    for name, touched in (("fault", VA_BLOCK_BYTES), ("faults", sparse_bytes)):
        bench.prefetch(address, sparse_bytes, "host")
        with times.timed(name, touched):
            bench.touch(address, touched, VA_BLOCK_BYTES)
    cpu_bytes = min(_CPU_BYTES, nbytes)
    bench.prefetch(address, cpu_bytes, "device")
    with times.timed("cpu_touch", cpu_bytes, call_only=True):
        bench.cpu_touch(address, cpu_bytes)
