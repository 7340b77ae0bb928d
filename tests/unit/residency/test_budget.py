# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Budgets: what can be asked for, where it may come from, and what pools make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rmm_uvm
from rmm_uvm.errors import CapacityWarning, ConfigurationError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.pool.sizing import PoolRequest, plan_sizes
from rmm_uvm.residency import POLICIES, Budget
from rmm_uvm.residency.budget import budget_for
from rmm_uvm.support.settings import EVICTION_POLICIES

MIB = 1 << 20
DEVICE = 64 * MIB


@pytest.fixture(autouse=True)
def no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMM_UVM_DEVICE_BUDGET", raising=False)
    monkeypatch.delenv("RMM_UVM_EVICTION", raising=False)


@pytest.mark.parametrize(
    ("asked", "nbytes"), [("32MiB", 32 * MIB), (0.5, 32 * MIB), (1.0, DEVICE), (16 * MIB, 16 * MIB)]
)
def test_budget_is_bytes_or_a_fraction_of_the_device(asked: Any, nbytes: int) -> None:
    budget = budget_for(asked, None, DEVICE)
    assert budget == Budget(nbytes, "repeat")
    assert budget is not None
    assert budget.reason == "as asked"


def test_budget_object_keeps_its_settings_and_takes_another_policy() -> None:
    asked = Budget(32 * MIB, "lru", ahead=False)
    assert budget_for(asked, None, DEVICE) is asked
    assert budget_for(asked, "fifo", DEVICE) == Budget(32 * MIB, "fifo", ahead=False)


def test_look_ahead_that_is_not_given_is_left_to_be_learnt() -> None:
    assert Budget(32 * MIB).ahead_bytes is None
    assert Budget(32 * MIB, ahead_bytes=0).ahead_bytes == 0  # nothing, and that is not None


@pytest.mark.parametrize(
    ("asked", "policy", "says"),
    [
        ("1GiB", None, "the device has 64.00 MiB: give that or less"),
        (Budget(DEVICE + 1), None, "the device has 64.00 MiB: give that or less"),
        (-1, None, "greater than 0"),
        ("-1GiB", None, "expected"),
        (0, None, "greater than 0"),
        (1.5, None, "fraction"),
        (float("nan"), None, "fraction"),
        (True, None, "expected"),
        ("4MiB", None, "at least 8.00 MiB"),
        ("32MiB", "belady", "'fifo', 'lru', 'repeat', 'correlation'"),
        (None, "lru", "without a budget"),
        (None, "belady", "'fifo'"),
    ],
)
def test_budget_that_cannot_be_kept_is_refused(asked: Any, policy: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        budget_for(asked, policy, DEVICE)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"budget_bytes": "32MiB"}, "budget_bytes='32MiB'"),
        ({"budget_bytes": True}, "budget_bytes=True"),
        ({"budget_bytes": -32 * MIB}, "at least"),
        ({"policy": "random"}, "policy='random'"),
        ({"policy": None}, "policy=None"),
        ({"low_bytes": 33 * MIB}, "0 to the budget"),
        ({"low_bytes": -1}, "0 to the budget"),
        ({"ahead_bytes": -1}, "0 to the budget"),
        ({"ahead_bytes": 33 * MIB}, "0 to the budget"),
        ({"ahead_bytes": "4MiB"}, "ahead_bytes='4MiB'"),
        ({"neighbors": -1}, "neighbors=-1"),
        ({"neighbors": True}, "neighbors=True"),
        ({"neighbors": [True]}, r"neighbors=\[True\]"),
        ({"neighbors": [1, 1]}, "each once"),
        ({"neighbors": [2**31]}, r"neighbors=\[2147483648\]"),
        ({"neighbors": "host"}, "use 'auto', CUDA ordinals"),
        ({"harvest_limit": "1GiB"}, "without neighbours"),
        ({"neighbors": [1], "fetch": False}, "with fetch=False"),
        ({"keep_copies": True, "fetch": False}, "keep_copies with fetch=False"),
        ({"keep_copies": "yes"}, "keep_copies='yes'"),
        ({"neighbors": [1], "harvest_limit": MIB}, "harvest_limit"),
        ({"neighbors": [1], "harvest_limit": {"a": "1GiB"}}, "'a' is not a CUDA ordinal"),
        ({"neighbors": [1], "harvest_limit": {2: "8MiB"}}, "device 2, which is not a neighbour"),
        ({"neighbors": [], "harvest_limit": {0: "8MiB"}}, "device 0, which is not a neighbour"),
        ({"board": 3}, "board=3: expected a folder"),
        ({"ahead": "no"}, "ahead='no': expected True or False"),
        ({"in_place": 1}, "in_place=1: expected True or False"),
        ({"piece_bytes": MIB}, "at least a block of 2.00 MiB"),
        ({"fetch_bytes": 0}, "at least a block"),
        ({"piece_bytes": 2**63}, r"below 2\*\*63"),
        ({"fetch_bytes": 10**30}, r"below 2\*\*63"),
        ({"budget_bytes": 2**64}, r"below 2\*\*63"),
        ({"fetch_bytes": "4MiB"}, "fetch_bytes='4MiB'"),
    ],
)
def test_setting_out_of_its_bounds_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Budget(**{"budget_bytes": 32 * MIB, **settings})


@pytest.mark.parametrize("neighbors", [1, [1], (1,)])
def test_one_neighbour_needs_no_list(neighbors: Any) -> None:
    assert Budget(32 * MIB, neighbors=neighbors) == Budget(32 * MIB, neighbors=(1,))


def test_integers_of_numpy_are_numbers() -> None:
    budget = Budget(
        np.int64(32 * MIB), neighbors=[np.int64(1)], harvest_limit={np.int32(1): "8MiB"}
    )  # type: ignore[arg-type, dict-item, list-item]
    assert budget == Budget(32 * MIB, neighbors=[1], harvest_limit={1: "8MiB"})
    assert type(budget.budget_bytes) is int


def test_keywords_replace_what_a_budget_says_and_the_environment_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_HARVEST_LIMIT", "4MiB")
    monkeypatch.setenv("RMM_UVM_NEIGHBORS", "3")
    monkeypatch.setenv("RMM_UVM_EVICTION", "fifo")
    limited = Budget(32 * MIB, neighbors=[1], harvest_limit="8MiB")
    assert budget_for(limited, None, DEVICE) == limited
    more = budget_for(limited, None, DEVICE, neighbors=[1, 2])
    assert more == Budget(32 * MIB, neighbors=[1, 2], harvest_limit="8MiB")
    less = budget_for(limited, "lru", DEVICE, harvest_limit="2MiB")
    assert less == Budget(32 * MIB, "lru", neighbors=[1], harvest_limit="2MiB")
    assert budget_for(Budget(32 * MIB), None, DEVICE) == Budget(32 * MIB)
    with pytest.raises(ConfigurationError, match="without neighbours"):
        budget_for(Budget(32 * MIB), None, DEVICE, harvest_limit="8MiB")


def test_array_of_ordinals_is_a_list() -> None:
    assert Budget(32 * MIB, neighbors=np.array([1, 2])) == Budget(32 * MIB, neighbors=[1, 2])


def test_limit_of_a_device_that_is_not_found_binds_nothing_with_auto() -> None:
    assert Budget(32 * MIB, neighbors="auto", harvest_limit={5: "8MiB"}).limit_on(1) is None


def test_every_policy_has_its_words() -> None:
    assert tuple(EVICTION_POLICIES) == POLICIES
    assert len(set(EVICTION_POLICIES.values())) == len(POLICIES)


# -- from the environment ------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "nbytes"), [("32MiB", 32 * MIB), (" 0.5 ", 32 * MIB)])
def test_environment_sets_a_budget_where_a_call_does_not(
    text: str, nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMM_UVM_DEVICE_BUDGET", text)
    monkeypatch.setenv("RMM_UVM_EVICTION", "lru")
    budget = budget_for("auto", None, DEVICE)
    assert budget == Budget(nbytes, "lru")
    assert budget is not None
    assert budget.reason == "RMM_UVM_DEVICE_BUDGET"
    assert budget_for("16MiB", "fifo", DEVICE) == Budget(16 * MIB, "fifo")
    assert budget_for(None, None, DEVICE) is None  # asked for, so that no variable counts


def test_environment_turns_budgets_off_where_a_call_gives_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A policy says how a budget is kept wherever there is one.
    monkeypatch.setenv("RMM_UVM_EVICTION", "lru")
    monkeypatch.setenv("RMM_UVM_DEVICE_BUDGET", "none")
    assert budget_for("auto", None, DEVICE) is None
    assert rmm_uvm.managed_pool(driver="simulated:64MiB").budget is None
    assert budget_for("16MiB", None, DEVICE) == Budget(16 * MIB, "lru")
    monkeypatch.setenv("RMM_UVM_DEVICE_BUDGET", " ")
    budget = budget_for("auto", None, DEVICE)
    assert budget is not None
    assert (budget.policy, budget.follows) == ("lru", True)


def test_device_that_cannot_be_oversubscribed_or_is_tiny_has_no_automatic_budget() -> None:
    lacking = Availability(available=False, reason="it has no room")
    assert budget_for("auto", None, DEVICE, oversubscribable=lacking) is None
    with pytest.raises(ConfigurationError, match=r"without a budget \(it has no room\): leave it"):
        budget_for("auto", "lru", DEVICE, oversubscribable=lacking)
    assert budget_for("auto", None, 8 * MIB) is None
    assert budget_for("8MiB", None, 8 * MIB) is not None
    device = rmm_uvm.simulated_device("64MiB", concurrent_managed_access=False)
    assert rmm_uvm.managed_pool(driver=device).budget is None


@pytest.mark.parametrize("asked", ["16MiB", 0.25, Budget(16 * MIB)])
def test_device_whose_memory_is_the_hosts_keeps_no_budget_and_says_so_once(asked: Any) -> None:
    device = rmm_uvm.simulated_device("64MiB", integrated=True)
    said = r"device_budget is 16\.00 MiB, and the device keeps none: its memory is the host's"
    with pytest.warns(CapacityWarning, match=said) as of_pool:
        mr = rmm_uvm.managed_pool(driver=device, device_budget=asked)
    with pytest.warns(CapacityWarning, match=said) as of_change:
        mr.set_budget(asked)
    with pytest.warns(CapacityWarning, match=said) as of_installation:
        handle = rmm_uvm.reinitialize(driver=device, device_budget=asked, libraries=())
    with pytest.warns(CapacityWarning, match=said) as of_handle:
        handle.set_budget(asked)
    assert [
        (len(seen), seen[0].filename) for seen in (of_pool, of_change, of_installation, of_handle)
    ] == [(1, __file__)] * 4
    assert mr.budget is None
    assert handle.devices[0].budget is None


def test_device_whose_memory_is_the_hosts_refuses_what_is_no_budget_all_the_same() -> None:
    device = rmm_uvm.simulated_device("64MiB", integrated=True)
    with pytest.raises(ConfigurationError, match="the device has 64"):
        rmm_uvm.managed_pool(driver=device, device_budget="65MiB")
    mr = rmm_uvm.managed_pool(driver=device)
    mr.set_budget("auto")
    assert mr.budget is None


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("RMM_UVM_DEVICE_BUDGET", "much"),
        ("RMM_UVM_DEVICE_BUDGET", "1.5.0"),
        ("RMM_UVM_DEVICE_BUDGET", "2.0"),
        ("RMM_UVM_DEVICE_BUDGET", "-8MiB"),
        ("RMM_UVM_EVICTION", "belady"),
        ("RMM_UVM_NEIGHBORS", "1,1"),
        ("RMM_UVM_NEIGHBORS", "2147483648"),
        ("RMM_UVM_NEIGHBORS", "9" * 5000),
    ],
    ids=lambda text: text[:24],
)
def test_environment_that_cannot_be_used_is_named(
    variable: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMM_UVM_DEVICE_BUDGET", "32MiB")
    monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigurationError, match=variable):
        budget_for("auto", None, DEVICE)


# -- in pools ------------------------------------------------------------------------------------


def test_first_slab_is_as_large_as_the_budget() -> None:
    with rmm_uvm.reinitialize(
        driver="simulated:64MiB", device_budget="24MiB", libraries=()
    ) as handle:
        sizes = handle.devices[0].sizes
        assert sizes.initial_bytes == 24 * MIB == handle.managed_mr.upstream_mr.pool_size()
        assert sizes.initial_reason == "as large as the budget"


def test_first_slab_that_was_asked_for_stays_as_asked() -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", device_budget="24MiB", initial_pool_size="48MiB"
    )
    assert mr.upstream_mr.pool_size() == 48 * MIB


def test_pool_that_is_smaller_than_the_budget_begins_with_all_of_it() -> None:
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", device_budget="24MiB", maximum_pool_size="16MiB"
    )
    assert mr.upstream_mr.pool_size() == 16 * MIB


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"device_budget": "128MiB"}, "the device has"),
        ({"device_budget": "-1MiB"}, "expected"),
        ({"device_budget": "60MiB", "ipc_pool_size": "8MiB"}, "the IPC pool leaves 56.00 MiB"),
        ({"device_budget": None, "eviction": "lru"}, "without a budget"),
        ({"device_budget": "16MiB", "eviction": "best"}, "eviction='best'"),
    ],
)
def test_installation_with_a_budget_that_cannot_be_kept_changes_nothing(
    arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        rmm_uvm.reinitialize(driver="simulated:64MiB", libraries=(), **arguments)
    assert rmm_uvm.current_installation() is None


def planned(request: PoolRequest, available_bytes: int, free_bytes: int = DEVICE) -> Any:
    return plan_sizes(
        request,
        free_bytes=free_bytes,
        total_bytes=DEVICE,
        host=HostMemory(total_bytes=available_bytes, available_bytes=available_bytes),
    )


def test_maximum_by_default_counts_the_budget_and_not_the_rest_of_the_device() -> None:
    sizes = planned(PoolRequest(budget_bytes=16 * MIB), available_bytes=10 * MIB)
    assert sizes.maximum_bytes == 16 * MIB
    assert sizes.maximum_reason == "the budget; the host has less to back more"
    assert planned(PoolRequest(), available_bytes=10 * MIB).maximum_bytes == DEVICE


def test_maximum_that_the_host_cannot_back_past_the_budget_is_refused() -> None:
    request = PoolRequest(maximum="40MiB", budget_bytes=16 * MIB)
    assert planned(request, available_bytes=40 * MIB).maximum_bytes == 40 * MIB
    with pytest.raises(ConfigurationError, match="budget and host together hold 36"):
        planned(request, available_bytes=20 * MIB)


def test_budget_that_is_more_than_is_free_is_warned_of() -> None:
    request = PoolRequest(budget_bytes=48 * MIB)
    assert planned(request, available_bytes=400 * MIB).warning == ""
    warning = planned(request, available_bytes=400 * MIB, free_bytes=40 * MIB).warning
    assert warning.startswith("device_budget is 48.00 MiB, and 40.00 MiB of the device are free")


def test_budget_that_is_more_than_is_free_is_warned_of_at_the_installation() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    taken = rmm_uvm.ipc_pool("24MiB", driver=device)
    with (
        pytest.warns(CapacityWarning, match="40.00 MiB of the device are free"),
        rmm_uvm.reinitialize(driver=device, device_budget="48MiB", libraries=()),
    ):
        pass
    del taken


def test_table_shows_budget_and_policy_with_their_reasons() -> None:
    with rmm_uvm.reinitialize(
        driver="simulated:64MiB", device_budget="24MiB", eviction="lru", libraries=()
    ) as handle:
        lines = repr(handle).splitlines()
    words = [" ".join(line.split()) for line in lines]
    assert "initial size 24.00 MiB as large as the budget" in words
    assert any("budget  " in line and "24.00 MiB" in line and "as asked" in line for line in lines)
    assert any("eviction" in line and "lru" in line and "longest ago" in line for line in lines)
    assert all(len(line) <= 100 for line in lines)


def test_table_without_a_budget_says_who_evicts() -> None:
    with rmm_uvm.reinitialize(driver="simulated:64MiB", device_budget=None, libraries=()) as handle:
        assert "the kernel driver evicts" in repr(handle)
        assert not any(line.startswith("eviction") for line in repr(handle).splitlines())


def test_table_of_a_device_without_discard_says_that_dead_data_are_copied() -> None:
    device = rmm_uvm.simulated_device("64MiB", discard=False)
    with rmm_uvm.reinitialize(driver=device, device_budget="24MiB", libraries=()) as handle:
        assert "dead data are copied too" in repr(handle)
    with rmm_uvm.reinitialize(
        driver="simulated:64MiB", device_budget="24MiB", libraries=()
    ) as handle:
        assert "dead data go without a copy" in repr(handle)


def test_pool_made_by_name_keeps_a_budget() -> None:
    mr = rmm_uvm.mr.ManagedPool(driver="simulated:64MiB", device_budget="24MiB", eviction="fifo")
    counts = mr.managed_mr.residency.residency()
    assert counts is not None
    assert counts["budget_bytes"] == 24 * MIB


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RMM_UVM_EVICTION", "lru2"),
        ("RMM_UVM_NEIGHBORS", "x"),
        ("RMM_UVM_HARVEST_LIMIT", "1.5"),
    ],
)
def test_variable_that_cannot_be_used_is_refused_without_a_budget_too(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=variable):
        budget_for(None, None, 1 << 30)
    monkeypatch.setenv(variable, "")
    assert budget_for("auto", None, 1 << 30) is not None


def test_host_keeps_copies_unless_page_faults_bring_everything() -> None:
    assert Budget(32 * MIB).keep_copies is True
    assert Budget(32 * MIB, fetch=False).keep_copies is False
    assert Budget(32 * MIB, keep_copies=False).keep_copies is False
