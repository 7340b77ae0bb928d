# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The pools that the doctor says would be installed."""

from __future__ import annotations

import pytest

from rmm_uvm.doctor.plan import plan_pools
from rmm_uvm.machine.host_memory import HostMemory

from .test_doctor import GIB, device


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMM_UVM_MANAGED_LIMIT", raising=False)
    monkeypatch.delenv("RMM_UVM_DEVICE_BUDGET", raising=False)


def test_plan_pools_default_is_what_reinitialize_would_take() -> None:
    (found,) = plan_pools([device(free_bytes=100 * GIB)], HostMemory(512 * GIB, 400 * GIB))
    assert found.sizes == {"initial_bytes": 87.5 * GIB, "maximum_bytes": 360 * GIB}
    assert "7/8 of the budget" in found.reason


def test_plan_pools_without_a_budget_begin_with_half_of_what_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_DEVICE_BUDGET", "none")
    (found,) = plan_pools([device(free_bytes=100 * GIB)], HostMemory(512 * GIB, 400 * GIB))
    assert found.sizes["initial_bytes"] == 50 * GIB
    assert "half of the free device memory" in found.reason


def test_plan_pools_small_host_stays_within_the_device() -> None:
    (found,) = plan_pools([device()], HostMemory(512 * GIB, 20 * GIB))
    assert found.sizes["maximum_bytes"] == 137 * GIB  # what is free of it, less the reserve


def test_plan_pools_unknown_free_memory_counts_as_free() -> None:
    (found,) = plan_pools([device(total_bytes=64 * GIB, free_bytes=None)], HostMemory(GIB, GIB))
    assert found.sizes["initial_bytes"] == 62 * GIB * 7 // 8


def test_plan_pools_without_page_migration_stays_within_the_device() -> None:
    lacking = device(concurrent_managed_access=False)
    (found,) = plan_pools([lacking], HostMemory(512 * GIB, 400 * GIB))
    assert found.sizes["maximum_bytes"] == 138 * GIB  # what is free of it
    assert "no concurrent managed access" in found.reason


def test_plan_pools_capped_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "8GiB")
    plans = plan_pools([device(0), device(1)], HostMemory(512 * GIB, 400 * GIB))
    assert [plan.device for plan in plans] == [0, 1]
    for found in plans:
        assert found.sizes == {"initial_bytes": 8 * GIB, "maximum_bytes": 8 * GIB}
        assert "RMM_UVM_MANAGED_LIMIT" in found.reason


@pytest.mark.parametrize("limit", ["nonsense", "1KiB"])
def test_plan_pools_impossible_limit_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", limit)
    (found,) = plan_pools([device()], HostMemory(512 * GIB, 400 * GIB))
    assert found.sizes == {}
    assert "RMM_UVM_MANAGED_LIMIT" in found.reason


def test_plan_pools_of_an_integrated_device_count_its_memory_once() -> None:
    # NVML leaves out what the kernel would reclaim.
    spark = device(total_bytes=120 * GIB, free_bytes=8 * GIB, integrated=True)
    (found,) = plan_pools([spark], HostMemory(120 * GIB, 100 * GIB))
    assert found.sizes == {"initial_bytes": 50 * GIB, "maximum_bytes": 90 * GIB}
    assert "which is the device's too" in found.reason
