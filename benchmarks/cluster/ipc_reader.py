# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The reading process of ``ipc_copy.py``: opens, copies and times what it is told, line by line.

    python ipc_reader.py DEVICE TOTAL_BYTES [--simulated]

DEVICE is the GPU that it copies to; the baseline copies there from a buffer of its own on GPU 0.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import rmm

import rmm_uvm
from rmm_uvm._lib.marks import Mark
from rmm_uvm._lib.transfers import Transfers
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.mr import SimulatedCudaMemoryResource

OWNER_ID = 0  # where the exporter's memory lies


def checked(result: tuple[Any, ...]) -> Any:
    """Return what a call of the CUDA runtime gave, or end the program."""
    if int(result[0]) != 0:
        raise SystemExit(f"the CUDA runtime answered {result[0]!r}")
    return result[1] if len(result) > 1 else None


class GpuSide:
    """Two buffers, on the two GPUs, and cudaMemcpyPeer between them with peer access."""

    def __init__(self, device_id: int, total_bytes: int) -> None:
        from cuda.bindings import runtime

        self.runtime, self.device_id = runtime, device_id
        if device_id != OWNER_ID:
            for here, there in ((OWNER_ID, device_id), (device_id, OWNER_ID)):
                checked(runtime.cudaSetDevice(here))
                checked(runtime.cudaDeviceEnablePeerAccess(there, 0))
        checked(runtime.cudaSetDevice(OWNER_ID))
        self.source = checked(runtime.cudaMalloc(total_bytes))
        checked(runtime.cudaSetDevice(device_id))
        self.target = checked(runtime.cudaMalloc(total_bytes))
        self.stream = checked(runtime.cudaStreamCreateWithFlags(runtime.cudaStreamNonBlocking))
        self.transfers = Transfers(CudaDriver(device_id, counters=False))

    def copy_own(self, offset: int, nbytes: int) -> None:
        checked(
            self.runtime.cudaMemcpyPeerAsync(
                self.target + offset,
                self.device_id,
                self.source + offset,
                OWNER_ID,
                nbytes,
                self.stream,
            )
        )

    def wait_own(self) -> None:
        checked(self.runtime.cudaStreamSynchronize(self.stream))

    def read(self, offset: int, nbytes: int) -> bytes:
        content = ctypes.create_string_buffer(nbytes)
        kind = self.runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
        checked(
            self.runtime.cudaMemcpy(ctypes.addressof(content), self.target + offset, nbytes, kind)
        )
        return content.raw


class SimulatedSide:
    """The same without a GPU: the baseline is a plain copy in host memory."""

    def __init__(self, total_bytes: int) -> None:
        self.device = rmm_uvm.simulated_device("4GiB", backing=True)
        self.mr = SimulatedCudaMemoryResource(self.device)
        self.buffers = [rmm.DeviceBuffer(size=total_bytes, mr=self.mr) for _ in range(2)]
        self.source, self.target = (buffer.ptr for buffer in self.buffers)
        self.transfers = Transfers(self.device)

    def copy_own(self, offset: int, nbytes: int) -> None:
        ctypes.memmove(self.target + offset, self.source + offset, nbytes)

    def wait_own(self) -> None:
        """Nothing is left to wait for."""

    def read(self, offset: int, nbytes: int) -> bytes:
        return ctypes.string_at(self.target + offset, nbytes)


def baseline(side: Any, nbytes: int, count: int) -> float:
    """Copy between buffers of this process; return seconds."""
    begin = time.perf_counter()
    for number in range(count):
        side.copy_own(number * nbytes, nbytes)
    side.wait_own()
    return time.perf_counter() - begin


def open_and_copy(side: Any, count: int) -> float:
    """Open buffers as their handles come, copy and close them; return seconds, waiting included."""
    begin = time.perf_counter()
    under_way: deque[tuple[rmm_uvm.ipc.Opened, Mark]] = deque()
    offset = 0
    for _ in range(count):
        buffer = rmm_uvm.ipc.open(bytes.fromhex(sys.stdin.readline()), transfers=side.transfers)
        side.transfers.wait_for(0)
        side.transfers.copy([(side.target + offset, buffer.ptr, buffer.nbytes)])
        under_way.append((buffer, side.transfers.mark()))
        offset += buffer.nbytes
        while under_way[0][1].done() and len(under_way) > 1:
            under_way.popleft()[0].close()
    for buffer, mark in under_way:
        mark.wait()
        buffer.close()
    return time.perf_counter() - begin


def open_seconds(side: Any, handle: bytes, count: int) -> list[float]:
    """Return the seconds that each of many openings takes; closing is not in them."""
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        buffer = rmm_uvm.ipc.open(handle, transfers=side.transfers)
        seconds.append(time.perf_counter() - begin)
        buffer.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", type=int)
    parser.add_argument("total_bytes", type=int)
    parser.add_argument("--simulated", action="store_true")
    arguments = parser.parse_args()
    side: Any = (
        SimulatedSide(arguments.total_bytes)
        if arguments.simulated
        else GpuSide(arguments.device, arguments.total_bytes)
    )
    work: dict[str, Callable[..., Any]] = {
        "baseline": lambda nbytes, count: baseline(side, nbytes, count),
        "copy": lambda count: open_and_copy(side, count),
        "open": lambda handle, count: open_seconds(side, bytes.fromhex(handle), count),
        "read": lambda offset, nbytes: side.read(offset, nbytes).hex(),
    }
    print(json.dumps("ready"), flush=True)
    while line := sys.stdin.readline():
        name, *told = json.loads(line)
        print(json.dumps(work[name](*told)), flush=True)


if __name__ == "__main__":
    main()
