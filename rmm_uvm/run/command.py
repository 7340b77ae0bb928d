# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Running any command as a child process: starting it, passing signals on, its exit status.

Covers the child only; what is seen of it is in `rmm_uvm.run.attached`.

Notes
-----
Signals are blocked and taken one by one between two looks at the child, so that nothing here runs
in a signal handler, and so that it is known who sent them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from rmm_uvm.errors import AvailabilityError

__all__ = ["CommandError", "environment", "run_command"]

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_BLOCKED = (*_FORWARDED, signal.SIGCHLD)
# The interpreter ignores these, and a child would inherit it.
_TO_DEFAULT = (signal.SIGPIPE, signal.SIGXFSZ)
_FROM_KERNEL = 0x80  # SI_KERNEL of <asm-generic/siginfo.h>: typed at the terminal


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
    SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on. Those of the terminal reach the child by
    themselves, since both are in its foreground group, and are not sent twice.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited "ignore" loses the status
    try:
        pid = _spawn(arguments, env, before)
        while True:
            look(pid)
            received = signal.sigtimedwait(_BLOCKED, interval_seconds)
            if received is not None and received.si_signo in _FORWARDED:
                _forward(pid, received)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
    finally:
        signal.signal(signal.SIGCHLD, children or signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _spawn(arguments: Sequence[str], env: Mapping[str, str], mask: Iterable[int]) -> int:
    try:
        return os.posix_spawnp(
            arguments[0], list(arguments), dict(env), setsigmask=mask, setsigdef=_TO_DEFAULT
        )
    except FileNotFoundError as error:
        raise CommandError(f"command not found: {arguments[0]}", 127) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"{arguments[0]} cannot be run: {reason}", 126) from error


def _forward(pid: int, received: signal.struct_siginfo) -> None:
    try:
        if received.si_code == _FROM_KERNEL and os.getpgid(pid) == os.getpgrp():
            return
        os.kill(pid, received.si_signo)
    except ProcessLookupError:
        pass  # it has just ended
