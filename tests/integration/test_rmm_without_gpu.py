# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What every other test here takes for granted: RMM's pool runs over memory that needs no GPU.

RMM 26.10's pool records CUDA events and, in a release build, ignores that they fail without a
driver. Nothing promises that. When this test fails, RMM has changed: tests of chains then need a
GPU, and those of the core (`cpp/tests`) still do not.
"""

from __future__ import annotations

import pytest
import rmm

import rmm_uvm
from rmm_uvm.mr import SimulatedCudaMemoryResource

MIB = 1 << 20


def test_rmm_pool_grows_coalesces_and_ends_without_a_gpu() -> None:
    source = SimulatedCudaMemoryResource(rmm_uvm.simulated_device("64MiB"))
    pool = rmm.mr.PoolMemoryResource(source, 4 * MIB, 16 * MIB)

    pieces = [pool.allocate(MIB) for _ in range(4)]
    for pointer in pieces:
        pool.deallocate(pointer, MIB)
    whole = pool.allocate(4 * MIB)  # only if the four were joined again
    assert pool.pool_size() == 4 * MIB
    more = pool.allocate(4 * MIB)
    assert pool.pool_size() > 4 * MIB
    with pytest.raises(MemoryError, match="Maximum pool size exceeded"):
        pool.allocate(16 * MIB)

    pool.deallocate(whole, 4 * MIB)
    pool.deallocate(more, 4 * MIB)


def test_rmm_statistics_see_what_the_chain_hands_out() -> None:
    inner = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    outer = rmm.mr.StatisticsResourceAdaptor(inner)
    first, second = (rmm.DeviceBuffer(size=size, mr=outer) for size in (1000, 3000))
    del first
    counts = outer.allocation_counts
    assert (counts.current_bytes, counts.peak_bytes) == (3000, 4000)
    assert (inner.get_allocated_bytes(), inner.peak_bytes) == (3000, 4000)
    del second


def test_failure_callback_can_free_memory_and_try_again() -> None:
    inner = rmm_uvm.managed_pool(
        driver="simulated:64MiB", initial_pool_size="8MiB", maximum_pool_size="8MiB"
    )
    cache = [rmm.DeviceBuffer(size=6 * MIB, mr=inner)]

    def drop_cache(_nbytes: int) -> bool:
        had_any = bool(cache)
        cache.clear()
        return had_any

    outer = rmm.mr.FailureCallbackResourceAdaptor(inner, drop_cache)
    buffer = rmm.DeviceBuffer(size=6 * MIB, mr=outer)
    assert cache == []
    del buffer
