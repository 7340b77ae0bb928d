# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Notices reach everybody, and not too often."""

from __future__ import annotations

import logging
import warnings

import pytest

from rmm_uvm.dask.comm.notices import QUIET_SECONDS, Notices
from rmm_uvm.errors import FindingWarning, IpcPoolWarning

from .fakes import FakeClock


def test_notice_reaches_warnings_the_log_and_listeners(caplog: pytest.LogCaptureFixture) -> None:
    notices, heard = Notices(FakeClock()), []
    notices.subscribe(lambda *notice: heard.append(notice))
    with pytest.warns(IpcPoolWarning, match="the pool is small"):
        assert notices.say("waiting", "the pool is small")
    assert heard == [("waiting", "the pool is small")]
    assert ("rmm_uvm.dask.comm", logging.WARNING, "the pool is small") in caplog.record_tuples
    assert issubclass(IpcPoolWarning, FindingWarning)


def test_notice_of_one_reason_is_said_once_a_minute_and_of_another_at_once() -> None:
    clock, heard = FakeClock(), []
    notices = Notices(clock)
    notices.subscribe(lambda reason, text: heard.append((clock.now, reason)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for clock.now in (0.0, 1.0, QUIET_SECONDS - 1, QUIET_SECONDS, QUIET_SECONDS + 1):
            notices.say("waiting", "text")
            notices.say("overflow", "text")
    assert heard == [
        (0.0, "waiting"),
        (0.0, "overflow"),
        (QUIET_SECONDS, "waiting"),
        (QUIET_SECONDS, "overflow"),
    ]


def test_notice_that_a_filter_makes_an_error_of_still_reaches_the_log_and_listeners(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notices, heard = Notices(FakeClock()), []
    notices.subscribe(lambda reason, text: heard.append(reason))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notices.say("waiting", "the pool is small")  # a transfer goes on
    assert heard == ["waiting"]
    assert "the pool is small" in caplog.text


def test_listener_that_fails_is_logged_and_the_others_are_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notices, heard = Notices(FakeClock()), []

    def broken(reason: str, text: str) -> None:
        raise RuntimeError("listener broke")

    notices.subscribe(broken)
    notices.subscribe(lambda reason, text: heard.append(reason))
    with pytest.warns(IpcPoolWarning):
        notices.say("waiting", "text")
    assert heard == ["waiting"]
    assert "listener broke" in caplog.text


def test_listener_that_unsubscribed_is_not_called() -> None:
    notices, heard = Notices(FakeClock()), []

    def listener(reason: str, text: str) -> None:
        heard.append(reason)

    notices.unsubscribe(listener)  # was never subscribed
    notices.subscribe(listener)
    notices.unsubscribe(listener)
    with pytest.warns(IpcPoolWarning):
        notices.say("waiting", "text")
    assert heard == []
