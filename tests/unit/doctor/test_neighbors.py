# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What links carry, measured on simulated devices: rates, or reasons why there are none."""

from __future__ import annotations

from itertools import combinations

import pytest

import rmm_uvm
from rmm_uvm._lib.account import ManagedAccount
from rmm_uvm._lib.links import measure_links
from rmm_uvm.doctor import CudaFacts
from rmm_uvm.doctor import links as neighbors
from rmm_uvm.doctor.topology import DevicePair, Topology, TopologyDevice
from rmm_uvm.drivers import SimulatedDevice, UvmDriver
from rmm_uvm.errors import ConfigurationError, DriverError
from rmm_uvm.machine.device_info import Availability

MIB = 2**20
NAMES = ("to_device", "to_host", "from_neighbor", "to_neighbor")


def simulated(count: int, memory: str = "128MiB") -> list[SimulatedDevice]:
    """Return a device of each ordinal, each of which can reach all others."""
    return [
        rmm_uvm.simulated_device(memory, device=index, neighbors=count - 1)
        for index in range(count)
    ]


def of(count: int, *, peers: bool = True) -> Topology:
    """Return a topology of devices that are said to be peers, or not."""
    access = Availability(peers, "" if peers else "no direct link between them")
    return Topology(
        tuple(TopologyDevice(i, "simulated", "", 0, None) for i in range(count)),
        tuple(
            DevicePair(a, b, access, rates_reason=access.reason or "not measured")
            for a, b in combinations(range(count), 2)
        ),
    )


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMM_UVM_MANAGED_LIMIT", raising=False)


def test_topology_of_simulated_devices_measures_every_way() -> None:
    found = rmm_uvm.topology(drivers=simulated(3), measure=True)
    assert found.reason == found.remark == ""
    assert [found.neighbors(index) for index in range(3)] == [(1, 2), (0, 2), (0, 1)]
    for pair in found.pairs:
        assert pair.rates_reason == ""
        assert pair.rates is not None
        # The profile of an H200: 205 GB/s between GPUs, and 24 and 51 GB/s with the host.
        for rate in (pair.rates.to_first_bytes_per_second, pair.rates.to_second_bytes_per_second):
            assert 102e9 < rate < 410e9
    for device in found.devices:
        assert device.host_rates is not None
        assert 12e9 < device.host_rates.to_host_bytes_per_second < 48e9
        assert 25e9 < device.host_rates.to_device_bytes_per_second < 102e9
        assert device.free_bytes == device.total_bytes == 128 * MIB


def test_topology_not_measured_has_no_rates() -> None:
    found = rmm_uvm.topology(drivers=simulated(2))
    assert found.neighbors(0) == (1,)
    assert found.pairs[0].rates is None
    assert found.pairs[0].rates_reason == "not measured"


def test_topology_devices_that_cannot_reach_each_other_say_why() -> None:
    alone = [rmm_uvm.simulated_device("64MiB", device=index) for index in range(2)]
    found = rmm_uvm.topology(drivers=alone, measure=True)
    assert "does not exist" in found.reason
    assert found.pairs[0].rates_reason == found.pairs[0].peer_access.reason == found.reason
    assert found.devices[1].host_rates is not None


def test_topology_two_drivers_of_one_ordinal_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"ordinals \[0, 0\]"):
        rmm_uvm.topology(drivers=[rmm_uvm.simulated_device("64MiB") for _ in range(2)])


def test_topology_of_this_machine_is_an_answer_without_devices_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = CudaFacts(reason="libcuda.so.1 was not found")
    monkeypatch.setattr(neighbors.SystemProbe, "cuda", lambda _self: facts)
    for measure in (False, True):
        found = rmm_uvm.topology(measure=measure)
        assert found == Topology(reason="libcuda.so.1 was not found")


def test_topology_cap_nearly_used_up_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "4MiB")
    found = rmm_uvm.topology(drivers=simulated(2), measure=True)
    for reason in (found.pairs[0].rates_reason, found.devices[0].host_rates_reason):
        assert "RMM_UVM_MANAGED_LIMIT" in reason
    assert found.neighbors(0) == (1,)


def test_topology_cap_that_is_no_size_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "much")
    with pytest.raises(ConfigurationError, match="RMM_UVM_MANAGED_LIMIT"):
        rmm_uvm.topology(drivers=simulated(2), measure=True)


def test_measured_device_that_does_not_open_is_a_reason() -> None:
    drivers = simulated(2)

    def open_driver(index: int) -> UvmDriver:
        if index == 0:
            raise DriverError("no context on device 0")
        return drivers[index]

    found = neighbors.measured(of(2), open_driver)
    assert found.pairs[0].rates_reason == "no context on device 0"
    assert found.devices[0].host_rates_reason == "no context on device 0"
    assert found.devices[1].host_rates is not None


def test_measured_access_that_is_refused_after_all_is_no_neighbour() -> None:
    alone = [rmm_uvm.simulated_device("64MiB", device=index) for index in range(2)]
    found = neighbors.measured(of(2), alone.__getitem__)
    assert found.neighbors(0) == ()
    assert found.reason == found.pairs[0].peer_access.reason == found.pairs[0].rates_reason
    assert "does not exist" in found.reason


def test_measured_pairs_without_access_are_not_tried() -> None:
    found = neighbors.measured(of(2, peers=False), simulated(2).__getitem__)
    assert found.pairs[0].rates is None
    assert found.reason == "no direct link between them"


def test_measured_failure_of_one_pair_leaves_the_others() -> None:
    drivers = simulated(3)
    drivers[0].fail_call("measure_links", skip=1)  # after the link to the host
    found = neighbors.measured(of(3), drivers.__getitem__)
    assert "driver error" in found.pair(0, 1).rates_reason
    assert found.pair(0, 2).rates is not None


def test_measured_without_page_migration_is_a_reason() -> None:
    driver = rmm_uvm.simulated_device("64MiB", concurrent_managed_access=False)
    found = neighbors.measured(of(1), lambda _: driver)
    assert found.devices[0].host_rates is None
    assert found.devices[0].host_rates_reason == driver.info.concurrent_managed_access.reason


def test_measure_links_takes_less_under_a_cap_and_gives_it_back() -> None:
    (driver, _) = simulated(2)
    account = ManagedAccount(20 * MIB)
    rates = measure_links(driver, account, 1)
    assert set(rates) == {f"{name}_bytes_per_second" for name in NAMES}
    assert all(rates.values())
    assert account.used_bytes == 0


def test_measure_links_without_neighbour_measures_the_host() -> None:
    rates = measure_links(rmm_uvm.simulated_device("64MiB"), ManagedAccount())
    assert rates["to_device_bytes_per_second"] > 0
    assert rates["to_neighbor_bytes_per_second"] == rates["from_neighbor_bytes_per_second"] == 0


def test_measure_links_refusals_name_what_was_asked() -> None:
    driver = rmm_uvm.simulated_device("64MiB", neighbors=1)
    with pytest.raises(MemoryError, match="RMM_UVM_MANAGED_LIMIT"):
        measure_links(driver, ManagedAccount(7 * MIB), 1)
    driver.occupy_neighbor(1, 60 * MIB)
    with pytest.raises(MemoryError, match="device 1 with 8 MiB or more"):
        measure_links(driver, ManagedAccount(), 1)
    with pytest.raises(DriverError):
        driver.neighbor_load(1)


def test_neighbor_load_is_what_was_set_and_none_where_nothing_was() -> None:
    driver = rmm_uvm.simulated_device("64MiB", neighbors=2)
    driver.set_neighbor_load(1, kernel_fraction=0.5, link_fraction=0.25)
    expected = {"kernel_fraction": 0.5, "memory_fraction": None, "link_fraction": 0.25}
    assert driver.neighbor_load(1) == expected
    with pytest.raises(DriverError, match="not supported"):
        driver.neighbor_load(2)
    with pytest.raises(DriverError, match="device 3"):
        driver.set_neighbor_load(3, kernel_fraction=0.5)
