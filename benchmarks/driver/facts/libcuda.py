# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver calls that the questions need, through ctypes.

Every entry point is resolved by ``cuGetProcAddress`` with an explicit version, so that the argument
list below and the function behind it cannot drift apart. ctypes is used instead of cuda-bindings
because arguments can be prepared ahead: what is timed is then the driver and one foreign call
(about 0.3 us, measured as ``foreign_call_ns``), not the conversion of Python lists.

Not covered: anything a question does not use. Calls release the GIL.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64
from typing import Any

Pointer = ctypes.c_void_p
Stream = ctypes.c_void_p
DevicePointer = c_uint64

SUCCESS, NOT_READY = 0, 600
LEGACY_STREAM, LEGACY_HANDLE, PER_THREAD_HANDLE = Stream(0), Stream(1), Stream(2)
BLOCKING, NON_BLOCKING = 0, 1
CAPTURE_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}
EVENT_NO_TIMING = 2
ATTACH_GLOBAL = 1
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76
CONCURRENT_MANAGED_ACCESS = 89


class Location(ctypes.Structure):
    """``CUmemLocation``: where a prefetch goes."""

    _fields_ = (("type", c_int), ("id", c_int))

    @classmethod
    def device(cls, ordinal: int) -> Location:
        """Return the location of one GPU."""
        return cls(1, ordinal)

    @classmethod
    def host(cls) -> Location:
        """Return the location of host memory, whichever NUMA node."""
        return cls(2, 0)


_BATCH = (POINTER(DevicePointer), POINTER(c_size_t), c_size_t)
_BATCH_TO = (*_BATCH, POINTER(Location), POINTER(c_size_t), c_size_t, c_uint64, Stream)
_OUT_POINTER = POINTER(Pointer)

#: Symbol: (version as in cudaTypedefs.h, argument types).
PROTOTYPES: dict[str, tuple[int, tuple[Any, ...]]] = {
    "cuInit": (2000, (c_uint,)),
    "cuDriverGetVersion": (2020, (POINTER(c_int),)),
    "cuGetErrorName": (6000, (c_int, POINTER(c_char_p))),
    "cuDeviceGet": (2000, (POINTER(c_int), c_int)),
    "cuDeviceGetCount": (2000, (POINTER(c_int),)),
    "cuDeviceGetName": (2000, (POINTER(c_char), c_int, c_int)),
    "cuDeviceGetUuid": (11040, (POINTER(c_ubyte), c_int)),
    "cuDeviceGetAttribute": (2000, (POINTER(c_int), c_int, c_int)),
    "cuDevicePrimaryCtxRetain": (7000, (_OUT_POINTER, c_int)),
    "cuDevicePrimaryCtxRelease": (11000, (c_int,)),
    "cuCtxSetCurrent": (4000, (Pointer,)),
    "cuCtxPushCurrent": (4000, (Pointer,)),
    "cuCtxPopCurrent": (4000, (_OUT_POINTER,)),
    "cuMemGetInfo": (3020, (POINTER(c_size_t), POINTER(c_size_t))),
    "cuMemAlloc": (3020, (POINTER(DevicePointer), c_size_t)),
    "cuMemAllocManaged": (6000, (POINTER(DevicePointer), c_size_t, c_uint)),
    "cuMemFree": (3020, (DevicePointer,)),
    "cuMemAllocHost": (3020, (_OUT_POINTER, c_size_t)),
    "cuMemFreeHost": (2000, (Pointer,)),
    "cuMemcpyHtoDAsync": (3020, (DevicePointer, Pointer, c_size_t, Stream)),
    "cuMemsetD8Async": (3020, (DevicePointer, c_ubyte, c_size_t, Stream)),
    "cuMemAdvise": (12020, (DevicePointer, c_size_t, c_int, Location)),
    "cuMemPrefetchAsync": (12020, (DevicePointer, c_size_t, Location, c_uint, Stream)),
    "cuMemPrefetchBatchAsync": (13000, _BATCH_TO),
    "cuMemDiscardBatchAsync": (13000, (*_BATCH, c_uint64, Stream)),
    "cuMemDiscardAndPrefetchBatchAsync": (13000, _BATCH_TO),
    "cuStreamCreate": (2000, (_OUT_POINTER, c_uint)),
    "cuStreamDestroy": (4000, (Stream,)),
    "cuStreamSynchronize": (2000, (Stream,)),
    "cuStreamQuery": (2000, (Stream,)),
    "cuStreamWaitEvent": (3020, (Stream, Pointer, c_uint)),
    "cuStreamBeginCapture": (10010, (Stream, c_int)),
    "cuStreamEndCapture": (10000, (Stream, _OUT_POINTER)),
    "cuStreamIsCapturing": (10000, (Stream, POINTER(c_int))),
    "cuStreamGetCaptureInfo": (
        12030,
        (Stream, POINTER(c_int), POINTER(c_uint64), Pointer, Pointer, Pointer, Pointer),
    ),
    "cuThreadExchangeStreamCaptureMode": (10010, (POINTER(c_int),)),
    "cuGraphDestroy": (10000, (Pointer,)),
    "cuEventCreate": (2000, (_OUT_POINTER, c_uint)),
    "cuEventRecord": (2000, (Pointer, Stream)),
    "cuEventQuery": (2000, (Pointer,)),
    "cuEventDestroy": (4000, (Pointer,)),
    "cuEventElapsedTime": (2000, (POINTER(c_float), Pointer, Pointer)),
    "cuModuleLoadData": (2000, (_OUT_POINTER, Pointer)),
    "cuModuleGetFunction": (2000, (_OUT_POINTER, Pointer, c_char_p)),
    "cuLaunchKernel": (4000, (Pointer, *(c_uint,) * 7, Stream, _OUT_POINTER, _OUT_POINTER)),
}


class CudaError(RuntimeError):
    """A driver call that did not succeed; ``status`` holds the CUDA name of the reason."""

    def __init__(self, call: str, status: str) -> None:
        super().__init__(f"{call} returned {status}")
        self.status = status


class LibCuda:
    """The driver library: ``lib("cuMemFree", pointer)`` calls and checks.

    Raises
    ------
    OSError
        When libcuda.so.1 cannot be loaded.
    CudaError
        When an entry point of that version does not exist, or a checked call fails.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL("libcuda.so.1")
        resolve = library.cuGetProcAddress_v2
        resolve.argtypes = (c_char_p, _OUT_POINTER, c_int, c_uint64, POINTER(c_int))
        self._functions: dict[str, Any] = {}
        self.missing: list[str] = []
        for name, (version, arguments) in PROTOTYPES.items():
            address, found = Pointer(), c_int()
            status = resolve(name.encode(), ctypes.byref(address), version, 0, ctypes.byref(found))
            if status != SUCCESS or not address.value:
                self.missing.append(name)
                continue
            self._functions[name] = ctypes.CFUNCTYPE(c_int, *arguments)(address.value)

    def function(self, name: str) -> Any:
        """Return the raw entry point, for timing loops that check the status themselves."""
        if name not in self._functions:
            raise CudaError(name, "not available from this driver")
        return self._functions[name]

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call and raise `CudaError` unless the status is success."""
        status = self.status(name, *arguments)
        if status != "CUDA_SUCCESS":
            raise CudaError(name, status)

    def status(self, name: str, *arguments: Any) -> str:
        """Call and return the CUDA name of the status."""
        return self.error_name(self.function(name)(*arguments))

    def error_name(self, status: int) -> str:
        """Return the CUDA name of a numeric status."""
        text = c_char_p()
        found = self._functions["cuGetErrorName"](status, ctypes.byref(text))
        return text.value.decode() if found == SUCCESS and text.value else f"status {status}"
