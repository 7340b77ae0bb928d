# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Remarks about slow transfers: warnings, log records and calls of listeners.

Each reason is said at most once a minute.
"""

from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

from rmm_uvm.errors import IpcPoolWarning
from rmm_uvm.support.units import format_bytes
from rmm_uvm.support.user_line import warn_user

__all__ = ["QUIET_SECONDS", "Listener", "Notices", "Remarks", "subscribe", "unsubscribe"]

QUIET_SECONDS = 60.0
"""After a remark, its reason is silent for this long."""

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
            warn_user(text, IpcPoolWarning)
        except IpcPoolWarning:
            logger.debug("the warning filter makes an error of this: it stays a log record")
        for listener in listeners:
            try:
                listener(reason, text)
            except Exception:
                logger.exception("a listener failed for: %s", text)
        return True


NOTICES = Notices()
"""The notices of this process, which has one pool and one person to tell."""

subscribe = NOTICES.subscribe
unsubscribe = NOTICES.unsubscribe


_WAIT_WINDOW_SECONDS = 60.0
_WAIT_NOTICE_SECONDS = 0.5
_LARGE_MESSAGE_FACTOR = 16


class Remarks:
    """Decides what is worth a notice, and words it.

    Parameters
    ----------
    notices : Notices
        Where it goes.
    pool_bytes : int
        Size of the IPC pool; 0 if there is none.
    clock : callable
        Returns seconds that only grow.
    """

    def __init__(
        self,
        notices: Notices,
        pool_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._notices = notices
        self._pool = f"the IPC pool of {format_bytes(pool_bytes)}"
        self._has_pool = pool_bytes > 0
        self._clock = clock
        self._waits: collections.deque[tuple[float, float]] = collections.deque()

    def waited(self, seconds: float) -> None:
        """Take note of a wait for a chunk."""
        now = self._clock()
        self._waits.append((now, seconds))
        while self._waits[0][0] < now - _WAIT_WINDOW_SECONDS:
            self._waits.popleft()
        waited = sum(each for _, each in self._waits)
        if waited > _WAIT_NOTICE_SECONDS:
            self._notices.say(
                "waiting",
                f"transfers waited {waited:.1f} s of the last minute for chunks: {self._pool} is "
                "small for them; set a larger ipc-pool-size",
            )

    def message(self, stream_bytes: int, budget_bytes: int) -> None:
        """Take note of the size of a message, and of the chunks that there are for it."""
        if budget_bytes and stream_bytes > _LARGE_MESSAGE_FACTOR * budget_bytes:
            self._notices.say(
                "large message",
                f"a message of {format_bytes(stream_bytes)} goes through {self._pool}: "
                "a larger ipc-pool-size may make it faster",
            )

    def extra_chunk(self, nbytes: int) -> None:
        """Say that a chunk is managed memory."""
        if not self._has_pool:
            self.no_pool(nbytes)
            return
        self._notices.say(
            "overflow",
            f"a chunk of {format_bytes(nbytes)} was taken from managed memory, which is slow: "
            f"{self._pool} had none free in time; set a larger ipc-pool-size",
        )

    def no_room(self, chunk_bytes: int) -> None:
        """Say that others hold the pool."""
        self._notices.say(
            "no pool",
            f"{self._pool} has no room for two chunks of {format_bytes(chunk_bytes)}: "
            "transfers go past it, which is slow; set a larger ipc-pool-size",
        )

    def no_pool(self, nbytes: int) -> None:
        """Say that managed memory is on the wire path, since there is no IPC pool here."""
        self._notices.say(
            "no pool",
            f"{format_bytes(nbytes)} of managed memory are on the wire path, which is slow: "
            "there is no IPC pool in this process; set ipc-pool-size, such as '256MiB'",
        )

    def received_unstaged(self, nbytes: int) -> None:
        """Say that managed memory was received into as it is, since the peer has no staging."""
        if not self._has_pool:
            self.no_pool(nbytes)
            return
        self._notices.say(
            "stock peer",
            f"{format_bytes(nbytes)} were received into managed memory, which is slow: the peer "
            "has no IPC pool, or does not speak ucxuvm; set ipc-pool-size on all workers",
        )

    def stock_peer(self, nbytes: int) -> None:
        """Say that managed memory is sent as it is, since the peer has no staging."""
        self._notices.say(
            "stock peer",
            f"{format_bytes(nbytes)} of managed memory are sent without staging, which is slow: "
            "the peer does not speak ucxuvm; install rmm-uvm there and use protocol='ucxuvm'",
        )
