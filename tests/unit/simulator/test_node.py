# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Several simulated GPUs: real programs with budgets beside each other, and what is refused."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest

import rmm_uvm
from rmm_uvm.errors import ConfigurationError, DriverError, NeighborWarning
from rmm_uvm.mr import ManagedAccount, ManagedMemoryResource, SimulatedCudaMemoryResource
from rmm_uvm.residency import Budget
from rmm_uvm.simulator import load_machine
from rmm_uvm.simulator.node import HOST, TOPOLOGIES, SimulatedNode

MIB = 1 << 20
DEVICE = 64 * MIB
BUDGET = 16 * MIB
PART = 4 * MIB


class Program:
    """Goes over parts, one and a half times its budget, each with bytes of its own."""

    parts_count = 6

    def __init__(self, node: SimulatedNode, gpu: int, **settings: Any) -> None:
        self.device = node.devices[gpu]
        self.mr = rmm_uvm.managed_pool(
            driver=self.device,
            device_budget=Budget(BUDGET, **settings),
            initial_pool_size=2 * BUDGET,
            maximum_pool_size=2 * BUDGET,
        )
        self.parts = [self.mr.allocate(PART) for _ in range(self.parts_count)]
        self.sums: list[int] = []
        for number, address in enumerate(self.parts):
            self.use(address, write=True)
            bytes_there(address)[:] = np.random.default_rng(number).integers(0, 255, PART, np.uint8)
            self.sums.append(int(bytes_there(address).sum(dtype=np.uint64)))

    def use(self, address: int, *, write: bool = False) -> None:
        rmm_uvm.touch((address, PART), mr=self.mr)
        self.device.touch(address, PART, write)

    def go_over(self, rounds: int) -> None:
        for _ in range(rounds):
            for address, expected in zip(self.parts, self.sums, strict=True):
                self.use(address)
                assert int(bytes_there(address).sum(dtype=np.uint64)) == expected

    def resident_bytes(self, where: str | int) -> int:
        return sum(self.device.resident_bytes(address, PART, where) for address in self.parts)


def bytes_there(address: int) -> Any:
    return np.frombuffer((ctypes.c_uint8 * PART).from_address(address), dtype=np.uint8)


def evicting(gpu: int) -> dict[str, Any]:
    return {"neighbors": [gpu], "policy": "lru", "background": False}


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_programs_that_evict_to_the_next_gpu_keep_their_data(gpus: int) -> None:
    node = rmm_uvm.simulated_node(gpus, DEVICE, backing=True)
    programs = [Program(node, gpu, **evicting((gpu + 1) % gpus)) for gpu in range(gpus)]
    for program in programs:
        program.go_over(2)
    for gpu, program in enumerate(programs):
        found = program.device.statistics()
        there = (gpu + 1) % gpus
        assert program.resident_bytes(there) == 8 * MIB
        assert found["neighbor_bytes"] >= 8 * MIB
        assert found["device_to_host_bytes"] == found["host_page_bytes"] == 0
        assert node.traffic()[gpu, there].nbytes > 0
        assert node.traffic()[gpu, HOST].nbytes == 0
    assert node.traffic()[0, gpus - 1].nbytes > 0  # back


def test_owner_that_allocates_everything_at_once_loses_nothing_for_anyone() -> None:
    node = rmm_uvm.simulated_node(2, DEVICE, backing=True)
    guest = Program(node, 0, **evicting(1))
    assert guest.resident_bytes(1) == 8 * MIB
    owner = SimulatedCudaMemoryResource(node.devices[1])
    everything = owner.allocate(DEVICE)
    assert guest.resident_bytes(1) == 0
    assert guest.resident_bytes(HOST) == 8 * MIB
    assert guest.device.statistics()["evicted_bytes"] == 8 * MIB
    assert guest.device.migrated_bytes()[1] == 8 * MIB
    assert node.devices[1].migrated_bytes() == (0, 0)
    guest.go_over(2)
    owner.deallocate(everything, DEVICE)
    guest.go_over(2)
    assert guest.resident_bytes(1) > 0  # it goes there again


def test_owner_with_managed_memory_takes_its_own_back() -> None:
    node = rmm_uvm.simulated_node(2, DEVICE, backing=True)
    guest = Program(node, 0, **evicting(1))
    owner = ManagedMemoryResource(node.devices[1], prefetch="never", account=ManagedAccount())
    data = owner.allocate(DEVICE)
    node.devices[1].touch(data, DEVICE, write=True)
    assert node.devices[1].resident_bytes(data, DEVICE) == DEVICE
    assert node.devices[1].statistics()["lent_bytes"] == 0
    guest.go_over(1)
    assert node.devices[1].resident_bytes(data, DEVICE) == DEVICE  # there is no room to go to
    owner.deallocate(data, DEVICE)


def test_storm_of_owners_beside_running_programs_loses_nothing() -> None:
    node = rmm_uvm.simulated_node(4, DEVICE, backing=True)
    programs = [
        Program(node, gpu, neighbors=[(gpu + 2) % 4], policy="lru", background=True)
        for gpu in range(2)
    ]
    ended = threading.Event()
    failed: list[BaseException] = []

    def run(program: Program) -> None:
        try:
            program.go_over(20)
        except BaseException as error:
            failed.append(error)

    def storm(gpu: int) -> None:
        while not ended.is_set():
            node.occupy(gpu, DEVICE)
            node.occupy(gpu, 0)

    owners = [threading.Thread(target=storm, args=(gpu,)) for gpu in (2, 3)]
    threads = [threading.Thread(target=run, args=(program,)) for program in programs]
    for thread in (*owners, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    for thread in owners:
        thread.join()
    assert not failed
    for program in programs:
        program.go_over(1)
    assert not any(node.devices[gpu].statistics()["managed_bytes"] for gpu in (2, 3))


def test_gpu_that_cannot_be_reached_takes_nothing_and_a_missing_one_is_refused() -> None:
    node = rmm_uvm.simulated_node(4, DEVICE, "pairs", backing=True)
    with pytest.warns(NeighborWarning, match="GPUs 1 and 2 have no peer access"):
        alone = Program(node, 1, **evicting(2)).mr.managed_mr.residency
    assert (alone.neighbors, alone.refused_neighbors) == (
        (),
        [node.devices[1].open_neighbor(2).reason],
    )
    assert "GPUs 1 and 2 have no peer access" in alone.refused_neighbors[0]
    with pytest.raises(ConfigurationError, match="there is no device 4"):
        Program(node, 1, **evicting(4))
    assert node.devices[2].open_neighbor(3).available
    pcie = rmm_uvm.simulated_node(2, DEVICE, "pcie")
    assert "PCIe only" in pcie.devices[0].open_neighbor(1).reason


def test_neighbours_program_is_slower_beside_a_link_that_is_used() -> None:
    def seconds(links: list[int]) -> float:
        node = rmm_uvm.simulated_node(2, DEVICE, "pcie", links=links)
        ours, theirs = (
            ManagedMemoryResource(device, prefetch="never", account=ManagedAccount())
            for device in node.devices
        )
        data = [mr.allocate(DEVICE) for mr in (ours, theirs)]
        for device, address in zip(node.devices, data, strict=True):
            device.cpu_touch(address, DEVICE, write=True)
        begin = node.synchronize()
        for offset in range(0, DEVICE, 8 * MIB):
            for device, address in zip(node.devices, data, strict=True):
                device.prefetch(address + offset, 8 * MIB)
                device.compute(100e-6)
        after = node.devices[1].statistics()["modelled_ns"] - begin
        for mr, address in zip((ours, theirs), data, strict=True):
            mr.deallocate(address, DEVICE)
        return after / 1e9

    alone, beside = seconds([0, 1]), seconds([0, 0])
    assert alone > 8 * 100e-6
    assert beside > 1.05 * alone


def test_machine_sets_the_rate_between_gpus() -> None:
    busy_ns = []
    for rate in (100.0, 200.0):
        machine = load_machine("h200-pcie5").replace(peer_bytes_per_ns=rate, copy_ns=0.0)
        node = rmm_uvm.simulated_node(2, DEVICE, machine=machine, backing=True)
        Program(node, 0, **evicting(1))
        assert node.traffic()[0, 1].nbytes > 0
        busy_ns.append(node.traffic()[0, 1].busy_ns)
    assert busy_ns[0] == pytest.approx(2 * busy_ns[1])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"gpus": 0}, "gpus=0: use a whole number, 1 to 8"),
        ({"gpus": 9}, "gpus=9: use a whole number, 1 to 8"),
        ({"gpus": True}, "gpus=True"),
        ({"topology": "ring"}, "topology='ring': use one of 'nvswitch', 'pairs', 'pcie'"),
        ({"topology": None}, "topology=None"),
        ({"memory": "3MiB"}, "a multiple of 2 MiB"),
        ({"memory": 0}, "memory=0: a size must be greater than 0"),
        ({"links": [0]}, "name for each of 2 GPUs a link, 0 to 1"),
        ({"links": [0, 2]}, "link=2"),
        ({"machine": "h200-pcie5"}, "use load_machine"),
    ],
)
def test_node_that_cannot_be_is_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        rmm_uvm.simulated_node(**arguments)


def test_gpu_that_is_not_there_cannot_be_occupied() -> None:
    node = rmm_uvm.simulated_node(2, DEVICE)
    with pytest.raises(ConfigurationError, match="gpu=2: use a whole number, 0 to 1"):
        node.occupy(2, 0)
    with pytest.raises(MemoryError, match="GPU 1"):
        node.occupy(1, DEVICE + 1)


def test_negative_time_of_a_kernel_is_refused() -> None:
    device = rmm_uvm.simulated_node(1, DEVICE).devices[0]
    device.compute(0.25)
    assert device.statistics()["modelled_ns"] == pytest.approx(0.25e9, rel=1e-3)
    for seconds in (-1.0, float("nan")):
        with pytest.raises(DriverError, match="invalid"):
            device.compute(seconds)


def test_topologies_are_listed() -> None:
    assert set(TOPOLOGIES) == {"nvswitch", "pairs", "pcie"}


def test_memory_that_came_back_leaves_its_chunk_which_costs_nothing_to_take() -> None:
    node = rmm_uvm.simulated_node(2, DEVICE, backing=True)
    guest, owner = Program(node, 0, **evicting(1)), node.devices[1]
    guest.use(guest.parts[0])
    lent_bytes, there_bytes = owner.statistics()["lent_bytes"], guest.resident_bytes(1)
    assert lent_bytes >= there_bytes + PART
    assert owner.memory()[0] == DEVICE - lent_bytes  # free memory does not show it
    before = guest.device.migrated_bytes()
    node.occupy(1, DEVICE - there_bytes)
    assert guest.device.migrated_bytes() == before
    assert guest.resident_bytes(1) == there_bytes
