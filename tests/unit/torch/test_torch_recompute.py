# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Modules that are run again in the backward pass: which ones, and that nothing can tell."""

from __future__ import annotations

import functools
import gc
import itertools
import random
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from rmm_uvm.torch.activations.leaving import is_parameter
from rmm_uvm.torch.activations.saved_tensors import changed
from rmm_uvm.torch.recompute import recomputation
from rmm_uvm.torch.recompute.choice import ModuleCall, chosen
from rmm_uvm.torch.recompute.recomputation import Recomputation
from rmm_uvm.torch.recompute.trial import _Randomness, emptied, filled, why_not

from ...support.late_streams import copying
from ...support.small_transformer import gradients, same, transformer

CPU = torch.device("cpu")
MIB = 1 << 20
WIDTH = 32


def clock() -> Callable[[], float]:
    """Every call takes a second: the choice is the same on each machine."""
    return lambda: 1.0


def are_of_checkpoint() -> bool:
    top = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return getattr(top and top[0], "__module__", "") == "torch.utils.checkpoint"


class Block(nn.Module):
    """Keeps several times as much as its argument; dropout, and statistics of batches."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(self.norm(x))


def blocks(count: int = 8) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(Block() for _ in range(count)))


@contextmanager
def recomputing(needed_bytes: int) -> Iterator[Trainer]:
    """Run modules again to spare so much, from the third step on; the second is looked at."""
    trainer = Trainer(needed_bytes)
    before = nn.Module._call_impl
    trainer.recompute.begin()
    try:
        yield trainer
    finally:
        trainer.recompute.end()
    assert nn.Module._call_impl is before


class Trainer:
    """Steps, and what autograd kept in the last one."""

    def __init__(self, needed_bytes: int = 0) -> None:
        # Hooks of this class stand for ours.
        self.recompute = Recomputation(CPU, 1 << 30, clock, are_hooks_of_others=are_of_checkpoint)
        self.needed_bytes = needed_bytes
        self.rounds = 0
        self.kept_bytes = 0

    def train(self, model: Any, steps: int = 5, *, x: torch.Tensor | None = None) -> list[float]:
        """Train, and return the losses."""
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        torch.manual_seed(1)
        x = torch.randn(64, WIDTH) if x is None else x
        losses = []
        for _ in range(steps):
            loss = self.forward(lambda: model(x).square().mean())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    def forward(self, work: Callable[[], Any]) -> Any:
        self.rounds += 1
        if self.needed_bytes:
            self.recompute.on_round(self.needed_bytes if self.rounds <= 3 else 0)
        kept: dict[int, torch.UntypedStorage] = {}

        def keep(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
            if self.recompute.is_looking:
                self.recompute.kept(tensor)
            if not (is_parameter(tensor) or tensor.is_sparse):
                storage = tensor.untyped_storage()
                kept[storage._cdata] = storage
            return tensor, tensor._version

        def need(kept: tuple[torch.Tensor, int]) -> torch.Tensor:
            self.recompute.on_backward()
            tensor, version = kept
            if tensor._version != version:
                raise changed(tensor, version)
            return tensor

        with saved_tensors_hooks(keep, need):
            found = work()
        self.kept_bytes = sum(each.nbytes() for each in kept.values())
        return found


def of_reference(make: Callable[[], Any], **named: Any) -> tuple[list[float], Any, int]:
    trainer, model = Trainer(), make()
    return trainer.train(model, **named), model, trainer.kept_bytes


@pytest.mark.parametrize("half", [False, True])
def test_losses_weights_and_buffers_are_the_same_to_the_bit_and_less_is_kept(half: bool) -> None:
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        losses, expected, kept_bytes = of_reference(blocks)
        needed_bytes = kept_bytes // 2
        with recomputing(needed_bytes) as trainer:
            model = blocks()
            assert trainer.train(model) == losses
            told = trainer.recompute.statistics()
            looked_at = trainer.recompute._looked_at
    assert same(list(model.state_dict().values()), list(expected.state_dict().values()))
    assert 1 <= told["modules"] <= 16
    assert looked_at is not None
    assert told["spared_bytes"] >= needed_bytes - looked_at.held_bytes
    assert looked_at.held_bytes < needed_bytes / 2
    assert told["refusals"] == {}
    assert kept_bytes - trainer.kept_bytes >= 0.9 * told["spared_bytes"]


def test_nothing_is_run_again_where_nothing_has_to_leave() -> None:
    losses, _, kept_bytes = of_reference(blocks)
    with recomputing(0) as trainer:
        assert trainer.train(blocks()) == losses
    assert trainer.kept_bytes == kept_bytes
    assert trainer.recompute.statistics()["modules"] == 0


class Counting(Block):
    """Counts its calls, in a way that each class has its own."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        type(self).calls += 1
        self.work(x)
        return super().forward(x)

    def work(self, x: torch.Tensor) -> None:
        """What is wrong with it."""


class Attribute(Counting):
    def work(self, x: torch.Tensor) -> None:
        self.last = x.detach().mean()


class Attached(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[int] = []

    def work(self, x: torch.Tensor) -> None:
        self.found.append(len(x))


class InPlace(Counting):
    def work(self, x: torch.Tensor) -> None:
        with torch.no_grad():
            x.mul_(1.01)


class PythonsRandom(Counting):
    def work(self, x: torch.Tensor) -> None:
        random.random()


class NumpysRandom(Counting):
    def work(self, x: torch.Tensor) -> None:
        np.random.rand()


class Within(Counting):
    """Counts in an object's dictionary, which stays the same one."""

    def __init__(self) -> None:
        super().__init__()
        self.found = Record({"calls": [0]})

    def work(self, x: torch.Tensor) -> None:
        self.found.value["calls"][0] += 1


class OwnGenerator(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.generators = torch.Generator(), np.random.default_rng(0), random.Random(0)

    def work(self, x: torch.Tensor) -> None:
        torch.rand(1, generator=self.generators[0])
        self.generators[1].random()
        self.generators[2].random()


class OwnParameter(Counting):
    def work(self, x: torch.Tensor) -> None:
        with torch.no_grad():
            self.layers[0].weight.mul_(0.99)


class HookOfArgument(Counting):
    def work(self, x: torch.Tensor) -> None:
        x.register_hook(lambda gradient: gradient / 2)


class Backward(Counting):
    def work(self, x: torch.Tensor) -> None:
        with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
            self.layers(x.detach()).square().mean().backward()


class Derivative(Counting):
    def work(self, x: torch.Tensor) -> None:
        y = x.detach().requires_grad_()
        torch.autograd.grad(self.layers(y).sum(), y)


class OwnForward(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.forward = functools.partial(type(self).forward, self)  # type: ignore[method-assign]


class SparseBuffer(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sparse", torch.eye(WIDTH).to_sparse())


class Synchronised(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.also = nn.SyncBatchNorm(WIDTH)


class Hooked(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.layers.register_forward_hook(lambda *_: None)


class Record:
    """No tensor."""

    def __init__(self, value: Any) -> None:
        self.value = value


class NoTensor(Counting):
    def forward(self, x: Any) -> Any:
        type(self).calls += 1
        return Record(super().forward(x.value if isinstance(x, Record) else x))


class Sparse(Counting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        type(self).calls += 1
        return super(Counting, self).forward(x.to_dense()).to_sparse()


class InTurn:
    """Blocks of a kind, one after the other; no module, that could be run again as a whole."""

    def __init__(self, kind: type[Counting]) -> None:
        torch.manual_seed(0)
        kind.calls = 0
        self.blocks = nn.ModuleList(kind() for _ in range(4))
        self.parameters = self.blocks.parameters

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        x = (x * 1).requires_grad_()
        for block in self.blocks:
            x = block(x)
            x = x.value if isinstance(x, Record) else x
        return x.to_dense()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Attribute, "it changes its attributes"),
        (Attached, "it changes its attributes"),
        (InPlace, "it changes its arguments"),
        (PythonsRandom, "it draws random numbers of Python's or NumPy's"),
        (NumpysRandom, "it draws random numbers of Python's or NumPy's"),
        (Within, "it changes its attributes"),
        (OwnGenerator, "it changes its attributes"),
        (OwnParameter, "it changes its attributes"),
        (HookOfArgument, "it changes its arguments"),
        (Backward, "it changes its attributes"),
        (OwnForward, "a module in it has hooks, or is compiled"),
        (SparseBuffer, "a module in it has a buffer that is not dense"),
        (Synchronised, "a module in it works with other processes"),
        (Sparse, "it returns something else than tensors"),
        (Hooked, "a module in it has hooks, or is compiled"),
        (NoTensor, "it returns something else than tensors"),
    ],
)
def test_module_that_would_be_seen_to_run_twice_runs_once(
    kind: type[Counting], reason: str
) -> None:
    losses, _, kept_bytes = of_reference(lambda: InTurn(kind))
    calls = kind.calls
    with recomputing(kept_bytes // 2) as trainer:
        assert trainer.train(InTurn(kind)) == losses
        assert reason in trainer.recompute.statistics()["refusals"]
    assert kind.calls == calls


def test_module_that_fails_when_it_is_run_again_runs_on_as_without() -> None:
    losses, _, kept_bytes = of_reference(lambda: InTurn(Derivative))
    with recomputing(kept_bytes // 2) as trainer:
        assert trainer.train(InTurn(Derivative)) == losses
        assert "it fails when it is run again" in trainer.recompute.statistics()["refusals"]


class Switched(nn.Module):
    """Does something else once its program says so."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.dropout = nn.BatchNorm1d(WIDTH), nn.Dropout(0.0)
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor, switch: str = "") -> torch.Tensor:
        if switch == "argument":
            x = nn.functional.dropout(x, 0.3)
        y = self.norm(x) * self.scale
        return x + self.dropout((y.sin() * y.cos()).tanh())


class Switching(nn.Module):
    """Blocks in turn, the first steps without what comes then."""

    def __init__(self, switch: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(Switched() for _ in range(6))
        self.switch = switch
        self.steps, self.seen = 0, 0
        if switch == "training":
            self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        given: tuple[str, ...] = ()
        call: Callable[..., torch.Tensor] = nn.Module.__call__
        if self.steps == 5:
            for block in self.blocks:
                block.train()
                if self.switch == "setting":
                    block.dropout.p = 0.5
                if self.switch == "hooks":
                    block.register_forward_pre_hook(self.see)
        if self.steps >= 5:
            given = ("argument",) if self.switch == "argument" else ()
            if self.switch == "checkpoint":
                call = functools.partial(checkpoint, use_reentrant=False)
        x = x * 1
        for block in self.blocks:
            x = call(block, x, *given)
        return x

    def see(self, *_: object) -> None:
        self.seen += 1


@pytest.mark.parametrize("switch", ["training", "setting", "argument", "hooks", "checkpoint"])
def test_module_that_is_not_as_it_was_tried_is_not_run_again(switch: str) -> None:
    losses, expected, kept_bytes = of_reference(lambda: Switching(switch), steps=8)
    with recomputing(kept_bytes // 2) as trainer:
        model = Switching(switch)
        assert trainer.train(model, steps=8) == losses
        assert trainer.recompute.statistics()["modules"] > 0
    assert model.seen == expected.seen
    assert same(list(model.state_dict().values()), list(expected.state_dict().values()))


class Unlike(Counting):
    """Returns something else each time, for a reason that nothing in sight has."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        type(self).calls += 1
        return super(Counting, self).forward(x) * (1 + type(self).calls / 1024)


def test_module_that_does_not_repeat_itself_is_not_run_again() -> None:
    with recomputing(1 << 16) as trainer:
        trainer.train(InTurn(Unlike))
        assert trainer.recompute.statistics()["refusals"]["it does not return the same again"] >= 1
        assert all(
            not isinstance(region.module(), Unlike)
            for region in trainer.recompute._regions.values()
        )


class Dense(nn.Module):
    """Blocks take the list of all that came before, which grows meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_OfList() for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = [x]
        for block in self.blocks:
            features.append(block(features))
        return torch.stack(features).sum(0)


class _OfList(Block):
    def forward(self, x: Any) -> torch.Tensor:
        return super().forward(torch.stack(x).sum(0))


def test_lists_are_as_they_were_when_a_module_was_given_them() -> None:
    def make() -> nn.Module:
        torch.manual_seed(0)
        return Dense()

    losses, _, kept_bytes = of_reference(make)
    with recomputing(kept_bytes // 2) as trainer:
        assert trainer.train(make()) == losses
        assert trainer.recompute.statistics()["modules"] > 0
    assert trainer.kept_bytes < 0.8 * kept_bytes


class Added(nn.Module):
    """Adds to what a block was given after its call; nothing of autograd's needs it."""

    def __init__(self, count: int = 4) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_Waves() for _ in range(count))
        self.adds = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x * 1
            found = block(x)
            if self.adds:
                x.add_(1)
            x = found + x
        return x


class _Waves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 2 * self.scale
        return (x.sin() * x.cos()).tanh()


def test_module_whose_arguments_are_changed_later_is_not_run_again() -> None:
    def make() -> nn.Module:
        torch.manual_seed(0)
        return Added()

    losses, _, kept_bytes = of_reference(make)
    with recomputing(kept_bytes // 2) as trainer:
        model = make()
        assert trainer.train(model) == losses
        assert trainer.recompute.statistics()["modules"] == 0


def test_arguments_that_change_only_once_it_is_run_again_are_an_error_of_torchs() -> None:
    torch.manual_seed(0)
    model = Added()
    model.adds = False
    with recomputing(MIB) as trainer:
        trainer.needed_bytes = 12 * 64 * WIDTH * 4
        trainer.train(model, 3)
        assert trainer.recompute.statistics()["modules"] > 0
        model.adds = True
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            trainer.train(model, 1)


def test_batch_of_another_size_is_kept_as_without() -> None:
    small = torch.randn(16, WIDTH)
    _, _, expected_bytes = of_reference(blocks, x=small)
    with recomputing(MIB // 4) as trainer:
        model = blocks()
        trainer.train(model)
        assert trainer.recompute.statistics()["modules"] > 0
        trainer.train(model, 1, x=small)
        assert trainer.kept_bytes == expected_bytes


def test_graph_that_is_kept_is_run_again_each_time() -> None:
    with recomputing(MIB // 4) as trainer:
        model = blocks()
        trainer.train(model)
        loss = trainer.forward(lambda: model(torch.ones(64, WIDTH)).square().mean())
        found = [
            torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for _ in range(2)
        ]
        assert trainer.recompute.statistics()["modules"] > 0
    assert same(list(found[0]), list(found[1]))


@pytest.mark.parametrize("is_short", [False, True])
def test_copies_take_only_what_cannot_be_spared(is_short: bool) -> None:
    budget_bytes = 20_000
    recompute = Recomputation(CPU, budget_bytes, clock)
    expected = gradients(transformer(), 12)
    away: list[Callable[[], dict[str, Any]]] = []
    evicted = itertools.count()

    def live_bytes() -> int:
        away_bytes = away[0]()["away_bytes"] if away else 0
        return 2 * budget_bytes - recompute.spared_bytes - int(away_bytes)

    def evicted_bytes() -> int:
        return next(evicted) if is_short else 0

    with copying(
        budget_bytes, live_bytes, evicted_bytes=evicted_bytes, recompute=recompute
    ) as there:
        away.append(there.copies.statistics)
        assert same(gradients(transformer(), 12), expected)
        spared_bytes = recompute.statistics()["spared_bytes"]
        needed_bytes = there.copies.statistics()["needed_bytes"]
        assert there.copies.is_settled()
    assert spared_bytes > 0
    # The margin is a sixteenth of the budget. Where nothing was evicted, nothing has to leave.
    missing_bytes = budget_bytes - spared_bytes + budget_bytes // 16
    assert needed_bytes == (missing_bytes if is_short else 0)


@pytest.mark.parametrize("needed_bytes", [100, 1000, 5000, 100_000])
def test_enough_is_chosen_none_within_another_and_there_is_room_to_run_again(
    needed_bytes: int,
) -> None:
    generator = random.Random(needed_bytes)
    calls: list[ModuleCall | None] = []
    ends = []
    for _ in range(20):
        first, parts = len(calls), [generator.randrange(1, 300) for _ in range(5)]
        ends += [(first + 6, sum(parts)), *((first + 2 + n, part) for n, part in enumerate(parts))]
        calls += [None] * 6
    total_bytes = sum(spared for end, spared in ends[::6])
    kept_bytes = 0
    for number, (end, spared_bytes) in enumerate(ends):
        kept_bytes += spared_bytes if number % 6 else 0
        until_bytes = kept_bytes + (0 if number % 6 else spared_bytes)
        later_bytes = total_bytes - until_bytes
        calls[number] = ModuleCall(end, spared_bytes, later_bytes, generator.random())

    found = chosen(calls, needed_bytes)

    picked = [call for number in found if (call := calls[number]) is not None]
    assert all(one.end <= other for one, other in zip(picked, found[1:], strict=False))
    spared = 0
    for call in picked:
        assert spared + call.kept_later_bytes >= min(needed_bytes, total_bytes // 2)
        spared += call.spared_bytes
    assert spared >= min(needed_bytes, total_bytes // 2) or needed_bytes > total_bytes
    assert spared <= needed_bytes + max((call.spared_bytes for call in picked), default=0)


def test_calls_of_one_module_are_told_apart_in_every_pass() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(6):
                x = self.block(x)
            return x

    def make() -> nn.Module:
        torch.manual_seed(0)
        return Shared()

    losses, _, kept_bytes = of_reference(make, steps=9)
    with recomputing(kept_bytes // 3) as trainer:
        model = make()
        assert trainer.train(model, 3) == losses[:3]
        (region,) = trainer.recompute._regions.values()
        assert 0 < len(region.numbers) < region.calls_of_pass == 6
        less_bytes = trainer.kept_bytes
        for steps in (1, 5):
            trainer.train(model, steps)
            assert trainer.kept_bytes == less_bytes
    assert less_bytes < kept_bytes


def of_both(work: Callable[[Trainer], list[torch.Tensor]], needed_bytes: int = MIB // 4) -> Trainer:
    """Compare what a program returns with and without; return its trainer."""
    torch.manual_seed(0)
    expected = work(Trainer())
    torch.manual_seed(0)
    with recomputing(needed_bytes) as trainer:
        assert same(work(trainer), expected)
        assert trainer.recompute.statistics()["modules"] > 0
    return trainer


def test_other_parameters_are_there_again_when_a_module_is_run_again() -> None:
    def work(trainer: Trainer) -> list[torch.Tensor]:
        model = blocks()
        trainer.train(model)
        others = {
            name: (2 * each.detach()).requires_grad_() for name, each in model.named_parameters()
        }
        x = torch.ones(64, WIDTH)
        loss = trainer.forward(
            lambda: torch.func.functional_call(model, others, (x,)).square().mean()
        )
        return [*torch.autograd.grad(loss, list(others.values())), *model.state_dict().values()]

    of_both(work)


def test_tensors_of_inference_mode_may_be_arguments() -> None:
    def work(trainer: Trainer) -> list[torch.Tensor]:
        with torch.inference_mode():
            shift = torch.randn(64, WIDTH)
        model = nn.ModuleList(_Shifted() for _ in range(40))
        found = []

        def forward() -> torch.Tensor:
            x = torch.ones(64, WIDTH)
            for module in model:
                x = module(x, shift if len(found) > 3 else shift.clone())
            return x.sum()

        for _ in range(6):
            loss = trainer.forward(forward)
            loss.backward()
            found.append(loss.detach())
        return found

    of_both(work, MIB)


class _Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.randn(64, WIDTH))

    def forward(self, x: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        x = x * (self.shift + shift)
        return (x.sin() * x.cos()).tanh()


def test_what_is_compiled_as_one_graph_stays_one() -> None:
    def work(trainer: Trainer) -> list[torch.Tensor]:
        model = blocks()
        trainer.train(_PartlyCompiled(model))
        return list(model.state_dict().values())

    of_both(work)


class _PartlyCompiled(nn.Module):
    def __init__(self, model: nn.Sequential) -> None:
        super().__init__()
        self.first = torch.compile(model[0], backend="eager", fullgraph=True)
        self.rest = model[1:]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rest(self.first(x))


def test_nothing_is_run_again_beside_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    for world_size, is_run_again in ((2, False), (1, True)):
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda size=world_size: size)
        with recomputing(MIB // 4) as trainer:
            trainer.train(blocks())
            assert (trainer.recompute.statistics()["modules"] > 0) is is_run_again


def test_passes_without_a_backward_pass_are_not_looked_at_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recomputation, "_MOST_CALLS", 100)
    model = blocks()
    with recomputing(MIB // 4) as trainer:
        trainer.train(model, 1)
        assert trainer.recompute.is_looking
        x = torch.ones(64, WIDTH)
        inputs = weakref.ref(x)
        for _ in range(3):
            trainer.forward(functools.partial(model, x))
        assert not trainer.recompute.is_looking
        del x
        assert inputs() is None


def test_dropout_of_cudnn_is_left_alone() -> None:
    assert why_not(nn.LSTM(8, 8, 2, dropout=0.1)) == "a module in it has random numbers of cuDNN's"
    assert not why_not(nn.LSTM(8, 8, 2))


def test_arguments_live_no_longer_than_without() -> None:
    model = blocks()
    with recomputing(MIB // 4) as trainer:
        trainer.train(model)
        assert trainer.recompute.statistics()["modules"] > 0
        x = torch.ones(64, WIDTH)
        inputs = weakref.ref(x)
        gc.disable()
        try:
            trainer.forward(functools.partial(model, x)).square().mean().backward()
            del x
            assert inputs() is None
        finally:
            gc.enable()


@pytest.mark.parametrize("put", [lambda x: [x], lambda x: (x,), lambda x: {"x": [x]}])
def test_arguments_are_emptied_in_every_container(put: Callable[[torch.Tensor], Any]) -> None:
    x = torch.ones(1)
    inputs = weakref.ref(x)
    without = emptied(put(x), [x])
    del x
    assert inputs() is None
    other = torch.zeros(1)
    assert filled(without, [other]) == put(other)


def test_random_numbers_of_the_gpu_begin_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, state = torch.device("cuda", 0), torch.zeros(1)
    restored: list[Any] = []
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda _: state)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *given: restored.append(given))
    _Randomness.now(gpu).restore(gpu)
    assert restored == [(state, gpu)]


def test_arguments_leave_with_the_copies_that_are_kept_of_them() -> None:
    arguments: list[weakref.ref[torch.Tensor]] = []

    class Noting(Block):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            normed = self.norm(x)
            arguments.extend(map(weakref.ref, (x, normed)))
            return x + self.layers(normed)

    model = nn.Sequential(*(Noting() for _ in range(8)))
    with recomputing(MIB) as trainer:
        trainer.train(model)
        assert trainer.recompute.statistics()["modules"] > 0
        arguments.clear()
        x = torch.ones(64, WIDTH)
        with saved_tensors_hooks(torch.Tensor.clone, torch.Tensor.clone):
            loss = model(x).square().mean()
            assert [each() is x for each in arguments if each() is not None] == [True]
            loss.backward()


def test_what_copies_spare_sooner_is_not_run_again() -> None:
    for seconds_of_a_byte, is_run_again in ((1.0, True), (1e-9, False)):
        with recomputing(MIB) as trainer:
            trainer.recompute._seconds_of_copies = lambda each=seconds_of_a_byte: each
            trainer.train(blocks())
            assert bool(trainer.recompute.statistics()["modules"]) is is_run_again


def test_more_is_run_again_where_what_is_dropped_did_not_get_less() -> None:
    with recomputing(MIB // 8) as trainer:
        recompute, model = trainer.recompute, blocks()
        recompute._budget_bytes = 4 * MIB
        assert not recompute.keep_less()  # nothing is known yet
        trainer.train(model)
        spared_bytes = [recompute.spared_bytes]
        assert recompute.keep_less()  # calls were chosen just now: what came of it is not known
        trainer.train(model, 1)
        assert recompute.spared_bytes == spared_bytes[0]
        answers = []
        for _ in range(10):
            answers.append(recompute.keep_less())
            trainer.train(model, 1)
            spared_bytes.append(recompute.spared_bytes)
        assert answers[0]
        assert spared_bytes[1] > spared_bytes[0]
        assert not answers[-1]
        assert spared_bytes == sorted(spared_bytes)
        assert spared_bytes[-1] - spared_bytes[0] <= MIB + MIB // 4  # a quarter, and a call


def test_tensor_that_is_given_twice_is_the_same_one_when_a_module_is_run_again() -> None:
    """Attention of torch's own asks whether its query is its key."""

    def work(trainer: Trainer) -> list[torch.Tensor]:
        model = nn.ModuleList(nn.MultiheadAttention(WIDTH, 4) for _ in range(6))
        found = []

        def forward() -> torch.Tensor:
            x = torch.ones(64, 1, WIDTH).requires_grad_() * 1
            for module in model:
                x = x + module(x, x, value=x, need_weights=False)[0]
            return x.square().mean()

        for _ in range(5):
            loss = trainer.forward(forward)
            found += [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]
        return found

    of_both(work)


class _NamedByNumber(nn.Module):
    """Calls what is in it by names that are others in each one."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.add_module(f"norm_{number}", nn.BatchNorm1d(WIDTH))
        self.add_module(f"wide_{number}", nn.Linear(WIDTH, 4 * WIDTH))
        self.add_module(f"narrow_{number}", nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm, wide, narrow = self.children()
        found: torch.Tensor = x + narrow(wide(norm(x)).sin().tanh())
        return found


def test_modules_that_differ_in_names_only_are_run_again() -> None:
    def work(trainer: Trainer) -> list[torch.Tensor]:
        model = nn.Sequential(*map(_NamedByNumber, range(6)))
        trainer.train(model)
        return list(model.state_dict().values())

    of_both(work)


def test_nothing_is_run_again_where_the_program_forbids_hooks() -> None:
    def work(trainer: Trainer) -> list[torch.Tensor]:
        model = blocks()
        trainer.train(model)
        with torch.autograd.graph.disable_saved_tensors_hooks("none here"):
            loss = model(torch.ones(64, WIDTH)).square().mean()
        return list(torch.autograd.grad(loss, list(model.parameters())))

    of_both(work)


class _Waved(nn.Module):
    """Keeps several times as much as its argument; what comes before that differs by class."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.drop = [0.0]
        self.register_buffer("told", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = x + self.narrow(self.first(x, self.wide(x)).sin().tanh())
        return found

    def first(self, _x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y

    def after(self) -> None:
        """What the program does between the forward and the backward pass."""


class _DroppedLater(_Waved):
    def first(self, _x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(y, self.drop[0]) if self.drop[0] else y * 1

    def after(self) -> None:
        self.drop[0] = 0.5


class _Warming(_Waved):
    def first(self, _x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.told += 1
        return y * 3 if self.told == 6 else y * 2


class _Largest(_Waved):
    """Scales by the largest value before this call."""

    def first(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y = y / (1 + self.told)
        self.told.copy_(torch.maximum(self.told, x.detach().abs().max()))
        return y


class _CountingLarge(_Waved):
    def first(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.detach().abs().max() > 16:
            self.told += 1
        return y


class _Attending(_Waved):
    def first(self, _x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        heads = y.view(1, 64, 4, WIDTH).transpose(1, 2)
        found = nn.functional.scaled_dot_product_attention(heads, heads, heads)
        return found.transpose(1, 2).reshape(y.shape)


@pytest.mark.parametrize("kind", [_DroppedLater, _Warming, _Largest, _CountingLarge, _Attending])
def test_call_that_is_unlike_the_one_that_was_tried_repeats_itself(kind: type[_Waved]) -> None:
    def work(trainer: Trainer) -> list[torch.Tensor]:
        model = nn.ModuleList(kind() for _ in range(6))
        x = torch.randn(64, WIDTH).clamp(-2, 2)
        found = []

        def forward() -> torch.Tensor:
            y = x * (1 if step < 5 else 16) * 1
            with sdpa_kernel(SDPBackend.MATH):
                for module in model:
                    y = module(y)
            return y.square().mean()

        for step in range(7):
            loss = trainer.forward(forward)
            if trainer.needed_bytes and step == 4:
                assert trainer.recompute.statistics()["modules"] > 0
            found += [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]
            if step == 4:
                for module in model:
                    module.after()
        return [*found, *model.buffers()]

    torch.manual_seed(0)
    expected = work(Trainer())
    torch.manual_seed(0)
    with recomputing(MIB // 4) as trainer:
        assert same(work(trainer), expected)
        is_refused = (
            "it changes a buffer in some of its calls"
            in (trainer.recompute.statistics()["refusals"])
        )
        assert is_refused is (kind is _CountingLarge)


class _Shifting(_Waved):
    def first(self, _x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y + self.told

    def after(self) -> None:
        self.told += 1


def test_module_whose_buffers_the_program_changes_later_is_not_run_again() -> None:
    def losses_of(trainer: Trainer) -> list[float]:
        torch.manual_seed(0)
        model = nn.ModuleList(_Shifting() for _ in range(6))

        def forward(x: torch.Tensor) -> torch.Tensor:
            for module in model:
                x = module(x)
            for module in model:
                module.after()
            return x

        forward.parameters = model.parameters  # type: ignore[attr-defined]
        return trainer.train(forward)

    expected = losses_of(Trainer())
    with recomputing(MIB // 4) as trainer:
        assert losses_of(trainer) == expected
        assert trainer.recompute.statistics()["modules"] == 0


class _Biased(_Waved):
    """Ends with a parameter whose gradient comes before anything that was kept is needed."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.bias


@pytest.mark.parametrize("is_late", [False, True])
def test_optimizers_may_step_within_the_backward_pass(is_late: bool) -> None:
    def work(trainer: Trainer) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(*(_Biased() for _ in range(6)))

        def steps_within() -> None:
            for parameter in model.parameters():
                optimizer = torch.optim.SGD([parameter], lr=0.01)

                def step(_: torch.Tensor, optimizer: torch.optim.SGD = optimizer) -> None:
                    optimizer.step()
                    optimizer.zero_grad()

                parameter.register_post_accumulate_grad_hook(step)

        x = torch.randn(64, WIDTH)
        for step in range(7):
            if step == (4 if is_late else 0):
                steps_within()
            trainer.forward(lambda: model(x).square().mean()).backward()
        return list(model.parameters())

    expected = work(Trainer())
    with recomputing(MIB // 4) as trainer:
        assert same(work(trainer), expected)


def test_hooks_of_the_program_get_all_that_autograd_keeps() -> None:
    budget_bytes, seen = 20_000, [0]
    recompute = Recomputation(CPU, budget_bytes, clock)
    model = transformer()

    def count(tensor: torch.Tensor) -> torch.Tensor:
        seen[0] += 1
        return tensor

    def counted() -> int:
        seen[0] = 0
        with saved_tensors_hooks(count, count):
            gradients(model, 1)
        return seen[0]

    with copying(
        budget_bytes, lambda: 2 * budget_bytes - recompute.spared_bytes, recompute=recompute
    ):
        gradients(model, 12)
        assert recompute.statistics()["modules"] > 0
        found = counted()
    assert found == counted() > 0
