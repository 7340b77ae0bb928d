# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Running any command as a child process: starting it, passing signals on, its exit status.

Covers the child only; what is seen of it is in `rmm_uvm.run.attached`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from rmm_uvm.errors import AvailabilityError

__all__ = ["CommandError", "environment", "run_command"]

_FORWARDED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
_TYPED = (signal.SIGINT, signal.SIGQUIT)
# The interpreter ignores these, and a child would inherit it.
_TO_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ)
_POLL_SECONDS = 0.1


class CommandError(AvailabilityError):
    """The command cannot be started.

    Attributes
    ----------
    exit_status : int
        As shells have it: 127 not found, 126 not executable.
    """

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status


def environment(folder: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which the first Python process of a command watches itself.

    Parameters
    ----------
    folder : Path
        With the request; see `rmm_uvm.run.child`.
    inherited : mapping of str to str
        The environment otherwise.
    """
    hook = str(Path(__file__).with_name("hook"))
    path = inherited.get("PYTHONPATH")
    return {
        **inherited,
        "PYTHONPATH": hook if path is None else f"{hook}{os.pathsep}{path}",
        "UVM_RUN_FOLDER": str(folder),
    }


def run_command(
    arguments: Sequence[str],
    env: Mapping[str, str],
    look: Callable[[int], object],
    interval_seconds: float,
) -> int:
    """Run a command to its end.

    Parameters
    ----------
    arguments : sequence of str
        The command and what follows it; looked up in PATH.
    env : mapping of str to str
        Its environment.
    look : callable
        Called with the child's PID at every interval, from this thread.
    interval_seconds : float
        Between two calls, > 0.

    Returns
    -------
    int
        The exit status; 128 plus the number of the signal that ended it.

    Raises
    ------
    CommandError
        If it cannot be started.

    Notes
    -----
    To be called in the main thread. SIGINT, SIGQUIT, SIGTERM and SIGHUP are passed on; those that
    are ignored stay so. What is typed at the terminal reaches the child by itself, and is not sent
    twice: so in the foreground SIGINT and SIGQUIT are taken to be typed.
    """
    received: list[int] = []
    with _catching(received), _children_waited_for():
        pid = _spawn(arguments, env)
        with _ending(pid) as ends_within:
            next_look = time.monotonic()
            while True:
                if (now := time.monotonic()) >= next_look:
                    look(pid)
                    next_look = now + interval_seconds
                # Python's handlers run in this thread, also when another one got the signal, which
                # does not wake this one: hence no long wait.
                ends_within(min(_POLL_SECONDS, max(0.0, next_look - time.monotonic())))
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
                while received:
                    _forward(pid, received.pop(0))


def _spawn(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    try:
        return os.posix_spawnp(arguments[0], list(arguments), dict(env), setsigdef=_TO_DEFAULT)
    except FileNotFoundError as error:
        raise CommandError(f"command not found: {arguments[0]}", 127) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"{arguments[0]} cannot be run: {reason}", 126) from error


def _forward(pid: int, number: int) -> None:
    if number in _TYPED and os.getpgid(pid) == os.getpgrp() and _in_foreground():
        return
    os.kill(pid, number)  # it has not been waited for: the PID is still its own


def _in_foreground() -> bool:
    """Whether what is typed at the terminal goes to this process' group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _catching(received: list[int]) -> Iterator[None]:
    """Collect the signals to pass on, from before there is a child."""

    def catch(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {}
    try:
        for number in _FORWARDED:
            if (handler := signal.getsignal(number)) is not signal.SIG_IGN:
                before[number] = handler
                signal.signal(number, catch)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _children_waited_for() -> Iterator[None]:
    """Have the kernel keep exit statuses: whoever started us may have had them dropped."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)


@contextlib.contextmanager
def _ending(pid: int) -> Iterator[Callable[[float], object]]:
    """Give a function that waits so many seconds, or until the process ends."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # before Linux 5.3, or forbidden in a container
        yield time.sleep
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        yield lambda seconds: poll.poll(seconds * 1000)
    finally:
        os.close(descriptor)
