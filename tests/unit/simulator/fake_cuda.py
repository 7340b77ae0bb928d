# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `cuda.bindings.driver`: it keeps account of what is made, copied and launched."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Callable
from typing import Any


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2


class CUstream_flags(enum.IntEnum):  # noqa: N801 - the name in CUDA
    CU_STREAM_NON_BLOCKING = 1


class FakeCuda:
    """One device; `live` has what was made and not destroyed, `log` the other calls."""

    CUresult = CUresult
    CUstream_flags = CUstream_flags
    CU_MEMHOSTALLOC_DEVICEMAP = 2

    def __init__(self, *, failing: str = "", result: CUresult = CUresult.CUDA_SUCCESS) -> None:
        self.live: dict[int, str] = {}
        self.log: list[tuple[Any, ...]] = []
        self.module_text = b""
        self._failing = failing
        self._result = result
        self._next = 100

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            if name == self._failing:
                return (self._result, None)
            return (CUresult.CUDA_SUCCESS, *self._done(name, arguments))

        return call

    def _make(self, kind: str) -> tuple[int]:
        self._next += 1
        self.live[self._next] = kind
        return (self._next,)

    def _destroy(self, handle: int, kind: str) -> tuple[()]:
        assert self.live.pop(handle) == kind
        return ()

    def _done(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        match name, arguments:
            case ("cuStreamCreate", (1,)):
                return self._make("stream")
            case ("cuEventCreate", (0,)):
                return self._make("event")
            case ("cuMemHostAlloc", (_, 2)):
                return self._make("pinned")
            case ("cuMemAlloc", (_,)):
                return self._make("buffer")
            case ("cuModuleLoadData", (bytes() as text,)):
                self.module_text = text
                return self._make("module")
            case ("cuModuleGetFunction", (_, bytes() as kernel)):
                if b".entry " + kernel + b"(" not in self.module_text:
                    raise AssertionError(f"no kernel {kernel!r}")
                return (kernel.decode(),)
            case ("cuStreamDestroy", (handle,)):
                return self._destroy(handle, "stream")
            case ("cuEventDestroy", (handle,)):
                return self._destroy(handle, "event")
            case ("cuMemFreeHost", (handle,)):
                return self._destroy(handle, "pinned")
            case ("cuMemFree", (handle,)):
                return self._destroy(handle, "buffer")
            case ("cuModuleUnload", (handle,)):
                return self._destroy(handle, "module")
            case ("cuDeviceGetCount", ()):
                return (2,)
            case ("cuMemHostGetDevicePointer", (handle, 0)):
                return (handle + 1_000_000,)
            case ("cuEventElapsedTime", (_, _)):
                return (2.5,)
            case ("cuLaunchKernel", (kernel, *shape, 0, _, packed, 0)):
                if packed:
                    values, types = packed
                    assert types == (ctypes.c_uint64,) * len(values)
                self.log.append((kernel, tuple(shape), packed[0] if packed else ()))
                return ()
            case ("cuStreamSynchronize" | "cuEventSynchronize" | "cuEventRecord", _):
                return ()
            case ("cuMemcpyHtoDAsync" | "cuMemcpyDtoHAsync", (to, source, nbytes, stream)):
                kinds = (self.live[to], self.live[source])
                self.log.append((name, *kinds, nbytes, self.live[stream]))
                return ()
            case _:
                raise AssertionError(f"{name}{arguments}: no such call")
