# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from ...support.announced_uses import (
    address_of,
    announcing,
    autograd,
    batch,
    counting_hooks,
    hooks_there,
    small_model,
    top_hooks,
)


def test_step_is_announced_in_the_order_of_its_work() -> None:
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters())
    with announcing() as announced:
        announced.name(model)
        loss = model(batch()).sum()
        # Each module's parameters just before it; then what autograd keeps of them.
        modules = [group for group in announced.named() if len(group) == 2]
        assert modules == [
            ("0.weight", "0.bias"),
            ("2.0.weight", "2.0.bias"),
            ("3.weight", "3.bias"),
        ]
        assert len(announced.measured) >= 4  # inputs of modules, and outputs of activations
        announced.groups.clear()
        loss.backward()
        # The first layer's weight is not needed: nobody wants the gradient of the batch.
        assert announced.named() == [("3.weight",), ("2.0.weight",)]
        assert len(announced.groups) >= 6
        announced.groups.clear()
        optimizer.step()
        first = next(iter(model.parameters()))
        state = optimizer.state[first]
        assert [
            address_of(first.grad),
            address_of(first),
        ] == announced.groups[0][:2]
        assert announced.steps == 1
        announced.groups.clear()
        optimizer.step()
        assert address_of(state["exp_avg"]) in announced.groups[0]


def test_buffers_are_announced_with_their_module() -> None:
    norm = nn.BatchNorm1d(8)
    with announcing() as announced:
        announced.name(norm)
        norm(batch())
        assert announced.named()[0] == (
            "weight",
            "bias",
            "running_mean",
            "running_var",
            "num_batches_tracked",
        )


def test_saved_tensors_are_announced_in_the_reverse_order_of_keeping() -> None:
    with announcing() as announced:
        out = small_model()(batch())
        kept = [group[0] for group in announced.groups if group[0] in announced.measured]
        announced.groups.clear()
        out.sum().backward()
        needed = [group[0] for group in announced.groups]
        layer_inputs = [one for one in kept if one in needed]
        assert needed[0] in kept[-3:]  # of the last layer
        assert needed[-1] in kept[:3]  # of the first one
        assert len(set(layer_inputs)) >= 4


def test_nothing_is_kept_under_no_grad() -> None:
    model = small_model().eval()
    with announcing() as announced, torch.no_grad():
        model(batch())
        assert not announced.measured
        assert len(announced.groups) == 3


class Fails(nn.Module):
    """Fails while `armed`, in the forward or in the backward pass."""

    def __init__(self, error: type[BaseException], *, backward: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.error, self.backward, self.armed = error, backward, True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x)
        if not self.armed:
            return x
        if not self.backward:
            raise self.error("on purpose")
        x.register_hook(self._raise)
        return x

    def _raise(self, _gradient: torch.Tensor) -> None:
        raise self.error("on purpose")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("backward", [False, True])
def test_step_after_one_that_failed_is_as_any_other(
    error: type[BaseException], backward: bool
) -> None:
    fails = Fails(error, backward=backward)
    model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(fails), nn.Linear(8, 2))

    def step() -> None:
        model.zero_grad()
        model(batch()).sum().backward()

    with announcing() as announced:
        with pytest.raises(error, match="on purpose"):
            step()
        if error is not KeyboardInterrupt or backward:
            assert top_hooks() is None
        fails.armed = False
        announced.name(model)
        announced.groups.clear()
        step()
        assert top_hooks() is None
        assert [g for g in announced.named() if len(g) == 2] == [
            ("0.weight", "0.bias"),
            ("1.0.inner.weight", "1.0.inner.bias"),
            ("2.weight", "2.bias"),
        ]
        assert len(announced.measured) > 0


def test_interrupted_call_that_is_caught_within_another_one_leaves_that_in_order() -> None:
    class Catches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fails = nn.Sequential(Fails(KeyboardInterrupt, backward=False))
            self.works = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                x = self.fails(x)
            except KeyboardInterrupt:
                x = self.works(x)
            assert top_hooks() is not None  # its own call is under way still
            return x

    with announcing():
        Catches()(batch()).sum().backward()
        assert top_hooks() is None


def test_programs_own_hooks_around_the_model_are_called_as_without() -> None:
    def counts() -> dict[str, int]:
        with counting_hooks() as counts:
            small_model()(batch()).sum().backward()
        return counts

    expected = counts()
    with announcing() as announced:
        assert counts() == expected
        assert len(announced.groups) == 3  # modules are announced still
    assert expected["kept"] > 4


def test_programs_own_hooks_within_the_model_are_called_as_without() -> None:
    class Offloads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with counting_hooks() as self.counts:
                x = self.inner(x).tanh()
            return self.outer(x)

    model = Offloads()
    model(batch())
    expected = model.counts
    with announcing() as announced:
        model(batch()).sum().backward()
        assert model.counts["kept"] == expected["kept"] > 0
        assert announced.measured  # of the rest


def test_save_on_cpu_gives_what_it_gives_without() -> None:
    def gradient() -> torch.Tensor:
        model = small_model()
        with torch.autograd.graph.save_on_cpu():
            model(batch()).square().sum().backward()
        return next(iter(model.parameters())).grad

    expected = gradient()
    with announcing():
        assert torch.equal(gradient(), expected)


def test_hooks_that_a_module_leaves_behind_stay_and_ours_go_from_below() -> None:
    class Enters(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            autograd._push_saved_tensors_default_hooks(theirs, theirs)
            return x

    def theirs(tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    with announcing():
        try:
            Enters()(batch())
            assert top_hooks() == (theirs, theirs)
        finally:
            autograd._pop_saved_tensors_default_hooks()
        assert top_hooks() is None


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_recomputes_as_without(reentrant: bool) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(3)
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)) for _ in range(3)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=reentrant)
            return x

    def gradients() -> list[torch.Tensor]:
        model = Checkpointed()
        model(batch().requires_grad_()).square().sum().backward()
        return [parameter.grad for parameter in model.parameters()]

    expected = gradients()
    with announcing() as announced:
        found = gradients()
        announced.groups.clear()
        out = (model := Checkpointed())(batch().requires_grad_())
        announced.name(model)
        announced.groups.clear()
        out.sum().backward()
        # What is computed again uses its modules again, the last block's first.
        recomputed = [group[0] for group in announced.named() if len(group) == 2]
        assert recomputed[:2] == ["blocks.2.0.weight", "blocks.2.2.weight"]
        assert top_hooks() is None
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_begin_within_a_module_passes_over_it_and_takes_note_of_the_next() -> None:
    class Begins(nn.Module):
        def __init__(self, begin: Callable[[], None]) -> None:
            super().__init__()
            self.begin, self.after = begin, nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.begin()
            return self.after(x)

    with announcing(begin=False) as announced:
        assert announced.uses is not None
        model = nn.Sequential(Begins(announced.uses.begin))
        model(batch()).sum().backward()
        assert top_hooks() is None
        assert announced.groups
        model[0].begin = lambda: None
        announced.groups.clear()
        model(batch()).sum().backward()
        assert announced.groups
        assert top_hooks() is None


def test_end_within_a_module_leaves_no_hook_behind() -> None:
    class Ends(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.end()
            return x.tanh()

    before = hooks_there()
    with announcing() as announced:
        ends = Ends()
        assert announced.uses is not None
        ends.end = announced.uses.end
        nn.Sequential(nn.Linear(8, 8), ends)(batch()).sum().backward()
        assert hooks_there() == before


def test_end_while_another_thread_is_within_a_module_waits_with_the_last_hook() -> None:
    inside, may_go = threading.Event(), threading.Event()
    left: list[object] = []

    class Waits(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inside.set()
            assert may_go.wait(30)
            return x.tanh()

    def work() -> None:
        nn.Sequential(nn.Linear(8, 8), Waits())(batch()).sum().backward()
        left.append(top_hooks())

    before = hooks_there()
    thread = threading.Thread(target=work)
    with announcing(ends_at_once=False):
        thread.start()
        assert inside.wait(30)
    assert hooks_there() != before
    may_go.set()
    thread.join(30)
    assert left == [None]
    assert hooks_there() == before


def test_graph_outlives_the_end_and_its_backward_announces_nothing() -> None:
    model = small_model()
    with announcing() as announced:
        loss = model(batch()).square().sum()
    announced.groups.clear()
    loss.backward()
    assert not announced.groups
    again = small_model()
    again(batch()).square().sum().backward()
    assert all(
        torch.equal(a.grad, b.grad)
        for a, b in zip(model.parameters(), again.parameters(), strict=True)
    )
