# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What autograd keeps, copied away and back: gradients are those without, and waits are there."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from rmm_uvm.torch.activations.copies import State

from ...support.announced_uses import announcing, batch, counting_hooks, small_model, top_hooks
from ...support.late_streams import Copying, LateStreams, copying
from ...support.small_transformer import gradients, same, transformer

BUDGETS = [256, 1024, 8192, 1 << 20]  # all leaves at once; nothing before the backward pass


@pytest.mark.parametrize("make", [small_model, transformer])
@pytest.mark.parametrize("budget_bytes", BUDGETS)
def test_gradients_are_the_same_to_the_bit(make: object, budget_bytes: int) -> None:
    assert callable(make)
    expected = gradients(make())
    live_bytes = budget_bytes // 2 if budget_bytes == max(BUDGETS) else 1 << 40
    with copying(budget_bytes, lambda: live_bytes) as there:
        assert same(gradients(make()), expected)
        counts = there.counts()
        assert counts["copied_bytes"] > (1000 if live_bytes > budget_bytes else 0)
        assert budget_bytes > 1024 or counts["returned_bytes"] > 0
        assert budget_bytes < 1 << 20 or counts["returned_bytes"] == 0


@pytest.mark.parametrize("name", ["program", "out", "back"])
def test_stream_that_forgets_to_wait_is_found(name: str) -> None:
    expected = gradients(transformer())
    streams = LateStreams(forgetful=(name,))
    with copying(256, streams=streams, mistakes=True):
        assert not same(gradients(transformer()), expected) or name != "program"


def test_streams_wait_for_each_other() -> None:
    with copying(256) as there:
        gradients(transformer(), 1)
        assert there.streams.waits == {
            ("out", "program"),
            ("program", "out"),
            ("back", "program"),
            ("program", "back"),
        }
        assert set(there.streams.followed) == {("out", 0), ("back", 0)}


def test_what_is_needed_in_another_stream_comes_after_its_copy_all_the_same() -> None:
    # That stream waited for nothing; the one where it was kept waited for the copy.
    with copying(256) as there:
        out = transformer()(batch()).square().mean()
        assert set(there.streams.followed) == {("out", 0)}
        there.streams.program = 7
        out.backward()
        backs = [stream for side, stream in there.streams.followed if side == "back"]
        assert backs
        assert backs == [7, 0] * (len(backs) // 2)


def test_what_is_on_the_host_only_is_counted_until_it_comes_back() -> None:
    with copying(256) as there:
        out = transformer()(batch()).square().mean()
        counts = there.copies.statistics()
        assert 0 < counts["away_bytes"] <= counts["copied_bytes"]
        out.backward()
        assert there.copies.statistics()["away_bytes"] == 0


def test_storage_that_is_kept_several_times_is_copied_once() -> None:
    class Three(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x * 2
            return x.square() + x.view(-1).sin().view(5, 8) + x.view(8, 5).cos().view(5, 8)

    x = batch().requires_grad_()
    with copying(256) as there:
        out = Three()(x).sum()
        there.copies.end()
        out.backward()
        assert there.counts()["copied_bytes"] == x.nbytes
        assert there.counts()["returned_bytes"] == x.nbytes


def test_what_autograd_keeps_of_parameters_and_inputs_is_not_copied() -> None:
    layer = nn.Linear(8, 8)
    with copying() as there:
        layer(batch().requires_grad_()).sum().backward()
        assert there.counts()["copied_bytes"] == 0


def test_small_storages_and_parts_of_large_ones_are_not_copied() -> None:
    class Part(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * 2)[:2].square()

    with copying(small_bytes=batch().nbytes) as there:
        gradients(small_model(), 1)
        few_bytes = there.counts()["copied_bytes"]
    with copying() as there:
        Part()(batch().requires_grad_()).sum().backward()
        assert there.counts()["copied_bytes"] == 0
        gradients(small_model(), 1)
        assert there.counts()["copied_bytes"] > few_bytes


def test_sparse_tensors_stay_and_come_back_as_they_are() -> None:
    class Sparse(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sparse.mm(torch.eye(len(x)).to_sparse(), x * 2).sin().sum()

    x = batch().requires_grad_()
    with copying() as there:
        Sparse()(x).backward()
        assert there.counts()["copied_bytes"] > 0
    assert x.grad is not None
    assert torch.equal(x.grad, 2 * (2 * x).cos().detach())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_stay_and_come_back_as_they_are() -> None:
    class Nested(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            nested = torch.nested.as_nested_tensor([x * 2, x])
            return torch.relu(nested).to_padded_tensor(0.0).sum()

    def gradient() -> torch.Tensor:
        x = batch().requires_grad_()
        Nested()(x).backward()
        assert x.grad is not None
        return x.grad

    expected = gradient()
    with copying():
        assert torch.equal(gradient(), expected)


@pytest.mark.parametrize("budget_bytes", BUDGETS)
def test_retained_graph_gives_the_same_again(budget_bytes: int) -> None:
    model = transformer()
    with copying(budget_bytes) as there:
        torch.manual_seed(6)
        loss = model(batch()).square().mean()
        first = torch.autograd.grad(loss, [*model.parameters()], retain_graph=True)
        returned_bytes = there.counts()["returned_bytes"]
        second = torch.autograd.grad(loss, [*model.parameters()], retain_graph=True)
        third = torch.autograd.grad(loss, [*model.parameters()])
        assert same([*second, *third], [*first, *first])
        assert there.counts()["returned_bytes"] >= 2.9 * returned_bytes


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_gives_the_same(reentrant: bool) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = transformer()
            self.last = small_model()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x * torch.ones((), requires_grad=True)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=reentrant)
            return self.last(x)

    expected = gradients(Checkpointed())
    with copying(256) as there:
        assert same(gradients(Checkpointed()), expected)
        assert there.counts()["returned_bytes"] > 0
        assert top_hooks() is None


@pytest.mark.parametrize("budget_bytes", BUDGETS)
def test_several_graphs_at_once_give_the_same_in_any_order(budget_bytes: int) -> None:
    def found(order: tuple[int, ...]) -> list[torch.Tensor]:
        torch.manual_seed(7)
        models = [transformer() for _ in order]
        losses = [model(batch()).square().mean() for model in models]
        for number in order:
            losses[number].backward()
        return [p.grad for model in models for p in model.parameters() if p.grad is not None]

    expected = found((0, 1, 2))
    with copying(budget_bytes):
        for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
            assert same(found(order), expected)


def test_only_what_does_not_fit_is_copied_the_first_first() -> None:
    budget_bytes = 16000
    live_bytes = budget_bytes  # all of it counts, less what is away: as if nothing left
    with copying(budget_bytes, lambda: live_bytes) as there:
        model = transformer()
        gradients(model, 1)
        assert there.copies.statistics()["needed_bytes"] is None
        everything_bytes = there.counts()["copied_bytes"]
        live_bytes = budget_bytes + 200 - everything_bytes
        gradients(model, 8)  # the rounds before are forgotten
        before = there.counts()["copied_bytes"]
        gradients(model, 1)
        copied_bytes = there.counts()["copied_bytes"] - before
        needed_bytes = there.copies.statistics()["needed_bytes"]
        assert copied_bytes < everything_bytes
        assert copied_bytes >= min(needed_bytes, everything_bytes)


def test_nothing_is_copied_once_it_is_known_that_all_fits() -> None:
    with copying(1 << 20, lambda: 1000) as there:
        model = transformer()
        gradients(model, 1)
        before = there.counts()["copied_bytes"]
        gradients(model, 3)
        assert there.counts()["copied_bytes"] == before > 0
        assert there.copies.statistics()["needed_bytes"] == 0


def test_what_is_needed_next_comes_ahead() -> None:
    with copying(16 * 1024) as there:
        gradients(nn.Sequential(*(transformer() for _ in range(12))), 1)
        counts = there.counts()
        assert counts["returned_ahead_bytes"] > counts["returned_bytes"] / 2


def test_nothing_comes_ahead_at_a_peak_for_which_not_enough_could_leave() -> None:
    holds: list[Copying] = []

    def live_bytes() -> int:
        """Return most at the first look of a round: then all of it is at the peak."""
        return (1 << 40) - (holds[0].copies._bytes[State.AWAY] if holds else 0)

    with copying(16 * 1024, live_bytes) as there:
        holds.append(there)
        model = nn.Sequential(*(transformer() for _ in range(12)))
        gradients(model, 1)
        before = there.counts()
        gradients(model, 1)
        after = there.counts()
    assert after["returned_ahead_bytes"] == before["returned_ahead_bytes"] > 0
    assert after["returned_bytes"] > 1.8 * before["returned_bytes"]


def test_without_pinned_memory_the_rest_stays_and_is_counted() -> None:
    expected = gradients(transformer())
    with copying(256) as there:
        gradients(transformer())
        all_bytes = there.counts()["copied_bytes"]
    with copying(256, streams=LateStreams(host_bytes=1000)) as there:
        assert same(gradients(transformer()), expected)
        assert 0 < there.counts()["copied_bytes"] < all_bytes
        assert there.copies.statistics()["fallbacks"]["no_pinned_host_memory"] > 0


def test_with_several_streams_nothing_is_copied_any_more_and_nothing_let_go() -> None:
    expected = gradients(transformer())
    with copying(256) as there:
        model = transformer()
        torch.manual_seed(6)
        loss = model(batch()).square().mean()
        there.copies.several_streams()
        before = there.counts()["copied_bytes"]
        loss.backward()
        assert same(gradients(transformer()), expected)
        assert there.counts()["copied_bytes"] == before > 0
        assert there.copies.statistics()["fallbacks"]["several_streams"] > 0
    with copying(256, streams=LateStreams(usual=False)) as there:
        gradients(transformer())
        assert there.counts()["copied_bytes"] == 0


@pytest.mark.parametrize("budget_bytes", BUDGETS)
def test_graph_outlives_the_end(budget_bytes: int) -> None:
    def loss_of(model: nn.Module) -> torch.Tensor:
        torch.manual_seed(6)
        return model(batch()).square().mean()

    model = transformer()
    expected = torch.autograd.grad(loss_of(model), [*model.parameters()])
    with copying(budget_bytes) as there:
        loss = loss_of(model)
    assert there.copies._bytes[State.LEAVING] == 0
    assert same([*torch.autograd.grad(loss, [*model.parameters()])], [*expected])
    gone = weakref.ref(there.copies)
    del there, loss
    gc.collect()
    assert gone() is None


def test_hooks_of_the_program_go_first() -> None:
    with copying() as there:
        model = small_model()
        with counting_hooks() as counts:
            model(batch()).sum().backward()
        assert counts["kept"] == counts["needed"] > 0
        assert there.counts()["copied_bytes"] == 0


def test_by_default_nothing_of_it_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object) -> None:
        raise AssertionError("a step came here")

    for name in ("keep", "need", "stay"):
        monkeypatch.setattr(f"rmm_uvm.torch.activations.copied.CopiedActivations.{name}", fails)
    with announcing() as announced:
        gradients(small_model())
        assert announced.uses is not None
        assert announced.uses._saved._keep == announced.uses._keep
    with pytest.raises(AssertionError, match="a step came here"), copying():
        gradients(small_model())


def test_what_lives_is_asked_for_a_few_times_a_round_and_its_height_is_found() -> None:
    def asked(budget_bytes: int) -> tuple[int, int]:
        times = 0

        def live_bytes() -> int:
            nonlocal times
            times += 1
            return 2 * budget_bytes  # all of the time: none of the looks may be too late for it

        with copying(budget_bytes, live_bytes) as there:
            model = nn.Sequential(*(transformer() for _ in range(12)))
            gradients(model, 2)
            before = times
            gradients(model, 1)
            return times - before, there.copies.statistics()["needed_bytes"]

    often, _ = asked(1024)  # less than what is kept at a time: each look is worth it
    seldom, needed_bytes = asked(64 << 10)
    assert 2 <= seldom < often / 4
    assert needed_bytes >= 64 << 10  # the excess, and the margin


def test_stream_waits_for_copies_where_room_is_short_and_not_before() -> None:
    """In later rounds, too, whose positions are those of all rounds before and more."""
    layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(16))
    kept_bytes = 64 * 64 * 4
    budget_bytes, live_bytes = 512 * kept_bytes, 0
    early: list[bool] = []
    with copying(budget_bytes, lambda: live_bytes) as there:
        for _ in range(4):
            x, waits = torch.ones(64, 64, requires_grad=True), there.streams.waits
            waits.clear()
            live_bytes = 300 * kept_bytes
            for number, layer in enumerate(layers):
                x = layer(x * 1.5).tanh()
                if number == 3:
                    early.append(("program", "out") in waits)
                if number == 7:
                    live_bytes = 600 * kept_bytes
            assert ("program", "out") in waits
            x.sum().backward()
            live_bytes = 0
    assert early == [False] * 4
