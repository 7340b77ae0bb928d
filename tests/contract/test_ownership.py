# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers, lifetimes and what tools can see of a chain."""

from __future__ import annotations

import gc
from typing import Any

import rmm

import rmm_uvm
from rmm_uvm.mr import ManagedMemoryResource, SimulatedCudaMemoryResource, UvmResourceAdaptor

MIB = 1 << 20


def held_bytes(device: Any) -> int:
    """Bytes that anybody holds of a simulated device."""
    statistics = device.statistics()
    return int(statistics["managed_bytes"] + statistics["device_bytes"])


def test_buffer_of_any_chain_has_memory(chain: Any) -> None:
    buffer = rmm.DeviceBuffer(size=1000, mr=chain.mr)
    assert buffer.size == 1000
    assert buffer.ptr % 256 == 0
    empty = rmm.DeviceBuffer(size=0, mr=chain.mr)
    assert empty.size == 0


def test_buffer_outlives_every_python_reference_to_its_resource(simulated_chain: Any) -> None:
    device, mr = simulated_chain.device, simulated_chain.mr
    if simulated_chain.name == "ManagedPool":  # has a device of its own
        device = mr.driver
    object.__setattr__(simulated_chain, "mr", None)
    buffer = rmm.DeviceBuffer(size=1000, mr=mr)
    del mr
    gc.collect()

    assert held_bytes(device) > 0
    del buffer
    gc.collect()
    assert held_bytes(device) == 0


def test_chain_dropped_with_nothing_alive_gives_all_back(device: Any) -> None:
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size=8 * MIB, maximum_pool_size=64 * MIB)
    mr.deallocate(mr.allocate(12 * MIB), 12 * MIB)
    assert held_bytes(device) > 0
    del mr
    gc.collect()
    assert held_bytes(device) == 0


def test_allocated_bytes_count_what_was_asked_for(device: Any) -> None:
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size=8 * MIB)
    assert mr.get_allocated_bytes() == 0
    first, second = mr.allocate(1), mr.allocate(257)
    assert mr.get_allocated_bytes() == 258
    mr.deallocate(first, 1)
    assert mr.get_allocated_bytes() == 257
    assert mr.peak_bytes == 258
    mr.reset_peak()
    assert mr.peak_bytes == 257
    mr.deallocate(second, 257)


def test_upstream_chain_can_be_walked_to_its_source(device: Any) -> None:
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size=8 * MIB)
    assert isinstance(mr.upstream_mr, rmm.mr.PoolMemoryResource)
    assert isinstance(mr.upstream_mr.upstream_mr, ManagedMemoryResource)
    assert mr.managed_mr is mr.upstream_mr.upstream_mr
    assert mr.driver is device


def test_resources_are_rmm_resources(device: Any) -> None:
    for mr in (
        ManagedMemoryResource(device),
        SimulatedCudaMemoryResource(device),
        UvmResourceAdaptor(ManagedMemoryResource(device)),
    ):
        assert isinstance(mr, rmm.mr.DeviceMemoryResource)


def test_per_device_resource_takes_any_chain(chain: Any) -> None:
    rmm.mr.set_per_device_resource(0, chain.mr)
    assert rmm.mr.get_per_device_resource(0) is chain.mr


def dashboard_figures(mr: Any) -> tuple[int, int]:
    """Return used and total bytes as Dask's dashboard finds them.

    The rule of ``distributed/diagnostics/rmm.py``: the first resource down the chain that counts
    its bytes, the first that is RMM's pool, and the larger of both as the total.
    """
    used_bytes, pool_bytes, below = None, 0, mr
    while below is not None:
        if used_bytes is None and hasattr(below, "get_allocated_bytes"):
            used_bytes = below.get_allocated_bytes()
        if not pool_bytes and isinstance(below, rmm.mr.PoolMemoryResource):
            pool_bytes = below.pool_size()
        below = getattr(below, "upstream_mr", None)
    return used_bytes or 0, max(pool_bytes, used_bytes or 0)


def test_dask_dashboard_finds_used_and_total_bytes(device: Any) -> None:
    mr = rmm_uvm.managed_pool(driver=device, initial_pool_size=8 * MIB)
    buffer = rmm.DeviceBuffer(size=5000, mr=mr)
    assert dashboard_figures(mr) == (5000, 8 * MIB)
    del buffer
    assert dashboard_figures(mr) == (0, 8 * MIB)


def test_dask_dashboard_without_pool_shows_footprint_as_total(device: Any) -> None:
    mr = UvmResourceAdaptor(ManagedMemoryResource(device))
    buffer = rmm.DeviceBuffer(size=5000, mr=mr)
    assert dashboard_figures(mr) == (5000, 5000)
    del buffer
