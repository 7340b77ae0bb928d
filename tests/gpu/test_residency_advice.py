# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Advice on a GPU: what libcuda says is advised, exact to blocks, and gone with the memory."""

from __future__ import annotations

import ctypes
from typing import Any

import cupy
import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.pool.hints import Advised
from rmm_uvm.residency import Budget

pytestmark = pytest.mark.gpu

MIB = 1 << 20
BLOCK = 2 * MIB
READ_MOSTLY, PREFERRED_LOCATION = 1, 2  # CUmem_range_attribute
HOST, NOWHERE = -1, -2  # CU_DEVICE_CPU, CU_DEVICE_INVALID
NOTHING = (0, NOWHERE)


def attribute(which: int, address: int, nbytes: int) -> int:
    """Return what libcuda says about all pages of a range."""
    cupy.cuda.runtime.free(0)  # a context in this thread
    value = ctypes.c_int(-99)
    answer = ctypes.CDLL("libcuda.so.1").cuMemRangeGetAttribute(
        ctypes.byref(value),
        ctypes.c_size_t(4),
        ctypes.c_int(which),
        ctypes.c_uint64(address),
        ctypes.c_size_t(nbytes),
    )
    assert answer == 0, f"cuMemRangeGetAttribute answered {answer}"
    return value.value


def told(address: int, blocks: int) -> list[tuple[int, int]]:
    """Return whether each block is read mostly, and where it belongs."""
    starts = [address + BLOCK * index for index in range(blocks)]
    return [
        (attribute(READ_MOSTLY, start, BLOCK), attribute(PREFERRED_LOCATION, start, BLOCK))
        for start in starts
    ]


@pytest.fixture
def counting(gpu: CudaDriver) -> CudaDriver:
    """Return the GPU, where it counts the bytes that move."""
    if not gpu.counters_available():
        pytest.skip(gpu.counters_available().reason)
    return gpu


@pytest.fixture(params=[None, Budget(16 * MIB)], ids=["", "budget"])
def mr(request: Any, gpu: CudaDriver) -> rmm_uvm.mr.UvmResourceAdaptor:
    return rmm_uvm.managed_pool(
        driver=gpu,
        device_budget=request.param,
        initial_pool_size="32MiB",
        maximum_pool_size="32MiB",
    )


def blocks_of(mr: Any) -> rmm.DeviceBuffer:
    """8 MiB that begin where a block does: the first of a pool, whose slab begins at one."""
    buffer = rmm.DeviceBuffer(size=8 * MIB, mr=mr)
    assert buffer.ptr % BLOCK == 0
    return buffer


def as_words(buffer: rmm.DeviceBuffer) -> Any:
    memory = cupy.cuda.UnownedMemory(buffer.ptr, buffer.size, buffer)
    return cupy.ndarray(
        buffer.size // 8, dtype=cupy.uint64, memptr=cupy.cuda.MemoryPointer(memory, 0)
    )


def test_advice_reaches_the_blocks_inside_and_no_others(mr: Any) -> None:
    buffer = blocks_of(mr)
    inside = (buffer.ptr + MIB, 5 * MIB)  # blocks 1 and 2 lie wholly in it
    found = rmm_uvm.advise(inside, read_mostly=True, preferred="host", mr=mr)
    assert found == Advised(5 * MIB, 4 * MIB, MIB)
    assert told(buffer.ptr, 4) == [NOTHING, (1, HOST), (1, HOST), NOTHING]
    rmm_uvm.advise(inside, preferred="device", mr=mr)
    assert told(buffer.ptr, 4) == [NOTHING, (1, 0), (1, 0), NOTHING]
    rmm_uvm.advise(inside, read_mostly=False, preferred="none", mr=mr)
    assert told(buffer.ptr, 4) == [NOTHING] * 4


def test_advice_is_gone_when_the_memory_is_freed_and_handed_out_again(mr: Any) -> None:
    buffer = blocks_of(mr)
    address = buffer.ptr
    rmm_uvm.advise(buffer, read_mostly=True, preferred="host", mr=mr)
    assert told(address, 4) == [(1, HOST)] * 4
    del buffer
    assert told(address, 4) == [NOTHING] * 4  # the pool still has the slab
    again = blocks_of(mr)
    assert again.ptr == address
    assert told(address, 4) == [NOTHING] * 4


def test_what_is_read_mostly_is_copied_to_the_host_once_and_leaves_the_device(
    counting: CudaDriver, mr: Any
) -> None:
    buffer = blocks_of(mr)
    words = as_words(buffer)
    words[:] = cupy.arange(words.size, dtype=cupy.uint64)
    total = int(words.sum())
    cupy.cuda.runtime.deviceSynchronize()
    rmm_uvm.advise(buffer, read_mostly=True, mr=mr)
    moved = []
    for _ in range(3):
        before = counting.migrated_bytes()
        assert rmm_uvm.evict(buffer, mr=mr).moved_bytes == 8 * MIB
        cupy.cuda.runtime.deviceSynchronize()
        away = counting.migrated_bytes()
        assert told(buffer.ptr, 4) == [(1, NOWHERE)] * 4  # given anew
        rmm_uvm.touch(buffer, mr=mr)
        cupy.cuda.runtime.deviceSynchronize()
        back = counting.migrated_bytes()
        assert int(words.sum()) == total
        moved.append((away[1] - before[1], back[0] - away[0]))
    # The copy of the host was made once; what came back each time had left.
    assert moved == [(8 * MIB, 8 * MIB), (0, 8 * MIB), (0, 8 * MIB)]
    rmm_uvm.advise(buffer, read_mostly=False, mr=mr)
    rmm_uvm.prefetch(buffer, mr=mr)
    words += 1
    cupy.cuda.runtime.deviceSynchronize()
    before = counting.migrated_bytes()
    rmm_uvm.evict(buffer, mr=mr)
    cupy.cuda.runtime.deviceSynchronize()
    assert counting.migrated_bytes()[1] - before[1] == 8 * MIB  # the twin
    assert int(words.sum()) == total + words.size


def test_what_prefers_the_host_is_read_there_and_comes_when_prefetched(
    counting: CudaDriver, mr: Any
) -> None:
    buffer = blocks_of(mr)
    words = as_words(buffer)
    words[:] = 7
    cupy.cuda.runtime.deviceSynchronize()
    rmm_uvm.advise(buffer, preferred="host", mr=mr)
    rmm_uvm.evict(buffer, mr=mr)
    cupy.cuda.runtime.deviceSynchronize()
    before = counting.migrated_bytes()[0]
    rmm_uvm.touch(buffer, mr=mr)
    assert int(words.sum()) == 7 * words.size
    assert counting.migrated_bytes()[0] == before
    rmm_uvm.prefetch(buffer, mr=mr)
    cupy.cuda.runtime.deviceSynchronize()
    assert counting.migrated_bytes()[0] - before == 8 * MIB
    assert int(words.sum()) == 7 * words.size
