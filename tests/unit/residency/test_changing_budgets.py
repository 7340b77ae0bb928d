# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Budgets that start, change and end while a pool is in use: contents, figures, tables, errors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, ConfigurationError, NeighborWarning
from rmm_uvm.mr import ManagedPool, Prefetcher, UvmResourceAdaptor
from rmm_uvm.residency import Budget
from rmm_uvm.residency.budget import next_budget, only_sizes_differ

MIB = 1 << 20
DEVICE = 64 * MIB
PART = 4 * MIB


@pytest.fixture(autouse=True)
def no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMM_UVM_DEVICE_BUDGET", raising=False)
    monkeypatch.delenv("RMM_UVM_EVICTION", raising=False)


@pytest.fixture
def mr() -> UvmResourceAdaptor:
    device = rmm_uvm.simulated_device("64MiB", backing=True)
    return rmm_uvm.managed_pool(
        driver=device, initial_pool_size="48MiB", maximum_pool_size="128MiB", device_budget=None
    )


def filled(mr: UvmResourceAdaptor, count: int) -> dict[int, bytes]:
    parts = {}
    for number in range(count):
        content = bytes([number + 1]) * PART
        address = mr.allocate(PART)
        ctypes.memmove(address, content, PART)
        parts[address] = content
    return parts


def hold(parts: dict[int, bytes]) -> bool:
    return all(ctypes.string_at(address, PART) == content for address, content in parts.items())


def test_budgets_start_change_and_end_without_losing_a_byte(mr: UvmResourceAdaptor) -> None:
    parts = filled(mr, 10)
    residency = mr.managed_mr.residency
    for budget in ("16MiB", "32MiB", Budget(12 * MIB, "lru"), "8MiB", None, 0.25, None):
        mr.set_budget(budget)
        residency.run_pending()
        for address in parts:
            residency.touch(address, PART, address)
        fresh = filled(mr, 3)
        assert hold(parts | fresh)
        for address in fresh:
            mr.deallocate(address, PART)
    assert hold(parts)
    for address in parts:
        mr.deallocate(address, PART)


def test_figures_follow_a_change_and_end_with_the_budget(mr: UvmResourceAdaptor) -> None:
    filled(mr, 10)
    with pytest.raises(AvailabilityError):
        rmm_uvm.residency_statistics(mr)
    mr.set_budget(Budget(16 * MIB, "lru", background=False))
    kept = rmm_uvm.residency_statistics(mr)
    assert (kept.budget_bytes, kept.policy) == (16 * MIB, "lru")
    assert kept.resident_bytes == 48 * MIB  # the slab, until some of it left
    mr.managed_mr.residency.run_pending()
    assert rmm_uvm.residency_statistics(mr).resident_bytes <= 16 * MIB
    evicted_bytes = rmm_uvm.residency_statistics(mr).evicted_bytes
    mr.set_budget("32MiB")
    kept = rmm_uvm.residency_statistics(mr)
    assert (kept.budget_bytes, kept.policy) == (32 * MIB, "lru")
    assert kept.evicted_bytes == evicted_bytes  # the same budget, at another size
    mr.set_budget(None)
    assert mr.budget is None
    assert mr.managed_mr.residency.residency() is None
    mr.set_budget(None)


def test_another_policy_begins_anew(mr: UvmResourceAdaptor) -> None:
    mr.set_budget("32MiB")
    mr.managed_mr.residency.too_large_told = True
    mr.set_budget(Budget(32 * MIB, "fifo"))
    assert rmm_uvm.residency_statistics(mr).policy == "fifo"
    assert not mr.managed_mr.residency.too_large_told


@pytest.mark.parametrize("asked", ["1GiB", "1MiB", -1, "much", Budget(DEVICE + 1)])
def test_budget_that_cannot_be_leaves_the_one_before(mr: UvmResourceAdaptor, asked: object) -> None:
    mr.set_budget("32MiB")
    with pytest.raises(ConfigurationError):
        mr.set_budget(asked)  # type: ignore[arg-type]
    assert rmm_uvm.residency_statistics(mr).budget_bytes == 32 * MIB
    assert mr.budget == Budget(32 * MIB)


def test_neighbours_that_are_not_there_are_told(mr: UvmResourceAdaptor) -> None:
    with pytest.warns(NeighborWarning, match="device 0"):
        mr.set_budget(Budget(32 * MIB, neighbors="auto"))
    assert mr.managed_mr.residency.neighbors == ()


def test_managed_pool_class_has_it_too_and_the_former_name_stays() -> None:
    mr = ManagedPool(initial_pool_size="32MiB", driver="simulated:64MiB", device_budget="32MiB")
    mr.set_budget("16MiB")
    assert mr.budget == Budget(16 * MIB)
    assert isinstance(mr.managed_mr.residency, Prefetcher)
    assert mr.managed_mr.residency is mr.managed_mr.residency


@pytest.fixture
def handle() -> Iterator[rmm_uvm.Installation]:
    yield rmm_uvm.reinitialize(driver="simulated:64MiB", device_budget=None, libraries=())
    rmm_uvm.restore()


def test_installation_changes_it_and_its_table_and_monitor_say_so(
    handle: rmm_uvm.Installation,
) -> None:
    assert "the kernel driver evicts" in repr(handle)
    assert handle.monitor is not None
    assert handle.monitor.snapshot(0).budget is None
    handle.set_budget("32MiB")
    assert "32.00 MiB" in repr(handle)
    assert handle.devices[0].budget == Budget(32 * MIB)
    told = handle.monitor.snapshot(0).budget
    assert told is not None
    assert told["budget_bytes"] == 32 * MIB
    handle.set_budget("16MiB", device=0)
    told = handle.monitor.snapshot(0).budget
    assert told is not None
    assert told["budget_bytes"] == 16 * MIB
    with pytest.raises(AvailabilityError, match="device 3"):
        handle.set_budget("16MiB", device=3)
    handle.set_budget(None)
    assert "the kernel driver evicts" in repr(handle)
    assert handle.monitor.snapshot(0).budget is None


def test_installation_that_was_released_has_no_budget_to_change() -> None:
    handle = rmm_uvm.reinitialize(driver="simulated:64MiB", libraries=())
    rmm_uvm.restore()
    with pytest.raises(AvailabilityError):
        handle.set_budget("16MiB")


def test_size_alone_keeps_all_other_settings_and_a_budget_replaces_them() -> None:
    kept = Budget(32 * MIB, "lru", ahead=True, ahead_bytes=16 * MIB)
    smaller = next_budget(kept, "8MiB", DEVICE)
    assert smaller == Budget(8 * MIB, "lru", ahead=True, ahead_bytes=8 * MIB)
    assert only_sizes_differ(kept, smaller)
    assert next_budget(kept, Budget(8 * MIB), DEVICE) == Budget(8 * MIB)
    assert not only_sizes_differ(kept, Budget(8 * MIB))
    assert next_budget(kept, None, DEVICE) is None
    assert next_budget(None, 0.5, DEVICE) == Budget(32 * MIB)
