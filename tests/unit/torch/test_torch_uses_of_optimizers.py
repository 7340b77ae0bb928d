# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What optimisers use is announced: gradients, also those that are added to, and their state."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import nn

from ...support.announced_uses import address_of, announcing, batch, small_model


@pytest.mark.parametrize(("fit", "announced_total"), [(10, 8), (8, 4), (3, 1)])
def test_optimizer_that_uses_more_than_fits_is_announced_as_far_as_half_of_it_fits(
    fit: int, announced_total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmm_uvm.torch.extents.VA_BLOCK_BYTES", 64)
    model = nn.Sequential(*(nn.Linear(16, 16, bias=False) for _ in range(4)))
    optimizer = _OfTheProgram(model.parameters(), {})
    with announcing(budget_bytes=fit * 16 * 16 * 4) as announced:
        model(torch.ones(1, 16)).sum().backward()
        announced.groups.clear()
        optimizer.step()
        assert [len(group) for group in announced.groups] == [announced_total]


class _OfTheProgram(torch.optim.Optimizer):
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        assert closure is None


OPTIMIZERS = {
    "Adadelta": {},
    "Adagrad": {},
    "Adam": {"amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"fused": True},
    "Adamax": {},
    "ASGD": {},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": {"momentum": 0.5, "centered": True},
    "Rprop": {},
    "SGD": {"momentum": 0.9, "foreach": True},
}


def steps_of(name: str, settings: dict[str, object]) -> tuple[list[torch.Tensor], list[object]]:
    """Return parameters and states after three steps of two groups, without a gradient for one."""
    torch.manual_seed(1)
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(6)))
    kind = getattr(torch.optim, name)
    half = [{"params": part.parameters()} for part in (model[:2], model[2:])]
    optimizer = kind(half, lr=0.01, **settings)
    for number in range(3):
        model(torch.full((2, 16), 0.5 + number)).square().sum().backward()
        model[number].bias.grad = None
        optimizer.step(lambda: torch.zeros(()))
        optimizer.zero_grad()
    state = optimizer.state_dict()["state"].values()
    return [*model.parameters()], [value for one in state for value in one.values()]


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS.items())
def test_step_in_parts_updates_as_a_whole_one(name: str, settings: dict[str, object]) -> None:
    expected = steps_of(name, settings)
    updates = importlib.import_module(f"torch.optim.{'adam' if name == 'AdamW' else name.lower()}")
    update = getattr(updates, updates.__name__.rpartition(".")[2])
    with announcing(budget_bytes=4 * 16 * 16 * 4) as announced:
        found = steps_of(name, settings)
        parts = [group for group in announced.groups if len(group) > 2]
        assert len(parts) >= 18  # of three steps of two groups
    for those, others in zip(expected, found, strict=True):
        for one, other in zip(those, others, strict=True):
            assert torch.equal(torch.as_tensor(one), torch.as_tensor(other))
    assert getattr(updates, updates.__name__.rpartition(".")[2]) is update
    assert len(expected[1]) > 6 or name == "SGD"


def test_step_that_fits_is_announced_and_taken_as_a_whole() -> None:
    with announcing(budget_bytes=1 << 20) as announced:
        steps_of("Adam", {})
        assert max(len(group) for group in announced.groups) == 55  # of 11 parameters


def test_momentum_that_a_part_begins_is_there_in_the_next_step() -> None:
    weights = [torch.zeros(64), torch.zeros(64)]
    optimizer = torch.optim.SGD(weights, lr=1.0, momentum=0.5)
    with announcing(budget_bytes=64):
        for _ in range(2):
            for one in weights:
                one.grad = torch.ones(64)
            optimizer.step()
    assert [one[0].item() for one in weights] == [-2.5, -2.5]  # 1, then 1 and a half


def test_step_that_is_given_its_state_by_name_is_taken_as_a_whole() -> None:
    weights = [torch.zeros(64), torch.zeros(64)]
    gradients = [torch.ones(64), torch.ones(64)]
    momentum: list[torch.Tensor | None] = [None, None]
    settings = {"weight_decay": 0, "momentum": 0.5, "dampening": 0, "nesterov": False}
    with announcing(budget_bytes=64):
        importlib.import_module("torch.optim.sgd").sgd(
            weights, gradients, momentum_buffer_list=momentum, lr=1.0, maximize=False, **settings
        )
    assert [one[0].item() for one in weights] == [-1.0, -1.0]
    assert all(one is not None for one in momentum)


def test_wrapper_of_the_program_stays_and_parts_end_beneath_it() -> None:
    calls = []
    module = importlib.import_module("torch.optim.sgd")
    ours = module.sgd
    with announcing(budget_bytes=64) as announced:
        beneath = module.sgd
        assert beneath is not ours

        def theirs(*args: object, **kwargs: object) -> None:
            calls.append(len(args[0]))
            beneath(*args, **kwargs)

        module.sgd = theirs
    try:
        weights = [torch.zeros(64, requires_grad=True) for _ in range(2)]
        for one in weights:
            one.grad = torch.ones(64)
        announced.groups.clear()
        torch.optim.SGD(weights, lr=1.0).step()
        assert module.sgd is theirs
        assert calls == [2]
        assert not announced.groups
        assert [one[0].item() for one in weights] == [-1.0, -1.0]
    finally:
        module.sgd = ours


def test_state_is_handed_out_to_be_kept_only_if_it_is_to_stay() -> None:
    for keep in (False, True):
        model = small_model()
        optimizer = torch.optim.Adam(model.parameters())
        with announcing(keep=keep) as announced:
            model(batch()).sum().backward()
            optimizer.step()
            assert len(announced.kept) == int(keep)
            if keep:
                parameters = {address_of(one) for one in model.parameters()}
                gradients = {address_of(one.grad) for one in model.parameters()}
                assert parameters < set(announced.kept[0])
                assert not gradients & set(announced.kept[0])


def test_gradients_are_accumulated_as_without() -> None:
    def gradients() -> list[torch.Tensor]:
        model = small_model()
        for part in batch().split(2):
            model(part).square().sum().backward()
        return [parameter.grad for parameter in model.parameters()]

    expected = gradients()
    with announcing():
        found = gradients()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_that_are_added_to_are_announced_with_what_their_module_kept(
    *, set_to_none: bool
) -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters())

    def announced_in(backward: torch.Tensor) -> list[list[int]]:
        announced.groups.clear()
        backward.backward()
        there = [[one for one in group if one in addresses] for group in announced.groups]
        return [group for group in there if group]

    with announcing() as announced:
        addresses: set[int] = set()
        first, second, *_ = batch().split(1)
        assert not announced_in(model(first).square().sum())  # they are made in it
        gradients = [parameter.grad for parameter in model.parameters()]
        addresses = {address_of(one) for one in gradients}
        each = [[address_of(one) for one in gradients[at : at + 2]] for at in (4, 2, 0)]
        assert announced_in(model(second).square().sum()) == each
        optimizer.zero_grad(set_to_none=set_to_none)
        assert bool(announced_in(model(first).square().sum())) is not set_to_none


def test_state_that_an_optimizer_keeps_in_lists_is_announced() -> None:
    model = nn.Linear(8, 8)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(batch()).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    [old] = [optimizer.state[parameter] for parameter in optimizer.state]
    assert old["old_dirs"]
    with announcing() as announced:
        optimizer.step(closure)
        assert address_of(old["old_dirs"][0]) in announced.groups[0]


def test_step_with_sparse_gradients_in_parts_updates_as_a_whole_one() -> None:
    def weights_of() -> list[torch.Tensor]:
        torch.manual_seed(1)
        tables = nn.ModuleList(nn.Embedding(32, 16, sparse=True) for _ in range(4))
        optimizer = torch.optim.SGD(tables.parameters(), lr=0.1, momentum=0.5)
        for number in range(3):
            for each in tables:
                each(torch.arange(number, 9)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return list(tables.parameters())

    expected = weights_of()
    with announcing(budget_bytes=4 * 32 * 16 * 4) as announced:
        found = weights_of()
        assert max(map(len, announced.groups)) < 4 * 2  # in parts
    assert all(map(torch.equal, found, expected))


class _NotForTogether(nn.Parameter):
    """A parameter that torch updates alone, and all others of its group, too."""


@pytest.mark.parametrize("alone", [False, True])
def test_parts_are_updated_by_the_kernels_that_the_whole_would_be(
    *, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("torch.optim.sgd")
    together: list[int] = []
    update = module._multi_tensor_sgd

    def updated(params: list[torch.Tensor], *args: object, **kwargs: object) -> None:
        together.append(len(params))
        update(params, *args, **kwargs)

    monkeypatch.setattr(module, "_multi_tensor_sgd", updated)
    chooser = importlib.import_module("torch.optim.optimizer")
    monkeypatch.setattr(chooser, "_get_foreach_kernels_supported_devices", lambda: ["cpu"])
    kinds = [nn.Parameter, nn.Parameter, _NotForTogether if alone else nn.Parameter]
    weights = [kind(torch.zeros(64)) for kind in kinds]
    for one in weights:
        one.grad = torch.ones(64)
    with announcing(budget_bytes=64):
        torch.optim.SGD(weights, lr=1.0).step()
    assert together == ([] if alone else [1, 1, 1])
    assert [one[0].item() for one in weights] == [-1.0, -1.0, -1.0]
