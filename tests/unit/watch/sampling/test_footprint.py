# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Chains of RMM: which figure tells their footprint, and following them when they are replaced."""

from __future__ import annotations

from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib.driver import LevelSource
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.mr import ManagedMemoryResource, SimulatedCudaMemoryResource, UvmResourceAdaptor
from rmm_uvm.watch.sampling import chain
from rmm_uvm.watch.sampling.chain import WatchedChain

MIB = 1 << 20


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("64MiB")


def install(mr: Any) -> Any:
    rmm.mr.set_per_device_resource(0, mr)
    return mr


def unbudgeted(device: SimulatedDevice) -> Any:
    return rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB", device_budget=None)


def test_chain_is_named_from_the_outermost(device: SimulatedDevice) -> None:
    install(rmm.mr.StatisticsResourceAdaptor(SimulatedCudaMemoryResource(device)))

    assert chain.chain_names(0) == (
        "StatisticsResourceAdaptor",
        "SimulatedCudaMemoryResource",
    )


def test_device_that_rmm_does_not_know_has_no_chain() -> None:
    assert chain.chain_names(7) == ()
    assert 7 not in chain.known_devices()
    assert chain.foreign_levels(7) is None


def test_driver_is_that_of_the_chain(device: SimulatedDevice) -> None:
    install(rmm.mr.StatisticsResourceAdaptor(SimulatedCudaMemoryResource(device)))
    assert chain.driver_of(0) is device
    assert chain.own_adaptor(0) is None

    install(rmm.mr.CudaMemoryResource())
    assert chain.driver_of(0) is None


@pytest.mark.parametrize(
    ("adaptor", "figure"),
    [
        (lambda mr: rmm.mr.TrackingResourceAdaptor(mr), "TrackingResourceAdaptor"),
        (lambda mr: rmm.mr.LimitingResourceAdaptor(mr, 32 * MIB), "LimitingResourceAdaptor"),
        (lambda mr: rmm.mr.StatisticsResourceAdaptor(mr), "StatisticsResourceAdaptor"),
    ],
)
def test_footprint_of_a_counting_adaptor_is_exact(
    device: SimulatedDevice, adaptor: Any, figure: str
) -> None:
    mr = install(adaptor(SimulatedCudaMemoryResource(device)))
    pointer = mr.allocate(4096)

    levels = chain.foreign_levels(0)

    assert levels is not None
    assert (levels.footprint_bytes, levels.managed_bytes) == (4096, 0)
    assert figure in levels.figure
    mr.deallocate(pointer, 4096)


def test_footprint_of_a_bare_pool_is_its_size(device: SimulatedDevice) -> None:
    install(rmm.mr.PoolMemoryResource(ManagedMemoryResource(device), 16 * MIB))

    levels = chain.foreign_levels(0)

    assert levels == chain.Levels(16 * MIB, 16 * MIB, "PoolMemoryResource.pool_size()")


def test_adaptor_above_a_pool_counts_and_one_below_does_not(device: SimulatedDevice) -> None:
    below = rmm.mr.StatisticsResourceAdaptor(ManagedMemoryResource(device))
    mr = install(rmm.mr.TrackingResourceAdaptor(rmm.mr.PoolMemoryResource(below, 16 * MIB)))
    pointer = mr.allocate(1000)

    levels = chain.foreign_levels(0)
    assert levels is not None
    assert levels.footprint_bytes == 1000
    assert levels.managed_bytes == 16 * MIB
    mr.deallocate(pointer, 1000)
    del mr

    install(rmm.mr.PoolMemoryResource(below, 8 * MIB))
    levels = chain.foreign_levels(0)
    assert levels is not None
    assert levels.footprint_bytes == 8 * MIB


def test_chain_that_tells_nothing_is_none(device: SimulatedDevice) -> None:
    install(SimulatedCudaMemoryResource(device))

    assert chain.foreign_levels(0) is None


class Sink:
    """Notes what a sampler would be told."""

    def __init__(self) -> None:
        self.sources: list[LevelSource | None] = []
        self.external: tuple[int | None, int | None] = (None, None)

    def set_levels(self, device_id: int, source: LevelSource | None) -> None:
        assert device_id == 0
        self.sources.append(source)

    def set_external_footprint(
        self, device_id: int, footprint_bytes: int | None, managed_bytes: int | None = None
    ) -> None:
        assert device_id == 0
        self.external = (footprint_bytes, managed_bytes)


def pool(device: SimulatedDevice) -> UvmResourceAdaptor:
    return rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB", prefetch="always")


def test_own_chain_is_told_once_and_not_again(device: SimulatedDevice) -> None:
    install(pool(device))
    sink, seen = Sink(), []
    chain = WatchedChain(0, sink, seen.append)

    assert chain.refresh()
    assert not chain.refresh()

    assert len(sink.sources) == len(seen) == 1
    assert chain.own
    assert not chain.foreign
    assert chain.prefetch == "always"


def test_own_chain_that_is_replaced_is_told_anew(device: SimulatedDevice) -> None:
    install(pool(device))
    sink = Sink()
    chain = WatchedChain(0, sink)
    chain.refresh()

    install(pool(device))
    assert chain.refresh()
    assert len(sink.sources) == 2
    install(rmm.mr.TrackingResourceAdaptor(SimulatedCudaMemoryResource(device)))
    assert chain.refresh()
    assert sink.sources[-1] is None
    assert sink.external == (0, 0)
    assert chain.foreign
    assert not chain.own
    assert chain.prefetch is None


def test_chain_keeps_no_pool_alive(device: SimulatedDevice) -> None:
    install(pool(device))
    chain = WatchedChain(0, Sink())
    chain.refresh()

    install(rmm.mr.CudaMemoryResource())

    assert device.statistics()["managed_bytes"] == 0
    chain.refresh()
    assert "StatisticsResourceAdaptor" in chain.foreign.reason


def test_device_without_a_chain_is_said_to_have_none() -> None:
    class AnyDevice(Sink):
        def set_external_footprint(self, device_id: int, *_: object) -> None:
            pass

    chain = WatchedChain(7, AnyDevice())
    chain.refresh()

    assert chain.foreign.reason == "RMM has no memory resource on device 7"


def test_chain_that_was_forgotten_is_not_looked_at(device: SimulatedDevice) -> None:
    install(pool(device))
    sink = Sink()
    chain = WatchedChain(0, sink)
    chain.refresh()
    chain.forget()

    install(pool(device))

    assert not chain.refresh()
    assert len(sink.sources) == 1
    assert chain.prefetch_skipped is not None


def test_skipped_prefetches_add_up_over_replaced_pools(device: SimulatedDevice) -> None:
    first = install(unbudgeted(device))
    first.deallocate(first.allocate(1000), 1000)  # before anybody watched
    chain = WatchedChain(0, Sink())
    chain.refresh()
    first.deallocate(first.allocate(1000), 1000)
    second = install(unbudgeted(device))
    chain.refresh()
    second.deallocate(second.allocate(1000), 1000)

    assert chain.prefetch_skipped is not None
    assert chain.prefetch_skipped["resident"] == 2


def test_chain_without_a_pool_of_ours_skips_nothing() -> None:
    chain = WatchedChain(0, Sink())
    chain.refresh()

    assert chain.prefetch_skipped is None
