# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Eviction page by page, as simulators of papers have it, beside that of the kernel driver."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.planner import replay_paced
from rmm_uvm.simulator import Access, DriverSettings, Simulator, load_machine
from rmm_uvm.trace import KernelTraceWriter

KIB, MIB = 1 << 10, 1 << 20
BIG_PAGE = 64 * KIB  # what the kernel driver's prefetcher brings around a fault


def on_two_blocks(*, evict_pages: bool) -> tuple[Any, int, Any]:
    """Return a device of two full blocks, 0 and 1, with a third that is not touched yet."""
    device = rmm_uvm.simulated_device("4MiB", evict_pages=evict_pages)
    mr = rmm_uvm.mr.ManagedMemoryResource(device, prefetch="never")
    address = mr.allocate(6 * MIB)
    device.touch(address, 4 * MIB, write=True)
    return device, address, mr


def resident(device: Any, address: int) -> list[int]:
    return [device.resident_bytes(address + place * 2 * MIB, 2 * MIB) for place in range(3)]


def test_only_the_pages_that_are_needed_leave_as_by_hand() -> None:
    device, address, mr = on_two_blocks(evict_pages=True)
    device.touch(address + 4 * MIB, 1, write=True)
    # 64 KiB come around the fault; the first 64 KiB of the oldest block leave for them.
    assert resident(device, address) == [2 * MIB - BIG_PAGE, 2 * MIB, BIG_PAGE]
    assert device.resident_bytes(address, BIG_PAGE, "host") == BIG_PAGE
    found = device.statistics()
    assert (found["evicted_bytes"], found["device_to_host_bytes"]) == (BIG_PAGE, BIG_PAGE)
    assert found["resident_bytes"] == 4 * MIB
    device.touch(address, 2 * MIB)
    # They come back, and the first of block 1, the oldest now, leave for them.
    assert resident(device, address) == [2 * MIB, 2 * MIB - BIG_PAGE, BIG_PAGE]
    found = device.statistics()
    assert (found["host_to_device_bytes"], found["evicted_bytes"]) == (BIG_PAGE, 2 * BIG_PAGE)
    mr.deallocate(address, 6 * MIB)
    assert device.statistics()["resident_bytes"] == 0


def test_kernel_driver_evicts_a_block_for_the_same() -> None:
    device, address, mr = on_two_blocks(evict_pages=False)
    device.touch(address + 4 * MIB, 1, write=True)
    assert resident(device, address) == [0, 2 * MIB, BIG_PAGE]
    assert device.statistics()["evicted_bytes"] == 2 * MIB
    device.touch(address, 2 * MIB)
    assert device.statistics()["host_to_device_bytes"] == 2 * MIB
    mr.deallocate(address, 6 * MIB)


def test_blocks_that_fit_take_no_more_than_their_pages() -> None:
    # Four blocks of which 64 KiB are used fit on two blocks of memory, page by page.
    def evicted_bytes(*, evict_pages: bool) -> int:
        device = rmm_uvm.simulated_device("4MiB", evict_pages=evict_pages)
        mr = rmm_uvm.mr.ManagedMemoryResource(device, prefetch="never")
        address = mr.allocate(8 * MIB)
        for block in range(4):
            device.touch(address + block * 2 * MIB, 1, write=True)
        found = int(device.statistics()["evicted_bytes"])
        mr.deallocate(address, 8 * MIB)
        return found

    assert evicted_bytes(evict_pages=True) == 0
    assert evicted_bytes(evict_pages=False) == 2 * BIG_PAGE


def test_other_memory_takes_pages_too() -> None:
    device, address, mr = on_two_blocks(evict_pages=True)
    sim = Simulator(
        load_machine("h200-pcie5"), device_bytes="4MiB", driver=DriverSettings(evict_pages=True)
    )
    data = sim.allocate_managed("4MiB")
    sim.kernel([Access(data, 4 * MIB, write=True)])
    sim.allocate_device("1MiB")
    sim.synchronize()
    counted = sim.counters()
    assert (counted.evicted_bytes, counted.resident_bytes) == (MIB, 3 * MIB)
    device.prefetch(address, 2 * MIB, "host")  # what leaves by a call leaves its memory too
    assert device.statistics()["resident_bytes"] == 2 * MIB
    mr.deallocate(address, 6 * MIB)


@pytest.mark.parametrize("seed", range(6))
def test_memory_is_that_of_the_pages_whatever_is_done(seed: int) -> None:
    chance = random.Random(seed)
    device = rmm_uvm.simulated_device("8MiB", evict_pages=True, neighbors=1)
    mr = rmm_uvm.mr.ManagedMemoryResource(device, prefetch="never")
    address = mr.allocate(20 * MIB)
    for _ in range(200):
        first = chance.randrange(20 * MIB)
        size = chance.randint(1, min(6 * MIB, 20 * MIB - first))
        match chance.choice(("touch", "cpu_touch", "prefetch", "evict", "discard")):
            case "touch":
                device.touch(address + first, size, write=chance.random() < 0.5)
            case "cpu_touch":
                device.cpu_touch(address + first, size, write=True)
            case "prefetch":
                device.prefetch(address + first, size)
            case "evict":
                device.prefetch(address + first, size, "host")
            case "discard":
                device.discard(address + first, size)
        held = device.statistics()["resident_bytes"]
        assert held == device.resident_bytes(address, 20 * MIB) <= 8 * MIB
    mr.deallocate(address, 20 * MIB)
    assert device.statistics()["resident_bytes"] == 0


def test_paced_replay_compares_both(tmp_path: Path) -> None:
    with KernelTraceWriter(tmp_path / "a") as trace:
        parts = [trace.allocate("2MiB") for _ in range(3)]
        for _ in range(4):
            for part in parts:
                trace.kernel("sparse", writes=[(part, 0, 4096)], seconds=0.001)
    by_block = replay_paced(tmp_path / "a", "4MiB", prefetch="never")
    by_page = replay_paced(
        tmp_path / "a", "4MiB", prefetch="never", driver=DriverSettings(evict_pages=True)
    )
    assert by_block.to_host_bytes > 0 == by_page.to_host_bytes
    assert by_page.waited_seconds < by_block.waited_seconds
