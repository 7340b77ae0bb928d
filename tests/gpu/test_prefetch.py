# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is issued and what is not, on a real device: judged by the kernel driver's own counters."""

from __future__ import annotations

import cupy
import numpy as np
import pytest
import rmm
from rmm.pylibrmm.stream import Stream

import rmm_uvm
from rmm_uvm.drivers import CudaDriver

from .contents import PatternBuffer
from .test_contents import streams

pytestmark = pytest.mark.gpu

POOL_BYTES = 256 << 20
BLOCK_BYTES = 2 << 20


def make_pool(gpu: CudaDriver, prefetch: str = "auto") -> rmm_uvm.mr.UvmResourceAdaptor:
    return rmm_uvm.managed_pool(
        driver=gpu,
        initial_pool_size=POOL_BYTES,
        maximum_pool_size=POOL_BYTES,
        prefetch=prefetch,
        device_budget=None,
    )


def test_slab_is_prefetched_and_allocations_issue_nothing(gpu: CudaDriver) -> None:
    mr = make_pool(gpu)
    assert mr.statistics()["slab_prefetched_bytes"] == POOL_BYTES
    before = gpu.migrated_bytes()
    buffers = [PatternBuffer.make(mr, 3 << 20, n, cupy.cuda.Stream.null) for n in range(20)]
    cupy.cuda.Device().synchronize()
    statistics = mr.statistics()
    assert gpu.migrated_bytes() == before
    assert statistics["prefetch_calls"] == statistics["discard_calls"] == 0
    assert statistics["skipped"]["resident"] == 20
    for buffer in buffers:
        buffer.free(mr)


@pytest.mark.parametrize("index", range(5))
def test_recycled_memory_on_host_is_made_usable_without_copying(
    gpu: CudaDriver, index: int
) -> None:
    mr = make_pool(gpu)
    stream = streams()[index]
    size = 64 << 20
    below = PatternBuffer.make(mr, BLOCK_BYTES // 2 + 256, 1, stream)
    middle = PatternBuffer.make(mr, size, 2, stream)
    above = PatternBuffer.make(mr, BLOCK_BYTES // 2 + 256, 3, stream)
    cupy.cuda.Device().synchronize()
    middle.free(mr)
    first = below.address
    gpu.prefetch(first, above.address + above.nbytes - first, "host")
    gpu.synchronize()
    before = gpu.migrated_bytes()
    again = PatternBuffer.make(mr, size, 4, stream)
    cupy.cuda.Device().synchronize()
    host_to_device_bytes = gpu.migrated_bytes()[0] - before[0]
    assert again.address == middle.address
    assert mr.statistics()["discarded_bytes"] >= size - 2 * BLOCK_BYTES
    assert host_to_device_bytes <= 2 * BLOCK_BYTES
    wrong = cupy.zeros(1, cupy.uint64)
    for buffer in (below, again, above):
        buffer.count_wrong(wrong)
        buffer.free(mr)
    cupy.cuda.Device().synchronize()
    assert int(wrong[0]) == 0
    assert mr.statistics()["failed_calls"] == 0


@pytest.mark.parametrize("blocking", [True, False])
def test_allocation_in_a_capture_issues_nothing_and_keeps_the_capture(
    gpu: CudaDriver, blocking: bool
) -> None:
    # Without RMM's pool, which cannot serve a capturing stream itself.
    mr = rmm_uvm.mr.UvmResourceAdaptor(rmm_uvm.mr.ManagedMemoryResource(gpu))
    stream = cupy.cuda.Stream(non_blocking=not blocking)
    stream.begin_capture()
    try:
        address = mr.allocate(32 << 20, Stream(stream))
        in_capture = mr.statistics()
        on_legacy = mr.allocate(32 << 20)  # with a blocking stream capturing, it cannot be known
        unknown = mr.statistics()["skipped"]["capture_unknown"]
        mr.deallocate(on_legacy, 32 << 20)
    finally:
        graph = stream.end_capture()
    assert graph is not None
    # Once for the slab and once for the allocation.
    assert in_capture["skipped"]["capturing"] == 2
    assert in_capture["failed_calls"] == 0
    assert in_capture["prefetch_calls"] == in_capture["slab_prefetched_bytes"] == 0
    assert unknown == (2 if blocking else 0)
    mr.deallocate(address, 32 << 20, Stream(stream))


def test_counters_are_exact_to_the_byte(gpu: CudaDriver) -> None:
    assert gpu.counters_available()
    mr = rmm_uvm.mr.ManagedMemoryResource(gpu, prefetch="never")
    size = 16 << 20
    address = mr.allocate(size)
    memory = cupy.cuda.UnownedMemory(address, size, mr)
    data = cupy.ndarray((size,), cupy.uint8, cupy.cuda.MemoryPointer(memory, 0))
    data[...] = 1
    cupy.cuda.Device().synchronize()
    before = gpu.migrated_bytes()
    gpu.prefetch(address, size, "host")
    gpu.synchronize()
    data += 1  # faults back, page by page
    cupy.cuda.Device().synchronize()
    after = gpu.migrated_bytes()
    mr.deallocate(address, size)
    assert (after[0] - before[0], after[1] - before[1]) == (size, size)


def test_without_counters_everything_still_works(without_counters: CudaDriver) -> None:
    driver = without_counters
    assert not driver.counters_available()
    assert "RMM_UVM_COUNTERS" in driver.counters_available().reason
    mr = make_pool(driver)
    buffer = PatternBuffer.make(mr, 8 << 20, 5, cupy.cuda.Stream.null)
    wrong = cupy.zeros(1, cupy.uint64)
    buffer.count_wrong(wrong)
    buffer.free(mr)
    assert int(wrong[0]) == 0
    assert mr.statistics()["skipped"]["resident"] >= 1


def test_current_device_and_context_are_left_alone(gpu: CudaDriver) -> None:
    from cuda.bindings import driver as cuda

    before = cuda.cuCtxGetCurrent()
    mr = make_pool(gpu)
    mr.deallocate(mr.allocate(1000), 1000)
    assert cuda.cuCtxGetCurrent() == before


def test_memory_error_says_what_was_asked(gpu: CudaDriver) -> None:
    mr = make_pool(gpu)
    with pytest.raises(MemoryError, match="512"):
        mr.allocate(512 << 20)


def test_stacks_over_and_under_rmm_adaptors(gpu: CudaDriver) -> None:
    managed = rmm_uvm.mr.ManagedMemoryResource(gpu)
    arena = rmm.mr.ArenaMemoryResource(managed, 64 << 20)
    mr = rmm.mr.StatisticsResourceAdaptor(rmm_uvm.mr.UvmResourceAdaptor(arena))
    buffer = rmm.DeviceBuffer(size=10, mr=mr)
    buffer.copy_from_host(np.frombuffer(b"some bytes", np.uint8))
    assert buffer.tobytes() == b"some bytes"
    assert mr.allocation_counts.current_bytes == 10
