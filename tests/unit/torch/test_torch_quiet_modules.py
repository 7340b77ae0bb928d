# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Modules of which nothing leaves go without hooks, for as long as all that lives is there."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from rmm_uvm.torch.activations.copies import State

from ...support.announced_uses import batch, counting_hooks, top_hooks
from ...support.late_streams import Copying, copying
from ...support.small_transformer import gradients, same, transformer

LARGE = 64


class Wide(nn.Module):
    """Keeps much, and has parts that keep little."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, LARGE), nn.Linear(LARGE, 8)
        self.calm = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.exp(torch.tanh(self.first(x)))
        return self.calm(self.second(wide))  # type: ignore[no-any-return]


class Watch:
    """Which modules' calls had our hooks."""

    def __init__(self, model: nn.Module) -> None:
        self.seen: list[str] = []
        for name, module in model.named_modules():
            if not list(module.children()):
                module.register_forward_pre_hook(lambda *_, name=name: self._look(name))

    def _look(self, name: str) -> None:
        if top_hooks() is not None:
            self.seen.append(name)

    def taken(self) -> list[str]:
        seen, self.seen = self.seen, []
        return seen


def wide() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(Wide(), nn.Sequential(nn.Linear(8, 8), nn.Tanh()))


@contextmanager
def past(most_bytes: int, *, confirmed: bool = True) -> Iterator[Copying]:
    """Have so much live, of which 1024 bytes fit, but for what left."""
    holds: list[Copying] = []

    def live_bytes() -> int:
        return most_bytes - (holds[0].copies._bytes[State.AWAY] if holds else 0)

    with copying(1024, live_bytes, confirmed=lambda: confirmed) as there:
        holds.append(there)
        yield there


@contextmanager
def settled(model: nn.Module, *, confirmed: bool = True) -> Iterator[Copying]:
    """Have as much copied as is too much, since some rounds."""
    with past(1200, confirmed=confirmed) as there:
        for _ in range(5):
            model(batch()).sum().backward()
        yield there


def names_of(model: nn.Module) -> list[str]:
    return [name for name, one in model.named_modules() if not list(one.children())]


def test_of_modules_of_which_nothing_leaves_no_hook_is_called() -> None:
    model = wide()
    watch = Watch(model)
    with settled(model) as there:
        watch.taken()
        before = there.counts()["copied_bytes"]
        model(batch()).sum().backward()
        assert there.counts()["copied_bytes"] > before
        assert watch.taken() == ["0.second"]
        assert top_hooks() is None


def test_they_are_called_again_as_soon_as_something_is_away() -> None:
    model = wide()
    watch = Watch(model)
    with settled(model, confirmed=False):
        watch.taken()
        model(batch()).sum().backward()
        assert watch.taken() == names_of(model)


def test_gradients_and_copies_are_the_same_without_them() -> None:
    found = []
    for confirmed in (False, True):
        model = transformer()
        with past(1800, confirmed=confirmed) as there:
            grads = gradients(model, 8)
            found.append((grads, there.counts()["copied_bytes"], there.copies.progress()))
    assert same(found[0][0], gradients(transformer(), 8))
    assert same(found[1][0], found[0][0])
    assert found[1][1] == found[0][1]
    # Where autograd has got to is the same, whoever was asked.
    assert found[1][2] == found[0][2]


def test_what_keeps_something_else_is_looked_at_again() -> None:
    model = wide()
    with settled(model) as there:
        quiet = there.announced.uses._quiet  # type: ignore[union-attr]
        assert quiet is not None
        calm = model[0].calm
        assert quiet.is_quiet(calm)
        there.announced.uses._confirmed = bool  # type: ignore[union-attr]
        model(torch.ones(7, 8)).sum().backward()  # another shape
        assert not quiet.is_quiet(calm)
        for _ in range(2):
            model(torch.ones(7, 8)).sum().backward()
        assert quiet.is_quiet(calm)


def test_evaluation_and_recomputation_keep_nothing_and_change_nothing() -> None:
    model = wide()
    with settled(model) as there:
        quiet = there.announced.uses._quiet  # type: ignore[union-attr]
        assert quiet is not None
        before = there.copies.progress()
        with torch.no_grad():
            model(batch())
        assert there.copies.progress() == before
        assert quiet.is_quiet(model[0].calm)
        x = batch().requires_grad_()
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
        assert x.grad is not None
        assert quiet.is_quiet(model[0].calm)


def test_hooks_of_the_program_within_a_module_are_its_own() -> None:
    model = wide()
    with settled(model), counting_hooks() as counts:
        model(batch()).sum().backward()
        assert counts["kept"] == counts["needed"] > 0


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_error_within_a_quiet_module_brings_the_hooks_back(error: type[BaseException]) -> None:
    model = wide()
    watch = Watch(model)
    with settled(model) as there:
        handle = model[0].calm[1].register_forward_pre_hook(_raiser(error))
        with pytest.raises(error):
            model(batch())
        handle.remove()
        watch.taken()
        model(batch()).sum().backward()
        assert watch.taken() == ["0.second"]
        assert top_hooks() is None
        there.announced.uses._confirmed = bool  # type: ignore[union-attr]
        model(batch()).sum().backward()
        assert watch.taken() == names_of(model)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_module_that_catches_an_error_of_a_quiet_one_has_its_hooks(
    error: type[BaseException],
) -> None:
    class Catching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = wide()
            self.last = nn.Linear(8, LARGE)
            self.has_hooks = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                y = self.inner(x)
            except error:
                y = x
            y = self.last(y)
            self.has_hooks = top_hooks() is not None
            return torch.exp(y)

    torch.manual_seed(5)
    model = Catching()
    with settled(model) as there:
        assert there.announced.uses._quiet.is_quiet(model.inner[1])  # type: ignore[union-attr]
        handle = model.inner[1][1].register_forward_pre_hook(_raiser(error))
        model.has_hooks = False
        model(batch())
        handle.remove()
        assert model.has_hooks
        assert top_hooks() is None


def test_end_within_a_quiet_module_leaves_no_hooks() -> None:
    model = wide()
    with settled(model) as there:
        uses = there.announced.uses
        assert uses is not None
        handle = model[0].calm[1].register_forward_pre_hook(lambda *_: uses.end())
        model(batch()).sum().backward()
        handle.remove()
        assert top_hooks() is None


def test_quiet_module_by_itself_goes_without_hooks_and_counts() -> None:
    model = wide()
    calm = model[0].calm
    with settled(model) as there:
        before = there.copies.progress()
        calm(batch()).sum().backward()
        after = there.copies.progress().since(before)
        assert after.position > 0
        assert after.chosen_total == 0


def test_threads_have_their_own() -> None:
    model = wide()
    with settled(model):
        inside = []

        def look(*_: object) -> None:
            other = threading.Thread(target=lambda: inside.append(_has_hooks(model)))
            other.start()
            other.join()

        handle = model[0].calm[1].register_forward_pre_hook(look)
        model(batch()).sum().backward()
        handle.remove()
        assert inside == [True]


def test_modules_are_let_go_and_nothing_of_them_is_kept() -> None:
    model = wide()
    with settled(model) as there:
        uses = there.announced.uses
        assert uses is not None
        quiet = uses._quiet
        assert quiet is not None
        calm = model[0].calm
        assert quiet.is_quiet(calm)
        gone = len([*calm.modules()])
        kept, before = weakref.ref(calm), (len(quiet._records), len(uses._known))
        model[0].calm = nn.Identity()
        del calm
        gc.collect()
        assert kept() is None
        assert (len(quiet._records), len(uses._known)) == tuple(one - gone for one in before)


def _has_hooks(model: nn.Module) -> bool:
    found = []
    handle = model[0].second.register_forward_pre_hook(lambda *_: found.append(top_hooks()))  # type: ignore[union-attr,operator]
    model[0].second(torch.ones(5, LARGE))  # type: ignore[operator]
    handle.remove()
    return found[0] is not None


def _raiser(error: type[BaseException]) -> object:
    def fail(*_: object) -> None:
        raise error

    return fail
