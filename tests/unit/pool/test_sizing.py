# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Pool sizes: a pure function of device, host, cap and request."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.pool.sizing import PoolRequest, PoolSizes, plan_sizes

MIB = 1 << 20
GIB = 1 << 30
HOST = HostMemory(total_bytes=64 * GIB, available_bytes=40 * GIB)


def plan(request: PoolRequest | None = None, **facts: Any) -> PoolSizes:
    known: dict[str, Any] = {"free_bytes": 14 * GIB, "total_bytes": 16 * GIB, "host": HOST}
    return plan_sizes(request or PoolRequest(), **{**known, **facts})


def test_default_initial_is_half_of_free_device_memory() -> None:
    assert plan().initial_bytes == 7 * GIB
    assert plan().initial_reason == "half of the free device memory"


def test_default_maximum_is_what_the_host_can_back() -> None:
    sizes = plan()
    assert sizes.maximum_bytes == 36 * GIB
    assert sizes.maximum_reason == "90 % of available host memory"


def test_default_maximum_names_the_containers_limit() -> None:
    host = dataclasses.replace(HOST, limit_bytes=50 * GIB, limit_source="/sys/memory.max")
    assert plan(host=host).maximum_reason.endswith("limited by /sys/memory.max")


def test_default_maximum_with_little_host_memory_is_the_free_device_memory() -> None:
    # The other 2 GiB of the device belong to somebody else and cannot be evicted.
    sizes = plan(host=HostMemory(8 * GIB, 4 * GIB))
    assert sizes.maximum_bytes == 14 * GIB
    assert sizes.maximum_reason == "free device memory; the host has less to back more"


def test_default_maximum_without_concurrent_access_is_the_free_device_memory() -> None:
    sizes = plan(oversubscribable=False)
    assert sizes.maximum_bytes == 14 * GIB
    assert "no concurrent managed access" in sizes.maximum_reason


def test_integrated_device_has_the_hosts_memory_once() -> None:
    spark: dict[str, Any] = {"free_bytes": 40 * GIB, "total_bytes": 64 * GIB, "integrated": True}
    sizes = plan(**spark)
    assert (sizes.initial_bytes, sizes.maximum_bytes) == (20 * GIB, 36 * GIB)
    assert sizes.maximum_reason == "90 % of available host memory, which is the device's too"
    with pytest.raises(ConfigurationError, match=r"are one memory, with 40\.00 GiB; ask for 36"):
        plan(PoolRequest(maximum="50GiB"), **spark)
    asked = plan(PoolRequest(maximum=0.6, ipc="4GiB"), **spark)
    assert asked.maximum_bytes == 36 * GIB  # 0.6 of what the IPC pool leaves of 64 GiB
    assert "sure to be backed" in asked.warning
    two = plan(PoolRequest(ipc="4GiB", budget_bytes=50 * GIB), host_sharers=2, **spark)
    assert two.maximum_bytes == int(18 * GIB * 0.9) // (2 * MIB) * (2 * MIB)
    assert two.warning == ""
    unknown = plan(PoolRequest(maximum="36GiB"), **{**spark, "host": None})
    assert unknown.warning == ""


def test_integrated_device_with_less_free_than_the_host_keeps_to_that() -> None:
    host = dataclasses.replace(HOST, limit_bytes=50 * GIB, limit_source="/sys/memory.max")
    sizes = plan(free_bytes=10 * GIB, integrated=True, host=host)
    assert (sizes.initial_bytes, sizes.maximum_bytes) == (5 * GIB, 9 * GIB)
    assert sizes.maximum_reason == "90 % of free device memory, which is the host's too"


def test_integrated_device_in_a_container_keeps_to_its_limit() -> None:
    host = HostMemory(64 * GIB, 10 * GIB, 12 * GIB, "/sys/memory.max")
    sizes = plan(total_bytes=64 * GIB, integrated=True, host=host)
    assert (sizes.initial_bytes, sizes.maximum_bytes) == (5 * GIB, 9 * GIB)
    assert sizes.maximum_reason.endswith("which is the device's too, limited by /sys/memory.max")


def test_memory_of_gpus_is_said_to_be_left_out() -> None:
    host = dataclasses.replace(HOST, device_bytes=96 * GIB, limit_source="/sys/memory.max")
    assert plan(host=host, sharers=2).maximum_reason == (
        "90 % of available host memory, without that of GPUs, shared by 2 devices, limited by "
        "/sys/memory.max"
    )


def test_default_maximum_under_a_cap_is_what_the_cap_leaves() -> None:
    sizes = plan(limit_bytes=10 * GIB, limit_used_bytes=4 * GIB)
    assert sizes.maximum_bytes == 6 * GIB
    assert sizes.initial_bytes == 6 * GIB
    assert sizes.maximum_reason == "RMM_UVM_MANAGED_LIMIT"


@pytest.mark.parametrize(
    ("size", "expected_bytes"),
    [(3 * GIB, 3 * GIB), ("3GiB", 3 * GIB), (0.25, 4 * GIB), (3 * GIB + 5, 3 * GIB), (1000, 768)],
)
def test_sizes_may_be_bytes_text_or_a_fraction(size: Any, expected_bytes: int) -> None:
    assert plan(PoolRequest(initial=size)).initial_bytes == expected_bytes


def test_ipc_pool_is_taken_from_managed_capacity_and_free_memory() -> None:
    sizes = plan(PoolRequest(ipc="2GiB"))
    assert sizes.ipc_bytes == 2 * GIB
    assert sizes.capacity_bytes == 14 * GIB
    assert sizes.initial_bytes == 6 * GIB


def test_automatic_ipc_size_is_256_mib_or_an_eighth_of_a_small_device() -> None:
    assert plan(PoolRequest(ipc="auto")).ipc_bytes == 256 * MIB
    small = plan(PoolRequest(ipc="auto"), free_bytes=64 * MIB, total_bytes=64 * MIB)
    assert small.ipc_bytes == 8 * MIB


def test_ipc_size_is_rounded_up_to_256_bytes() -> None:
    assert plan(PoolRequest(ipc=1000)).ipc_bytes == 1024


def test_ipc_pool_that_takes_all_free_memory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"14\.00 GiB of the device are free"):
        plan(PoolRequest(ipc="14GiB"))


def test_maximum_past_device_and_host_is_refused_with_a_size_that_works() -> None:
    with pytest.raises(ConfigurationError, match=r"hold 56\.00 GiB; ask for 36\.00 GiB"):
        plan(PoolRequest(maximum="57GiB"))
    assert plan(PoolRequest(maximum="36GiB")).warning == ""


def test_maximum_that_may_not_be_backed_is_a_warning() -> None:
    sizes = plan(PoolRequest(maximum="50GiB"))
    assert sizes.maximum_bytes == 50 * GIB
    assert "the kernel may end the process" in sizes.warning


def test_maximum_below_a_block_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigurationError, match=r"maximum_pool_size is 1\.00 MiB"):
        plan(PoolRequest(maximum="1MiB"))


def test_devices_share_host_memory_and_cap_evenly() -> None:
    sizes = plan(sharers=2)
    assert sizes.maximum_bytes == 18 * GIB
    assert sizes.maximum_reason == "90 % of available host memory, shared by 2 devices"
    assert plan(sharers=2, limit_bytes=10 * GIB, limit_used_bytes=4 * GIB).maximum_bytes == 3 * GIB


def test_workers_share_host_memory_and_each_has_its_own_cap() -> None:
    sizes = plan(PoolRequest(), host_sharers=2)
    assert sizes.maximum_bytes == 18 * GIB
    assert sizes.maximum_reason == "90 % of available host memory, shared by 2 workers"
    capped = plan(host_sharers=2, limit_bytes=10 * GIB)
    assert capped.maximum_bytes == 10 * GIB
    assert capped.maximum_reason == "RMM_UVM_MANAGED_LIMIT"


def test_devices_of_workers_divide_host_memory_by_both() -> None:
    host = HostMemory(total_bytes=512 * GIB, available_bytes=400 * GIB)
    sizes = plan(host=host, sharers=2, host_sharers=4)
    assert sizes.maximum_bytes == 45 * GIB
    assert sizes.maximum_reason.endswith("shared by 2 devices of 4 workers")


def test_maximum_past_a_workers_share_is_refused_and_says_who_shares() -> None:
    with pytest.raises(ConfigurationError, match=r"26\.00 GiB, shared by 4 workers; ask for"):
        plan(PoolRequest(maximum="30GiB"), host_sharers=4)
    assert plan(PoolRequest(maximum="30GiB")).maximum_bytes == 30 * GIB


def test_fractions_are_of_what_the_ipc_pool_leaves() -> None:
    sizes = plan(PoolRequest(initial=1.0, maximum=1.0, ipc=1 * GIB))
    assert sizes.initial_bytes == sizes.maximum_bytes == 15 * GIB


def test_maximum_past_the_cap_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"RMM_UVM_MANAGED_LIMIT leaves 6\.00 GiB"):
        plan(PoolRequest(maximum="8GiB"), limit_bytes=10 * GIB, limit_used_bytes=4 * GIB)


def test_initial_past_the_maximum_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"over the maximum of 2\.00 GiB"):
        plan(PoolRequest(initial="3GiB", maximum="2GiB"))


@pytest.mark.parametrize(
    ("maximum", "told"), [(2, "2 B"), ("100 B", "100 B"), ("1.5MiB", r"1\.50 MiB")]
)
def test_maximum_that_is_too_small_is_refused_as_it_was_written(
    maximum: int | str, told: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^maximum_pool_size is {told}: a managed pool"):
        plan(PoolRequest(maximum=maximum))


def test_cap_that_leaves_less_than_a_block_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="2 MiB at least"):
        plan(limit_bytes=10 * MIB, limit_used_bytes=9 * MIB)


def test_cap_already_exceeded_counts_as_nothing_left() -> None:
    with pytest.raises(ConfigurationError, match="0 B are left"):
        plan(limit_bytes=10 * MIB, limit_used_bytes=11 * MIB)


def test_full_device_begins_small() -> None:
    sizes = plan(free_bytes=0)
    assert sizes.initial_bytes == 64 * MIB
    assert sizes.initial_reason == "small: little device memory is free"


@given(
    free=st.integers(0, 200 * GIB),
    used=st.integers(0, 10 * GIB),
    host_bytes=st.integers(0, 500 * GIB),
    limit=st.none() | st.integers(0, 300 * GIB),
    maximum=st.none() | st.floats(0.001, 1.0),
    oversubscribable=st.booleans(),
    integrated=st.booleans(),
)
def test_any_plan_keeps_its_bounds(
    free: int,
    used: int,
    host_bytes: int,
    limit: int | None,
    maximum: float | None,
    oversubscribable: bool,
    integrated: bool,
) -> None:
    total = free + used + 2 * MIB
    try:
        sizes = plan_sizes(
            PoolRequest(maximum=maximum),
            free_bytes=free,
            total_bytes=total,
            host=HostMemory(500 * GIB, host_bytes),
            oversubscribable=oversubscribable,
            integrated=integrated,
            limit_bytes=limit,
        )
    except ConfigurationError:
        return
    assert 0 < sizes.initial_bytes <= sizes.maximum_bytes <= max(total, host_bytes)
    assert sizes.initial_bytes % 256 == sizes.maximum_bytes % 256 == 0
    assert limit is None or sizes.maximum_bytes <= limit
    assert oversubscribable or sizes.maximum_bytes <= total
    assert not integrated or sizes.maximum_bytes <= min(total, host_bytes)


def test_asked_maximum_with_unknown_host_memory_is_taken_with_a_warning() -> None:
    sizes = plan(PoolRequest(maximum=64 * GIB), host=None)
    assert sizes.maximum_bytes == 64 * GIB
    assert "14.00 GiB are sure to be backed" in sizes.warning


def test_asked_maximum_within_the_device_with_unknown_host_memory_warns_of_nothing() -> None:
    assert plan(PoolRequest(maximum=8 * GIB), host=None).warning == ""


def addresses(maximum: str | None, **facts: Any) -> int:
    budget_bytes = facts.pop("budget_bytes", None)
    return plan(PoolRequest(maximum=maximum, budget_bytes=budget_bytes), **facts).address_bytes


def test_addresses_are_four_times_the_maximum_where_the_host_can_back_them() -> None:
    assert addresses("4GiB") == 16 * GIB
    assert plan(PoolRequest(maximum="4GiB")).populated_bytes == int(4.4 * GIB)


def test_no_more_than_the_maximum_is_populated_where_it_could_be_evicted_for_that() -> None:
    assert plan(PoolRequest(maximum="8GiB")).populated_bytes == 8 * GIB
    budget = PoolRequest(maximum="8GiB", budget_bytes=2 * GIB)
    assert plan(budget).populated_bytes == 8 * GIB * 11 // 10


def test_addresses_are_what_the_host_can_back() -> None:
    # What was on the host once keeps its host page, whatever is discarded; and budgets shrink.
    assert addresses("20GiB") == 36 * GIB
    assert addresses("4GiB", host=HostMemory(9 * GIB, 8 * GIB)) == int(7.2 * GIB) // (2 * MIB) * (
        2 * MIB
    )
    assert addresses("4GiB", host=HostMemory(2 * GIB, 2 * GIB)) == 4 * GIB
    assert addresses("20GiB", sharers=1, host_sharers=2) == 20 * GIB
    assert addresses("4GiB", host=None) == 4 * GIB


def test_addresses_of_the_default_maximum_are_what_the_host_can_back() -> None:
    assert addresses(None) == plan().maximum_bytes


def test_addresses_leave_others_half_of_what_the_cap_has_besides() -> None:
    assert addresses("4GiB", limit_bytes=8 * GIB, limit_used_bytes=2 * GIB) == 5 * GIB
    assert addresses("4GiB", limit_bytes=100 * GIB) == 16 * GIB
    assert addresses("4GiB", limit_bytes=4 * GIB) == 4 * GIB


def test_addresses_are_the_maximum_where_nothing_can_be_dropped() -> None:
    assert addresses("4GiB", discards=False) == 4 * GIB
    assert plan(PoolRequest(maximum="4GiB", drops=False)).address_bytes == 4 * GIB


def test_addresses_are_device_memory_without_concurrent_managed_access() -> None:
    assert addresses("4GiB", oversubscribable=False) == 4 * GIB
