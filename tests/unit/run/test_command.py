# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Commands as child processes: environment, signals, exit status."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from rmm_uvm.run.command import CommandError, environment, run_command

ENV = dict(os.environ)


def run(*words: str, look: Callable[[int], object] = lambda pid: None) -> int:
    return run_command(words, ENV, look, 0.005)


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143)]
)
def test_exit_status_is_passed_on(script: str, status: int) -> None:
    assert run("sh", "-c", script) == status


def test_command_that_is_not_found_has_status_127() -> None:
    with pytest.raises(CommandError, match="command not found: no-such-command-here") as raised:
        run("no-such-command-here")
    assert raised.value.exit_status == 127


def test_command_that_is_not_executable_has_status_126(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    with pytest.raises(CommandError, match="cannot be run: Permission denied") as raised:
        run(str(tmp_path / "data"))
    assert raised.value.exit_status == 126


def test_child_is_looked_at_until_it_ends(tmp_path: Path) -> None:
    seen: list[int] = []
    marker = tmp_path / "go"

    def look(pid: int) -> None:
        seen.append(pid)
        if len(seen) == 3:
            marker.touch()

    assert run("sh", "-c", f"until [ -e {marker} ]; do :; done", look=look) == 0
    assert len(seen) >= 3
    assert len(set(seen)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_us_reaches_the_child(tmp_path: Path, number: signal.Signals) -> None:
    ready = tmp_path / "ready"
    script = f"trap 'exit 9' {number.name[3:]}; : > {ready}; while :; do sleep 0.01; done"
    sent: list[bool] = []

    def look(pid: int) -> None:
        if ready.exists() and not sent:
            sent.append(True)
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    if before is signal.SIG_IGN:  # as under nohup, and a shell does not trap what was ignored
        signal.signal(number, signal.SIG_DFL)
    try:
        assert run("sh", "-c", script, look=look) == 9
    finally:
        signal.signal(number, before)


def test_handlers_are_as_before() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD)
    before = [signal.getsignal(number) for number in numbers]
    assert run("true") == 0
    with pytest.raises(CommandError):
        run("no-such-command-here")
    assert [signal.getsignal(number) for number in numbers] == before


def test_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        script = "kill -HUP $$; exit 6"  # as under nohup
        assert run("sh", "-c", script, look=lambda pid: os.kill(os.getpid(), signal.SIGHUP)) == 6
    finally:
        signal.signal(signal.SIGHUP, before)


def test_without_pidfd_the_end_is_noticed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", missing)
    assert run("sh", "-c", "exit 5") == 5


def test_broken_pipe_ends_a_child_as_anywhere() -> None:
    assert run("sh", "-c", "kill -PIPE $$") == 128 + signal.SIGPIPE


def test_environment_puts_the_hook_first_and_keeps_the_rest(tmp_path: Path) -> None:
    env = environment(tmp_path, {"PYTHONPATH": "/a:", "HOME": "/h"})
    hook, rest = env["PYTHONPATH"].split(os.pathsep, 1)
    assert Path(hook, "sitecustomize.py").is_file()
    assert (rest, env["HOME"]) == ("/a:", "/h")
    assert environment(tmp_path, {})["PYTHONPATH"] == hook
