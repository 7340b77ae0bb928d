# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch tells while somebody listens; meanwhile checkpointing recomputes to the end."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import pytest
import torch
from torch.utils import checkpoint

from rmm_uvm.torch import gpu_trace
from rmm_uvm.torch.gpu_trace import listen


@pytest.fixture
def switch() -> Iterator[ctypes.c_bool]:
    """Torch's own, which the build that tests run with does show."""
    found = gpu_trace._switch()
    assert found is not None
    before = found.value
    yield found
    found.value = before


@pytest.fixture(autouse=True)
def activated(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    calls: list[bool] = []
    monkeypatch.setattr(torch._C, "_activate_gpu_trace", lambda: calls.append(True))
    monkeypatch.setattr(checkpoint, "_enable_checkpoint_early_stop", None)
    return calls


def recomputed(between: Callable[[], object] = lambda: None) -> int:
    """Return how many functions of a checkpointed part ran again for the backward pass."""
    ran = []

    def work(x: torch.Tensor) -> torch.Tensor:
        ran.append("first")
        y = x.exp()  # which keeps its result; nothing after it keeps anything
        ran.append("second")
        return y + 1

    x = torch.ones(4, requires_grad=True)
    result = checkpoint.checkpoint(work, x, use_reentrant=False).sum()
    between()
    result.backward()
    return len(ran) - 2


def test_telling_is_on_while_anybody_listens(switch: ctypes.c_bool, activated: list[bool]) -> None:
    assert not switch.value
    first, second = listen(), listen()
    assert switch.value
    assert len(activated) == 1
    first()
    first()  # only once
    assert switch.value
    second()
    assert not switch.value
    third = listen()  # torch activates only once in a process
    assert switch.value
    third()
    assert not switch.value


def test_checkpointing_recomputes_to_the_end_meanwhile(switch: ctypes.c_bool) -> None:
    ends: list[Callable[[], None]] = []
    assert recomputed() == 1  # ends by an error of its own
    end = listen()
    assert recomputed() == 2
    end()
    assert recomputed() == 1
    assert recomputed(between=lambda: ends.append(listen())) == 2  # between forward and backward
    ends.pop()()


def test_switch_that_was_on_stays_on(switch: ctypes.c_bool) -> None:
    switch.value = True
    listen()()
    assert switch.value
    assert recomputed() == 2  # as long as torch tells, whoever it tells


def test_without_the_switch_checkpointing_goes_on_recomputing(
    monkeypatch: pytest.MonkeyPatch, activated: list[bool]
) -> None:
    monkeypatch.setattr(gpu_trace, "_SWITCH", "no_such_variable")
    listen()()
    assert len(activated) == 1
    assert recomputed() == 2
