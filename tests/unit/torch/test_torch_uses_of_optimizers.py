# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What optimisers use is announced: gradients, also those that are added to, and their state."""

from __future__ import annotations

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
    optimizer = torch.optim.SGD(model.parameters())
    with announcing(budget_bytes=fit * 16 * 16 * 4) as announced:
        model(torch.ones(1, 16)).sum().backward()
        announced.groups.clear()
        optimizer.step()
        assert [len(group) for group in announced.groups] == [announced_total]


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
