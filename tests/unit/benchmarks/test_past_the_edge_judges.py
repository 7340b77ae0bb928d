# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The two judges of what lies on the device: the page tables, and the driver's counter."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rmm_uvm
from rmm_uvm.residency import Budget

from .scripts import script

ranges = script("benchmarks", "common/past_the_edge/ranges")
page_tables = script("benchmarks", "common/past_the_edge/page_tables")
memory = script("benchmarks", "common/past_the_edge/memory")
stops = script("benchmarks", "common/past_the_edge/stops")
rounds = script("benchmarks", "common/past_the_edge/rounds")

MIB = 1 << 20
PAGE = 4096
SOME = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=8)


def units_of(some: list[tuple[int, int]]) -> set[int]:
    return {unit for begin, count in some for unit in range(begin, begin + count)}


@given(SOME, SOME)
def test_ranges_are_sets_of_pages(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    one, other = ranges.joined(some, 1), ranges.joined(others, 1)

    assert units_of(one) == units_of(some)
    assert ranges.bytes_of(one) == len(units_of(some))
    assert units_of(ranges.without(one, other)) == units_of(some) - units_of(others)


def test_ranges_grow_to_whole_pages_and_touch_no_page_twice() -> None:
    assert ranges.joined([(PAGE + 1, 1), (PAGE + 8, 8), (2 * PAGE - 1, 2)]) == [(PAGE, 2 * PAGE)]


def test_pieces_end_where_blocks_end() -> None:
    pieces = list(ranges.by_block([(MIB, 4 * MIB)]))

    assert pieces == [(MIB, MIB), (2 * MIB, 2 * MIB), (4 * MIB, MIB)]


@pytest.mark.parametrize("scans", [True, False])
def test_page_tables_tell_what_the_host_holds(scans: bool) -> None:
    mapped = mmap.mmap(-1, 8 * MIB)
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    ctypes.memset(address + MIB, 1, 3 * MIB)
    pages = page_tables.HostPages(scans=scans)

    assert pages.not_on_host([(address, 8 * MIB)]) == 5 * MIB
    assert pages.not_on_host([(address + MIB, MIB), (address + 4 * MIB, MIB)]) == MIB
    pages.close()


def sample(seconds: float, held: int | None, came: int = 0, left: int = 0) -> Any:
    return page_tables.Sample(seconds, 100, held, came, left, 0.001)


def test_most_and_average_beyond_the_budget() -> None:
    samples = [sample(0.0, 150), sample(1.0, 90), sample(2.0, 110), sample(3.0, 500)]

    told = page_tables.beyond(samples, 1.0, 3.0, budget_bytes=100)

    assert (told["most_bytes"], told["average_bytes"], told["samples"]) == (10, 5, 2)


def test_device_memory_beside_managed_memory_counts() -> None:
    told = page_tables.beyond([sample(1.0, 90)], 1.0, 2.0, budget_bytes=100, beside_bytes=15)

    assert (told["most_bytes"], told["average_bytes"]) == (5, 5)


def test_what_came_during_a_look_is_not_sure() -> None:
    told = page_tables.beyond([sample(1.0, 130, came=20)], 1.0, 2.0, budget_bytes=100)

    assert (told["most_bytes"], told["most_bytes_seen"]) == (10, 30)
    assert told["moved_while_looking_bytes"] == 20


def test_without_a_look_nothing_is_told() -> None:
    told = page_tables.beyond([sample(1.0, None)], 1.0, 2.0, budget_bytes=100)

    assert (told["most_bytes"], told["average_bytes"], told["live_peak_bytes"]) == (None, None, 100)


def test_sampler_that_fails_says_why() -> None:
    def fails() -> Any:
        raise OSError("no such table")

    sampler = page_tables.Sampler(fails, 0.001)
    sampler.start()
    sampler._thread.join(10)
    sampler.stop()

    assert sampler.failure == "OSError: no such table"


def test_sampler_looks_until_it_is_stopped() -> None:
    sampler = page_tables.Sampler(lambda: sample(0.0, 1), 0.0001)
    sampler.start()
    while len(sampler.samples) < 3:
        pass
    sampler.stop()
    count = len(sampler.samples)

    assert not sampler._thread.is_alive()
    assert len(sampler.samples) == count


@pytest.fixture
def device() -> Any:
    return rmm_uvm.simulated_device("256MiB")


def pool(device: Any, budget_bytes: int | None) -> Any:
    budget = None if budget_bytes is None else Budget(budget_bytes, background=False)
    mr = rmm_uvm.managed_pool(driver=device, device_budget=budget, maximum_pool_size="128MiB")
    return memory.SimulatedMemory(device, mr, mr.managed_mr.residency)


def test_both_judges_find_what_is_resident(device: Any) -> None:
    of_side = pool(device, 32 * MIB)
    held = [of_side.mr.allocate(8 * MIB) for _ in range(8)]
    for address in held:
        of_side.residency.touch(address, 8 * MIB, address)
        device.touch(address, 8 * MIB, True)
    truly = sum(device.resident_bytes(address, 8 * MIB) for address in held)

    told = stops.look_at_stop(of_side)

    assert told["live_bytes"] == 64 * MIB
    assert told["live_resident_bytes"] == truly == 32 * MIB
    assert told["live_resident_by_page_tables_bytes"] == truly
    for address in held:
        of_side.mr.deallocate(address, 8 * MIB)


def test_judges_see_what_the_manager_does_not(device: Any) -> None:
    of_side = pool(device, 32 * MIB)
    held = [of_side.mr.allocate(8 * MIB) for _ in range(8)]
    for address in held:  # unannounced, and no thread looks for it
        device.touch(address, 8 * MIB, True)
    device.touch(held[0], 8 * MIB)
    believed = of_side.residency.residency()["resident_bytes"]
    truly = sum(device.resident_bytes(address, 8 * MIB) for address in held)
    assert truly > believed

    assert of_side.sample().held_bytes == truly
    assert stops.look_at_stop(of_side)["live_resident_bytes"] == truly
    for address in held:
        of_side.mr.deallocate(address, 8 * MIB)


def test_dead_memory_with_contents_counts_at_a_stop(device: Any) -> None:
    of_side = pool(device, None)
    live, dead = (of_side.mr.allocate(8 * MIB) for _ in range(2))
    for address in (live, dead):
        device.touch(address, 8 * MIB, True)
    of_side.live_pages()
    of_side.mr.deallocate(dead, 8 * MIB)

    told = stops.look_at_stop(of_side)

    assert (told["live_resident_bytes"], told["dead_resident_bytes"]) == (8 * MIB, 8 * MIB)
    of_side.mr.deallocate(live, 8 * MIB)


def test_dead_memory_that_was_discarded_does_not(device: Any) -> None:
    of_side = pool(device, None)
    dead = of_side.mr.allocate(8 * MIB)
    device.touch(dead, 8 * MIB, True)
    of_side.live_pages()
    of_side.mr.deallocate(dead, 8 * MIB)
    device.discard(dead, 8 * MIB)

    assert stops.look_at_stop(of_side)["dead_resident_bytes"] == 0


def test_dead_memory_that_was_given_back_is_left_out(device: Any) -> None:
    of_side = pool(device, None)
    slab = rmm_uvm.mr.ManagedMemoryResource(device, prefetch="never")
    gone = slab.allocate(8 * MIB)
    of_side._seen = [(gone, 8 * MIB)]
    slab.deallocate(gone, 8 * MIB)

    told = stops.look_at_stop(of_side)

    assert (told["dead_bytes"], told["dead_resident_bytes"]) == (0, 0)


def test_live_allocations_are_those_that_were_not_freed(device: Any) -> None:
    of_side = pool(device, None)
    one, other = (of_side.mr.allocate(size) for size in (MIB, 512))
    assert sorted(of_side.live.ranges()) == sorted([(one, MIB), (other, 512)])
    of_side.mr.deallocate(one, MIB)

    assert of_side.live.ranges() == [(other, 512)]
    of_side.mr.deallocate(other, 512)


def test_moments_are_seeded_and_all_different() -> None:
    one = rounds.moments(7, range(4, 8), 96, 5)

    assert one == rounds.moments(7, range(4, 8), 96, 5) != rounds.moments(8, range(4, 8), 96, 5)
    assert rounds.moments(7, range(4, 8), 96, 9)[:5] == one
    assert len({tuple(each) for each in one}) == 5
    assert all(4 <= number < 8 and 0 <= operation < 96 for number, operation in one)


def test_environment_of_a_run_has_no_settings_of_the_user() -> None:
    made = memory.pinned({"RMM_UVM_EVICTION": "lru", "RMM_UVM_MANAGED_LIMIT": "8GiB", "HOME": "/"})

    assert made == {"RMM_UVM_MANAGED_LIMIT": "8GiB", "HOME": "/", **memory.PINNED}
