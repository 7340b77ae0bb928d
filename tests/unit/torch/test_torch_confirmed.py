# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Once copies make a step fit, only what autograd keeps is announced, until something leaves."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import rmm_uvm.torch
from rmm_uvm.torch.uses import Uses

from ...support.announced_uses import address_of, announcing, batch, small_model
from ...support.fake_torch_cuda import FakeTorchCuda
from ...support.late_streams import LateStreams, copying
from ...support.small_transformer import gradients, same, transformer
from .test_torch_copying_memory import activations_of, late, train
from .test_torch_memory import make_pool

__all__ = ["late"]
MIB = 1 << 20


class Flag:
    """Whether all is there, and how often it was asked to look."""

    def __init__(self, *, there: bool = True) -> None:
        self.there, self.looks_total = there, 0

    def look(self) -> None:
        self.looks_total += 1

    def __call__(self) -> bool:
        return self.there


def test_while_all_is_there_only_what_autograd_keeps_is_announced() -> None:
    flag = Flag(there=False)
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters())
    # Nothing of what is kept leaves: it is known that all fits.
    with copying(1 << 40, live_bytes=int, confirmed=flag) as there:
        found = []
        for flag.there in (False, False, True, False):
            there.announced.groups.clear()
            there.announced.measured.clear()
            there.announced.name(model)
            loss = model(batch()).sum()
            before = len(there.announced.groups)
            loss.backward()
            needed_total = len(there.announced.groups) - before
            assert (needed_total == 0) is flag.there
            optimizer.step()
            found.append((there.announced.named(), len(there.announced.measured)))
        (_, kept_total), full, none, again = found
        assert again == full
        assert full[0][0] == ("0.weight", "0.bias")  # a module, before the optimiser's step
        parameters = {name for name, _ in model.named_parameters()}
        assert {name for group in full[0] for name in group} == parameters
        kept = [group for group in none[0] if len(group) > 1]
        assert kept == []  # neither modules nor the optimiser's step
        assert none[1] == kept_total  # how long they are is told all the same


def test_gradients_are_the_same_while_all_is_there() -> None:
    expected = gradients(transformer())
    with copying(1024, confirmed=Flag()):
        assert same(gradients(transformer()), expected)


def test_new_modules_are_announced_once_although_all_is_there() -> None:
    model = nn.Linear(8, 8)
    model.weight.requires_grad_(False)
    with copying(256, confirmed=Flag()) as there:
        there.announced.name(model)
        x = batch().requires_grad_()
        model(x).sum().backward()
        assert ("weight", "bias") in there.announced.named()
        # What autograd keeps of it is a view of what stays: not copied.
        assert there.counts()["copied_bytes"] == 0
        there.announced.groups.clear()
        model(x).sum().backward()
        assert ("weight", "bias") not in there.announced.named()


def test_a_module_in_the_place_of_one_that_is_gone_is_announced() -> None:
    with copying(256, confirmed=Flag()) as there:
        before = set()
        for _ in range(100):  # until the id of one that is gone is used again
            model = nn.Linear(8, 8)
            there.announced.groups.clear()
            there.announced.name(model)
            model(batch())
            assert ("weight", "bias") in there.announced.named()
            again = id(model) in before
            before.add(id(model))
            del model
            if again:
                return
        pytest.fail("no id was used again")


def test_frozen_weights_that_are_replaced_while_all_is_there_are_not_copied() -> None:
    model = nn.Linear(8, 8)
    model.weight.requires_grad_(False)
    with copying(256, confirmed=Flag()) as there:
        x = batch().requires_grad_()
        model(x).sum().backward()
        model.double().float()
        model(x).sum().backward()
        assert there.counts()["copied_bytes"] == 0


def test_what_came_back_is_announced_although_all_was_there() -> None:
    with copying(256, confirmed=Flag()) as there:
        out = transformer()(batch()).square().mean()
        kept = {address for group in there.announced.groups for address in group}
        there.announced.groups.clear()
        out.backward()
        assert there.counts()["returned_bytes"] > 0
        assert {address for group in there.announced.groups for address in group} - kept


def test_it_is_looked_after_rounds_of_which_nothing_else_left() -> None:
    evicted_bytes = 0
    flag = Flag()
    with copying(1024, lambda: 4096, evicted_bytes=lambda: evicted_bytes, confirm=flag.look):
        looks = []
        for more in (0, 0, 10, 0, 0, 10, 0):  # until each round ends
            gradients(transformer(), 1)
            looks.append(flag.looks_total)
            evicted_bytes += more
        # Of the first round it was not known what has to leave; after an eviction it takes two.
        assert looks == [0, 0, 1, 1, 1, 2, 2]


def test_without_copies_it_is_announced_as_ever() -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with announcing() as announced:
        announced.name(model)
        for _ in range(2):
            announced.groups.clear()
            model(batch()).sum().backward()
            optimizer.step()
        weight = next(model.parameters())
        assert [address_of(weight), address_of(model[0].bias)] in announced.groups


def test_nobody_is_asked_after_the_end() -> None:
    flag = Flag()
    with copying(256, confirmed=flag, confirm=flag.look, evicted_bytes=flag.__call__) as there:
        out = transformer()(batch()).square().mean()
    gone = weakref.ref(flag)
    del flag, there
    gc.collect()
    assert gone() is None  # although the graph is still there, which leads to us
    out.backward()


def test_uses_of_a_pool_are_not_learnt_from_the_round_after_one_that_fitted(
    cuda: FakeTorchCuda, late: LateStreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirmed: list[Callable[[], bool]] = []

    def uses(*arguments: Any, **named: Any) -> Uses:
        confirmed.append(named["confirmed"])
        return Uses(*arguments, **named)

    monkeypatch.setattr("rmm_uvm.torch.memory.Uses", uses)
    mr = make_pool(64)
    with rmm_uvm.torch.managed(mr=mr, activations="copy") as memory:
        kept = [cuda.allocate(20 * MIB) for _ in range(3)]
        gone = cuda.allocate(30 * MIB)

        def learnt_in_a_round() -> int:
            before = memory.statistics()["residency"]["wanted_bytes"]
            train()
            use = [(address, 20 * MIB, address) for address in kept]
            mr.managed_mr.residency.touch_all(use)  # what a program uses on the device
            after: int = memory.statistics()["residency"]["wanted_bytes"]
            return after - before

        assert memory.acting
        learnt_in_a_round()  # brings what left for the fourth one, for which there is no room
        cuda.free(gone)
        assert learnt_in_a_round() == 60 * MIB
        assert activations_of(memory)["needed_bytes"] is not None
        assert not confirmed[0]()
        assert [learnt_in_a_round() for _ in range(2)] == [0, 0]
        assert confirmed[0]()
        assert mr.managed_mr.residency.evict(kept[0], 20 * MIB) >= 16 * MIB
        assert learnt_in_a_round() == 60 * MIB  # and brings it back
        assert [learnt_in_a_round() for _ in range(2)] == [60 * MIB, 0]
        confirmed.clear()
