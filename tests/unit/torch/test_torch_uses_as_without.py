# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import copy
import gc
import pickle
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from ...support.announced_uses import (
    announcing,
    autograd,
    batch,
    counting_hooks,
    small_model,
    top_hooks,
)


class Spoils(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x.exp()
        out = kept * 2
        if self.spoil:
            kept.add_(1)
        return out


@pytest.mark.parametrize("spoil", [False, True])
def test_change_of_a_saved_tensor_fails_as_without(spoil: bool) -> None:
    model = Spoils()
    model.spoil = spoil

    def message() -> str:
        try:
            model(torch.ones(3, requires_grad=True)).sum().backward()
        except RuntimeError as error:
            return str(error)
        return ""

    without = message()
    with announcing():
        found = message()
    assert bool(found) == spoil
    # Torch knows the operation as well; the rest is word for word the same.
    same = re.sub(", which is output 0 of [A-Za-z0-9]+,", "", without).partition("Hint")[0]
    assert found.partition("Hint")[0] == same
    assert ("set_detect_anomaly" in found) == spoil


class Mark:
    """Lives as long as the node of a graph that it was put on."""

    def __init__(self, output: torch.Tensor) -> None:
        assert output.grad_fn is not None
        output.grad_fn.metadata["mark"] = self


def alive_after(make: Callable[[], list[Any]]) -> list[bool]:
    gc.collect()
    gc.disable()
    try:
        there = [weakref.ref(one) for one in make()]
        return [one() is not None for one in there]
    finally:
        gc.enable()


@pytest.mark.parametrize("backward", [False, True])
def test_no_tensor_module_or_graph_lives_longer_than_without(backward: bool) -> None:
    def made() -> list[Any]:
        model = nn.Sequential(
            nn.Linear(8, 8), nn.Sigmoid(), nn.Tanh(), nn.Softmax(-1), nn.ReLU(), nn.Linear(8, 2)
        )
        x = batch().requires_grad_()
        y = model(x)
        middle = torch.softmax(y.exp(), -1)
        if backward:
            middle.sum().backward()
        return [x, y, middle, Mark(y), Mark(middle), model, *model.parameters()]

    assert not any(alive_after(made))
    with announcing():
        assert not any(alive_after(made))


def test_outputs_that_autograd_keeps_die_within_a_module() -> None:
    class Keeps(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = x.exp()  # kept by its own graph
            self.there = weakref.ref(out)
            return out

    def made() -> list[Any]:
        module = Keeps()
        out = module(batch().requires_grad_())
        return [out, Mark(out), module]

    with announcing():
        assert not any(alive_after(made))


def test_several_threads_train_at_once() -> None:
    def train(results: list[torch.Tensor]) -> None:
        with lock:  # the seed is everybody's
            model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            model(batch()).square().mean().backward()
            optimizer.step()
        assert top_hooks() is None
        results.append(next(iter(model.parameters())).detach())

    lock = threading.Lock()
    expected: list[torch.Tensor] = []
    train(expected)
    found: list[torch.Tensor] = []
    with announcing() as announced:
        threads = [threading.Thread(target=train, args=(found,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert announced.steps == 80
    assert len(found) == 4
    assert all(torch.equal(one, expected[0]) for one in found)


def test_double_backward_gives_what_it_gives_without() -> None:
    def penalty() -> list[torch.Tensor]:
        model = small_model()
        x = batch().requires_grad_()
        (gradient,) = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
        gradient.square().sum().backward()
        return [x.grad, *(parameter.grad for parameter in model.parameters())]

    expected = penalty()
    with announcing():
        found = penalty()
    for one, other in zip(found, expected, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_functional_transforms_of_a_model_give_what_they_give_without() -> None:
    def results() -> list[torch.Tensor]:
        model = small_model()
        weights = {name: one.detach() for name, one in model.named_parameters()}

        def loss(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
            return torch.func.functional_call(model, weights, (x,)).square().sum()

        per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, batch())
        jacobian = torch.func.jacrev(model)(batch()[0])
        several = torch.func.vmap(model)(batch()[None].expand(3, -1, -1))
        return [*per_sample.values(), jacobian, several]

    expected = results()
    with announcing():
        found = results()
        assert top_hooks() is None
        assert autograd._saved_tensors_hooks_is_enabled()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


class Physics(nn.Module):
    """Differentiates its own inner model in its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        slope = torch.func.vmap(torch.func.grad(lambda one: self.inner(one).sum()))(x)
        assert top_hooks() is not None or not self.announced
        return self.inner(x + slope)


def test_functional_transform_within_a_model_works_as_without() -> None:
    def gradients(*, announced: bool) -> list[torch.Tensor]:
        model = Physics()
        model.announced = announced
        model(batch()).sum().backward()
        return [parameter.grad for parameter in model.parameters()]

    expected = gradients(announced=False)
    with announcing():
        found = gradients(announced=True)
        assert top_hooks() is None
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_functional_transform_under_the_programs_own_hooks_is_refused_as_without() -> None:
    class Wraps(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with counting_hooks():
                return torch.func.grad(lambda one: one.exp().sum())(x)

    with announcing():
        with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
            Wraps()(batch())
        assert top_hooks() is None
        assert torch.func.grad(lambda one: one.exp().sum())(batch()).shape == (5, 8)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("compiled_before", [False, True])
def test_compiled_model_gives_what_it_gives_without(
    backend: str, compiled_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # dynamo's, which leaves a thread
    torch._dynamo.reset()
    model = small_model()
    compiled = torch.compile(model, backend=backend)

    def gradients() -> list[torch.Tensor]:
        model.zero_grad()
        compiled(batch()).square().sum().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    if compiled_before:
        expected = gradients()
    else:
        small = small_model()
        small(batch()).square().sum().backward()
        expected = [parameter.grad for parameter in small.parameters()]
    with announcing() as announced:
        for _ in range(2):
            found = gradients()
            assert top_hooks() is None
        assert announced.groups  # what autograd keeps is announced
    assert all(torch.allclose(a, b) for a, b in zip(found, expected, strict=True))
    assert all(torch.allclose(a, b) for a, b in zip(gradients(), expected, strict=True))
    torch._dynamo.reset()


class Rows(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, row: int) -> torch.Tensor:
        return nn.Identity()(torch.full((8,), float(row)))  # a module within a worker


@pytest.mark.parametrize("number", [1, 2])
def test_workers_of_a_data_loader_work_as_without(number: int) -> None:
    with announcing():
        loader = torch.utils.data.DataLoader(
            Rows(), batch_size=4, num_workers=number, multiprocessing_context="fork"
        )
        model = small_model()
        total = sum(float(part.sum()) for part in loader)
        model(next(iter(loader))).sum().backward()
    assert total == 8 * sum(range(12))


def test_modules_are_copied_and_pickled_as_without() -> None:
    model = small_model()
    model(batch())
    expected = pickle.dumps(model)
    with announcing():
        model(batch())
        assert pickle.dumps(model) == expected
        other = copy.deepcopy(model)
        assert torch.equal(other(batch()), model(batch()))


def losses(steps: int) -> list[float]:
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(batch()).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def test_losses_of_fifty_steps_are_the_same_to_the_bit() -> None:
    expected = losses(50)
    with announcing() as announced:
        assert losses(50) == expected
        assert announced.steps == 50
    assert expected[-1] < expected[0]
