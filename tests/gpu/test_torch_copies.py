# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What autograd keeps, copied past a budget on a GPU: losses are the same, less is evicted."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch

import rmm_uvm.torch
from rmm_uvm.residency import Budget

from .test_torch_memory import losses_of, network

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("torch_gives_back")]

MIB = 1 << 20
STEPS = 12


def run(
    budget_mib: int, activations: Literal["migrate", "copy"], *, eager: bool = False
) -> tuple[list[float], dict[str, Any]]:
    budget = Budget(budget_mib * MIB, ahead=eager)
    with rmm_uvm.torch.managed(device_budget=budget, activations=activations) as memory:
        return losses_of(STEPS), memory.statistics()


@pytest.mark.parametrize("eager", [False, True])
def test_losses_are_those_of_the_run_that_fits_and_less_is_evicted(eager: bool) -> None:
    expected = losses_of(STEPS)
    migrated, without = run(160, "migrate", eager=eager)
    copied, there = run(160, "copy", eager=eager)
    assert expected == migrated == copied
    activations = there["activations"]
    assert without["activations"] is None
    assert activations["copied_bytes"] > 0
    assert activations["returned_ahead_bytes"] > 0
    assert 0 < activations["returned_bytes"] <= activations["copied_bytes"]
    assert activations["needed_bytes"] > 0
    assert not any(activations["fallbacks"].values())
    assert there["residency"]["evicted_bytes"] < without["residency"]["evicted_bytes"]
    assert there["residency"]["failed_calls"] == 0
    assert there["segments"]["unfenced"] == 0  # streams of ours count for none


def test_nothing_is_copied_where_all_fits() -> None:
    _, there = run(2048, "copy")
    assert not there["acting"]
    assert there["activations"] is None


def test_retained_graph_gives_the_same_again_past_the_budget() -> None:
    x = torch.randn(4096, 1024, generator=torch.Generator().manual_seed(4)).cuda()
    with rmm_uvm.torch.managed(device_budget=Budget(160 * MIB), activations="copy") as memory:
        losses_of(2)
        model = network()
        loss = model(x).square().mean()
        first = torch.autograd.grad(loss, [*model.parameters()], retain_graph=True)
        second = torch.autograd.grad(loss, [*model.parameters()])
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
        assert memory.statistics()["activations"]["returned_bytes"] > 0


def test_second_stream_of_the_program_ends_copying() -> None:
    with rmm_uvm.torch.managed(device_budget=Budget(160 * MIB), activations="copy") as memory:
        losses_of(2)
        copied_bytes = memory.statistics()["activations"]["copied_bytes"]
        assert copied_bytes > 0
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        torch.cuda.current_stream().wait_stream(side)
        losses_of(2)
        activations = memory.statistics()["activations"]
        assert activations["copied_bytes"] == copied_bytes
        assert activations["fallbacks"]["several_streams"] > 0
