# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""benchmarks/training/caching.py, run: torch's CUDA side is a fake, memory is simulated.

The model is a step that allocates, uses and frees, through whichever allocator torch would have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import rmm
import torch

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.integrations.wiring import Wiring

from ...scenarios.residency_scripts import script
from ...support.fake_torch_cuda import FakeTorchCuda

caching = script("training/caching")
trainers = script("training/caching_trainers")
verdicts = script("training/caching_verdicts")
MIB = 1 << 20
TENSOR_BYTES = 4 * MIB
TENSORS = 12  # of a step: each lives with the one after it, and two for good
PEAK_BYTES = 4 * TENSOR_BYTES


@dataclass
class Machine:
    """A simulated device and torch's fake: who allocates, frees and uses."""

    cuda: FakeTorchCuda
    device: Any
    wired: int = 0
    sizes: dict[int, int] = field(default_factory=dict)

    def allocate(self) -> int:
        if self.wired:
            mr = rmm.mr.get_per_device_resource(0)
            address = int(mr.allocate(TENSOR_BYTES))
            self.sizes[address] = TENSOR_BYTES
        elif self.cuda.routed:
            address = self.cuda.allocate(TENSOR_BYTES)
        else:
            return 0  # torch's own memory: none of ours
        return address

    def free(self, address: int) -> None:
        if self.wired:
            rmm.mr.get_per_device_resource(0).deallocate(address, self.sizes.pop(address))
        elif address:
            self.cuda.free(address)

    def use(self, *addresses: int) -> None:
        """Announce what a kernel uses, as hooks would, and let it use that."""
        there = [address for address in addresses if address]
        for announce in self.announces:
            announce([(address, TENSOR_BYTES, address) for address in there])
        for address in there:
            self.device.touch(address, TENSOR_BYTES, write=True)

    announces: list[Any] = field(default_factory=list)


class Model:
    """A step of training: what it keeps lives from the first step to the end."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.model = None
        self.kept: list[int] = []

    def step(self) -> torch.Tensor:
        machine = self.machine
        if not self.kept:
            self.kept = [machine.allocate() for _ in range(2)]
        before = machine.allocate()
        for _ in range(TENSORS):
            after = machine.allocate()
            # Two kernels, each of what fits past the edge, too.
            machine.use(*self.kept)
            machine.use(before, after)
            machine.free(before)
            before = after
        machine.free(before)
        return torch.zeros(())

    def __del__(self) -> None:
        for address in self.kept:
            self.machine.free(address)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine on which both children of the script can run."""
    fake = FakeTorchCuda()
    fake.install(monkeypatch)
    device = rmm_uvm.simulated_device(256 * MIB)
    one = Machine(fake, device)
    before = rmm.mr.get_per_device_resource(0)

    def wire(_library: str) -> Wiring:
        one.wired += 1
        return Wiring("torch", active=True, reason="a fake")

    def announcing(prefetcher: Any, _device: int) -> Any:
        one.announces = [prefetcher.touch_all]
        return prefetcher.touch_all

    nothing = SimpleNamespace(
        synchronize=lambda *_: None,
        reset_peak_memory_stats=lambda *_: None,
        max_memory_allocated=lambda *_: PEAK_BYTES,
        max_memory_reserved=lambda *_: PEAK_BYTES + 4 * MIB,
    )
    for name, call in vars(nothing).items():
        monkeypatch.setattr(torch.cuda, name, call)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None, raising=False)
    monkeypatch.setattr(trainers, "wire", wire)
    monkeypatch.setattr("rmm_uvm.torch.memory.choose_driver", lambda *_: device)
    monkeypatch.setattr("rmm_uvm.torch.memory.announcing", announcing)
    monkeypatch.setattr("rmm_uvm.torch.announcements.announcing", announcing)
    monkeypatch.setattr(rmm_uvm, "cuda_driver", lambda _: device)
    models = caching.models
    monkeypatch.setattr(models, "make", lambda *_, **__: Model(one))
    yield one
    rmm.mr.set_per_device_resource(0, before)
    assert not fake.mistakes


def rows_of(machine: Machine, child: str, steps: int = 3) -> list[dict[str, Any]]:
    kind = trainers.Counting if child == caching.ON else trainers.Uncached
    rows: list[dict[str, Any]] = []
    native = None if child == caching.ON else (PEAK_BYTES, PEAK_BYTES + 4 * MIB)
    trainer = kind("gpt2", "bf16", 0.5, machine.device)
    caching.rows_of(child, trainer, [0.0, 1.3], steps, native, rows.append)
    machine.announces = []
    return rows


def test_caching_on_the_simulated_device_trades_faults_for_migrations(machine: Machine) -> None:
    rows = [*rows_of(machine, caching.ON), *rows_of(machine, caching.OFF)]
    at = {(row["factor"], row["way"]): row for row in rows}
    assert list(at) == [
        (0.0, "native"),
        *[(0.0, "on"), (0.0, "on, ours"), (1.3, "on"), (1.3, "on, ours")],
        *[(0.0, "off"), (1.3, "off")],
    ]
    # What fits: used again where its pages are, or new at each allocation.
    assert at[0.0, "on"]["gpu_faults"] == 0
    assert at[0.0, "off"]["gpu_faults"] > 0
    assert at[1.3, "on"]["to_host_bytes"] > at[1.3, "off"]["to_host_bytes"]
    assert at[1.3, "on"]["evictions"] > 0
    for row in rows:
        caching.show(row)
    found = verdicts.verdicts_of(rows)
    assert found["everything fits: faults, without caching / with, geometric mean"]["reached"]
    assert found["1.3x: bytes, with caching / without, geometric mean"]["reached"]


def test_without_caching_nothing_is_held_beside_what_lives(machine: Machine) -> None:
    rows = rows_of(machine, caching.OFF)
    assert machine.wired == 1  # torch's allocator is changed once
    for row in rows:
        assert row["peak_bytes"] == row["reserved_bytes"] == PEAK_BYTES
        assert row["left_bytes"] == 0
        assert row["residency"]["policy"] == "fifo"


def test_torch_that_cannot_be_wired_ends_the_child(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Wiring("torch", active=False, reason="torch sees no GPU")
    monkeypatch.setattr(trainers, "wire", lambda _: refused)
    with pytest.raises(SystemExit, match="torch sees no GPU"):
        rows_of(machine, caching.OFF)


def test_faults_that_nobody_may_count_are_not_known(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = rmm_uvm.simulated_device(256 * MIB, counters=False)
    trainer = trainers.Counting("gpt2", "bf16", 0.5, machine.device)
    monkeypatch.setattr(rmm_uvm, "cuda_driver", lambda _: blind)
    found = trainer.more(Model(machine))
    assert found["gpu_faults"] is None
    assert found["faults_unknown"]
