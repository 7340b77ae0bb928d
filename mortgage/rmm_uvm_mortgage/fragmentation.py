# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The fragmentation case: enough bytes are free, and still an allocation fails.

A fixed pool over cudaMalloc memory cannot move what is alive in it. When a program has freed every
other column of a table, half of the pool is free, in pieces of one column each, and a result
larger than a column finds no room. A managed pool takes another slab; what is cold leaves the
device to make room for it.

Runs on a simulated device, with RMM's real pool. Does not cover fragmentation on a GPU.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import rmm

from rmm_uvm.drivers import SimulatedDevice, simulated_device
from rmm_uvm.mr import (
    ManagedAccount,
    ManagedMemoryResource,
    SimulatedCudaMemoryResource,
    UvmResourceAdaptor,
)

__all__ = ["FragmentationResult", "run_fragmentation"]

_COLUMN_COUNT = 16
_RESULT_COLUMNS = 3  # the allocation that is larger than any free piece


@dataclasses.dataclass(frozen=True)
class FragmentationResult:
    """How one kind of memory took the fragmentation case.

    Parameters
    ----------
    memory : {"cuda-pool", "managed"}
        The chain.
    device_bytes : int
        Memory of the device, all of it in the pool.
    free_bytes : int
        Free in the pool when the result was asked for.
    piece_bytes : int
        The largest piece of it.
    asked_bytes : int
        Size of the result: more than a piece, less than what is free.
    completed : bool
        The result was allocated and written, and all columns read again.
    error : str
        First line of the MemoryError; empty when completed.
    host_to_device_bytes, device_to_host_bytes : int
        What moved.
    """

    memory: Literal["cuda-pool", "managed"]
    device_bytes: int
    free_bytes: int
    piece_bytes: int
    asked_bytes: int
    completed: bool
    error: str
    host_to_device_bytes: int
    device_to_host_bytes: int


def run_fragmentation(
    memory: Literal["cuda-pool", "managed"], device_bytes: int = 1 << 30
) -> FragmentationResult:
    """Fill a pool with columns, free every other one, and ask for a larger result.

    Parameters
    ----------
    memory : {"cuda-pool", "managed"}
        A fixed pool over cudaMalloc memory, or the managed pool; both begin as large as the device.
    device_bytes : int
        Memory of the simulated device, bytes; a multiple of 32 MiB.

    Returns
    -------
    FragmentationResult
        Running out of memory is a result here, not an error.

    Raises
    ------
    ConfigurationError
        If `device_bytes` is not a positive multiple of 2 MiB.

    Examples
    --------
    >>> run_fragmentation("cuda-pool", 64 << 20).completed
    False
    >>> run_fragmentation("managed", 64 << 20).completed
    True
    """
    device = simulated_device(device_bytes)
    pool = _pool(memory, device, device_bytes)
    mr = UvmResourceAdaptor(pool) if memory == "managed" else pool
    column_bytes = device_bytes // _COLUMN_COUNT
    columns = [mr.allocate(column_bytes) for _ in range(_COLUMN_COUNT)]
    _touch(device, columns, column_bytes, memory)
    for address in columns[::2]:
        mr.deallocate(address, column_bytes)
    kept = columns[1::2]
    free_bytes = pool.pool_size() - len(kept) * column_bytes
    asked_bytes = _RESULT_COLUMNS * column_bytes
    error = ""
    try:
        result = mr.allocate(asked_bytes)
        _touch(device, [result], asked_bytes, memory)
        _touch(device, kept, column_bytes, memory)
        mr.deallocate(result, asked_bytes)
    except MemoryError as failure:
        error = str(failure).splitlines()[0]
    for address in kept:
        mr.deallocate(address, column_bytes)
    host_to_device_bytes, device_to_host_bytes = device.migrated_bytes()
    return FragmentationResult(
        memory=memory,
        device_bytes=device_bytes,
        free_bytes=free_bytes,
        piece_bytes=column_bytes,
        asked_bytes=asked_bytes,
        completed=not error,
        error=error,
        host_to_device_bytes=host_to_device_bytes,
        device_to_host_bytes=device_to_host_bytes,
    )


def _pool(
    memory: Literal["cuda-pool", "managed"], device: SimulatedDevice, device_bytes: int
) -> rmm.mr.PoolMemoryResource:
    if memory == "managed":
        # Simulated memory is none of this machine: no cap counts it.
        upstream = ManagedMemoryResource(device, account=ManagedAccount())
        return rmm.mr.PoolMemoryResource(upstream, device_bytes)
    source = SimulatedCudaMemoryResource(device)
    return rmm.mr.PoolMemoryResource(source, device_bytes, device_bytes)


def _touch(
    device: SimulatedDevice,
    addresses: list[int],
    nbytes: int,
    memory: Literal["cuda-pool", "managed"],
) -> None:
    """Let a kernel write; cudaMalloc memory is always there."""
    if memory == "managed":
        for address in addresses:
            device.touch(address, nbytes, write=True)
