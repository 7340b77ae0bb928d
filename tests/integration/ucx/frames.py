# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Device data without a GPU, in a module that every process of a test can import.

The simulated device has host memory behind its addresses; UCX, which finds no CUDA here, takes
them for host memory, which they are.
"""

from __future__ import annotations

import ctypes
import random
from typing import Any

import rmm
from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
from distributed.protocol.serialize import dask_deserialize, dask_serialize

import rmm_uvm
from rmm_uvm.dask.comm.staging import Staging, staging_for_frames


class Data:
    """Bytes in device memory, as a CuPy array has them."""

    def __init__(self, buffer: rmm.DeviceBuffer, *, way: str = "made") -> None:
        self.buffer = buffer
        self.way = way

    @classmethod
    def of(cls, contents: bytes) -> Data:
        buffer = rmm.DeviceBuffer(size=len(contents), mr=rmm.mr.get_per_device_resource(0))
        if contents:
            ctypes.memmove(buffer.ptr, contents, len(contents))
        return cls(buffer)

    @classmethod
    def random(cls, nbytes: int, seed: int) -> Data:
        return cls.of(random_bytes(nbytes, seed))

    @property
    def contents(self) -> bytes:
        return ctypes.string_at(self.buffer.ptr, self.buffer.size) if self.buffer.size else b""

    def __sizeof__(self) -> int:
        return int(self.buffer.size)


def random_bytes(nbytes: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(nbytes)


@cuda_serialize.register(Data)
def _to_device_frames(data: Data) -> tuple[dict[str, Any], list[Any]]:
    return {}, [data.buffer]


@cuda_deserialize.register(Data)
def _from_device_frames(header: dict[str, Any], frames: list[Any]) -> Data:
    (buffer,) = frames
    assert isinstance(buffer, rmm.DeviceBuffer)  # as Dask's own functions do
    return Data(buffer, way="device")


@dask_serialize.register(Data)
def _to_host_frames(data: Data) -> tuple[dict[str, Any], list[Any]]:
    return {}, [data.contents]


class HostData:
    """What device data become in a process without a device."""

    def __init__(self, contents: bytes) -> None:
        self.contents = contents
        self.way = "host"


@dask_deserialize.register(Data)
def _from_host_frames(header: dict[str, Any], frames: list[Any]) -> HostData:
    return HostData(b"".join(bytes(frame) for frame in frames))


def install(ipc_pool_size: str | None = "8MiB", device: str = "1GiB") -> None:
    """Install a managed pool on a simulated device with memory behind it."""
    rmm_uvm.reinitialize(
        "64MiB",
        driver=rmm_uvm.simulated_device(device, backing=True),
        ipc_pool_size=ipc_pool_size,
        libraries=(),
        monitor=False,
    )


def chunks() -> dict[str, int]:
    """Return the chunks of this process that are free, and how many there are."""
    staging: Staging = staging_for_frames()
    staging.quarantine.collect()
    return {
        "free": staging.sending.free_count + staging.receiving.free_count,
        "count": staging.sending.count + staging.receiving.count,
        "quarantined": len(staging.quarantine),
    }
