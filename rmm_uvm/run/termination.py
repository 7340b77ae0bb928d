# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Telling what was watched when SIGTERM or SIGHUP ends the process, and then ending by it.

Job managers end with the first what takes too long, terminals and connections that close end with
the second what they began, and then nothing else would be left of a run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["outlasting_hangups", "tell_before"]

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
            telling = threading.Thread(
                target=tell, args=(number,), name="rmm-uvm-ending", daemon=True
            )
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
