# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Live blocks leave to another device: what goes there, what does not, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.residency import Budget
from rmm_uvm.units import format_bytes

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
    mr, parts = loop(device, keeping(evict_to=1))
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
    _, parts = loop(device, keeping(evict_to=1))
    assert device.resident_bytes(parts[0], HALF, "host") == HALF


def test_neighbour_whose_owner_takes_everything_loses_nothing() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1, backing=True)
    _, parts = loop(device, keeping(evict_to=1))
    device.occupy_neighbor(1, DEVICE)
    assert device.resident_bytes(parts[0], HALF, "host") == HALF


def test_neighbour_that_fails_is_left_alone_and_counted() -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    device.fail_call("neighbor_memory")
    mr, _ = loop(device, keeping(evict_to=1))
    assert rmm_uvm.residency_statistics(mr).failed_calls == 1


@pytest.mark.parametrize(
    ("ordinal", "reason"),
    [
        (0, "device 0 is the device itself"),
        (2, "device 2 does not exist: the simulated device has 1 neighbours"),
    ],
)
def test_device_that_cannot_take_them_is_refused_before_anything_changes(
    ordinal: int, reason: str
) -> None:
    device = rmm_uvm.simulated_device(DEVICE, neighbors=1)
    asked = Budget(BUDGET, evict_to=ordinal)
    with pytest.raises(ConfigurationError, match=f"evict_to={ordinal}: {reason}"):
        rmm_uvm.managed_pool(driver=device, device_budget=asked)
    with rmm_uvm.reinitialize(driver=device, device_budget=BUDGET, libraries=()) as before:
        with pytest.raises(ConfigurationError, match=reason):
            rmm_uvm.reinitialize(driver=device, device_budget=asked, libraries=())
        assert rmm_uvm.current_installation() is before


@pytest.mark.parametrize("number", [-1, 8])
def test_simulated_device_with_too_many_neighbours_is_refused(number: int) -> None:
    with pytest.raises(ConfigurationError, match="0 to 7"):
        rmm_uvm.simulated_device(DEVICE, neighbors=number)
