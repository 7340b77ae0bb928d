# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory handed out on a busy stream and first written from elsewhere keeps what was written."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import cupy
import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import CudaDriver

pytestmark = pytest.mark.gpu

NBYTES = 32 << 20
POOL_BYTES = 512 << 20
ROUNDS = 8
_SPIN = cupy.RawKernel(
    """
extern "C" __global__ void spin(long long ns) {
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begin < ns);
}""",
    "spin",
)


def view(address: int, owner: object) -> cupy.ndarray:
    memory = cupy.cuda.UnownedMemory(address, NBYTES, owner)
    return cupy.ndarray((NBYTES,), cupy.uint8, cupy.cuda.MemoryPointer(memory, 0))


def written_by_cpu(address: int, value: int, owner: object) -> None:
    ctypes.memset(address, value, NBYTES)


def written_by_another_stream(address: int, value: int, owner: object) -> None:
    other = cupy.cuda.Stream(non_blocking=True)
    with other:
        view(address, owner).fill(value)
    other.synchronize()


def lost_writes(
    gpu: CudaDriver, mr: rmm.mr.DeviceMemoryResource, write: Callable[[int, int, object], None]
) -> int:
    """Return in how many rounds a first write was lost."""
    stream = cupy.cuda.Stream(non_blocking=True)
    handle = rmm.pylibrmm.stream.Stream(stream)
    wrong = 0
    for number in range(ROUNDS):
        # What is dead lies on the host, as after an eviction.
        address = mr.allocate(NBYTES, handle)
        with stream:
            view(address, mr).fill(7)
        stream.synchronize()
        mr.deallocate(address, NBYTES, handle)
        gpu.prefetch(address, NBYTES, "host")
        gpu.synchronize()
        with stream:
            _SPIN((1,), (1,), (cupy.int64(20_000_000),))
        address = mr.allocate(NBYTES, handle)
        write(address, 42 + number, mr)
        stream.synchronize()
        cupy.cuda.Device().synchronize()
        # Pages that were discarded late lose their contents where they move.
        gpu.prefetch(address, NBYTES, "host")
        gpu.synchronize()
        wrong += int((view(address, mr) != 42 + number).any())
        mr.deallocate(address, NBYTES, handle)
    return wrong


@pytest.mark.parametrize("write", [written_by_cpu, written_by_another_stream])
@pytest.mark.parametrize("budget", [None, "128MiB"])
def test_first_write_into_memory_of_a_busy_stream_is_kept(
    gpu: CudaDriver, budget: str | None, write: Callable[[int, int, object], None]
) -> None:
    mr = rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        device_budget=budget,
    )
    assert lost_writes(gpu, mr, write) == 0


@pytest.mark.parametrize("write", [written_by_cpu, written_by_another_stream])
def test_rmm_own_managed_pool_keeps_that_write(
    gpu: CudaDriver, write: Callable[[int, int, object], None]
) -> None:
    limited = rmm.mr.LimitingResourceAdaptor(rmm.mr.ManagedMemoryResource(), POOL_BYTES)
    mr = rmm.mr.PoolMemoryResource(limited, POOL_BYTES, POOL_BYTES)
    assert lost_writes(gpu, mr, write) == 0


def test_discard_that_waits_in_a_stream_loses_a_first_write(gpu: CudaDriver) -> None:
    mr = rmm_uvm.mr.ManagedMemoryResource(gpu, prefetch="never")
    stream = cupy.cuda.Stream(non_blocking=True)
    address = mr.allocate(NBYTES)
    lost = 0
    for _ in range(ROUNDS):
        with stream:
            _SPIN((1,), (1,), (cupy.int64(20_000_000),))
        gpu.discard_and_prefetch(address, NBYTES, "device", stream.ptr)
        ctypes.memset(address, 42, NBYTES)
        stream.synchronize()
        gpu.prefetch(address, NBYTES, "host")
        gpu.synchronize()
        lost += int((view(address, mr) != 42).any())
    assert lost > 0, "a late discard lost nothing: the tests above could not fail"
    mr.deallocate(address, NBYTES)
