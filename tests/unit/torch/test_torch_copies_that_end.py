# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Copies of what is changed meanwhile, and of graphs that are dropped: torch's errors, no rest."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

from rmm_uvm.errors import DriverError
from rmm_uvm.torch.activations.copied import CopiedActivations
from rmm_uvm.torch.activations.copies import Copy, State

from ...support.announced_uses import batch, hooks_there
from ...support.late_streams import copying
from ...support.small_transformer import gradients, same, transformer


class ChangesInPlace(nn.Module):
    def __init__(self, between: int) -> None:
        super().__init__()
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x * 2
        out = kept.square()
        for _ in range(self.between):
            out = out.sin()
        kept.add_(1)
        return out.sin().sin().sin()


def test_change_while_its_copy_is_under_way_is_torchs_error() -> None:
    def error() -> str:
        with pytest.raises(RuntimeError) as caught:
            ChangesInPlace(0)(batch().requires_grad_()).sum().backward()
        return str(caught.value)

    expected = error().partition(", which is")[0]
    for budget_bytes in (256, 1 << 20):  # let go before the backward pass, and in it
        with copying(budget_bytes):
            found = error()
            assert found.partition(" [")[0] == expected.partition(" [")[0]
            assert "is at version 1; expected version 0" in found


def test_change_after_its_copy_was_made_changes_nothing() -> None:
    x = batch().requires_grad_()
    with copying(256):
        ChangesInPlace(8)(x).sum().backward()
    gradient = x.grad
    x.grad = None
    out = (x * 2).square()
    for _ in range(11):
        out = out.sin()
    out.sum().backward()
    assert torch.equal(gradient, x.grad)


def test_memory_that_is_shared_beside_torchs_count_of_changes_is_copied_twice() -> None:
    class Shares(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = x * 2
            out = kept.square()
            kept.data.add_(1)  # torch does not see it
            other = kept.data.requires_grad_()
            return out + other.mul(1).square()

    with copying() as there:
        Shares()(batch().requires_grad_())
        assert there.counts()["copied_bytes"] == 2 * batch().nbytes


@pytest.mark.parametrize("error", [DriverError, MemoryError])
def test_end_goes_through_although_the_device_failed(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_args: object) -> None:
        raise error("an illegal address was read")

    before = hooks_there()
    with copying() as there:
        loss = transformer()(batch()).sum()
        for name in ("wait", "finish"):
            monkeypatch.setattr(there.streams, name, fails)
        assert there.announced.uses is not None
        there.announced.uses.end()
        assert hooks_there() == before
        monkeypatch.undo()
        loss.backward()


def test_interrupt_of_the_end_leaves_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    before = hooks_there()
    with copying() as there:
        transformer()(batch())
        monkeypatch.setattr(there.streams, "finish", interrupted)
        assert there.announced.uses is not None
        with pytest.raises(KeyboardInterrupt):
            there.announced.uses.end()
        assert hooks_there() == before
        monkeypatch.undo()


def test_graph_that_is_dropped_leaves_nothing() -> None:
    with copying(1024) as there:
        model = transformer()
        out = model(batch())
        assert there.copies._bytes[State.AWAY] > 0
        del out
        gc.collect()
        assert not any(there.copies._bytes.values())
        assert not there.copies._states.away_before(1 << 60, 1)
        assert not there.copies._by_key


def test_copy_whose_end_has_begun_is_not_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it waits for the lock in one thread, weak references give it to another."""
    begun: list[bool] = []
    forget = CopiedActivations._forget

    def told(copies: CopiedActivations, copy: Copy) -> None:
        begun.append(copy.ending)
        forget(copies, copy)

    monkeypatch.setattr(CopiedActivations, "_forget", told)
    with copying() as there:
        x = batch() * 2
        first, same_bytes = (there.copies.keep(x, x.detach(), x._version) for _ in range(2))
        assert first.copy is not None
        assert first.copy is same_bytes.copy
        first.copy.ending = True
        second = there.copies.keep(x, x.detach(), x._version)
        assert second.copy is not first.copy
        assert torch.equal(there.copies.need(second), x)
        first.copy.ending = False
        del first, same_bytes, second
        gc.collect()
        assert begun == [True, True]
        assert not any(there.copies._bytes.values())


def test_graph_that_is_dropped_half_way_leaves_nothing_and_the_next_is_right() -> None:
    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x * 1
            x.register_hook(self._raise)
            return x

        def _raise(self, _gradient: torch.Tensor) -> None:
            raise ValueError("on purpose")

    expected = gradients(transformer())
    with copying(1024) as there:
        model = nn.Sequential(transformer(), Fails(), transformer())
        with pytest.raises(ValueError, match="on purpose"):
            model(batch()).sum().backward()
        gc.collect()
        assert not any(there.copies._bytes.values())
        assert same(gradients(transformer()), expected)


def test_what_came_ahead_and_is_not_used_is_waited_for_before_its_memory_goes() -> None:
    class Chain(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for number in range(12):
                x = x.sin()
                if number == 6:
                    x.register_hook(self._raise)
            return x

        def _raise(self, _gradient: torch.Tensor) -> None:
            raise ValueError("on purpose")

    with copying(256) as there:
        out = Chain()(batch().requires_grad_())
        with pytest.raises(ValueError, match="on purpose"):
            out.sum().backward()
        assert there.copies._bytes[State.AHEAD] > 0
        del out
        gc.collect()
        assert not any(there.copies._bytes.values())
