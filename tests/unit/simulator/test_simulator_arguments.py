# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The simulator's arguments: what cannot be used is named, and nothing has happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.simulator import Access, Simulator, load_machine

MIB = 1 << 20
MACHINE = load_machine("h200-pcie5")


def simulator_of(**values: Any) -> Simulator:
    return Simulator(MACHINE, **{"device_bytes": "64MiB", **values})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gpus": 1.5}, "gpus=1.5: use a whole number, 1 to 8"),
        ({"gpus": 0}, "gpus=0"),
        ({"gpus": 9}, "gpus=9"),
        ({"gpus": "2"}, "gpus='2'"),
        ({"gpus": True}, "gpus=True"),
        ({"gpus": 2, "links": [0]}, r"links=\[0\]: name for each of 2 GPUs a link, 0 to 1"),
        ({"gpus": 2, "links": [0, 2]}, "link=2"),
        ({"gpus": 2, "links": [0, -1]}, "link=-1"),
        ({"gpus": 2, "links": [0, 0.5]}, "link=0.5"),
        ({"driver": {"prefetch": True}}, "driver={'prefetch': True}: use DriverSettings"),
        ({"device_bytes": 3 * MIB}, "device_bytes is 3145728"),
        ({"host_bytes": -1}, "host_bytes"),
    ],
)
def test_simulator_of_what_cannot_be_names_it(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        simulator_of(**values)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ("h200-pcie5", r"machine='h200-pcie5': use load_machine\('h200-pcie5'\)"),
        (5, r"machine=5: use load_machine\('h200-pcie5'\)"),
    ],
)
def test_simulator_of_no_machine_says_how_to_get_one(machine: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Simulator(machine)


def test_simulator_takes_whole_numbers_of_any_type() -> None:
    simulator = simulator_of(gpus=np.int64(2), links=np.array([0, 0]))
    assert (simulator.gpus, type(simulator.gpus)) == (2, int)


Call = Callable[[Simulator, int], object]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, a: s.prefetch(-1, 4096), "address=-1: use a whole number"),
        (lambda s, a: s.prefetch(2**64, 4096), "address="),
        (lambda s, a: s.prefetch(float(a), 4096), "address="),
        (lambda s, a: s.prefetch(a, 4096, stream=-1), "stream=-1"),
        (lambda s, a: s.prefetch(a, 4096, stream=2**64), "stream="),
        (lambda s, a: s.prefetch(a, 4096, gpu=2), "gpu=2: use a whole number, 0 to 1"),
        (lambda s, a: s.prefetch(a, 4096, gpu=0.5), "gpu=0.5"),
        (lambda s, a: s.prefetch(a, 2**62), "do not lie inside one managed allocation"),
        (lambda s, a: s.discard(-4096, 4096), "address=-4096"),
        (lambda s, a: s.discard_and_prefetch(a, 4096, stream=1.5), "stream=1.5"),
        (lambda s, a: s.advise(a, 4096, "read"), "advice='read': use read_mostly"),
        (lambda s, a: s.advise(a, 4096, "accessed_by", gpu=-1), "gpu=-1"),
        (lambda s, a: s.kernel([Access(-1, 4096)]), "address=-1"),
        (lambda s, a: s.kernel([(a, 4096)]), "access .*: use Access"),
        (lambda s, a: s.kernel([Access(a, 4096, "sequential")]), "access .*: use Access"),
        (lambda s, a: s.kernel([], stream=-1), "stream=-1"),
        (lambda s, a: s.kernel([], gpu=7), "gpu=7"),
        (lambda s, a: s.kernel([], compute_seconds="abc"), "compute_seconds='abc': use seconds"),
        (lambda s, a: s.kernel([], compute_seconds=-1), "compute_seconds=-1"),
        (lambda s, a: s.kernel([], outstanding_faults=0), "outstanding_faults=0"),
        (lambda s, a: s.kernel([], outstanding_faults=2**32), "outstanding_faults="),
        (lambda s, a: s.kernel([], outstanding_faults=1.5), "outstanding_faults=1.5"),
        (lambda s, a: s.host_work(float("nan")), "seconds=nan"),
        (lambda s, a: s.host_work(1e9), "seconds="),
        (lambda s, a: s.synchronize(-1), "stream=-1"),
        (lambda s, a: s.free_managed(-1), "-0x1 is not managed memory"),
        (lambda s, a: s.free_managed("x"), "'x' is not managed memory"),
        (lambda s, a: s.free_device(a), "is not device memory"),
        (lambda s, a: s.allocate_device(4096, gpu=2), "gpu=2"),
        (lambda s, a: s.resident_bytes(a, 4096, gpu=2), "gpu=2"),
        (lambda s, a: s.free_bytes(gpu=-1), "gpu=-1"),
        (lambda s, a: s.allocate_managed("17TiB"), "a simulator has at most 16.00 TiB"),
        (lambda s, a: s.allocate_managed(2**63 - 1), "of managed memory beside 2.00 MiB"),
        (lambda s, a: s.allocate_managed(0), "nbytes"),
    ],
)
def test_call_with_what_cannot_be_names_it_and_does_nothing(call: Call, message: str) -> None:
    simulator = simulator_of(gpus=2)
    address = simulator.allocate_managed("2MiB")
    before = simulator.counters(), simulator.seconds

    with pytest.raises(ConfigurationError, match=message):
        call(simulator, address)

    assert (simulator.counters(), simulator.seconds) == before


def test_calls_at_the_bounds_are_done() -> None:
    simulator = simulator_of(gpus=8)
    address = simulator.allocate_managed("2MiB")
    simulator.prefetch(address, "2MiB", gpu=7, stream=2**64 - 1)
    simulator.kernel([Access(address, "2MiB")], gpu=7, outstanding_faults=2**20, stream=2**64 - 1)
    simulator.synchronize(2**64 - 1)
    assert simulator.resident_bytes(address, "2MiB", gpu=7) == 2 * MIB


def test_addresses_used_up_are_an_error_that_says_so() -> None:
    simulator = simulator_of()
    simulator._next_address = (1 << 53) - 2 * MIB  # as if all before had been allocated and freed
    address = simulator.allocate_managed("2MiB")
    simulator.kernel([Access(address, "2MiB")])

    with pytest.raises(ConfigurationError, match="the addresses of this simulator are used up"):
        simulator.allocate_managed(1)

    assert simulator.counters().managed_bytes == 2 * MIB


def test_advice_that_differs_in_every_block_is_kept() -> None:
    simulator = simulator_of(gpus=8)
    blocks = 600  # more than there were numbers for policies
    data = simulator.allocate_managed(blocks * 2 * MIB)
    simulator.cpu_touch(data, blocks * 2 * MIB)
    for number in range(blocks):
        block = data + number * 2 * MIB
        for gpu in range(8):
            if number >> gpu & 1:
                simulator.advise(block, "2MiB", "accessed_by", gpu=gpu)
        if number >= 512:
            simulator.advise(block, "2MiB", "preferred_location", gpu=None)
        elif number >= 256:
            simulator.advise(block, "2MiB", "preferred_location", gpu=3)
    simulator.kernel([Access(data + 255 * 2 * MIB, "2MiB")], gpu=6)  # accessed by all
    assert simulator.counters().to_device_bytes == 0
    assert simulator.counters().remote_bytes == 2 * MIB
    simulator.kernel([Access(data, "2MiB")], gpu=6)  # accessed by none
    assert simulator.counters().to_device_bytes == 2 * MIB
