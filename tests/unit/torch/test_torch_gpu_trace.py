# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Torch tells while somebody listens; meanwhile checkpointing recomputes to the end."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.cuda import _gpu_trace
from torch.utils import checkpoint

from rmm_uvm.torch import streams, telling
from rmm_uvm.torch.telling import listen, tell


@pytest.fixture
def switch() -> Iterator[ctypes.c_bool]:
    """Torch's own, which the build that tests run with does show."""
    found = telling._switch()
    assert found is not None
    before = found.value
    yield found
    found.value = before


@pytest.fixture
def part() -> Iterator[type]:
    """The class of checkpointed parts; what of ours stays on it goes at the end."""
    kind = checkpoint._CheckpointFrame
    yield kind
    if "early_stop" in vars(kind):
        del kind.early_stop
    telling._undo = None


@pytest.fixture(autouse=True)
def activated(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    calls: list[bool] = []
    monkeypatch.setattr(torch._C, "_activate_gpu_trace", lambda: calls.append(True))
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


def test_switch_that_was_on_stays_on(switch: ctypes.c_bool, part: type) -> None:
    switch.value = True
    listen()()
    assert switch.value
    assert recomputed() == 2  # as long as torch tells, whoever it tells


def test_without_the_switch_checkpointing_goes_on_recomputing(
    monkeypatch: pytest.MonkeyPatch, activated: list[bool], part: type
) -> None:
    monkeypatch.setattr(telling, "_SWITCH", "no_such_variable")
    for _ in range(2):
        listen()()
    assert len(activated) == 2
    assert recomputed() == 2


def test_who_else_listens_meanwhile_goes_on_being_told(switch: ctypes.c_bool, part: type) -> None:
    end = listen()
    end_theirs = tell(_gpu_trace.EventWaitCallbacks, lambda *_: None)
    end()
    end_theirs()
    assert switch.value


def test_parts_know_again_whether_they_end_early(switch: ctypes.c_bool) -> None:
    for wanted in (True, False):
        with checkpoint.set_checkpoint_early_stop(wanted):
            end = listen()
            assert recomputed() == 2
        end()
        assert recomputed() == 1
        with checkpoint.set_checkpoint_early_stop(wanted):
            assert recomputed() == (1 if wanted else 2)


def test_listener_that_comes_while_the_last_one_goes_is_told(
    switch: ctypes.c_bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[Callable[[], None]] = []
    end_of_telling = telling._end

    def end_slowly(*given: Any) -> None:
        end_of_telling(*given)
        if not later:
            later.append(listen())  # in the same thread, as a pending call would

    monkeypatch.setattr(telling, "_end", end_slowly)
    listen()()
    assert switch.value
    later[0]()
    assert not switch.value


def test_failure_to_begin_leaves_nothing(
    switch: ctypes.c_bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("no telling")

    with monkeypatch.context() as patch:
        patch.setattr(torch._C, "_activate_gpu_trace", fail)
        with pytest.raises(RuntimeError, match="no telling"):
            listen()
    assert not switch.value
    assert not telling._listeners
    assert recomputed() == 1
    end = listen()
    assert switch.value
    end()
    assert not switch.value


def test_streams_that_cannot_be_looked_for_leave_nobody_listening(
    switch: ctypes.c_bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(streams, "_others_are_there", interrupt)
    with pytest.raises(KeyboardInterrupt):
        streams.watch_streams(lambda: None)
    assert not switch.value
    assert not _gpu_trace.EventWaitCallbacks.callback_list


def test_streams_are_looked_for_among_objects_of_any_type() -> None:
    class Kind(type):
        def __eq__(cls, _other: object) -> bool:
            return False

        __hash__ = None  # type: ignore[assignment]

    kept = Kind("Odd", (), {"__init__": lambda self: setattr(self, "me", self)})()
    assert not streams._others_are_there()
    assert kept.me is kept
