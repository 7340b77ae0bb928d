# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of the report that SIGTERM or SIGHUP causes, and of signals that the program handles."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from rmm_uvm.run.tidying import outlasting_hangups, tell_before

BOTH = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _default_handlers() -> Iterator[None]:
    before = {number: signal.signal(number, signal.SIG_DFL) for number in BOTH}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the signals by which this process would have ended."""
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(number))
    return killed


@pytest.mark.parametrize("number", BOTH)
def test_signal_is_told_once_and_then_ends_the_process(number: int, ends: list[int]) -> None:
    told: list[int] = []
    tell_before(told.append)
    signal.raise_signal(number)
    assert told == ends == [number]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_hangup_that_nohup_ignores_stays_ignored(ends: list[int]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    told: list[int] = []
    take_back = tell_before(told.append)
    signal.raise_signal(signal.SIGHUP)
    assert told == ends == []
    take_back()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("number", BOTH)
def test_handler_of_the_program_stays_and_the_other_signal_is_still_told(
    number: signal.Signals, ends: list[int]
) -> None:
    theirs: list[int] = []
    signal.signal(number, lambda got, frame: theirs.append(got))
    told: list[int] = []
    tell_before(told.append)
    signal.raise_signal(number)
    assert (theirs, told, ends) == ([number], [], [])
    (other,) = set(BOTH) - {number}
    signal.raise_signal(other)
    assert told == ends == [other]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (signal.SIGHUP, signal.SIGHUP),
        (signal.SIGHUP, signal.SIGTERM),
        (signal.SIGTERM, signal.SIGHUP),
    ],
)
def test_second_signal_while_the_first_is_told_neither_ends_nor_tells_again(
    first: int, second: int, ends: list[int]
) -> None:
    told: list[int] = []
    main = threading.main_thread().ident
    assert main is not None

    def tell(number: int) -> None:
        told.append(number)
        if len(told) == 1:
            signal.pthread_kill(main, second)
            time.sleep(0.1)
        told.append(-number)

    tell_before(tell)
    signal.raise_signal(first)
    assert told == [first, -first]
    assert ends == [first]


def test_hangup_of_a_command_does_not_end_who_tells_of_it() -> None:
    with outlasting_hangups():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_hangup_that_is_ignored_stays_so_while_a_command_is_told_of() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # so that the command inherits it
    with outlasting_hangups():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
