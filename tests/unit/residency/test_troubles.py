# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Budgets that cannot hold what is asked, and predictors that turn off: who says so, and once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import BudgetWarning, CapacityWarning, ConfigurationError
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.residency import Budget
from rmm_uvm.residency.troubles import prediction_off, too_large

from .test_statistics import MIB, statistics

LARGE = "a request of 24.00 MiB in whole blocks is larger than the budget of 16.00 MiB"
COUNTS = {"budget_bytes": 16 * MIB, "too_large": 1, "too_large_bytes": 24 * MIB}


def install(**keywords: Any) -> Any:
    return rmm_uvm.reinitialize(
        driver="simulated:64MiB", device_budget=Budget(16 * MIB), libraries=(), **keywords
    )


@pytest.fixture
def no_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# -- in words ------------------------------------------------------------------------------------


def test_too_large_requests_are_told_with_size_budget_and_remedy() -> None:
    message, remedy = too_large(statistics(**COUNTS), 64 * MIB)
    assert message == f"{LARGE}: what does not fit is read on the host, or comes by page faults"
    assert remedy.startswith("give a device_budget of 24.00 MiB or more")
    several = too_large(statistics(**COUNTS | {"too_large": 3}), 64 * MIB).message
    assert several.startswith(
        "3 requests of up to 24.00 MiB in whole blocks are larger than the budget"
    )


def test_budget_is_advised_up_to_the_device_and_never_above() -> None:
    assert "a device_budget of 24.00 MiB" in too_large(statistics(**COUNTS), 24 * MIB).remedy
    remedy = too_large(statistics(**COUNTS), 24 * MIB - 1).remedy
    assert remedy == "work on less data at a time, or on a device with more memory"


def test_predictor_that_is_off_is_told_with_its_score_and_remedy() -> None:
    message, remedy = prediction_off(
        statistics(policy="repeat", predicted=64, predictions=256, switched_off=1)
    )
    assert message == (
        'eviction "repeat" foresees too little (25 % of the last 256 uses were foreseen): it is '
        "off, and lru decides until it is right in more than 60 %; turned off once so far"
    )
    assert 'eviction="lru"' in remedy
    unseen = prediction_off(statistics(policy="repeat", switched_off=1)).message
    assert "%" not in unseen


def test_predictor_that_is_on_again_is_told_as_on_with_what_was_before() -> None:
    found = statistics(
        policy="repeat", predicted=256, predictions=256, switched_off=2, foresees=True
    )
    message, remedy = prediction_off(found)
    assert message == (
        'eviction "repeat" foresaw too little for a time, in which "lru" decided; now 100 % of the '
        "last 256 uses were foreseen: it is on, and decides; turned off 2 times before"
    )
    assert remedy.startswith("none while it stays on")


# -- without a monitor ---------------------------------------------------------------------------


def test_too_large_request_is_counted_with_its_size_and_warned_of_once() -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="16MiB")
    buffer = rmm.DeviceBuffer(size=24 * MIB, mr=mr)
    with pytest.warns(BudgetWarning, match=f"device 0: {LARGE}") as caught:
        found = rmm_uvm.residency_statistics(mr)
    assert caught[0].filename == __file__
    assert (found.too_large, found.too_large_bytes) == (1, 24 * MIB)
    assert "1 request of 24.00 MiB, larger than the budget" in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rmm_uvm.residency_statistics(mr)
    del buffer


@pytest.mark.usefixtures("no_warning")
def test_requests_that_fit_the_budget_are_not_warned_of() -> None:
    with install(monitor=False) as handle:
        buffers = [rmm.DeviceBuffer(size=16 * MIB, mr=handle.managed_mr) for _ in range(3)]
        assert rmm_uvm.residency_statistics().too_large == 0
        del buffers


def test_too_large_request_that_nobody_told_is_warned_of_at_the_restore() -> None:
    handle = install(monitor=False)
    mr = handle.managed_mr
    mr.deallocate(mr.allocate(24 * MIB), 24 * MIB)
    with pytest.warns(BudgetWarning, match=LARGE) as caught:
        rmm_uvm.restore()
    assert caught[0].filename == __file__


def test_request_larger_than_the_device_is_warned_of_without_a_refused_budget() -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="16MiB")
    mr.deallocate(mr.allocate(80 * MIB), 80 * MIB)
    with pytest.warns(BudgetWarning, match="80.00 MiB in whole blocks") as caught:
        rmm_uvm.residency_statistics(mr)
    assert "device_budget of" not in str(caught[0].message)


# -- with one ------------------------------------------------------------------------------------


def test_monitor_finds_a_too_large_request_once_and_nobody_else_tells() -> None:
    with install(monitor={"on_finding": None}) as handle, warnings.catch_warnings():
        warnings.simplefilter("error")
        mr = handle.managed_mr
        mr.deallocate(mr.allocate(24 * MIB), 24 * MIB)
        handle.monitor._tick()
        handle.monitor._tick()
        (finding,) = [one for one in handle.monitor.findings if one.kind == "budget"]
        assert str(finding).startswith(f"device 0: {LARGE}")
        assert (finding.value, finding.threshold) == (24 * MIB, 16 * MIB)
        rmm_uvm.residency_statistics()


def test_monitor_advises_no_budget_above_the_device() -> None:
    with install(monitor={"on_finding": None}) as handle:
        mr = handle.managed_mr
        mr.deallocate(mr.allocate(80 * MIB), 80 * MIB)
        handle.monitor._tick()
        (finding,) = [one for one in handle.monitor.findings if one.kind == "budget"]
        assert finding.value == 80 * MIB
        assert "device_budget" not in finding.remedy


def test_monitor_finds_nothing_where_all_requests_fit() -> None:
    with install(monitor={"on_finding": None}) as handle:
        mr = handle.managed_mr
        mr.deallocate(mr.allocate(16 * MIB), 16 * MIB)
        handle.monitor._tick()
        assert [one for one in handle.monitor.findings if one.kind == "budget"] == []


# -- host memory ---------------------------------------------------------------------------------


def give_host(monkeypatch: pytest.MonkeyPatch, available_bytes: int) -> None:
    host = HostMemory(total_bytes=available_bytes, available_bytes=available_bytes)
    monkeypatch.setattr("rmm_uvm.pool.build.host_memory", lambda **_: host)


def test_installation_whose_evicted_data_the_host_cannot_hold_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_host(monkeypatch, 20 * MIB)
    with pytest.raises(ConfigurationError, match="device_budget and host together hold 36"):
        install(maximum_pool_size="48MiB")
    assert rmm_uvm.current_installation() is None


def test_installation_that_leaves_the_host_no_reserve_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_host(monkeypatch, 20 * MIB)
    with (
        pytest.warns(CapacityWarning, match="18.00 MiB are sure to be backed by device or host"),
        install(maximum_pool_size="32MiB"),
    ):
        pass


@pytest.mark.usefixtures("no_warning")
def test_installation_whose_evicted_data_the_host_can_hold_is_not_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_host(monkeypatch, 400 * MIB)
    with install(maximum_pool_size="48MiB") as handle:
        assert handle.devices[0].sizes.maximum_bytes == 48 * MIB
