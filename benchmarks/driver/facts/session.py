# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One GPU, its streams, its byte counters and a capped supply of managed memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import perf_counter_ns
from typing import Any

from .figures import summary
from .kernel_counters import CounterError, Moved, Tracker, uvm_descriptors
from .libcuda import (
    ATTACH_GLOBAL,
    BLOCKING,
    CONCURRENT_MANAGED_ACCESS,
    NON_BLOCKING,
    SUCCESS,
    CudaError,
    DevicePointer,
    LibCuda,
    Location,
    Pointer,
    Stream,
)
from .safety import ManagedBudget, SafetyError

MIB = 1 << 20
BLOCK_BYTES = 2 * MIB


class Ranges:
    """Address ranges as the batch calls want them, converted once.

    Parameters
    ----------
    ranges : sequence of (int, int)
        Address and size in bytes of each; at least one.
    """

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self.count = len(ranges)
        self.pointers = (DevicePointer * self.count)(*(pointer for pointer, _ in ranges))
        self.sizes = (ctypes.c_size_t * self.count)(*(size for _, size in ranges))


class Session:
    """Everything that a question asks the driver through.

    Parameters
    ----------
    ordinal : int
        The GPU; its primary context is retained and made current.
    limit_bytes : int
        Most managed bytes that may be live at once.

    Raises
    ------
    CudaError
        Without this GPU.
    SafetyError
        When the GPU has no concurrent managed access.

    Notes
    -----
    Use as a context manager. Not thread-safe; the counters may be read from any thread.
    """

    def __init__(self, ordinal: int, limit_bytes: int) -> None:
        self.cuda = LibCuda()
        self.cuda("cuInit", 0)
        self.ordinal = ordinal
        self.budget = ManagedBudget(limit_bytes)
        self.on_device, self.on_host = Location.device(ordinal), Location.host()
        self._cleanup = ExitStack()
        device = ctypes.c_int()
        self.cuda("cuDeviceGet", ctypes.byref(device), ordinal)
        self.device = device.value
        if not self.attribute(CONCURRENT_MANAGED_ACCESS):
            message = "this GPU has no concurrent managed access; nothing here applies"
            raise SafetyError(message)
        self.context = self.retain_context(self.device)
        self.cuda("cuCtxSetCurrent", self.context)
        try:
            self.stream = self.create_stream(NON_BLOCKING)
            self.other_stream = self.create_stream(NON_BLOCKING)
            self.blocking_stream = self.create_stream(BLOCKING)
            self.counters = self.open_tracker()
        except BaseException:
            self._cleanup.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def retain_context(self, device: int) -> Pointer:
        """Retain a GPU's primary context until the session ends."""
        context = Pointer()
        self.cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._cleanup.callback(self.cuda.status, "cuDevicePrimaryCtxRelease", device)
        return context

    def attribute(self, number: int) -> int:
        """Return a ``CUdevice_attribute``."""
        value = ctypes.c_int()
        self.cuda("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def uuid(self, device: int) -> bytes:
        """Return the 16 bytes that the UVM kernel driver knows a GPU by."""
        value = (ctypes.c_ubyte * 16)()
        self.cuda("cuDeviceGetUuid", value, device)
        return bytes(value)

    def create_stream(self, flags: int) -> Stream:
        """Create a stream that lives as long as the session."""
        stream = Stream()
        self.cuda("cuStreamCreate", ctypes.byref(stream), flags)
        self._cleanup.callback(self.cuda.status, "cuStreamDestroy", stream)
        return stream

    def create_event(self, flags: int = 0) -> Pointer:
        """Create an event that lives as long as the session."""
        event = Pointer()
        self.cuda("cuEventCreate", ctypes.byref(event), flags)
        self._cleanup.callback(self.cuda.status, "cuEventDestroy", event)
        return event

    def open_tracker(self, uuid: bytes | None = None) -> Tracker:
        """Open the byte counters of one GPU or of all; proven by moving one block.

        A process may hold several descriptors of the UVM kernel driver, of which only one carries
        the address space, so each is tried until a counter moves.
        """
        reasons = ["no descriptor of /dev/nvidia-uvm is open"]
        for descriptor in uvm_descriptors():
            try:
                tracker = Tracker(descriptor, uuid)
            except (CounterError, OSError) as error:
                reasons.append(f"descriptor {descriptor}: {error}")
                continue
            if self._counts_one_block(tracker):
                self._cleanup.callback(tracker.close)
                return tracker
            reasons.append(f"descriptor {descriptor}: opened, but did not count a 2 MiB prefetch")
            tracker.close()
        raise CounterError("; ".join(reasons[-2:]))

    def _counts_one_block(self, tracker: Tracker) -> bool:
        with self.managed(BLOCK_BYTES) as pointer:
            self.fill(pointer, BLOCK_BYTES, 1)
            before = tracker.read()
            self.move(pointer, BLOCK_BYTES, self.on_host)
            self.move(pointer, BLOCK_BYTES, self.on_device)
            return tracker.read().since(before) == Moved(BLOCK_BYTES, BLOCK_BYTES)

    def free_bytes(self) -> int:
        """Return the free memory of the GPU."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.cuda("cuMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value

    @contextmanager
    def managed(self, size_bytes: int) -> Iterator[int]:
        """Lend managed memory inside the cap; freed at the end, after all work is done."""
        self.budget.check(size_bytes, self.free_bytes())
        pointer = DevicePointer()
        self.cuda("cuMemAllocManaged", ctypes.byref(pointer), size_bytes, ATTACH_GLOBAL)
        self.budget.add(pointer.value, size_bytes)
        try:
            yield pointer.value
        finally:
            # Every user stream is drained first, also when the question failed half-way.
            for stream in (self.stream, self.other_stream, self.blocking_stream):
                self.cuda.status("cuStreamSynchronize", stream)
            self.cuda("cuMemFree", pointer)
            self.budget.remove(pointer.value)

    @contextmanager
    def managed_blocks(self, size_bytes: int) -> Iterator[int]:
        """Lend managed memory that starts on a 2 MiB boundary."""
        with self.managed(size_bytes + BLOCK_BYTES) as pointer:
            yield -(-pointer // BLOCK_BYTES) * BLOCK_BYTES

    def synchronize(self) -> None:
        """Wait for the session's main stream."""
        self.cuda("cuStreamSynchronize", self.stream)

    def prefetch(
        self, pointer: int, size_bytes: int, to: Location, stream: Stream | None = None
    ) -> None:
        """Issue one prefetch, on the session's main stream unless another is named."""
        # Not `stream or ...`: the legacy stream is a null handle.
        on = self.stream if stream is None else stream
        self.cuda("cuMemPrefetchAsync", pointer, size_bytes, to, 0, on)

    def move(self, pointer: int, size_bytes: int, to: Location) -> None:
        """Prefetch and wait."""
        self.prefetch(pointer, size_bytes, to)
        self.synchronize()

    def fill(self, pointer: int, size_bytes: int, value: int) -> None:
        """Bring memory to the GPU, write one byte value over it there, and wait."""
        self.move(pointer, size_bytes, self.on_device)
        self.cuda("cuMemsetD8Async", pointer, value, size_bytes, self.stream)
        self.synchronize()

    def advise(self, pointer: int, size_bytes: int, what: int) -> None:
        """Give one piece of advice that names no place, by its number in ``CUmem_advise``."""
        self.cuda("cuMemAdvise", pointer, size_bytes, what, self.on_host)

    def timed(
        self,
        act: Callable[[], object],
        repeats: int,
        prepare: Callable[[], object] = lambda: None,
    ) -> dict[str, dict[str, float]]:
        """Do something some times, each time prepared; return its time and the bytes that moved."""
        runs = []
        for _ in range(repeats):
            prepare()
            before = self.counters.read()
            begin = perf_counter_ns()
            act()
            total_ns = perf_counter_ns() - begin
            moved = self.counters.read().since(before)
            runs.append((total_ns, moved.htod_bytes, moved.dtoh_bytes))
        names = ("total_ns", "htod_bytes", "dtoh_bytes")
        columns = zip(*runs, strict=True)
        return {name: summary(values) for name, values in zip(names, columns, strict=True)}

    def batch_to(self, call: str, ranges: Ranges, to: Location) -> None:
        """Issue a batch prefetch or discard-and-prefetch of ranges to one place."""
        function = self.cuda.function(call)
        self.check(call, function(*batch_arguments(ranges, to, self.stream)))

    def check(self, call: str, status: int) -> None:
        """Raise `CudaError` for the status of a raw call."""
        if status != SUCCESS:
            raise CudaError(call, self.cuda.error_name(status))


def batch_arguments(ranges: Ranges, to: Location, stream: Stream) -> tuple[Any, ...]:
    """Return the arguments of a batch call that takes ranges to one place."""
    first_range = ctypes.c_size_t(0)
    return (
        ranges.pointers,
        ranges.sizes,
        ranges.count,
        ctypes.pointer(to),
        ctypes.pointer(first_range),
        1,
        0,
        stream,
    )
