# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Weights larger than the budget: ahead of their use where modules are called without gradients."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.planner.trials.shadow_device import ShadowDevice
from rmm_uvm.planner.trials.shadow_statistics import ShadowStatistics
from rmm_uvm.residency import Budget
from rmm_uvm.residency.budget import of_torch
from rmm_uvm.simulator import load_machine
from rmm_uvm.torch.extents import Extent
from rmm_uvm.torch.uses import Uses

from ...support.fake_torch_cuda import FakeTorchCuda

MIB = 1 << 20


def test_whether_modules_have_gradients_is_told_when_it_changes() -> None:
    told: list[bool] = []
    module, values = nn.Linear(4, 4), torch.ones(4)

    def nothing(_extents: list[Extent]) -> None:
        pass

    uses = Uses(nothing, lambda _address, _nbytes: None, None, list, trains=told.append)
    uses.begin()
    try:
        assert told == [True]  # until it is known
        for modes, then in (
            ((torch.no_grad(), torch.inference_mode()), [True, False]),
            ((nullcontext(), torch.enable_grad()), [True, False, True]),
        ):
            for mode in modes:
                with mode:
                    module(values)
            assert told == then
        # Of modules within others the outermost counts.
        with torch.no_grad():
            _Outer()(values)
        assert told == [True, False, True, False]
    finally:
        uses.end()
    module(values)
    assert told == [True, False, True, False]


class _Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            inside: torch.Tensor = self.inner(values)
        return inside


def fetched_ahead(
    cuda: FakeTorchCuda, mode: AbstractContextManager[object], *, ahead: bool | None
) -> int:
    """Return what came ahead of segments used in turn, two thirds of which fit."""
    mr = rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device(512 * MIB),
        initial_pool_size="8MiB",
        device_budget=Budget(64 * MIB, ahead=ahead, background=False),
    )
    with rmm_uvm.torch.managed(mr=mr) as memory:
        weights = [cuda.allocate(16 * MIB) for _ in range(6)]
        assert memory.acting
        with mode:
            nn.Linear(4, 4)(torch.ones(4))
        residency = mr.managed_mr.residency
        for _ in range(5):
            for each in weights:
                residency.touch(each, 16 * MIB, each)
                residency.run_pending()
        statistics = rmm_uvm.residency_statistics(mr)
        assert statistics.foresees
        return statistics.fetched_ahead_bytes


def test_weights_come_ahead_by_default_only_without_gradients(cuda: FakeTorchCuda) -> None:
    assert fetched_ahead(cuda, torch.no_grad(), ahead=None) > 0
    assert fetched_ahead(cuda, nullcontext(), ahead=None) == 0


@pytest.mark.parametrize("mode", [torch.no_grad(), nullcontext()], ids=["inference", "training"])
def test_a_choice_that_was_made_holds_for_both(
    cuda: FakeTorchCuda, mode: AbstractContextManager[object]
) -> None:
    assert fetched_ahead(cuda, mode, ahead=True) > 0
    assert fetched_ahead(cuda, mode, ahead=False) == 0


def pass_over(budget: Budget) -> ShadowStatistics:
    """Return what a pass over 12 layers of 16 MiB takes once the passes before are learnt."""
    with FakeTensorMode(), torch.no_grad(), rmm_uvm.torch.recorded() as program:
        model = nn.Sequential(*(nn.Linear(2048, 2048, bias=False) for _ in range(12)))
        values = torch.ones(4096, 2048)
        for _ in range(8):
            model(values)
            program.mark()
    card = ShadowDevice(
        budget.budget_bytes + 16 * MIB, load_machine("h200-pcie5"), budget, paced=True
    )
    replay = program.replayer(card)
    replay(0, program.marks[-3])
    before = card.statistics()
    replay(program.marks[-3], None)
    return card.statistics().since(before)


def test_layers_come_ahead_of_kernels_that_are_long_enough() -> None:
    default = of_torch(Budget(224 * MIB), eager=None)
    assert default.ahead is None
    ahead = pass_over(default)
    lazy = pass_over(dataclasses.replace(default, ahead=False))
    assert ahead.to_device_bytes < 1.2 * lazy.to_device_bytes
    assert ahead.hit_rate > lazy.hit_rate
    waits = [took.seconds - took.compute_seconds for took in (ahead, lazy)]
    assert waits[0] < waits[1] / 2
