# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The terminal below a live display: its keys, and giving it back to the shell meanwhile."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Terminal"]


class Terminal:
    """Takes single keys without echo; a context, for the main thread.

    Ctrl-Z gives the terminal back as it was, and ``fg`` takes it again: the shell and its other
    programs leave it in their own mode, in which a key comes with the next Enter only.
    """

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before: list[Any] = []
        self._to_stop = self._continued = False
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Terminal:
        if self._descriptor is not None:
            self._before = termios.tcgetattr(self._descriptor)
        self._take()  # before the handlers: in the background this waits for fg
        for number in (signal.SIGTSTP, signal.SIGCONT):
            # Whoever ignores Ctrl-Z has nobody who would continue this.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._handlers[number] = self._handle(number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._give_back()

    def pressed_q(self, seconds: float) -> bool:
        """Wait, and return whether ``q`` was pressed; where there are no keys, none was."""
        if self._descriptor is None:
            time.sleep(seconds)
            return False
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        return bool(ready) and os.read(self._descriptor, 64).lower().startswith((b"q", b"\x04"))

    def heed_stops(self, hide: Callable[[], object], show: Callable[[], object]) -> None:
        """Stop if Ctrl-Z asks for it; draw anew after a stop, whoever it was that stopped this.

        Parameters
        ----------
        hide, show : callable
            Take the display off the terminal, and put it there as of now.
        """
        if not (self._to_stop or self._continued):
            return
        hide()
        if self._to_stop:
            self._give_back()
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            # To this thread, which then does nothing more before it is continued.
            signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
            self._handle(signal.SIGTSTP)
        self._to_stop = self._continued = False
        self._take()
        show()

    def _handle(self, number: signal.Signals) -> Any:
        """Note a signal from now on; return who handled it before."""
        before = signal.signal(number, self._note)
        # A call that takes the terminal waits in the background: fg is to continue it, not end it.
        signal.siginterrupt(number, False)  # noqa: FBT003 - it takes no keywords
        return before

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGTSTP:
            self._to_stop = True
        else:
            self._continued = True

    def _take(self) -> None:
        if self._descriptor is not None:
            tty.setcbreak(self._descriptor)

    def _give_back(self) -> None:
        if self._descriptor is not None:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)
