# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Who is whose neighbour, on machines of every kind: what CUDA and NVML tell, in plain values."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from typing import Any

import pytest

from rmm_uvm.doctor import CudaFacts, DeviceFacts, PairFacts
from rmm_uvm.doctor.topology import Topology, describe

GIB = 2**30
REFUSED = "the chipset does not support it"


def device(index: int, **changes: Any) -> DeviceFacts:
    usual = DeviceFacts(
        index=index,
        name="NVIDIA H200",
        uuid=f"{index:032}",
        compute_capability=(9, 0),
        total_bytes=139 * GIB,
        free_bytes=(100 + index) * GIB,
        managed_memory=True,
        concurrent_managed_access=True,
        pageable_memory_access=False,
        host_page_tables=False,
        legacy_ipc=True,
    )
    return replace(usual, **changes)


def machine(*devices: DeviceFacts, peers: bool = True, told: PairFacts | None = None) -> Topology:
    """Describe devices that are all peers or none, each pair as NVML tells."""
    indexes = [each.index for each in devices]
    return describe(
        CudaFacts(
            devices=devices,
            peers=frozenset(permutations(indexes, 2)) if peers else frozenset(),
            pairs={pair: told for pair in combinations(indexes, 2)} if told else {},
        )
    )


def refusal(found: Topology) -> str:
    """Return the one reason of a machine of two devices, checked to be everywhere."""
    (pair,) = found.pairs
    assert not pair.peer_access
    assert pair.peer_access.reason == pair.rates_reason == found.reason
    assert found.neighbors(0) == found.neighbors(1) == ()
    return found.reason


def test_describe_two_peers_are_each_others_neighbours() -> None:
    found = machine(device(0), device(1, kernel_fraction=0.5), told=PairFacts(has_nvlink=True))
    assert found.reason == found.remark == ""
    assert (found.neighbors(0), found.neighbors(1)) == ((1,), (0,))
    assert found.pair(1, 0).link == "NVLink"
    assert found.devices[1].free_bytes == 101 * GIB
    assert found.devices[1].kernel_fraction == 0.5
    assert found.pairs[0].rates is None
    assert found.pairs[0].rates_reason == found.devices[0].host_rates_reason == "not measured"


@pytest.mark.parametrize(
    ("told", "link"), [(PairFacts(has_nvlink=False), "PCIe"), (PairFacts(), ""), (None, "")]
)
def test_describe_peers_without_nvlink_are_neighbours_all_the_same(told: Any, link: str) -> None:
    found = machine(device(0), device(1), told=told)
    assert found.neighbors(0) == (1,)
    assert found.pairs[0].link == link


def test_describe_access_one_way_only_is_none() -> None:
    facts = CudaFacts(devices=(device(0), device(1)), peers=frozenset({(0, 1)}))
    assert refusal(describe(facts)) == "no direct link between them"


def test_describe_no_device_says_why() -> None:
    assert describe(CudaFacts(reason="libcuda.so.1 was not found")).reason == (
        "libcuda.so.1 was not found"
    )
    assert describe(CudaFacts()) == Topology(reason="no CUDA device")


def test_describe_one_device_has_no_neighbour() -> None:
    found = machine(device(0))
    assert found.reason == "there is one device only"
    assert found.pairs == ()
    assert found.neighbors(0) == ()


def test_describe_one_mig_instance_is_named() -> None:
    found = machine(device(0, is_mig=True))
    assert found.reason == "there is one device only, an instance of a GPU that MIG divides"
    assert found.devices[0].is_mig


def test_describe_mig_instance_beside_a_gpu_has_no_peers() -> None:
    found = machine(device(0), device(1, is_mig=True), peers=False, told=PairFacts(refusal=REFUSED))
    assert refusal(found) == "an instance of a GPU that MIG divides has no peers"


def test_describe_refusal_that_nvml_explains_is_passed_on() -> None:
    found = machine(device(0), device(1), peers=False, told=PairFacts(refusal=REFUSED))
    assert refusal(found) == f"no peer access: {REFUSED}"


def test_describe_nvlink_that_cuda_refuses_blames_the_container() -> None:
    found = machine(device(0), device(1), peers=False, told=PairFacts(has_nvlink=True))
    assert "container or virtual machine" in refusal(found)


def test_describe_different_models_are_named() -> None:
    found = machine(device(0), device(1, name="NVIDIA L4"), peers=False)
    assert refusal(found) == "no peer access between different models (NVIDIA H200, NVIDIA L4)"


def test_describe_different_models_with_access_are_neighbours() -> None:
    assert machine(device(0), device(1, name="NVIDIA L4")).neighbors(0) == (1,)


def test_describe_peer_without_page_migration_is_no_neighbour() -> None:
    found = machine(device(0), device(1, concurrent_managed_access=False))
    assert refusal(found) == "device 1 has no concurrent managed access"


def test_describe_nvlink_pairs_reach_only_their_partner() -> None:
    devices = tuple(device(index) for index in range(4))
    peers = frozenset({(0, 1), (1, 0), (2, 3), (3, 2)})
    found = describe(CudaFacts(devices=devices, peers=peers))
    assert [found.neighbors(index) for index in range(4)] == [(1,), (0,), (3,), (2,)]
    assert found.reason == ""
    assert found.pair(0, 2).peer_access.reason == "no direct link between them"


def test_describe_more_than_eight_peers_without_switch_is_remarked() -> None:
    nine, ten = ([device(index) for index in range(count)] for count in (9, 10))
    pcie, nvlink = PairFacts(has_nvlink=False), PairFacts(has_nvlink=True)
    assert machine(*nine, told=pcie).remark == ""  # eight peers each
    assert machine(*ten, told=nvlink).remark == ""  # that takes a switch
    found = machine(*ten, told=pcie)
    assert found.remark.startswith("a device has 9 peers; without NVSwitch CUDA connects it to 8")
    assert len(found.neighbors(0)) == 9


def test_topology_unknown_pair_raises() -> None:
    with pytest.raises(KeyError):
        machine(device(0)).pair(0, 1)
