# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The memories that the pipeline runs on, built on a simulated device."""

from __future__ import annotations

import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget
from rmm_uvm_mortgage.cli.request import BUDGETED
from rmm_uvm_mortgage.memory import (
    MEMORIES,
    Chain,
    asked_budget,
    budget_words,
    find_memory,
    gpu_chain,
    simulated_chain,
    tear_down_pool,
)

DEVICE_BYTES = 16 << 20


def chain_of(name: str, pool_bytes: int | None = None) -> Chain:
    device = rmm_uvm.simulated_device(DEVICE_BYTES)
    return simulated_chain(find_memory(name), device, pool_bytes)


@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_chain_of_every_memory_allocates_and_frees(name: str) -> None:
    chain = chain_of(name)
    address = chain.resource.allocate(1 << 20)
    assert address % 256 == 0
    assert chain.upstream.allocation_counts.current_bytes >= 1 << 20
    chain.resource.deallocate(address, 1 << 20)


@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_chain_asked_for_more_than_the_device_holds_only_managed(name: str) -> None:
    chain = chain_of(name)
    if find_memory(name).managed:
        address = chain.resource.allocate(2 * DEVICE_BYTES)
        chain.resource.deallocate(address, 2 * DEVICE_BYTES)
    else:
        with pytest.raises(MemoryError):
            chain.resource.allocate(2 * DEVICE_BYTES)


@pytest.mark.parametrize(("name", "calls"), [("managed", 1), ("managed-nopool", 4), ("cuda", 4)])
def test_upstream_allocations_without_a_pool_are_one_each(name: str, calls: int) -> None:
    chain = chain_of(name)
    for _ in range(4):
        chain.resource.deallocate(chain.resource.allocate(1 << 20), 1 << 20)
    assert chain.upstream_allocations == calls


@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_budget_is_kept_by_memories_of_ours_and_refused_by_others(name: str) -> None:
    memory, budget = find_memory(name), Budget(8 << 20, background=False)
    device = rmm_uvm.simulated_device(DEVICE_BYTES)
    assert memory.keeps_budget == (name in BUDGETED)
    if not memory.keeps_budget:
        with pytest.raises(ConfigurationError, match="keeps no budget"):
            simulated_chain(memory, device, budget=budget)
        return
    chain = simulated_chain(memory, device, budget=budget)
    addresses = [chain.resource.allocate(4 << 20) for _ in range(3)]
    assert sum(device.resident_bytes(address, 4 << 20) for address in addresses) == 8 << 20
    assert budget_words(chain.budget) == ", budget 8.00 MiB (repeat)"
    for address in addresses:
        chain.resource.deallocate(address, 4 << 20)


def test_budget_of_the_environment_is_for_memories_that_keep_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    managed, cuda = find_memory("managed"), find_memory("cuda")
    automatic = asked_budget(managed, None, None, DEVICE_BYTES)
    assert automatic is not None
    assert automatic.follows
    monkeypatch.setenv("RMM_UVM_DEVICE_BUDGET", "8MiB")
    assert asked_budget(managed, None, None, DEVICE_BYTES) == Budget(8 << 20)
    assert asked_budget(cuda, None, None, DEVICE_BYTES) is None
    assert asked_budget(managed, 12 << 20, "lru", DEVICE_BYTES) == Budget(12 << 20, "lru")
    with pytest.raises(ConfigurationError, match="the device has"):
        asked_budget(managed, DEVICE_BYTES + 1, None, DEVICE_BYTES)


def test_fixed_pool_takes_the_whole_device() -> None:
    chain = chain_of("cuda-pool")
    assert chain.driver.memory()[0] == 0
    tear_down_pool(chain)
    assert chain.driver.memory()[0] == DEVICE_BYTES


def test_pool_size_asked_for_is_the_size_of_the_pool() -> None:
    chain = chain_of("cuda-pool", 6 << 20)
    assert chain.driver.memory()[0] == DEVICE_BYTES - (6 << 20)


def test_simulated_managed_memory_does_not_count_against_the_cap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "1MiB")
    assert chain_of("managed").resource.allocate(4 << 20)


def test_only_the_fixed_pool_is_handed_over() -> None:
    assert [name for name, memory in MEMORIES.items() if memory.hands_over] == ["cuda-pool"]


def test_memory_unknown_names_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="no memory 'tape'; there are managed, "):
        find_memory("tape")


@pytest.mark.parametrize("budget", [None, Budget(16 << 20)])
def test_memory_that_was_named_is_used_with_the_off_switch_too(
    monkeypatch: pytest.MonkeyPatch, budget: Budget | None
) -> None:
    monkeypatch.setenv("RMM_UVM", "off")
    chain = gpu_chain(find_memory("managed"), rmm_uvm.simulated_device("64MiB"), 8 << 20, budget)
    assert isinstance(chain.resource, UvmResourceAdaptor)
