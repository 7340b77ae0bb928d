# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Findings reach the main thread, at the user's line; nothing is lost, and nothing breaks."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.errors import AmplificationWarning, ConfigurationError, EvictionWarning
from rmm_uvm.recording.finding import WARNING_OF, Finding
from rmm_uvm.watch.telling import delivery as delivery_module
from rmm_uvm.watch.telling.delivery import Delivery

PREAMBLE = """
import os, sys, threading
from rmm_uvm.watch.telling.delivery import Delivery
from rmm_uvm.recording.finding import Finding

def finding(kind="eviction"):
    return Finding(kind, 0, 1.0, 2.0, 1.0, "pages leave", "use fewer")

def elsewhere(call, *arguments):
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    thread.join()
"""


def finding(kind: str = "eviction") -> Finding:
    return Finding(kind, 0, 1.0, 2.0, 1.0, "pages leave", "use fewer")


def elsewhere(call: Callable[..., object], *arguments: object) -> None:
    """Call a function in another thread, and wait for it."""
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    thread.join()


def program(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program of its own."""
    return subprocess.run(
        [sys.executable, "-P", *options, "-c", PREAMBLE + code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def inside_this_package(thread: threading.Thread) -> None:
    """Run a thread from a frame that looks like one of the package."""
    name = str(Path(rmm_uvm.__file__).parent / "made_up.py")
    space: dict[str, Any] = {"__name__": "rmm_uvm.made_up"}
    code = "def run(thread):\n thread.start()\n thread.join()\n for _ in range(9): pass\n"
    exec(compile(code, name, "exec"), space)
    space["run"](thread)


@pytest.fixture
def lost_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the interpreter's queue be full."""
    monkeypatch.setattr(delivery_module, "call_in_main_thread", lambda function: False)
    return


# As warnings


def test_warning_found_by_another_thread_is_shown_by_the_main_one_at_the_users_line() -> None:
    delivery = Delivery()
    threads: list[threading.Thread] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *rest: threads.append(threading.current_thread())
        elsewhere(delivery.deliver, [finding()])
    assert threads == [threading.main_thread()]
    with pytest.warns(EvictionWarning) as caught:
        elsewhere(delivery.deliver, [finding()])
    assert caught[0].filename == __file__
    assert str(caught[0].message) == "device 0: pages leave; use fewer"
    delivery.close()


def test_every_kind_becomes_its_warning_in_order() -> None:
    delivery = Delivery()
    with pytest.warns() as caught:
        elsewhere(delivery.deliver, [finding(kind) for kind in WARNING_OF])
    assert [warning.category for warning in caught] == list(WARNING_OF.values())
    delivery.close()


def test_no_finding_gives_no_warning() -> None:
    delivery = Delivery()
    elsewhere(delivery.deliver, [])
    delivery.close()


def test_warning_turned_into_an_error_surfaces_and_the_next_ones_follow() -> None:
    delivery = Delivery()
    with pytest.raises(EvictionWarning):
        elsewhere(delivery.deliver, [finding(), finding("amplification")])
    with pytest.raises(AmplificationWarning):
        elsewhere(delivery.retry)
    delivery.retry()
    delivery.close()


def test_ignored_warning_is_not_shown() -> None:
    delivery = Delivery()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvictionWarning)
        elsewhere(delivery.deliver, [finding()])
    delivery.close()


@pytest.mark.usefixtures("lost_calls")
def test_warning_that_the_main_thread_never_came_to_is_shown_at_close() -> None:
    delivery = Delivery()
    elsewhere(delivery.deliver, [finding()])
    with pytest.warns(EvictionWarning) as caught:
        delivery.close()
    assert caught[0].filename == __file__
    delivery.close()


@pytest.mark.usefixtures("lost_calls")
def test_close_with_warnings_as_errors_has_closed_by_then() -> None:
    delivery = Delivery()
    elsewhere(delivery.deliver, [finding(), finding("amplification")])
    with pytest.raises(EvictionWarning):
        delivery.close()
    delivery.close()


@pytest.mark.usefixtures("lost_calls")
def test_close_in_another_thread_shows_nothing() -> None:
    delivery = Delivery()
    elsewhere(delivery.deliver, [finding()])
    elsewhere(delivery.close)


def test_full_queue_of_the_interpreter_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = Delivery()
    with monkeypatch.context() as patch:
        patch.setattr(delivery_module, "call_in_main_thread", lambda function: False)
        elsewhere(delivery.deliver, [finding()])
    with pytest.warns(EvictionWarning):
        elsewhere(delivery.retry)
    delivery.close()


# As exceptions


def test_raise_interrupts_the_code_that_runs() -> None:
    delivery = Delivery("raise")
    with pytest.raises(EvictionWarning, match="pages leave") as raised:
        elsewhere(delivery.deliver, [finding()])
    assert any(entry.path == Path(__file__) for entry in raised.traceback)
    delivery.close()


def test_raise_waits_until_this_package_has_finished_its_work() -> None:
    delivery = Delivery("raise")
    inside_this_package(threading.Thread(target=delivery.deliver, args=([finding()],)))
    with pytest.raises(EvictionWarning):
        elsewhere(delivery.retry)
    delivery.close()


def test_raise_does_not_wait_for_ever() -> None:
    delivery = Delivery("raise")
    inside_this_package(threading.Thread(target=delivery.deliver, args=([finding()],)))
    for _ in range(9):
        inside_this_package(threading.Thread(target=delivery.retry))
    with pytest.raises(EvictionWarning):
        inside_this_package(threading.Thread(target=delivery.retry))
    delivery.close()


def test_raise_at_close_is_a_warning_as_there_is_nothing_left_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery_module, "call_in_main_thread", lambda function: False)
    delivery = Delivery("raise")
    elsewhere(delivery.deliver, [finding()])
    with pytest.warns(EvictionWarning):
        delivery.close()


def test_raise_in_a_coroutine_is_raised_there() -> None:
    delivery = Delivery("raise")

    async def main() -> str:
        try:
            elsewhere(delivery.deliver, [finding()])
        except EvictionWarning:
            return "caught"
        return "missed"

    assert asyncio.run(main()) == "caught"
    delivery.close()


@pytest.mark.parametrize("on_finding", ["warn", "raise"])
def test_error_while_an_event_loop_waits_goes_to_its_handler(on_finding: Any) -> None:
    delivery = Delivery(on_finding)
    told: list[Any] = []

    async def main() -> None:
        loop, handled = asyncio.get_running_loop(), asyncio.Event()

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            told.append(context["exception"])
            handled.set()

        loop.set_exception_handler(handle)
        suspended, stop = threading.Event(), threading.Event()

        def advise() -> None:
            suspended.wait()
            delivery.deliver([finding()])
            while not stop.wait(0.001):
                delivery.retry()
                loop.call_soon_threadsafe(bool)  # wakes the loop, as a worker's own events do

        thread = threading.Thread(target=advise)
        thread.start()
        loop.call_soon(suspended.set)  # comes when this coroutine waits
        await handled.wait()
        stop.set()
        thread.join()

    asyncio.run(main())
    assert [type(error) for error in told] == [EvictionWarning]
    delivery.close()


# Otherwise


def test_log_is_a_record_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    delivery = Delivery("log")
    elsewhere(delivery.deliver, [finding()])
    delivery.close()
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("rmm_uvm.watch", logging.WARNING)
    assert record.getMessage() == "device 0: pages leave; use fewer"


def test_warning_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    delivery = Delivery()
    with pytest.warns(EvictionWarning):
        elsewhere(delivery.deliver, [finding()])
    delivery.close()
    assert len(caplog.records) == 1


def test_none_does_nothing(caplog: pytest.LogCaptureFixture) -> None:
    delivery = Delivery(None)
    elsewhere(delivery.deliver, [finding()])
    delivery.close()
    assert caplog.records == []


def test_callable_is_called_by_the_thread_that_noticed() -> None:
    found: list[tuple[Finding, threading.Thread]] = []
    delivery = Delivery(lambda each: found.append((each, threading.current_thread())))
    elsewhere(delivery.deliver, [finding()])
    delivery.close()
    ((seen, thread),) = found
    assert seen == finding()
    assert thread is not threading.main_thread()


def test_callable_that_fails_is_logged_and_called_again(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[Finding] = []

    def fail(each: Finding) -> None:
        calls.append(each)
        raise RuntimeError("no")

    delivery = Delivery(fail)
    elsewhere(delivery.deliver, [finding(), finding("footprint")])
    delivery.close()
    assert len(calls) == 2
    assert [r.getMessage() for r in caplog.records if r.exc_info] == [
        f"on_finding failed for: {each}" for each in calls
    ]


@pytest.mark.parametrize("wrong", ["error", 1, True, ["warn"]])
def test_anything_else_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="use 'warn', 'raise', 'log', a callable or None"):
        Delivery(wrong)


# Processes


def test_warning_in_a_script_is_one_message_at_its_line() -> None:
    result = program("delivery = Delivery()\nelsewhere(delivery.deliver, [finding()])\n")
    assert result.returncode == 0
    assert result.stderr.count("pages leave") == 1
    assert "<string>:" in result.stderr
    assert "EvictionWarning: device 0" in result.stderr


def test_warning_as_error_ends_a_script_at_its_line() -> None:
    code = "delivery = Delivery()\nelsewhere(delivery.deliver, [finding()])\nprint('on')\n"
    result = program(code, "-W", "error")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.endswith(
        "rmm_uvm.errors.EvictionWarning: device 0: pages leave; use fewer\n"
    )


def test_child_drops_what_its_parent_has_not_shown() -> None:
    result = program("""
from rmm_uvm.watch.telling import delivery as module
calls = []
module.call_in_main_thread = calls.append
delivery = Delivery()
delivery.deliver([finding()])
child = os.fork()
if child == 0:
    calls[0]()
    delivery.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("child is done", file=sys.stderr)
delivery.close()
""")
    assert result.returncode == 0, result.stderr
    assert result.stderr.index("child is done") < result.stderr.index("pages leave")
    assert result.stderr.count("pages leave") == 1


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "os._exit(0)"])
def test_exit_with_findings_on_their_way_is_clean(end: str) -> None:
    result = program(f"""
delivery = Delivery()
begun, never = threading.Event(), threading.Event()
def advise():
    while not never.wait(0.001):
        delivery.deliver([finding()])
        begun.set()
threading.Thread(target=advise, daemon=True).start()
begun.wait()
{end}
""")
    assert result.returncode == 0, result.stderr
    assert "Fatal" not in result.stderr
