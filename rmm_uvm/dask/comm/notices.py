# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Saying that transfers are slower than they could be: warnings, log records, listeners.

Each reason is said at most once a minute. Does not cover what is said; see
`rmm_uvm.dask.comm.staging`.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable
from typing import TypeAlias

from rmm_uvm.errors import IpcPoolWarning

__all__ = ["QUIET_SECONDS", "Listener", "Notices", "subscribe", "unsubscribe"]

QUIET_SECONDS = 60.0
"""How long a reason is not said again."""

Listener: TypeAlias = Callable[[str, str], object]
"""Called with the reason, one word or two, and the text, one line."""

logger = logging.getLogger("rmm_uvm.dask.comm")


class Notices:
    """Hands notices on, each reason at most once in `QUIET_SECONDS`. Thread-safe.

    Parameters
    ----------
    clock : callable
        Returns seconds that only grow.

    Examples
    --------
    >>> heard = []
    >>> notices = Notices(clock=lambda: 0.0)
    >>> notices.subscribe(lambda reason, text: heard.append(reason))
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     notices.say("waiting", "a chunk was waited for")
    ...     notices.say("waiting", "and again")
    True
    False
    >>> heard
    ['waiting']
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._said_at: dict[str, float] = {}
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` for every notice from now on, in the thread that noticed."""
        with self._lock:
            self._listeners.append(listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Call `listener` no more; nothing if it was not subscribed."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def say(self, reason: str, text: str) -> bool:
        """Hand a notice on, and return whether it was; False if its reason was said lately.

        A transfer goes on whatever becomes of the notice: a filter that makes an error of the
        warning, and a listener that fails, are logged.
        """
        with self._lock:
            now = self._clock()
            said_at = self._said_at.get(reason)
            if said_at is not None and now - said_at < QUIET_SECONDS:
                return False
            self._said_at[reason] = now
            listeners = tuple(self._listeners)
        logger.warning(text)
        try:
            warnings.warn(text, IpcPoolWarning, stacklevel=2)
        except IpcPoolWarning:
            logger.debug("the warning filter makes an error of this: it stays a log record")
        for listener in listeners:
            try:
                listener(reason, text)
            except Exception:
                logger.exception("a listener failed for: %s", text)
        return True


NOTICES = Notices()
"""Of this process: there is one pool, and one person to tell."""

subscribe = NOTICES.subscribe
unsubscribe = NOTICES.unsubscribe
