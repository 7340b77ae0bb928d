# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""While nothing leaves, modules have no hooks of ours; once something left they have them again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from ...support.announced_uses import batch, top_hooks
from ...support.late_streams import Copying, copying
from ...support.small_transformer import gradients, same, transformer


class Trainer:
    """A model and its steps, and whether modules have hooks."""

    def __init__(self, there: Copying) -> None:
        self.there = there
        self.model = transformer()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self) -> bool:
        self.optimizer.zero_grad()
        self.model(batch()).square().mean().backward()
        self.optimizer.step()
        return bool(nn.modules.module._global_forward_pre_hooks)

    def steps(self, count: int) -> list[bool]:
        return [self.step() for _ in range(count)]


@pytest.fixture
def is_all_there() -> list[bool]:
    return [True]


@contextmanager
def trainer(is_all_there: list[bool], live_bytes: int = 0) -> Iterator[Trainer]:
    with copying(1 << 30, lambda: live_bytes, confirmed=lambda: is_all_there[0]) as there:
        yield Trainer(there)


def test_hooks_go_after_calm_steps_and_come_back_once_something_left(
    is_all_there: list[bool],
) -> None:
    with trainer(is_all_there) as training:
        first = training.steps(6)
        assert first == sorted(first, reverse=True)
        assert first[0]
        assert not first[-1]
        groups = len(training.there.announced.groups)
        training.step()
        assert len(training.there.announced.groups) == groups
        is_all_there[0] = False
        assert training.step()
        assert training.step()
        assert len(training.there.announced.groups) > groups
        is_all_there[0] = True
        assert not training.steps(6)[-1]
    assert top_hooks() is None


def test_hooks_stay_while_copies_make_it_fit(is_all_there: list[bool]) -> None:
    with trainer(is_all_there, live_bytes=1 << 40) as training:
        assert all(training.steps(8))
        copied = training.there.counts()["copied_bytes"]
        training.step()
        assert training.there.counts()["copied_bytes"] > copied


def test_hooks_stay_where_several_threads_call_modules(is_all_there: list[bool]) -> None:
    with trainer(is_all_there) as training:
        thread = threading.Thread(target=training.model, args=(batch(),))
        thread.start()
        thread.join()
        assert all(training.steps(8))


def test_hooks_that_go_in_a_module_s_call_go_later(is_all_there: list[bool]) -> None:
    class Outer(nn.Module):
        def __init__(self, training: Trainer) -> None:
            super().__init__()
            self.found: list[bool] = []
            self.step = training.step

        def forward(self) -> None:
            self.found += [self.step() for _ in range(6)]

    with trainer(is_all_there) as training:
        outer = Outer(training)
        outer()
        assert all(outer.found)
        assert not training.step()


def test_gradients_are_the_same(is_all_there: list[bool]) -> None:
    expected = gradients(transformer(), 8)
    with trainer(is_all_there):
        assert same(gradients(transformer(), 8), expected)
        assert not nn.modules.module._global_forward_pre_hooks


@pytest.mark.parametrize("is_again", [True, False])
def test_thread_that_runs_modules_again_for_a_backward_pass_does_not_count(
    is_all_there: list[bool], is_again: bool
) -> None:
    class Checkpointed(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self:
                x = checkpoint(block, x, use_reentrant=False)
            return x

    def backward(loss: torch.Tensor) -> None:
        if not is_again:
            training.model(batch())
        loss.backward()  # on a GPU this has a thread of its own

    with trainer(is_all_there) as training:
        training.model = Checkpointed(*training.model)
        for _ in range(8):
            loss = training.model(batch().requires_grad_()).square().mean()
            thread = threading.Thread(target=backward, args=(loss,))
            thread.start()
            thread.join()
            training.optimizer.step()
        assert bool(nn.modules.module._global_forward_pre_hooks) is not is_again
