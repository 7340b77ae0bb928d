# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a request costs does not depend on how many blocks are announced, pinned, live or ahead.

In processor time of the calling thread, which others on the machine hardly change.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget
from rmm_uvm.support.units import VA_BLOCK_BYTES

FEW, MANY, SLABS = 1_000, 32_000, 32_000  # a slab is a mapping, of which a process has 65,530
MOST_GROWTH = 4.0  # of 32 where all are looked at
CALLS = 41
SLAB_BYTES = 1 << 16

Prepare = Callable[[UvmResourceAdaptor, list[int]], None]


def _full_pool(blocks: int) -> tuple[UvmResourceAdaptor, list[int]]:
    """Return a pool whose budget so many allocations of a block fill, and these."""
    budget_bytes = blocks * VA_BLOCK_BYTES
    driver = rmm_uvm.simulated_device(2 * budget_bytes)
    slab = rmm_uvm.mr.ManagedMemoryResource(driver, budget=Budget(budget_bytes, background=False))
    pool_bytes = 2 * budget_bytes
    mr = UvmResourceAdaptor(rmm.mr.PoolMemoryResource(slab, pool_bytes, pool_bytes))
    return mr, [mr.allocate(VA_BLOCK_BYTES) for _ in range(blocks)]


def _announce(mr: UvmResourceAdaptor, live: list[int]) -> None:
    rmm_uvm.touch([(address, VA_BLOCK_BYTES) for address in live], mr=mr)


def _announce_one_by_one(mr: UvmResourceAdaptor, live: list[int]) -> None:
    for address in live:
        rmm_uvm.touch((address, VA_BLOCK_BYTES), mr=mr)


def _pin_half(mr: UvmResourceAdaptor, live: list[int]) -> None:
    for address in live[: len(live) // 2]:
        mr.managed_mr.residency.pin(address, VA_BLOCK_BYTES)


def _request_seconds(blocks: int, prepare: Prepare) -> float:
    """Return what a request takes for which others have to leave; of the first none is counted."""
    mr, live = _full_pool(blocks)
    prepare(mr, live)
    taken = []
    for _ in range(CALLS):
        begin = time.thread_time()
        live.append(mr.allocate(VA_BLOCK_BYTES))
        taken.append(time.thread_time() - begin)
    assert rmm_uvm.residency_statistics(mr).evicted_bytes >= CALLS * VA_BLOCK_BYTES
    for address in live:
        mr.deallocate(address, VA_BLOCK_BYTES)
    return statistics.median(taken)


@pytest.mark.parametrize("prepare", [_announce, _announce_one_by_one, _pin_half])
def test_request_that_makes_room_does_not_look_at_all_blocks(prepare: Prepare) -> None:
    growth = _request_seconds(MANY, prepare) / _request_seconds(FEW, prepare)
    assert growth < MOST_GROWTH


def _seconds_ahead(count: int) -> float:
    """Return what a use takes, with all that a thread does of itself, where a quarter is ahead."""
    random_ = random.Random(1)
    sizes = [random_.randint(1, 40) * VA_BLOCK_BYTES for _ in range(count)]  # each place is known
    quarter_bytes = sum(sizes) // 4 // VA_BLOCK_BYTES * VA_BLOCK_BYTES
    driver = rmm_uvm.simulated_device(16 * quarter_bytes)
    budget = Budget(3 * quarter_bytes, background=False, ahead=True, ahead_bytes=quarter_bytes)
    slab = rmm_uvm.mr.ManagedMemoryResource(driver, budget=budget)
    pool_bytes = 8 * quarter_bytes
    mr = UvmResourceAdaptor(rmm.mr.PoolMemoryResource(slab, pool_bytes, pool_bytes))
    live = [(mr.allocate(nbytes), nbytes) for nbytes in sizes]
    begin = time.thread_time()
    for part in 3 * live:
        rmm_uvm.touch(part, mr=mr)
        mr.managed_mr.residency.run_pending()
    taken = time.thread_time() - begin
    assert rmm_uvm.residency_statistics(mr).ahead_used_bytes > quarter_bytes
    for part in live:
        mr.deallocate(*part)
    return taken / (3 * count)


def test_look_ahead_does_not_look_at_all_uses_for_each_piece() -> None:
    assert _seconds_ahead(4_000) / _seconds_ahead(250) < MOST_GROWTH / 2


def test_slab_is_made_without_looking_at_the_others() -> None:
    driver = rmm_uvm.simulated_device("1TiB")
    slabs = rmm_uvm.mr.ManagedMemoryResource(driver)
    live: list[int] = []

    def slab_seconds(beside: int) -> float:
        while len(live) < beside:
            live.append(slabs.allocate(SLAB_BYTES))
        taken = []
        for _ in range(10 * CALLS):
            begin = time.thread_time()
            slabs.deallocate(slabs.allocate(SLAB_BYTES), SLAB_BYTES)
            taken.append(time.thread_time() - begin)
        return statistics.median(taken)

    few = slab_seconds(FEW)
    assert slab_seconds(SLABS) / few < MOST_GROWTH / 2
    for address in live:
        slabs.deallocate(address, SLAB_BYTES)
