# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The memories that the pipeline runs on, built on a simulated device."""

from __future__ import annotations

import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.mortgage.memory import MEMORIES, Chain, find_memory, simulated_chain, tear_down_pool

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
