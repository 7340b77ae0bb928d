# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The monitor and chains of resources: which are seen, followed and let go."""

from __future__ import annotations

import gc
import sys

import rmm

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.mr import SimulatedCudaMemoryResource, UvmResourceAdaptor
from rmm_uvm.recording.recorded import exact_peak_bytes
from rmm_uvm.watch.monitor import Monitor

from .monitors import MIB, Make


def test_any_rmm_chain_is_watched(make: Make) -> None:
    statistics = rmm.mr.StatisticsResourceAdaptor(
        SimulatedCudaMemoryResource(rmm_uvm.simulated_device("64MiB"))
    )
    rmm.mr.set_per_device_resource(0, statistics)
    with Monitor(on_finding=None, publish=False) as m:
        pointer = statistics.allocate(1000)
        assert m.sources["rmm_chain"]
        assert not m.sources["own_resources"]
        assert m.snapshot().footprint_bytes == 1000
        assert m.devices[0].chain[0] == "StatisticsResourceAdaptor"
        statistics.deallocate(pointer, 1000)
        assert m.snapshot().footprint_bytes == 0


def test_pool_that_is_replaced_is_let_go_and_the_new_one_followed() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    rmm.mr.set_per_device_resource(
        0, rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    )
    with Monitor(on_finding=None, publish=False) as m:
        m._tick()
        assert m.snapshot().managed_bytes == 16 * MIB
        rmm.mr.set_per_device_resource(0, rmm.mr.CudaMemoryResource())
        gc.collect()
        assert device.statistics()["managed_bytes"] == 0
        assert m.snapshot().footprint_bytes is None
        assert not m.sources["own_resources"]
        new = rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB")
        rmm.mr.set_per_device_resource(0, new)
        m._tick()
        assert m.snapshot().managed_bytes == 8 * MIB
        assert m.sources["own_resources"]
        assert m.devices[0].chain[0] == "UvmResourceAdaptor"


def test_new_pool_is_followed_where_the_driver_cannot_tell_its_free_memory() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    rmm.mr.set_per_device_resource(
        0, rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    )
    with Monitor(on_finding=None, publish=False) as m:
        m._tick()
        before = m.devices[0].capacity_bytes
        rmm.mr.set_per_device_resource(
            0, rmm.mr.StatisticsResourceAdaptor(rmm.mr.get_per_device_resource(0))
        )
        device.fail_call("memory", "out_of_memory")
        assert m.snapshot().managed_bytes == 16 * MIB
        assert m.devices[0].chain[0] == "StatisticsResourceAdaptor"
        assert m.devices[0].capacity_bytes == before
        device.cancel_failures()


def test_pool_on_another_simulated_device_is_said_to_be_unseen(device: SimulatedDevice) -> None:
    rmm.mr.set_per_device_resource(
        0, rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    )
    with Monitor(on_finding=None, publish=False) as m:
        rmm.mr.set_per_device_resource(
            0, rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
        )
        assert m.snapshot().managed_bytes == 8 * MIB
        assert "another simulated device" in m.sources["kernel_counters"].reason
        assert m.snapshot().host_to_device_bytes is None  # and not 0: it is not known
        m._tick()
    assert "another simulated device" in m.sources["kernel_counters"].reason
    assert "moved " not in str(m.report())
    assert "1. start a new monitor" in str(m.report())


def test_device_that_was_named_is_not_the_pools_and_one_that_was_given_is_meant(
    device: SimulatedDevice,
) -> None:
    pool = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    with Monitor(driver="simulated:64MiB", on_finding=None, publish=False) as named:
        rmm.mr.set_per_device_resource(0, pool)
        assert named.snapshot().host_to_device_bytes is None
        assert named.sources["kernel_counters"].reason.startswith("not asked for")
        assert named._tick() == ()  # nobody is told of what was asked for
    with Monitor(driver=device, on_finding=None, publish=False) as given:
        assert given.snapshot().host_to_device_bytes == 0
        assert given.sources["kernel_counters"]


def test_stopped_monitor_keeps_neither_driver_nor_pool(make: Make) -> None:
    device = rmm_uvm.simulated_device("64MiB")
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    with Monitor(on_finding=None, publish=False) as m:
        assert m.snapshot().prefetch_skipped is not None
    before = sys.getrefcount(device)
    assert m._session is not None
    kept = [kind for kind in map(type, gc.get_referents(m._session)) if kind is SimulatedDevice]
    assert kept == []
    m.start()
    assert sys.getrefcount(device) > before
    m.stop()
    assert sys.getrefcount(device) == before


def test_capacity_leaves_out_what_others_hold(device: SimulatedDevice) -> None:
    other = SimulatedCudaMemoryResource(device)
    pointer = other.allocate(20 * MIB)
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    with Monitor(on_finding=None, publish=False) as m:
        assert m.devices[0].capacity_bytes == 44 * MIB
        assert m.devices[0].total_bytes == 64 * MIB
    other.deallocate(pointer, 20 * MIB)


def test_snapshot_counts_prefetches_that_were_skipped_since_the_start(
    make: Make, device: SimulatedDevice
) -> None:
    pool: UvmResourceAdaptor = rmm_uvm.managed_pool(
        driver=device, initial_pool_size="16MiB", device_budget=None
    )
    rmm.mr.set_per_device_resource(0, pool)
    pool.deallocate(pool.allocate(1000), 1000)
    with make() as m:
        before = m.snapshot().prefetch_skipped
        pool.deallocate(pool.allocate(1000), 1000)
        after = m.snapshot().prefetch_skipped
        rmm.mr.set_per_device_resource(0, rmm.mr.CudaMemoryResource())
        assert m.snapshot().prefetch_skipped == after

    assert before is not None
    assert after is not None
    assert (before["resident"], after["resident"]) == (0, 1)


def peak_of(monitor: Monitor) -> int | None:
    return exact_peak_bytes(monitor.recording())


def test_peak_between_two_samples_is_told_and_nothing_is_said_not_to_be_allocated(
    make: Make, device: SimulatedDevice
) -> None:
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    m = make().start()
    assert peak_of(m) is None
    assert "in no sample was anything allocated" in str(m.report())
    pool.deallocate(pool.allocate(8 * MIB), 8 * MIB)
    assert peak_of(m) == 8 * MIB
    assert "at most 8.00 MiB" in str(m.report())
    assert "was anything allocated" not in str(m.report())
    pool.deallocate(pool.allocate(12 * MIB), 12 * MIB)
    m.stop()
    assert peak_of(m) == 12 * MIB


def test_peak_of_before_the_monitor_is_none_of_its(make: Make, device: SimulatedDevice) -> None:
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    pool.deallocate(pool.allocate(8 * MIB), 8 * MIB)
    m = make().start()
    pool.deallocate(pool.allocate(4 * MIB), 4 * MIB)
    assert peak_of(m) is None  # nobody knows how much of the 8 MiB was exceeded
    pool.reset_peak()
    pool.deallocate(pool.allocate(2 * MIB), 2 * MIB)
    assert peak_of(m) == 2 * MIB


def test_peak_of_a_pool_that_was_replaced_stays(make: Make, device: SimulatedDevice) -> None:
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    m = make().start()
    pool.deallocate(pool.allocate(8 * MIB), 8 * MIB)
    assert peak_of(m) == 8 * MIB
    new = rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB")
    rmm.mr.set_per_device_resource(0, new)
    new.deallocate(new.allocate(MIB), MIB)
    m.snapshot()
    assert peak_of(m) == 8 * MIB
