# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The workbench of a GPU: our driver for migration, cuda.bindings for kernels and copies.

Covers one device; no other is touched. Does not cover how much memory is safe; see
`rmm_uvm.simulator.measuring.procedure`.
"""

from __future__ import annotations

import ctypes
import time
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Literal, Self

import numpy as np

from rmm_uvm._lib.current_device import current_device
from rmm_uvm._lib.limits import process_account
from rmm_uvm._lib.mr import ManagedMemoryResource
from rmm_uvm.drivers import UvmDriver
from rmm_uvm.errors import DriverError
from rmm_uvm.simulator.measuring.figures import PAGE_BYTES
from rmm_uvm.support.package_files import package_text

__all__ = ["GpuWorkbench"]

_KERNELS = ("nothing", "spin", "add_one", "store_one", "read_all")
_THREADS = 256
_MOST_BLOCKS = 1024
_WORD_BYTES = 8
_READ_TURN_BYTES = _MOST_BLOCKS * _THREADS * 64
_SPIN_SECONDS = 0.02  # while 200 copies are queued behind it


class GpuWorkbench:
    """A GPU; use as a context manager.

    Parameters
    ----------
    driver : UvmDriver
        The device.
    copy_bytes : int
        Size of the two pinned buffers and the two device buffers, bytes; a multiple of 16 MiB.
    cuda : module, optional
        `cuda.bindings.driver` or a stand-in for it; imported by default.

    Raises
    ------
    DriverError
        On entering, if the kernels cannot be loaded; and whenever CUDA refuses a call.
    MemoryError
        On entering, if there is no room for the buffers.

    Notes
    -----
    Not thread-safe: everything is for the thread that enters, under the device's primary context.
    """

    def __init__(self, driver: UvmDriver, copy_bytes: int, cuda: Any = None) -> None:
        self._driver = driver
        self._copy_bytes = copy_bytes
        self._cuda = cuda or import_module("cuda.bindings.driver")
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(current_device(self._driver))
            self._managed = ManagedMemoryResource(
                self._driver, prefetch="never", account=process_account()
            )
            self._stream = self._new_stream(stack)
            self._other_stream = self._new_stream(stack)
            self._handle = int(self._stream)
            self._load_kernels(stack)
            self._pinned = [self._new_pinned(stack) for _ in range(2)]
            self._buffers = [self._new_buffer(stack) for _ in range(2)]
            self._begin, self._end = self._new_event(stack), self._new_event(stack)
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    @property
    def device_bytes(self) -> int:
        """Device memory, total."""
        return self._driver.info.total_bytes

    @property
    def devices(self) -> int:
        """GPUs that the process sees."""
        count: int = self._call("cuDeviceGetCount")
        return count

    @property
    def has_discard(self) -> bool:
        """Whether the two discard calls work."""
        return bool(self._driver.info.discard)

    def seconds(self) -> float:
        """Return a clock that only goes forward."""
        return time.perf_counter()

    def synchronize(self) -> None:
        """Wait for both streams."""
        self._call("cuStreamSynchronize", self._stream)
        self._call("cuStreamSynchronize", self._other_stream)

    def allocate_managed(self, nbytes: int) -> int:
        """Allocate managed memory, which counts against the process' cap."""
        return self._managed.allocate(nbytes)

    def free_managed(self, address: int, nbytes: int) -> None:
        """Free it."""
        self._managed.deallocate(address, nbytes)

    def allocate_device(self, nbytes: int) -> int:
        """Allocate device memory."""
        return int(self._call("cuMemAlloc", nbytes))

    def free_device(self, address: int) -> None:
        """Free it."""
        self._call("cuMemFree", address)

    def prefetch(self, address: int, nbytes: int, where: Literal["device", "host"]) -> None:
        """Migrate."""
        self._driver.prefetch(address, nbytes, where, self._handle)

    def discard(self, address: int, nbytes: int) -> None:
        """Drop contents."""
        self._driver.discard(address, nbytes, self._handle)

    def discard_and_prefetch(self, address: int, nbytes: int) -> None:
        """Drop contents, and have memory on the device."""
        self._driver.discard_and_prefetch(address, nbytes, "device", self._handle)

    def nothing(self) -> None:
        """Launch an empty kernel."""
        self._launch("nothing", 1, 1)

    def keep_busy(self, seconds: float) -> None:
        """Launch a kernel that lasts so long."""
        self._launch("spin", 1, 1, int(seconds * 1e9))

    def touch(self, address: int, nbytes: int, stride_bytes: int) -> None:
        """Launch a kernel that reads and writes a word at every stride, upwards."""
        self._over("add_one", address, nbytes, stride_bytes)

    def write(self, address: int, nbytes: int) -> None:
        """Launch a kernel that writes every word, upwards, and reads none."""
        self._over("store_one", address, nbytes, _WORD_BYTES)

    def read(self, address: int, nbytes: int) -> None:
        """Launch a kernel that reads every byte; `nbytes` is a multiple of 16 MiB."""
        if nbytes % _READ_TURN_BYTES:
            raise ValueError(f"nbytes={nbytes}: the kernel would read past the end")
        self._launch("read_all", _MOST_BLOCKS, _THREADS, address, nbytes)

    def cpu_touch(self, address: int, nbytes: int) -> None:
        """Write to every page by the CPU."""
        memory = memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")
        pages = np.frombuffer(memory, dtype=np.uint8)
        pages[::PAGE_BYTES] += 1

    def copy_seconds(self, nbytes: int, where: Literal["device", "host"]) -> float:
        """Time one copy of pinned memory, on the device's clock."""
        self._record(self._begin)
        self._copy(0, self._fitting(nbytes), where, self._stream)
        self._record(self._end)
        return self._elapsed_seconds()

    def duplex_seconds(self, nbytes: int) -> float:
        """Time two copies at once, from the first call to the end of both."""
        self._fitting(nbytes)
        self.synchronize()
        begin = self.seconds()
        self._copy(0, nbytes, "device", self._stream)
        self._copy(1, nbytes, "host", self._other_stream)
        self.synchronize()
        return self.seconds() - begin

    def small_copy_seconds(self, nbytes: int, count: int) -> float:
        """Time copies that wait behind a kernel, so that none is waited for by the device."""
        self._fitting(nbytes)
        self.keep_busy(_SPIN_SECONDS)
        self._record(self._begin)
        for _ in range(count):
            self._copy(0, nbytes, "device", self._stream)
        self._record(self._end)
        return self._elapsed_seconds()

    def remote_read_seconds(self, nbytes: int) -> float:
        """Time a kernel that reads pinned host memory."""
        self.synchronize()
        begin = self.seconds()
        self.read(int(self._call("cuMemHostGetDevicePointer", self._pinned[0], 0)), nbytes)
        self.synchronize()
        return self.seconds() - begin

    def _fitting(self, nbytes: int) -> int:
        if nbytes > self._copy_bytes:
            raise ValueError(f"nbytes={nbytes}: the buffers have {self._copy_bytes}")
        return nbytes

    def _copy(
        self, pair: int, nbytes: int, where: Literal["device", "host"], stream: object
    ) -> None:
        """Copy between one pinned buffer and one device buffer."""
        pinned, buffer = self._pinned[pair], self._buffers[pair]
        if where == "device":
            self._call("cuMemcpyHtoDAsync", buffer, pinned, nbytes, stream)
        else:
            self._call("cuMemcpyDtoHAsync", pinned, buffer, nbytes, stream)

    def _record(self, event: object) -> None:
        self._call("cuEventRecord", event, self._stream)

    def _elapsed_seconds(self) -> float:
        self._call("cuEventSynchronize", self._end)
        milliseconds: float = self._call("cuEventElapsedTime", self._begin, self._end)
        return milliseconds / 1e3

    def _over(self, kernel: str, address: int, nbytes: int, stride_bytes: int) -> None:
        """Launch a thread for each stride, up to a full grid."""
        words = -(-nbytes // stride_bytes)
        blocks = min(-(-words // _THREADS), _MOST_BLOCKS)
        self._launch(kernel, blocks, _THREADS, address, nbytes, stride_bytes)

    def _launch(self, kernel: str, blocks: int, threads: int, *arguments: int) -> None:
        packed: object = 0
        if arguments:
            packed = (arguments, (ctypes.c_uint64,) * len(arguments))
        function = self._functions[kernel]
        shape = (blocks, 1, 1, threads, 1, 1)
        self._call("cuLaunchKernel", function, *shape, 0, self._stream, packed, 0)

    def _load_kernels(self, stack: ExitStack) -> None:
        text = package_text(__package__, "kernels.ptx").encode()
        # The library reads up to a zero byte.
        module = self._call("cuModuleLoadData", text + b"\0")
        stack.callback(self._cuda.cuModuleUnload, module)
        self._functions = {
            name: self._call("cuModuleGetFunction", module, name.encode()) for name in _KERNELS
        }

    def _new_stream(self, stack: ExitStack) -> Any:
        stream = self._call("cuStreamCreate", int(self._cuda.CUstream_flags.CU_STREAM_NON_BLOCKING))
        stack.callback(self._cuda.cuStreamDestroy, stream)
        return stream

    def _new_event(self, stack: ExitStack) -> Any:
        event = self._call("cuEventCreate", 0)
        stack.callback(self._cuda.cuEventDestroy, event)
        return event

    def _new_pinned(self, stack: ExitStack) -> Any:
        flags = self._cuda.CU_MEMHOSTALLOC_DEVICEMAP
        address = self._call("cuMemHostAlloc", self._copy_bytes, flags)
        stack.callback(self._cuda.cuMemFreeHost, address)
        return address

    def _new_buffer(self, stack: ExitStack) -> Any:
        address = self._call("cuMemAlloc", self._copy_bytes)
        stack.callback(self._cuda.cuMemFree, address)
        return address

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a driver function and return its one result, if it has one."""
        status, *results = getattr(self._cuda, name)(*arguments)
        if status == self._cuda.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise MemoryError(f"{name}: out of memory")
        if status != self._cuda.CUresult.CUDA_SUCCESS:
            code = getattr(status, "name", str(status))
            raise DriverError(f"{name} failed while measuring: {code}")
        return results[0] if results else None
