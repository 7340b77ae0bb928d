# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Telling what was watched when SIGTERM ends the process, and then ending by it.

Job managers end with it what takes too long, and then nothing else would be left of a run.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

__all__ = ["tell_before"]

_MOST_SECONDS = 15.0  # half of what Slurm and Kubernetes wait before they kill


def tell_before(tell: Callable[[], object]) -> Callable[[], None]:
    """Have SIGTERM call a function before it ends this process, unless somebody handles it.

    Parameters
    ----------
    tell : callable
        Called once at most, in a thread of its own, and not in a fork of this process.

    Returns
    -------
    callable
        Takes it back; to be called before `tell` is called for another reason. Where the program
        has a handler of its own by then, that stays.

    Notes
    -----
    To be called in the main thread. A program that sets a handler replaces this one.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return lambda: None
    owner = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() == owner:
            # Not in this thread: it may hold a lock that telling needs, and then both would wait.
            telling = threading.Thread(target=tell, name="rmm-uvm-sigterm", daemon=True)
            telling.start()
            telling.join(_MOST_SECONDS)
        os.kill(os.getpid(), number)

    def take_back() -> None:
        if signal.getsignal(signal.SIGTERM) is end and (
            threading.current_thread() is threading.main_thread()
        ):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, end)
    return take_back
