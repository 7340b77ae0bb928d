# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Free segments are given back when they are in the way of a step that copies make fit."""

from __future__ import annotations

import pytest
import torch

import rmm_uvm.torch
from rmm_uvm.torch.trimming import Trimming

from ...support.fake_torch_cuda import FakeTorchCuda
from ...support.late_streams import LateStreams
from .test_torch_copying_memory import late, pass_budget, train  # noqa: F401 - a fixture
from .test_torch_memory import make_pool

MIB = 1 << 20
BUDGET_BYTES = 3200


class Steps:
    """Steps of an optimiser, each of which drops so much."""

    def __init__(self, *, settled: bool = True, keeps_less: bool = False) -> None:
        self.dropped_bytes = 0
        self.settled = settled
        self.trims = 0
        self.trimming = Trimming(
            self.trim,
            lambda: self.dropped_bytes,
            lambda: self.settled,
            BUDGET_BYTES,
            lambda: keeps_less,
        )
        self.optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])

    def trim(self) -> None:
        self.trims += 1

    def trims_of(self, *dropped_bytes: int) -> list[int]:
        found = []
        for each in dropped_bytes:
            before = self.trims
            self.dropped_bytes += each
            self.optimizer.step()
            found.append(self.trims - before)
        return found


def test_little_that_is_dropped_is_borne() -> None:
    steps = Steps()
    assert steps.trims_of(*[BUDGET_BYTES // 32] * 6) == [0] * 6
    assert steps.trims_of(BUDGET_BYTES // 32 + 1) == [1]
    steps.trimming.end()


def test_pause_stays_short_where_less_is_kept_instead() -> None:
    steps = Steps(keeps_less=True)
    assert steps.trims_of(*[BUDGET_BYTES] * 9) == [1, 0, 0] * 3
    steps.trimming.end()


@pytest.mark.parametrize(
    ("each_of", "expected"),
    [(1.0, [0, 3, 20]), (0.74, [0, 3, 8, 17, 34]), (0.76, [0, 3, 20])],
)
def test_pauses_grow_and_more_so_where_it_does_not_help(
    each_of: float, expected: list[int]
) -> None:
    steps = Steps()
    found = []
    dropped_bytes = float(16 * BUDGET_BYTES)
    for number in range(40):
        if steps.trims_of(int(dropped_bytes)) == [1]:
            found.append(number)
            dropped_bytes *= each_of
    assert found == expected
    steps.trimming.end()


def test_optimiser_that_steps_within_the_backward_pass_has_nothing_given_back() -> None:
    steps = Steps()
    layers = [torch.nn.Linear(4, 4) for _ in range(6)]
    for layer in layers:
        layer.weight.register_post_accumulate_grad_hook(lambda _: steps.optimizer.step())
    for _ in range(4):
        steps.dropped_bytes += BUDGET_BYTES
        torch.nn.Sequential(*layers)(torch.ones(1, 4)).sum().backward()
    assert steps.trims == 0
    assert steps.trims_of(0, 0) == [1, 0]  # of all that was dropped in between
    steps.trimming.end()


def test_nothing_is_given_back_before_copies_are_settled_nor_after_the_end() -> None:
    steps = Steps(settled=False)
    assert steps.trims_of(BUDGET_BYTES, BUDGET_BYTES) == [0, 0]
    steps.settled = True
    steps.trimming.end()
    assert steps.trims_of(BUDGET_BYTES) == [0]


def test_torch_gives_its_free_segments_back_and_tensors_stay(
    cuda: FakeTorchCuda,
    late: LateStreams,  # noqa: F811
) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    with rmm_uvm.torch.managed(mr=make_pool(64), activations="copy") as memory:
        _, *others = [cuda.allocate(size * MIB) for size in (10, 30, 50)]
        for _ in range(2):
            train()
        assert memory.statistics()["activations"]["needed_bytes"] > 0
        for address in others:
            cuda.free(address)
        for size in (50, 30):  # each in its own segment: of both there is no more than one
            cuda.free(cuda.allocate(size * MIB))
        before = memory.statistics()
        assert before["segments"]["segment_bytes"] == 90 * MIB
        assert before["residency"]["dropped_bytes"] > 2 * MIB
        optimizer.step()
        there = memory.statistics()
        assert there["trims"] == 1
        assert there["segments"]["segment_bytes"] == 10 * MIB
        assert cuda.routed
        assert memory._copies is not None
        assert memory._copies._demand._moved_rounds > 0
        optimizer.step()
        assert memory.statistics()["trims"] == 1
    optimizer.step()
    assert memory.statistics()["trims"] == 1
    assert not cuda.mistakes
    assert not late.mistakes


@pytest.mark.parametrize("activations", ["migrate", None])
def test_without_copies_nothing_is_given_back(cuda: FakeTorchCuda, activations: str | None) -> None:
    options = {} if activations is None else {"activations": activations}
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    with rmm_uvm.torch.managed(mr=make_pool(64), **options) as memory:  # type: ignore[arg-type]
        for address in pass_budget(cuda):
            cuda.free(address)
        assert memory.acting
        for _ in range(3):
            optimizer.step()
        assert memory.statistics()["trims"] == 0
        assert memory.statistics()["segments"]["segment_bytes"] == 90 * MIB


def test_near_the_maximum_nothing_is_given_back(
    cuda: FakeTorchCuda,
    late: LateStreams,  # noqa: F811
) -> None:
    """What is free beside live tensors is not used again at once: torch would run out of it."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    for maximum, trims in ((99, 0), (100, 1)):
        pool = make_pool(64)
        with rmm_uvm.torch.managed(mr=pool, activations="copy", maximum=maximum * MIB) as memory:
            kept, *others = [cuda.allocate(size * MIB) for size in (10, 30, 50)]
            for _ in range(2):
                train()
            for address in others:
                cuda.free(address)
            for size in (50, 30):
                cuda.free(cuda.allocate(size * MIB))
            optimizer.step()
            assert memory.statistics()["trims"] == trims
            cuda.free(kept)
