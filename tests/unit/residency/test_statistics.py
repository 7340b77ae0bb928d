# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Statistics of a budget: read from a pool, and in words."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.residency import Budget, ResidencyStatistics

MIB = 1 << 20
ZERO = {
    field.name: 0
    for field in dataclasses.fields(ResidencyStatistics)
    if field.name not in ("policy", "faults_unknown")
}


def statistics(**changes: Any) -> ResidencyStatistics:
    plain: dict[str, Any] = {**ZERO, "last_failure": "", "foresees": False}
    return ResidencyStatistics(**{**plain, **changes})


def predictor(**changes: Any) -> str:
    line = next(line for line in str(statistics(**changes)).splitlines() if "predictor" in line)
    return line.removeprefix("predictor").strip()


def test_predictor_that_is_poor_is_off_in_words() -> None:
    assert predictor(predicted=87, predictions=256, policy="repeat", switched_off=1) == (
        "repeat was right in 34 % of the last 256 uses: it is off, and lru decides until it is "
        "right in more than 60 %; turned off once so far"
    )


def test_predictor_that_foresees_is_on_in_words() -> None:
    assert predictor(predicted=64, predictions=64, foresees=True) == (
        "the predictor was right in 100 % of the last 64 uses: it is on, and decides"
    )


def test_predictor_that_is_on_again_was_off_before_in_words() -> None:
    again = {"predicted": 256, "predictions": 256, "policy": "repeat", "foresees": True}
    on = "repeat was right in 100 % of the last 256 uses: it is on, and decides"
    assert predictor(**again, switched_off=1) == f"{on}; turned off once before"
    assert predictor(**again, switched_off=3) == f"{on}; turned off 3 times before"


def test_predictor_that_saw_few_uses_is_off_for_that() -> None:
    assert predictor(predicted=15, predictions=15, policy="repeat") == (
        "repeat was right in 100 % of the last 15 uses: it is off, and lru decides until 16 uses "
        "were seen"
    )


def test_predictor_that_saw_nothing_says_so() -> None:
    assert predictor(policy="repeat") == "nothing was predicted yet"
    assert predictor(policy="lru") == "none: lru decides"
    assert statistics().hit_rate is None
    assert statistics(predicted=1, predictions=4).hit_rate == 0.25


def test_announced_uses_are_told_with_what_was_there() -> None:
    assert "announced      nothing" in str(statistics())
    text = str(statistics(wanted_bytes=8 * MIB, present_bytes=6 * MIB))
    assert "uses of 8.00 MiB, of which 75 % was there already" in text


def test_look_ahead_is_told_where_something_was_fetched_ahead() -> None:
    counts = {"fetched_ahead_bytes": 8 * MIB, "ahead_used_bytes": 6 * MIB, "ahead_bytes": 4 * MIB}
    assert "(6.00 MiB of it used in time; up to 4.00 MiB ahead)" in str(statistics(**counts))
    assert "up to 4.00 MiB" not in str(statistics(ahead_bytes=4 * MIB))


@pytest.mark.parametrize(("given", "found"), [(None, 8 * MIB), (24 * MIB, 24 * MIB), (0, 0)])
def test_look_ahead_begins_at_an_eighth_or_as_given(given: int | None, found: int) -> None:
    budget = Budget(64 * MIB, ahead=True, ahead_bytes=given)
    mr = rmm_uvm.managed_pool(driver="simulated:256MiB", device_budget=budget)
    assert rmm_uvm.residency_statistics(mr).ahead_bytes == found


def test_troubles_are_told_only_where_there_are_any() -> None:
    assert len(str(statistics()).splitlines()) == 6
    counts: dict[str, Any] = {"over_budget": 1, "too_large": 2, "too_large_bytes": 32 * MIB}
    text = str(statistics(**counts, failed_calls=3, last_failure="prefetch: no"))
    assert "1 time over the budget" in text
    assert "2 requests larger than the budget, up to 32.00 MiB: left to page faults" in text
    assert "3 driver calls that failed, the last one prefetch: no" in text


def test_installed_pool_is_read_with_its_policy() -> None:
    budget = Budget(16 * MIB, background=False)  # nothing leaves but for what needs the room
    with rmm_uvm.reinitialize(
        driver="simulated:64MiB", device_budget=budget, eviction="fifo", libraries=()
    ) as handle:
        mr = handle.managed_mr
        pointers = [mr.allocate(8 * MIB) for _ in range(3)]
        found = rmm_uvm.residency_statistics()
        assert found.budget_bytes == 16 * MIB
        assert found.resident_bytes == 16 * MIB
        assert found.evicted_bytes == 8 * MIB
        assert found.policy == "fifo"
        assert found == rmm_uvm.residency_statistics(device=0)
        assert "8.00 MiB moved to the host" in str(found)
        for pointer in pointers:
            mr.deallocate(pointer, 8 * MIB)


def test_device_is_chosen_by_its_ordinal() -> None:
    with rmm_uvm.reinitialize(
        driver="simulated:64MiB", device_budget="16MiB", devices=(0, 1), libraries=()
    ) as handle:
        mr = handle.devices[1].managed_mr
        pointer = mr.allocate(4 * MIB)
        assert rmm_uvm.residency_statistics(device=1).resident_bytes == 4 * MIB
        assert rmm_uvm.residency_statistics().resident_bytes == 0
        mr.deallocate(pointer, 4 * MIB)
        with pytest.raises(AvailabilityError, match="device 7"):
            rmm_uvm.residency_statistics(device=7)


def test_pool_without_a_budget_is_refused_with_what_to_do() -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget=None)
    with pytest.raises(AvailabilityError, match="give device_budget"):
        rmm_uvm.residency_statistics(mr)


def test_no_installed_pool_is_refused_with_what_to_do() -> None:
    with pytest.raises(AvailabilityError, match=r"call rmm_uvm\.reinitialize first, or give mr="):
        rmm_uvm.residency_statistics()


def test_resource_that_is_no_managed_pool_is_refused() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    for other in (rmm_uvm.mr.SimulatedCudaMemoryResource(device), "pool"):
        with pytest.raises(ConfigurationError, match="is not a managed pool"):
            rmm_uvm.residency_statistics(other)  # type: ignore[arg-type]


def test_adaptor_of_rmm_over_a_managed_pool_is_seen_through() -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="16MiB")
    outer = rmm.mr.StatisticsResourceAdaptor(mr)
    assert rmm_uvm.residency_statistics(outer).budget_bytes == 16 * MIB


# -- faulted in beside the budget ----------------------------------------------------------------


def faulted(**changes: Any) -> str:
    line = next(line for line in str(statistics(**changes)).splitlines() if "faulted in" in line)
    return line.removeprefix("faulted in").strip()


def test_overshoot_is_told_with_its_share_of_the_budget() -> None:
    told = faulted(
        budget_bytes=64 * MIB,
        overshoot_bytes=2 * MIB,
        peak_overshoot_bytes=4 * MIB,
        faulted_bytes=9 * MIB,
    )
    assert told == (
        "about 2.00 MiB beside the budget, at most 4.00 MiB (6 % of it); 9.00 MiB in all"
    )
    assert faulted() == "nothing beside the budget"


def test_overshoot_that_nothing_counts_is_unknown_with_the_reason() -> None:
    unknown: dict[str, Any] = dict.fromkeys(
        ("overshoot_bytes", "peak_overshoot_bytes", "faulted_bytes")
    )
    assert faulted(**unknown, faults_unknown="no counters here") == "unknown: no counters here"
    assert statistics(**unknown).overshoot_fraction is None
    assert statistics(budget_bytes=8, peak_overshoot_bytes=2).overshoot_fraction == 0.25


def run_kernels(*, announced: bool) -> ResidencyStatistics:
    device = rmm_uvm.simulated_device("256MiB")
    budget = Budget(32 * MIB, background=False)
    mr = rmm_uvm.managed_pool(driver=device, device_budget=budget)
    buffers = [rmm.DeviceBuffer(size=8 * MIB, mr=mr) for _ in range(8)]
    for buffer in buffers[:2]:  # away by now
        if announced:
            rmm_uvm.touch(buffer, mr=mr)
        device.touch(buffer.ptr, buffer.size)
    on_device = sum(device.resident_bytes(buffer.ptr, buffer.size) for buffer in buffers)
    found = rmm_uvm.residency_statistics(mr)
    assert on_device == found.resident_bytes + (found.overshoot_bytes or 0)
    return found


def test_overshoot_of_unannounced_uses_is_what_the_device_has_beside() -> None:
    found = run_kernels(announced=False)
    assert found.overshoot_bytes == found.faulted_bytes == 16 * MIB
    assert found.overshoot_fraction == 0.5


def test_overshoot_of_announced_uses_is_none() -> None:
    found = run_kernels(announced=True)
    assert found.peak_overshoot_bytes == found.faulted_bytes == 0
    assert found.fetched_bytes == 16 * MIB


def test_overshoot_on_a_device_that_counts_nothing_is_unknown() -> None:
    device = rmm_uvm.simulated_device("64MiB", counters=False)
    mr = rmm_uvm.managed_pool(driver=device, device_budget="16MiB")
    found = rmm_uvm.residency_statistics(mr)
    assert found.overshoot_bytes is found.peak_overshoot_bytes is found.faulted_bytes is None
    assert found.faults_unknown
    assert f"unknown: {found.faults_unknown}" in str(found)


def test_neighbours_are_told_only_where_there_is_something_to_tell() -> None:
    text = str(statistics())
    assert not [word for word in ("neighbour", "held back", "reclaimed") if word in text]
    text = str(
        statistics(
            evicted_bytes=8 * MIB,
            neighbor_bytes=6 * MIB,
            peak_harvested_bytes=6 * MIB,
            from_neighbor_bytes=2 * MIB,
            given_back_bytes=4 * MIB,
            given_back_at_once_bytes=1 * MIB,
            held_back=1,
            reclaims=3,
            reclaim_wait_seconds=0.25,
        )
    )
    assert "on neighbours  0 B now, at most 6.00 MiB; 2.00 MiB came back, 4.00 MiB went" in text
    assert "to the host for their owners (1.00 MiB without a copy)" in text
    assert "held back      1 time, to the host: the neighbours were busy" in text
    assert "reclaimed      3 times what others held here; 0.25 s were waited" in text
