# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Live blocks leave to neighbours: what goes there, what comes back, and what is refused."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError, NeighborWarning
from rmm_uvm.residency import Budget
from rmm_uvm.support.settings import SETTINGS
from rmm_uvm.support.units import format_bytes

MIB = 1 << 20
DEVICE = 64 * MIB
HALF = 8 * MIB
BUDGET = 16 * MIB


def loop(device: Any, budget: Budget) -> tuple[Any, list[int]]:
    """Allocate 1.5 times the budget in three parts; return the pool and their addresses."""
    mr = rmm_uvm.managed_pool(driver=device, device_budget=budget, initial_pool_size=DEVICE)
    parts = [mr.allocate(HALF) for _ in range(3)]
    for address in parts:
        rmm_uvm.touch((address, HALF), mr=mr)
        device.touch(address, HALF, write=True)
    return mr, parts


def keeping(**settings: Any) -> Budget:
    return Budget(BUDGET, "lru", background=False, **settings)


def test_live_blocks_leave_to_the_neighbour_and_come_back() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    mr, parts = loop(device, keeping(neighbors=[1]))
    found = rmm_uvm.residency_statistics(mr)
    assert found.neighbor_bytes == found.evicted_bytes > 0
    assert device.resident_bytes(parts[0], HALF, 1) == HALF
    assert device.resident_bytes(parts[0], HALF, "host") == device.migrated_bytes()[1] == 0
    assert f"and {format_bytes(found.neighbor_bytes)} to another device" in str(found)
    rmm_uvm.touch((parts[0], HALF), mr=mr)
    assert device.resident_bytes(parts[0], HALF) == HALF


def test_live_blocks_leave_to_the_host_unless_asked() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    mr, parts = loop(device, keeping())
    found = rmm_uvm.residency_statistics(mr)
    assert not found.neighbor_bytes
    assert device.resident_bytes(parts[0], HALF, "host") == HALF
    assert "another device" not in str(found)


def test_neighbour_without_room_leaves_them_to_the_host() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    device.occupy_neighbor(1, DEVICE - DEVICE // 16)
    _, parts = loop(device, keeping(neighbors=[1]))
    assert device.resident_bytes(parts[0], HALF, "host") == HALF


def test_neighbour_whose_owner_takes_everything_loses_nothing() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1, backing=True)
    _, parts = loop(device, keeping(neighbors=[1]))
    device.occupy_neighbor(1, DEVICE)
    assert device.resident_bytes(parts[0], HALF, "host") == HALF


def test_neighbour_that_fails_is_left_alone_and_counted() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    device.fail_call("neighbor_memory")
    mr, _ = loop(device, keeping(neighbors=[1]))
    assert rmm_uvm.residency_statistics(mr).failed_calls == 1


@pytest.mark.parametrize(
    ("ordinal", "reason"),
    [
        (0, "device 0 is the device itself"),
        (2, "there is no device 2, this process sees 2"),
    ],
)
def test_device_that_cannot_take_them_is_refused_before_anything_changes(
    ordinal: int, reason: str
) -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    asked = Budget(BUDGET, neighbors=[ordinal])
    with pytest.raises(ConfigurationError, match=rf"neighbors=\[{ordinal}\]: {reason}"):
        rmm_uvm.managed_pool(driver=device, device_budget=asked)
    with rmm_uvm.reinitialize(driver=device, device_budget=BUDGET, libraries=()) as before:
        with pytest.raises(ConfigurationError, match=reason):
            rmm_uvm.reinitialize(driver=device, device_budget=asked, libraries=())
        assert rmm_uvm.current_installation() is before


@pytest.mark.parametrize("number", [-1, 8])
def test_simulated_device_with_too_many_neighbours_is_refused(number: int) -> None:
    with pytest.raises(ConfigurationError, match="0 to 7"):
        rmm_uvm.simulated_device(DEVICE, neighbors=number)


def evicted(device: Any, **settings: Any) -> tuple[Any, int]:
    """Fill a budget, and evict the half of it that was made first."""
    mr = rmm_uvm.managed_pool(
        driver=device, device_budget=keeping(**settings), initial_pool_size=DEVICE
    )
    address = mr.allocate(HALF)
    mr.allocate(HALF)
    assert mr.managed_mr.residency.evict(address, HALF) == HALF
    return mr, address


def places(device: Any, address: int, *where: object) -> list[int]:
    return [device.resident_bytes(address, HALF, one) for one in where]


def test_auto_takes_every_other_device() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=2)
    mr, address = evicted(device, neighbors="auto", harvest_limit=HALF // 2)
    assert mr.managed_mr.residency.neighbors == (1, 2)
    assert places(device, address, 1, 2, "host") == [HALF // 2, HALF // 2, 0]
    assert rmm_uvm.residency_statistics(mr).harvested_bytes == HALF
    rmm_uvm.touch((address, HALF), mr=mr)
    found = rmm_uvm.residency_statistics(mr)
    assert (found.from_neighbor_bytes, found.harvested_bytes) == (HALF, 0)
    assert f"{format_bytes(HALF)} came back" in str(found)


def test_harvest_limit_holds_on_each_neighbour_and_the_rest_goes_to_the_host() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=2)
    limit = {1: 2 * MIB, 2: "4MiB"}
    _, address = evicted(device, neighbors=[1, 2], harvest_limit=limit)
    assert places(device, address, 1, 2, "host") == [2 * MIB, 4 * MIB, 2 * MIB]


def test_what_an_owner_needs_goes_back_before_it_asks() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    mr, address = evicted(device, neighbors=[1])
    reserve = DEVICE // 16
    device.occupy_neighbor(1, DEVICE - HALF - reserve // 2)
    mr.managed_mr.residency.run_pending()
    found = rmm_uvm.residency_statistics(mr)
    assert found.given_back_bytes == reserve // 2
    assert places(device, address, 1, "host") == [HALF - reserve // 2, reserve // 2]
    assert "went to the host for their owners" in str(found)


def test_thread_gives_back_by_itself() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    mr, _ = loop(device, Budget(BUDGET, "lru", neighbors=[1]))
    device.occupy_neighbor(1, DEVICE - HALF)
    deadline_seconds = time.monotonic() + 20
    while not rmm_uvm.residency_statistics(mr).given_back_bytes:
        assert time.monotonic() < deadline_seconds
        time.sleep(0.001)


def test_environment_and_table_name_the_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_NEIGHBORS", "1, 2")
    monkeypatch.setenv("RMM_UVM_HARVEST_LIMIT", "4MiB")
    device = rmm_uvm.simulated_device(DEVICE, neighbors=2)
    with rmm_uvm.reinitialize(driver=device, device_budget=BUDGET, libraries=()) as installed:
        budget = installed.devices[0].budget
        assert budget is not None
        assert (budget.neighbors, budget.harvest_limit) == ((1, 2), 4 * MIB)
        assert "1, 2" in str(installed)
        monkeypatch.setenv("RMM_UVM_NEIGHBORS", "none")
        without = rmm_uvm.managed_pool(driver=device, device_budget=BUDGET)
        assert without.managed_mr.residency.neighbors == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device_budget": None, "neighbors": [1]}, "without a budget"),
        ({"device_budget": BUDGET, "harvest_limit": "4MiB"}, "without neighbours"),
        (
            {"device_budget": BUDGET, "neighbors": [1], "harvest_limit": "65MiB"},
            "harvest_limit is 65.00 MiB on device 1, which has 64.00 MiB: give less",
        ),
        ({"device_budget": BUDGET, "neighbors": "1"}, "neighbors='1'"),
    ],
)
def test_neighbours_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str) -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    with pytest.raises(ConfigurationError, match=message):
        rmm_uvm.managed_pool(driver=device, **arguments)


def test_no_other_device_at_all_is_said_once_and_the_host_takes_everything() -> None:
    device = rmm_uvm.simulated_device(DEVICE)
    with pytest.warns(NeighborWarning, match="there is no other device"):
        mr, parts = loop(device, keeping(neighbors="auto"))
    assert mr.managed_mr.residency.neighbors == ()
    assert device.resident_bytes(parts[0], HALF, "host") == HALF
    with (
        pytest.warns(NeighborWarning, match="there is no other device"),
        rmm_uvm.reinitialize(
            driver=device, device_budget=BUDGET, neighbors="auto", libraries=()
        ) as installed,
    ):
        assert "there is no other device" in str(installed)


def rounds(mr: Any, device: Any, parts: list[int], count: int) -> None:
    """Go over all parts, again and again."""
    for _ in range(count):
        for address in parts:
            rmm_uvm.touch((address, 2 * MIB), mr=mr)
            device.touch(address, 2 * MIB, write=False)


def streaming(**settings: Any) -> tuple[Any, Any, list[int]]:
    """Make a program whose rounds need 1.5 times the budget, with contents."""
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1, backing=True)
    mr = rmm_uvm.managed_pool(
        driver=device,
        device_budget=Budget(BUDGET, neighbors=[1], background=False, **settings),
        initial_pool_size=DEVICE,
    )
    parts = [mr.allocate(2 * MIB) for _ in range(12)]
    for number, address in enumerate(parts):
        device.touch(address, 2 * MIB, write=True)
        ctypes.memset(address, number + 1, 2 * MIB)
        rmm_uvm.touch((address, 2 * MIB), mr=mr)
    return device, mr, parts


def first_and_last_bytes(parts: list[int]) -> list[tuple[int, int]]:
    byte = ctypes.c_ubyte.from_address
    return [(byte(one).value, byte(one + 2 * MIB - 1).value) for one in parts]


def test_what_is_streamed_through_is_used_where_it_lies_and_nothing_moves() -> None:
    device, mr, parts = streaming(in_place=True)
    rounds(mr, device, parts, 8)
    before = rmm_uvm.residency_statistics(mr)
    rounds(mr, device, parts, 1)
    after = rmm_uvm.residency_statistics(mr)
    assert after.in_place_bytes - before.in_place_bytes == 8 * MIB
    assert after.fetched_bytes == before.fetched_bytes
    assert sum(device.resident_bytes(one, 2 * MIB, 1) for one in parts) == 8 * MIB
    assert first_and_last_bytes(parts) == [(n + 1, n + 1) for n in range(12)]
    assert "used there" in str(after)


@pytest.mark.parametrize("setting", ["in_place", "multipath"])
def test_links_that_cannot_be_measured_are_told_and_the_pool_works(setting: str) -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    device.fail_call("measure_links")
    budget = keeping(neighbors=[1], **{setting: True})
    with rmm_uvm.reinitialize(driver=device, device_budget=budget, libraries=()) as installed:
        prefetcher = installed.managed_mr.managed_mr.residency
        assert prefetcher.neighbors == (1,)
        assert prefetcher.links_reason.startswith("the link to device 1: ")
        assert f"not measured: {prefetcher.links_reason}" in " ".join(str(installed).split())


def test_links_that_were_measured_need_no_reason() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    mr, _ = loop(device, keeping(neighbors=[1], in_place=True))
    assert mr.managed_mr.residency.links_reason == ""


def test_what_is_streamed_through_moves_unless_asked() -> None:
    device, mr, parts = streaming()
    rounds(mr, device, parts, 8)
    before = rmm_uvm.residency_statistics(mr)
    rounds(mr, device, parts, 1)
    after = rmm_uvm.residency_statistics(mr)
    assert after.in_place_bytes == 0
    assert after.from_neighbor_bytes > before.from_neighbor_bytes


def test_memory_with_a_copy_is_given_back_without_a_move() -> None:
    device, mr, parts = streaming(copy_beside=True, policy="lru")
    for _ in range(70):  # of two that are on the device
        rounds(mr, device, parts[-2:], 1)
    mr.managed_mr.residency.run_pending()
    copied = rmm_uvm.residency_statistics(mr)
    assert copied.copied_beside_bytes == copied.harvested_bytes >= 8 * MIB
    moved_bytes = sum(device.migrated_bytes())
    device.occupy_neighbor(1, DEVICE - 8 * MIB)
    mr.managed_mr.residency.run_pending()
    found = rmm_uvm.residency_statistics(mr)
    assert found.given_back_at_once_bytes == found.given_back_bytes > 0
    assert sum(device.migrated_bytes()) == moved_bytes
    assert first_and_last_bytes(parts) == [(n + 1, n + 1) for n in range(12)]


@pytest.mark.parametrize("text", ["x", "1;2", "-1", "1,,2"])
def test_flag_that_cannot_be_read_is_told_in_words_of_a_command_line(text: str) -> None:
    read = SETTINGS["neighbors"].read_text
    with pytest.raises(ConfigurationError, match=r"^--neighbors=.*auto, none, or ordinals with"):
        read(text, "--neighbors")
    assert read(" auto ") == "auto"
    assert read("none") is None
    assert read("1, 2") == (1, 2)
