# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of all kinds with what autograd keeps copied: they get what they get without."""

from __future__ import annotations

import gc
import random
import threading

import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from rmm_uvm.torch.activations.copies import State

from ...support.announced_uses import batch, small_model
from ...support.late_streams import LateStreams, copying
from ...support.small_transformer import gradients, same, transformer
from .test_torch_copies import BUDGETS


def test_gradients_are_accumulated_as_without() -> None:
    def accumulated() -> list[torch.Tensor]:
        model = transformer()
        torch.manual_seed(6)
        for factor in (1.0, 2.0, 3.0):
            model(batch() * factor).square().mean().backward()
        return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]

    expected = accumulated()
    with copying(512) as there:
        assert same(accumulated(), expected)
        assert there.copies.statistics()["needed_bytes"] is not None  # each is a round


@pytest.mark.parametrize("budget_bytes", BUDGETS)
def test_double_backward_gives_the_same(budget_bytes: int) -> None:
    def penalty() -> torch.Tensor:
        model = small_model()
        x = batch().requires_grad_()
        (slope,) = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
        slope.square().sum().backward()
        gradient = model[0].weight.grad
        assert gradient is not None
        return gradient

    expected = penalty()
    with copying(budget_bytes):
        assert torch.equal(penalty(), expected)


def test_several_threads_train_at_once() -> None:
    def work(number: int) -> None:
        for model in models[number]:
            (model(x).square().mean() * (number + 1)).backward()
            found[number] = [one.grad for one in model.parameters() if one.grad is not None]

    found: dict[int, list[torch.Tensor]] = {}
    # Made here: threads have one seed among them.
    models, x = [[small_model() for _ in range(10)] for _ in range(3)], batch()
    expected = [one * 1 for one in gradients(small_model(), 1)]
    with copying(256) as there:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert there.counts()["copied_bytes"] > 0
        assert not any(there.copies._bytes.values())
    for number, each in found.items():
        assert all(torch.allclose(a, b * (number + 1)) for a, b in zip(each, expected, strict=True))
    assert len(found) == 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_model_gives_what_it_gives_without(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # dynamo's, which leaves a thread

    def compiled() -> list[torch.Tensor]:
        torch._dynamo.reset()
        model = small_model()
        run = nn.Sequential(torch.compile(model, backend=backend), nn.Tanh())
        run(batch()).square().mean().backward()
        return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]

    expected = compiled()
    with copying(256) as there:
        assert same(compiled(), expected)
        assert there.counts()["copied_bytes"] > 0


def test_functional_transform_gives_what_it_gives_without() -> None:
    def slopes() -> torch.Tensor:
        model = small_model()

        def loss(x: torch.Tensor) -> torch.Tensor:
            return model(x).square().sum()

        found: torch.Tensor = torch.func.vmap(torch.func.grad(loss))(batch())
        return found

    expected = slopes()
    with copying():
        assert torch.equal(slopes(), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.float64])
def test_types_and_strides_come_back_as_they_were(dtype: torch.dtype) -> None:
    class Keeps(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = (x.to(dtype) * 2).view(5, 2, 4).transpose(0, 2)
            return (x * x.conj()).abs() + (x[1:, :, ::2].square().abs().sum())

    class Chain(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(3):
                x = Keeps()(x).reshape(-1)[:40].view(5, 8)
            return x

    def chained() -> torch.Tensor:
        x = batch().requires_grad_()
        Chain()(x).sum().backward()
        assert x.grad is not None
        return x.grad

    expected = chained()
    with copying(256) as there:
        assert torch.equal(chained(), expected)
        assert there.counts()["returned_bytes"] > 0


def test_device_memory_of_what_was_copied_goes_although_the_graph_stays() -> None:
    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.storages: list[StorageWeakRef] = []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(12):
                x = x.sin()
                self.storages.append(StorageWeakRef(x.untyped_storage()))
            return x

    def alive(chain: Chain) -> int:
        return sum(not one.expired() for one in chain.storages) * batch().nbytes

    chain = Chain()
    kept = chain(batch().requires_grad_())
    assert alive(chain) == 12 * batch().nbytes
    del kept
    chain = Chain()
    most_leaving_bytes = 3 * batch().nbytes
    with copying(8 * most_leaving_bytes) as there:
        out = chain(batch().requires_grad_())
        # What is on its way, and the end of the chain, which the program has.
        assert alive(chain) <= most_leaving_bytes + 2 * batch().nbytes
        out.sum().backward(retain_graph=True)
        assert alive(chain) <= most_leaving_bytes + 2 * batch().nbytes
        assert there.copies._bytes[State.AHEAD] == there.copies._bytes[State.THERE] == 0
        del out
        gc.collect()
        assert alive(chain) == 0


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_get_what_they_get_without(seed: int) -> None:
    def results(budget_bytes: int | None) -> list[torch.Tensor]:
        if budget_bytes is None:
            return run()
        streams = LateStreams(host_bytes=choose.choice([2000, 20000, 1 << 30]))
        with copying(budget_bytes, lambda: live_bytes, streams):
            return run()

    def run() -> list[torch.Tensor]:
        choice = random.Random(seed)
        torch.manual_seed(seed)
        models = [choice.choice([small_model, transformer])() for _ in range(3)]
        found: list[torch.Tensor] = []
        graphs: list[tuple[nn.Module, torch.Tensor]] = []
        for _ in range(12):
            what = choice.choice(["forward", "forward", "backward", "retain", "drop", "double"])
            if what == "forward" or not graphs:
                model = choice.choice(models)
                graphs.append((model, model(batch() * choice.random()).square().mean()))
                continue
            model, loss = graphs.pop(choice.randrange(len(graphs)))
            if what == "drop":
                continue
            parameters = [one for one in model.parameters() if one.requires_grad]
            slopes = torch.autograd.grad(
                loss, parameters, retain_graph=what != "backward", create_graph=what == "double"
            )
            if what == "double":
                total = torch.stack([one.square().sum() for one in slopes]).sum()
                slopes = torch.autograd.grad(total, parameters, allow_unused=True)
            found += [one.detach() for one in slopes if one is not None]
            if what == "retain":
                graphs.append((model, loss))
        return found

    choose = random.Random(-seed - 1)
    live_bytes = choose.choice([0, 3000, 6000, 1 << 40])
    expected = results(None)
    assert same(results(choose.choice([64, 256, 1024, 4096, 1 << 16])), expected)
