# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Advice: what is told about which blocks, until when, what it saves, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError
from rmm_uvm.pool.hints import Advised
from rmm_uvm.residency import Budget

MIB = 1 << 20
NOTHING = (False, "none")


@pytest.fixture
def device() -> Any:
    return rmm_uvm.simulated_device("64MiB", backing=True)


@pytest.fixture(params=[None, Budget(16 * MIB, background=False)], ids=["", "budget"])
def mr(request: Any, device: Any) -> rmm_uvm.mr.UvmResourceAdaptor:
    return rmm_uvm.managed_pool(
        driver=device, device_budget=request.param, initial_pool_size="32MiB"
    )


def told(device: Any, address: int, blocks: int) -> list[tuple[bool, str]]:
    return [device.advised(address + 2 * MIB * index) for index in range(blocks)]


# -- about what, and until when ------------------------------------------------------------------


def test_advice_is_told_about_whole_blocks_and_says_what_it_left(
    device: Any, mr: Any, block: int
) -> None:
    found = rmm_uvm.advise((block + MIB, 4 * MIB), read_mostly=True, preferred="device", mr=mr)
    assert found == Advised(4 * MIB, 2 * MIB, 2 * MIB)
    assert found.refused_bytes == 0
    assert told(device, block, 4) == [NOTHING, (True, "device"), NOTHING, NOTHING]


def test_advice_about_less_than_a_block_tells_nothing_and_says_so(
    device: Any, mr: Any, block: int
) -> None:
    found = rmm_uvm.advise((block + 100, 1000), read_mostly=True, mr=mr)
    assert found == Advised(1000, 0, 1000)
    assert told(device, block, 4) == [NOTHING] * 4


def test_advice_about_neighbours_that_are_both_the_objects_covers_the_block_between(
    device: Any, mr: Any, block: int
) -> None:
    halves = [(block + 3 * MIB, MIB), (block, 3 * MIB), (block + MIB, MIB)]  # and one of them twice
    assert rmm_uvm.advise(halves, preferred="host", mr=mr) == Advised(4 * MIB, 4 * MIB, 0)
    assert told(device, block, 4) == [(False, "host")] * 2 + [NOTHING] * 2


def test_advice_stays_as_it_is_where_nothing_is_said_and_is_taken_back_where_asked(
    device: Any, mr: Any, block: int
) -> None:
    what = (block, 8 * MIB)
    rmm_uvm.advise(what, read_mostly=True, mr=mr)
    rmm_uvm.advise(what, preferred="host", mr=mr)
    assert told(device, block, 4) == [(True, "host")] * 4
    rmm_uvm.advise((block, 2 * MIB), preferred="none", mr=mr)
    rmm_uvm.advise((block + 2 * MIB, 2 * MIB), read_mostly=False, mr=mr)
    assert told(device, block, 3) == [(True, "none"), (False, "host"), (True, "host")]
    rmm_uvm.advise(what, read_mostly=False, preferred="none", mr=mr)
    assert told(device, block, 4) == [NOTHING] * 4


def test_advice_is_gone_when_the_memory_is_freed_and_handed_out_again(device: Any, mr: Any) -> None:
    buffer = rmm.DeviceBuffer(size=8 * MIB, mr=mr)
    address = buffer.ptr
    rmm_uvm.advise(buffer, read_mostly=True, preferred="host", mr=mr)
    assert told(device, address, 4) == [(True, "host")] * 4
    del buffer
    assert told(device, address, 4) == [NOTHING] * 4
    again = rmm.DeviceBuffer(size=8 * MIB, mr=mr)
    assert again.ptr == address
    assert device.resident_bytes(address, 8 * MIB) == 8 * MIB
    assert mr.managed_mr.residency.advised_bytes == 0


def test_advice_goes_with_the_first_of_the_buffers_that_share_a_block(device: Any, mr: Any) -> None:
    first, second = mr.allocate(3 * MIB), mr.allocate(5 * MIB)
    assert second == first + 3 * MIB
    rmm_uvm.advise([(first, 3 * MIB), (second, 5 * MIB)], read_mostly=True, mr=mr)
    assert told(device, first, 4) == [(True, "none")] * 4
    mr.deallocate(first, 3 * MIB)
    assert told(device, first, 4) == [NOTHING] * 2 + [(True, "none")] * 2
    mr.deallocate(second, 5 * MIB)
    assert told(device, first, 4) == [NOTHING] * 4


def test_free_of_a_neighbour_leaves_advice_alone(device: Any, mr: Any, block: int) -> None:
    neighbour = mr.allocate(4 * MIB)
    rmm_uvm.advise((block, 8 * MIB), read_mostly=True, mr=mr)
    mr.deallocate(neighbour, 4 * MIB)
    assert told(device, block, 4) == [(True, "none")] * 4


# -- what it does --------------------------------------------------------------------------------


def test_eviction_of_what_is_read_mostly_moves_it_once(device: Any, mr: Any, block: int) -> None:
    what = (block, 8 * MIB)
    rmm_uvm.advise(what, read_mostly=True, mr=mr)
    moved = []
    for _ in range(3):
        device.touch(*what, False)
        before = device.statistics()["device_to_host_bytes"]
        assert rmm_uvm.evict(what, mr=mr).moved_bytes == 8 * MIB
        assert device.resident_bytes(*what) == 0
        moved.append(device.statistics()["device_to_host_bytes"] - before)
        rmm_uvm.touch(what, mr=mr)
    assert moved[1:] == [0, 0]
    rmm_uvm.advise(what, read_mostly=False, mr=mr)
    rmm_uvm.prefetch(what, mr=mr)
    device.touch(*what, True)
    before = device.statistics()["device_to_host_bytes"]
    rmm_uvm.evict(what, mr=mr)
    assert device.statistics()["device_to_host_bytes"] - before == 8 * MIB  # the twin


def test_what_prefers_the_host_stays_there_when_touched_and_comes_when_prefetched(
    device: Any, mr: Any, block: int
) -> None:
    what = (block, 8 * MIB)
    rmm_uvm.advise((block, 4 * MIB), preferred="host", mr=mr)
    rmm_uvm.evict(what, mr=mr)
    assert rmm_uvm.touch(what, mr=mr) == 8 * MIB
    assert device.resident_bytes(*what) == 4 * MIB
    device.touch(*what, False)
    assert device.resident_bytes(block, 4 * MIB) == 0
    rmm_uvm.prefetch(what, mr=mr)
    assert device.resident_bytes(*what) == 8 * MIB
    rmm_uvm.evict(what, mr=mr)
    rmm_uvm.advise(what, preferred="none", mr=mr)
    rmm_uvm.touch(what, mr=mr)
    assert device.resident_bytes(*what) == 8 * MIB  # the twin


def test_what_prefers_the_device_is_evicted_and_comes_back(
    device: Any, mr: Any, block: int
) -> None:
    what = (block, 8 * MIB)
    rmm_uvm.advise(what, read_mostly=True, preferred="device", mr=mr)
    for _ in range(2):
        assert rmm_uvm.evict(what, mr=mr).moved_bytes == 8 * MIB
        assert device.resident_bytes(*what) == 0
        rmm_uvm.touch(what, mr=mr)
        assert device.resident_bytes(*what) == 8 * MIB


def test_contents_stay_through_every_advice_and_move(device: Any, mr: Any) -> None:
    pattern = np.random.default_rng(6).integers(0, 256, 8 * MIB, dtype=np.uint8)
    with_data = mr.allocate(8 * MIB)
    import ctypes

    data = np.frombuffer((ctypes.c_ubyte * (8 * MIB)).from_address(with_data), dtype=np.uint8)
    data[:] = pattern
    device.cpu_touch(with_data, 8 * MIB, True)
    chosen = np.random.default_rng(7)
    what = (with_data, 8 * MIB)
    for _ in range(60):
        read_mostly = [None, True, False][chosen.integers(3)]
        preferred = ["device", "host", "none"][chosen.integers(3)]
        rmm_uvm.advise(what, read_mostly=read_mostly, preferred=preferred, mr=mr)
        hint = [rmm_uvm.touch, rmm_uvm.prefetch, rmm_uvm.evict][chosen.integers(3)]
        hint(what, mr=mr)
        device.touch(*what, False)
        assert np.array_equal(data, pattern)
    mr.deallocate(with_data, 8 * MIB)


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("advice", "message"),
    [
        ({}, "nothing is advised: give read_mostly=, preferred= or both"),
        ({"read_mostly": "yes"}, "read_mostly='yes': expected True or False"),
        ({"read_mostly": 1}, "read_mostly=1: expected True or False"),
        ({"preferred": "gpu"}, "preferred='gpu': expected one of 'device', 'host', 'none'"),
        ({"preferred": 0}, "preferred=0: expected one of"),
        ({"preferred": np.zeros(3)}, "expected one of"),
    ],
)
def test_advice_that_is_none_is_refused_before_anything_is_told(
    device: Any, mr: Any, block: int, advice: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        rmm_uvm.advise((block, 8 * MIB), mr=mr, **advice)
    assert told(device, block, 4) == [NOTHING] * 4


def test_advice_on_freed_foreign_or_host_memory_is_refused_before_anything_is_told(
    device: Any, mr: Any, block: int
) -> None:
    freed = mr.allocate(4 * MIB)
    mr.deallocate(freed, 4 * MIB)
    foreign = rmm.DeviceBuffer(size=4096, mr=rmm_uvm.mr.SimulatedCudaMemoryResource(device))
    for thing, message in (
        ([(block, 8 * MIB), (freed, MIB)], "were freed"),
        ((block, 9 * MIB), "pass the end of their allocation"),
        (foreign, "its only buffer is not memory of the pool given"),
        (np.zeros(3), "is in host memory"),
    ):
        with pytest.raises(DataError, match=message):
            rmm_uvm.advise(thing, read_mostly=True, mr=mr)
    assert told(device, block, 4) == [NOTHING] * 4


def test_advice_without_an_installed_pool_says_what_to_do() -> None:
    with pytest.raises(AvailabilityError, match=r"call rmm_uvm\.reinitialize first, or give mr="):
        rmm_uvm.advise((4096, 8), read_mostly=True)


def test_advice_about_nothing_is_none_and_no_error(mr: Any) -> None:
    assert rmm_uvm.advise([], read_mostly=True, mr=mr) == Advised(0, 0, 0)


def test_advice_without_concurrent_managed_access_says_why_it_was_not_taken() -> None:
    device = rmm_uvm.simulated_device("64MiB", concurrent_managed_access=False)
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB", maximum_pool_size="8MiB")
    buffer = rmm.DeviceBuffer(size=4 * MIB + 1000, mr=mr)
    found = rmm_uvm.advise(buffer, read_mostly=True, mr=mr)
    assert (found.advised_bytes, found.left_bytes, found.refused_bytes) == (0, 1000, 4 * MIB)
    assert "without concurrent managed access" in found.reason
    assert told(device, buffer.ptr, 2) == [NOTHING] * 2


@pytest.mark.parametrize("skip", [0, 1])
def test_advice_that_the_driver_refuses_leaves_nothing_advised_and_says_why(
    device: Any, mr: Any, block: int, skip: int
) -> None:
    device.fail_call("advise", skip=skip)
    found = rmm_uvm.advise((block, 8 * MIB), read_mostly=True, preferred="host", mr=mr)
    assert found.advised_bytes == 0
    assert found.refused_bytes == 8 * MIB
    assert found.reason == "injected advise answered driver error (0)"
    assert told(device, block, 4) == [NOTHING] * 4
    assert mr.managed_mr.residency.statistics()["failed_calls"] == 1
