# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Budgets that follow what others take of the device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.residency import Budget
from rmm_uvm.residency.budget import auto_bytes, budget_for

MIB = 1 << 20
DEVICE = 256 * MIB
ALL = auto_bytes(DEVICE)


@pytest.fixture
def device() -> Any:
    return rmm_uvm.simulated_device("256MiB")


@pytest.fixture
def mr(device: Any) -> Any:
    """A pool that moves only when it is told to."""
    return rmm_uvm.managed_pool(
        driver=device, device_budget=Budget(ALL, follows=True, background=False)
    )


def look(mr: Any) -> int:
    mr.managed_mr.residency.run_pending()
    size_bytes = mr.budget_bytes
    assert isinstance(size_bytes, int)
    return size_bytes


def test_auto_is_all_of_the_device_but_a_reserve() -> None:
    budget = budget_for("auto", None, DEVICE)
    assert budget is not None
    assert (budget.budget_bytes, budget.follows) == (248 * MIB, True)
    assert budget.reason == "auto: what others leave of the device, less 8.00 MiB"
    assert auto_bytes(80 << 30) == 78 << 30  # never more than 2 GiB
    assert not budget_for("200MiB", None, DEVICE).follows  # type: ignore[union-attr]


def test_auto_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DEVICE_BUDGET", "auto")
    mr = rmm_uvm.managed_pool(driver="simulated:256MiB")
    assert mr.budget is not None
    assert mr.budget.follows
    assert "RMM_UVM_DEVICE_BUDGET" in mr.budget.reason


def test_budget_gives_way_to_others_and_comes_back(device: Any, mr: Any) -> None:
    assert look(mr) == ALL
    taken = rmm_uvm.ipc_pool("64MiB", driver=device)
    assert look(mr) == ALL - 64 * MIB
    counts = rmm_uvm.residency_statistics(mr)
    assert (counts.unmanaged_bytes, counts.hidden_bytes) == (64 * MIB, 0)
    assert counts.budget_bytes == ALL - 64 * MIB
    assert "others         64.00 MiB of the device; the budget followed 1 time" in str(counts)
    del taken
    assert look(mr) == ALL
    assert mr.budget.budget_bytes == ALL  # as it was asked for


def test_data_leave_before_the_kernel_driver_has_to_evict(device: Any, mr: Any) -> None:
    address = mr.allocate(240 * MIB)
    device.touch(address, 240 * MIB, write=True)
    look(mr)
    others = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    for _ in range(5):
        others.allocate(8 * MIB)  # as large as the reserve
        look(mr)
    assert look(mr) == ALL - 40 * MIB
    assert rmm_uvm.residency_statistics(mr).resident_bytes <= ALL - 40 * MIB
    assert device.statistics()["evicted_bytes"] == 0
    mr.deallocate(address, 240 * MIB)


def test_twin_that_does_not_follow_has_the_kernel_driver_evict(device: Any) -> None:
    mr = rmm_uvm.managed_pool(driver=device, device_budget=Budget(ALL, background=False))
    address = mr.allocate(240 * MIB)
    device.touch(address, 240 * MIB, write=True)
    others = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    for _ in range(5):
        others.allocate(8 * MIB)
    assert mr.budget_bytes == ALL
    assert device.statistics()["evicted_bytes"] > 0
    mr.deallocate(address, 240 * MIB)


def eventually(holds: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < 30
        time.sleep(0.01)


def test_thread_follows_without_being_asked(device: Any) -> None:
    mr = rmm_uvm.managed_pool(driver=device, device_budget="auto")
    assert mr.budget_bytes == ALL
    taken = rmm_uvm.ipc_pool("64MiB", driver=device)
    eventually(lambda: mr.budget_bytes == ALL - 64 * MIB)
    del taken
    eventually(lambda: mr.budget_bytes == ALL)


def test_budget_may_begin_to_follow_and_end_it_while_a_program_runs(device: Any) -> None:
    mr = rmm_uvm.managed_pool(driver=device, device_budget=None)
    assert mr.budget_bytes is None
    mr.set_budget("auto")
    assert mr.budget_bytes == ALL
    mr.set_budget("64MiB")
    assert (mr.budget_bytes, mr.budget.follows) == (64 * MIB, False)
    taken = rmm_uvm.ipc_pool("64MiB", driver=device)
    mr.managed_mr.residency.run_pending()
    assert mr.budget_bytes == 64 * MIB
    mr.set_budget("auto")
    assert look(mr) == ALL - 64 * MIB
    del taken


def test_what_is_not_told_is_said_and_followed_by_free_memory(device: Any, mr: Any) -> None:
    device.fail_call("unmanaged_bytes", "not_supported")
    taken = rmm_uvm.ipc_pool("64MiB", driver=device)
    assert look(mr) == ALL - 64 * MIB
    counts = rmm_uvm.residency_statistics(mr)
    assert (counts.unmanaged_bytes, counts.hidden_bytes) == (None, 64 * MIB)
    assert "by free memory alone: the driver does not tell who holds what" in str(counts)
    del taken
    assert look(mr) == ALL


def test_what_others_hold_already_counts_from_the_beginning(device: Any) -> None:
    taken = rmm_uvm.ipc_pool("100MiB", driver=device)
    mr = rmm_uvm.managed_pool(driver=device, device_budget="auto")
    assert mr.budget_bytes == ALL - 100 * MIB
    with rmm_uvm.reinitialize(driver=device, device_budget="auto", libraries=()) as handle:
        assert "148.00 MiB" in repr(handle)
    del taken


def test_size_that_it_follows_within_may_change(device: Any, mr: Any) -> None:
    mr.set_budget(Budget(128 * MIB, follows=True, background=False))
    assert look(mr) == mr.budget.budget_bytes == 128 * MIB
    taken = rmm_uvm.ipc_pool("16MiB", driver=device)
    assert look(mr) == 112 * MIB
    counts = rmm_uvm.residency_statistics(mr)
    mr.set_budget(mr.budget)  # as it is: nothing begins anew
    assert rmm_uvm.residency_statistics(mr) == counts
    del taken


def test_look_ahead_that_was_asked_for_comes_back(device: Any) -> None:
    budget = Budget(ALL, follows=True, background=False, ahead_bytes=64 * MIB)
    mr = rmm_uvm.managed_pool(driver=device, device_budget=budget)
    taken = rmm_uvm.ipc_pool("224MiB", driver=device)
    assert look(mr) == 24 * MIB
    assert rmm_uvm.residency_statistics(mr).ahead_bytes == 24 * MIB
    del taken
    assert look(mr) == ALL
    assert rmm_uvm.residency_statistics(mr).ahead_bytes == 64 * MIB


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.BudgetWarning")
def test_requests_larger_than_the_budget_are_nobody_elses_memory() -> None:
    device = rmm_uvm.simulated_device("512MiB")
    budget = Budget(100 * MIB, follows=True, background=False)
    mr = rmm_uvm.managed_pool(
        driver=device, device_budget=budget, initial_pool_size="500MiB", maximum_pool_size="500MiB"
    )
    for nbytes in (90 * MIB, 90 * MIB, 90 * MIB, 480 * MIB):
        address = mr.allocate(nbytes)
        device.touch(address, min(nbytes, 90 * MIB), write=True)
        mr.deallocate(address, nbytes)
        look(mr)
    assert look(mr) == 100 * MIB
    assert rmm_uvm.residency_statistics(mr).hidden_bytes == 0


def test_following_is_refused_where_page_faults_bring_everything() -> None:
    with pytest.raises(ConfigurationError, match="follows with fetch=False"):
        Budget(ALL, follows=True, fetch=False)


def test_first_slab_is_no_larger_than_what_is_free() -> None:
    device = rmm_uvm.simulated_device("256MiB")
    taken = rmm_uvm.ipc_pool("100MiB", driver=device)
    with rmm_uvm.reinitialize(driver=device, device_budget="auto", libraries=()) as handle:
        sizes = handle.devices[0].sizes
        assert sizes.warning == ""
        assert sizes.initial_bytes == 136 * MIB  # 7/8
        assert "what others leave of the device, less 8.00 MiB" in " ".join(repr(handle).split())
    del taken


def test_later_pool_beside_one_that_keeps_dead_memory_has_half_of_the_device(device: Any) -> None:
    first = rmm_uvm.managed_pool(driver=device)
    held = [first.allocate(40 * MIB) for _ in range(6)]
    for address in held:
        first.managed_mr.residency.touch(address, 40 * MIB, address)
        device.touch(address, 40 * MIB, write=True)
    second = rmm_uvm.managed_pool(driver=device, device_budget=Budget(ALL, follows=True))
    for address in held:
        first.deallocate(address, 40 * MIB)
    assert second.budget_bytes >= ALL // 2


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.CapacityWarning")
def test_device_without_concurrent_managed_access_begins_no_automatic_budget() -> None:
    device = rmm_uvm.simulated_device("64MiB", concurrent_managed_access=False)
    with rmm_uvm.reinitialize(driver=device, libraries=()) as handle:
        handle.set_budget("auto")
        assert handle.devices[0].budget is None
        assert "no concurrent managed access" in repr(handle)
    with pytest.raises(
        ConfigurationError, match=r"without a budget \(the device has no concurrent"
    ):
        rmm_uvm.managed_pool(driver=device, eviction="lru")
