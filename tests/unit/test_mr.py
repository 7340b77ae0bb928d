# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The resources' own arguments, counts and prefetches; the contract suite has the rest."""

from __future__ import annotations

import importlib
import pickle
from typing import Any

import polars
import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.mr import (
    ManagedAccount,
    ManagedMemoryResource,
    ManagedPool,
    Prefetcher,
    SimulatedCudaMemoryResource,
    UvmResourceAdaptor,
)

MIB = 1 << 20
BLOCK_BYTES = 2 * MIB


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("256MiB")


def chain(
    device: SimulatedDevice, prefetch: Any = "auto", slab_mib: int = 32
) -> UvmResourceAdaptor:
    upstream = ManagedMemoryResource(device, prefetch=prefetch, account=ManagedAccount())
    pool = rmm.mr.PoolMemoryResource(upstream, slab_mib * MIB, 1024 * MIB)
    return UvmResourceAdaptor(pool, prefetch=prefetch)


def test_adaptor_needs_managed_memory_below_it(device: SimulatedDevice) -> None:
    with pytest.raises(ValueError, match="ends in another source"):
        UvmResourceAdaptor(rmm.mr.PoolMemoryResource(SimulatedCudaMemoryResource(device), MIB, MIB))


@pytest.mark.parametrize("make", [ManagedMemoryResource, chain])
def test_unknown_mode_is_refused(device: SimulatedDevice, make: Any) -> None:
    with pytest.raises(ValueError, match="'auto', 'always' or 'never'"):
        make(device, prefetch="maybe")


@pytest.mark.parametrize("wrong", [None, "simulated", 0])
def test_driver_must_be_a_driver(wrong: Any) -> None:
    with pytest.raises(TypeError):
        ManagedMemoryResource(wrong)
    with pytest.raises(TypeError):
        SimulatedCudaMemoryResource(wrong)
    with pytest.raises(TypeError):
        Prefetcher(wrong)


def test_stream_that_is_none_is_refused(device: SimulatedDevice) -> None:
    mr: Any
    for mr in (ManagedMemoryResource(device), chain(device)):
        pointer = mr.allocate(1000)
        with pytest.raises(TypeError, match="stream"):
            mr.allocate(1000, None)
        with pytest.raises(TypeError, match="stream"):
            mr.deallocate(pointer, 1000, None)
        mr.deallocate(pointer, 1000)


@pytest.mark.parametrize("nbytes", [2**64 - 1, 2**64 - 255, 2**64 - 256, 2**63])
def test_absurd_size_is_refused_before_the_pool_rounds_it_to_nothing(
    device: SimulatedDevice, nbytes: int
) -> None:
    mr = chain(device)
    kept = mr.allocate(MIB)
    with pytest.raises(MemoryError, match="asked"):
        mr.allocate(nbytes)
    assert mr.get_allocated_bytes() == MIB
    others = [mr.allocate(256) for _ in range(2)]
    assert len({*others, kept}) == 3
    for pointer in others:
        mr.deallocate(pointer, 256)
    mr.deallocate(kept, MIB)


@pytest.mark.parametrize("make", [ManagedMemoryResource, SimulatedCudaMemoryResource])
@pytest.mark.parametrize("nbytes", [2**64 - 1, 2**64 - 4096, 2**63])
def test_absurd_size_is_out_of_memory(device: SimulatedDevice, make: Any, nbytes: int) -> None:
    with pytest.raises(MemoryError):
        make(device).allocate(nbytes)
    assert device.statistics()["managed_bytes"] == device.statistics()["device_bytes"] == 0


def test_auto_issues_nothing_while_everything_stays_resident(device: SimulatedDevice) -> None:
    mr = chain(device)
    for _ in range(10):
        mr.deallocate(mr.allocate(5 * MIB), 5 * MIB)
    statistics = mr.statistics()
    assert statistics["prefetch_calls"] == statistics["discard_calls"] == 0
    assert statistics["skipped"]["resident"] == 10
    assert statistics["slab_prefetched_bytes"] == 32 * MIB


def test_auto_brings_evicted_memory_back_without_copying_it(device: SimulatedDevice) -> None:
    mr = chain(device)
    pointer = mr.allocate(4 * BLOCK_BYTES)
    device.touch(pointer, 4 * BLOCK_BYTES, write=True)
    device.prefetch(pointer, 4 * BLOCK_BYTES, where="host")
    mr.deallocate(pointer, 4 * BLOCK_BYTES)

    epoch = mr.managed_mr.residency.epoch
    again = mr.allocate(4 * BLOCK_BYTES)

    assert epoch == 2  # bytes were seen to leave
    assert again == pointer
    assert device.migrated_bytes()[0] == 0
    assert device.resident_bytes(again, 4 * BLOCK_BYTES) == 4 * BLOCK_BYTES
    assert mr.statistics()["discarded_bytes"] == 4 * BLOCK_BYTES
    mr.deallocate(again, 4 * BLOCK_BYTES)


def test_always_prefetches_each_allocation(device: SimulatedDevice) -> None:
    mr = chain(device, "always")
    for _ in range(3):
        mr.deallocate(mr.allocate(MIB), MIB)
    assert mr.statistics()["prefetch_calls"] == 3
    assert mr.statistics()["prefetched_bytes"] == 3 * MIB


def test_never_leaves_everything_to_faults(device: SimulatedDevice) -> None:
    mr = chain(device, "never")
    mr.deallocate(mr.allocate(MIB), MIB)
    assert mr.statistics()["skipped"]["mode_never"] == 2  # the slab and the allocation
    assert device.statistics()["resident_bytes"] == 0


def test_failing_prefetch_is_counted_and_the_allocation_succeeds(device: SimulatedDevice) -> None:
    mr = chain(device, "always")
    device.fail_call("prefetch", "driver_error")
    pointer = mr.allocate(MIB)
    assert mr.statistics()["failed_calls"] == 1
    assert mr.statistics()["last_failure"] == "injected prefetch: driver error"
    mr.deallocate(pointer, MIB)


def test_failing_discard_falls_back_to_prefetch(device: SimulatedDevice) -> None:
    mr = chain(device)
    pointer = mr.allocate(4 * BLOCK_BYTES)
    device.touch(pointer, 4 * BLOCK_BYTES, write=True)
    device.prefetch(pointer, 4 * BLOCK_BYTES, where="host")
    mr.deallocate(pointer, 4 * BLOCK_BYTES)
    device.fail_call("discard_and_prefetch", "driver_error")

    again = mr.allocate(4 * BLOCK_BYTES)

    assert device.resident_bytes(again, 4 * BLOCK_BYTES) == 4 * BLOCK_BYTES
    assert mr.statistics()["discarded_bytes"] == 0
    assert mr.statistics()["failed_calls"] == 1
    mr.deallocate(again, 4 * BLOCK_BYTES)


def test_allocation_larger_than_the_device_is_not_prefetched() -> None:
    device = rmm_uvm.simulated_device("16MiB")
    mr = chain(device, slab_mib=64)
    pointer = mr.allocate(20 * MIB)
    assert mr.statistics()["skipped"]["larger_than_device"] == 1
    mr.deallocate(pointer, 20 * MIB)


def test_slab_on_a_full_device_says_that_nothing_is_free() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    other = rmm_uvm.mr.SimulatedCudaMemoryResource(device)
    pointer = other.allocate(61 * MIB)
    assert chain(device).statistics()["skipped"]["no_free_memory"] == 1
    other.deallocate(pointer, 61 * MIB)


def test_slab_bytes_follow_the_pool(device: SimulatedDevice) -> None:
    mr = chain(device)
    assert mr.managed_mr.slab_bytes == 32 * MIB
    pointer = mr.allocate(40 * MIB)
    assert mr.managed_mr.slab_bytes >= 72 * MIB
    assert mr.managed_mr.slab_bytes == device.statistics()["managed_bytes"]
    mr.deallocate(pointer, 40 * MIB)


# --- made by name, as cudf-polars does -----------------------------------------------------------


def create_memory_resource(qualname: str, options: dict[str, Any] | None) -> Any:
    """Make a resource as ``cudf_polars.utils.config.MemoryResourceConfig`` of 26.10 does.

    A dictionary with the key "qualname" among the options is a resource (or whatever it names) of
    its own.
    """
    arguments = {
        name: create_memory_resource(value["qualname"], value.get("options"))
        if isinstance(value, dict) and "qualname" in value
        else value
        for name, value in (options or {}).items()
    }
    module, _, name = qualname.rpartition(".")
    return getattr(importlib.import_module(module), name)(**arguments)


def test_managed_pool_can_be_made_by_name_from_plain_options() -> None:
    options = {
        "initial_pool_size": "32MiB",
        "maximum_pool_size": 96 * MIB,
        "prefetch": "always",
        "driver": "simulated:64MiB",
    }
    options = pickle.loads(pickle.dumps(options))
    mr = create_memory_resource("rmm_uvm.mr.ManagedPool", options)
    assert type(mr) is ManagedPool
    assert isinstance(mr, UvmResourceAdaptor)
    assert mr.upstream_mr.pool_size() == 32 * MIB
    assert mr.prefetch == "always"


def test_engine_of_polars_hands_on_the_pool_that_it_is_given() -> None:
    # What it hands on, cudf-polars makes current for the query; without cuDF it is not called.
    pool = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    assert polars.GPUEngine(memory_resource=pool).memory_resource is pool
    assert polars.GPUEngine().memory_resource is None  # it takes none that is installed
    name = "rmm_uvm.mr.ManagedPool"
    assert polars.GPUEngine(memory_resource_config=name).config["memory_resource_config"] == name


def test_managed_pool_by_name_takes_its_driver_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    mr = create_memory_resource("rmm_uvm.mr.ManagedPool", {"initial_pool_size": "8MiB"})
    assert mr.driver.info.total_bytes == 64 * MIB


def test_whole_chain_can_be_made_by_nested_names() -> None:
    mr = create_memory_resource(
        "rmm_uvm.mr.UvmResourceAdaptor",
        {
            "prefetch": "never",
            "upstream_mr": {
                "qualname": "rmm.mr.PoolMemoryResource",
                "options": {
                    "initial_pool_size": 8 * MIB,
                    "maximum_pool_size": 64 * MIB,
                    "upstream_mr": {
                        "qualname": "rmm_uvm.mr.ManagedMemoryResource",
                        "options": {
                            "driver": {
                                "qualname": "rmm_uvm.simulated_device",
                                "options": {"memory": "64MiB"},
                            }
                        },
                    },
                },
            },
        },
    )
    mr.deallocate(mr.allocate(1000), 1000)
    assert mr.driver.info.simulated


def test_managed_pool_by_name_refuses_unknown_options() -> None:
    with pytest.raises(TypeError, match="pool_size"):
        create_memory_resource("rmm_uvm.mr.ManagedPool", {"pool_size": "1GiB"})
