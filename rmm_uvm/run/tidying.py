# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tells what was watched, and tidies up, before SIGTERM or SIGHUP ends a process.

Job managers end with the first what takes too long, terminals and connections that close end with
the second what they began, and then nothing else would be left of a run.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from rmm_uvm._lib.own_threads import OwnThread

__all__ = ["ended_with_us", "outlasting_hangups", "tell_before", "temporary_folder"]

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_MOST_SECONDS = 15.0  # half of what Slurm and Kubernetes wait before they kill


def tell_before(tell: Callable[[int], object]) -> Callable[[], None]:
    """Have SIGTERM and SIGHUP call a function before they end this process.

    Each of them only where nobody handles or ignores it, as nohup has SIGHUP ignored.

    Parameters
    ----------
    tell : callable
        Called once at most, with the signal's number, in a thread of its own, and not in a fork of
        this process.

    Returns
    -------
    callable
        Takes it back; to be called before `tell` is called for another reason. Where the program
        has a handler of its own by then, that stays.

    Notes
    -----
    To be called in the main thread. A program that sets a handler replaces this one. While `tell`
    is at work, a second SIGTERM ends the process at once. A SIGHUP does not: a terminal that closes
    sends several, and job managers send one after their SIGTERM.
    """
    owner = os.getpid()
    began: list[int] = []  # the process in which it did: a fork has a copy

    def end(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            signal.signal(number, signal.SIG_DFL)
        if os.getpid() in began:
            return  # to whom is at work below, in this thread
        began.append(os.getpid())
        if os.getpid() == owner:
            # Not in this thread: it may hold a lock that telling needs, and then both would wait.
            telling = OwnThread(target=tell, args=(number,), name="rmm_uvm ending", daemon=True)
            telling.start()
            telling.join(_MOST_SECONDS)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def take_back() -> None:
        if threading.current_thread() is threading.main_thread():
            for number in _ENDING:
                if signal.getsignal(number) is end:
                    signal.signal(number, signal.SIG_DFL)

    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)
    return take_back


@contextlib.contextmanager
def outlasting_hangups() -> Iterator[None]:
    """Have SIGHUP, where nobody handles or ignores it, not end this process in the context.

    For whoever tells of a command that ends by it: the next SIGHUP of the same terminal would come
    in the midst. The command does not inherit this. To be used in the main thread.
    """
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGHUP, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


_CHILD_SECONDS = 5.0  # a child that ends by SIGTERM does so at once
_duties: list[Callable[[], None]] = []  # the newest last


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder that goes with the context, or with a signal that ends this process.

    Parameters
    ----------
    prefix : str
        What its name begins with.
    """
    # Named by us: what is to be removed is known before it is there.
    path = Path(tempfile.gettempdir()) / f"{prefix}{secrets.token_hex(8)}"
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)

    with _done_before_ending(remove):
        path.mkdir(mode=0o700)
        try:
            yield path
        finally:
            shutil.rmtree(path)


@contextlib.contextmanager
def ended_with_us(child: subprocess.Popen[Any]) -> Iterator[None]:
    """End a child process where a signal ends this one, before folders go that it writes to."""

    def end() -> None:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_CHILD_SECONDS)

    with _done_before_ending(end):
        yield


@contextlib.contextmanager
def _done_before_ending(duty: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # no handler can be set from here
        return
    _duties.append(duty)
    take_back = tell_before(_do_all)  # of inner contexts nothing: the outermost one's does all
    try:
        yield
    finally:
        take_back()
        _duties.remove(duty)


def _do_all(number: int) -> None:
    del number
    for duty in reversed(_duties):
        duty()
