# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""CuPy: its memory comes from RMM, on CuPy's current stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rmm_uvm.integrations.when_imported import when_imported
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.support.optional_packages import too_old

_FOR_EVER = 2  # streams up to this number are CUDA's own, and never destroyed

_streams: dict[int, object] = {}


class _Owner:
    """Has a buffer, and keeps the stream on which the buffer will be freed."""

    __slots__ = ("_buffer",)

    def __init__(self, buffer: object, stream: object) -> None:
        self._buffer = buffer
        _streams[id(self)] = stream

    def __del__(self, streams: dict[int, object] = _streams) -> None:
        self._buffer = None
        streams.pop(id(self), None)


def _allocator(cupy: Any) -> Callable[[int], Any]:
    """Return RMM's allocator for CuPy, with streams that outlive their memory.

    RMM's buffer refers to its stream. That is not enough where an array and its stream are garbage
    together, as when the traceback of an error held both: Python then ends the stream first. The
    memory is freed on a stream that is no more, and the process crashes, or a later call answers
    `cudaErrorIllegalAddress`.
    """
    import rmm
    from rmm.allocators.cupy import rmm_cupy_allocator
    from rmm.pylibrmm.stream import Stream

    cuda = cupy.cuda

    def allocate(nbytes: int) -> Any:
        current = cuda.get_current_stream()
        if current.ptr <= _FOR_EVER:
            return rmm_cupy_allocator(nbytes)
        buffer = rmm.DeviceBuffer(size=nbytes, stream=Stream(obj=current))
        place = buffer.ptr
        device_id = -1 if place else cuda.device.get_device_id()
        memory = cuda.UnownedMemory(place, nbytes, _Owner(buffer, current), device_id)
        return cuda.MemoryPointer(memory, 0)

    return allocate


def wire() -> Wiring:
    """Have CuPy allocate through RMM; importing cuDF does the same."""
    try:
        import cupy
    except ImportError:
        return Wiring("cupy", active=False, reason="not installed")
    if problem := too_old("cupy"):  # what is below may not be there
        return Wiring("cupy", active=False, reason=problem)
    from rmm.allocators.cupy import rmm_cupy_allocator

    cuda = cupy.cuda
    previous, ours = cuda.get_allocator(), _allocator(cupy)
    cuda.set_allocator(ours)

    def again() -> None:
        if cuda.get_allocator() is rmm_cupy_allocator:
            cuda.set_allocator(ours)

    forget = when_imported("cudf", again)

    def undo() -> None:
        forget()
        if cuda.get_allocator() is ours:  # else somebody's later choice stays
            cuda.set_allocator(previous)

    return Wiring("cupy", active=True, reason="allocates through RMM", undo=undo)
