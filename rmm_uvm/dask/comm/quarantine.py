# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps memory of a broken transfer until nobody can be reading or writing it any more.

The peer may still be copying from it over NVLink, and would take whatever came next there for the
data; copies of our own may still be queued on it. Nothing tells when the peer is done, since it
is the connection that broke: hence some seconds. When ours are done is known, and waited for.
"""

from __future__ import annotations

import asyncio
import collections
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from rmm_uvm.errors import DriverError

__all__ = ["QUARANTINE_SECONDS", "Mark", "Quarantine"]

QUARANTINE_SECONDS = 5.0
"""Far longer than a peer that lives takes for the chunks that it has begun to read."""


class Mark(Protocol):
    """A point in a stream of copies; see `rmm_uvm._lib.marks.Mark`."""

    def done(self) -> bool:
        """Return whether the copies before it are done; raise DriverError if they failed."""


class _Quarantined(NamedTuple):
    until_seconds: float
    mark: Mark | None
    give_back: Callable[[], object]


class Quarantine:
    """Holds things for a while, then gives them back. Thread-safe.

    Parameters
    ----------
    seconds : float
        How long at least.
    clock : callable
        Returns seconds that only grow.
    """

    def __init__(
        self,
        seconds: float = QUARANTINE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: collections.deque[_Quarantined] = collections.deque()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, give_back: Callable[[], object], mark: Mark | None = None) -> None:
        """Call `give_back` once the time is over and `mark`, if any, is done.

        Inside an event loop that happens by itself; else with the next `collect`.
        """
        with self._lock:
            self._entries.append(_Quarantined(self._clock() + self.seconds, mark, give_back))
        self._call_later()

    def keep(self, things: object, mark: Mark | None = None) -> None:
        """Keep something alive until then."""
        self.put(lambda: things, mark)

    def collect(self) -> None:
        """Give back what may be."""
        while True:
            with self._lock:
                if not self._entries or self._clock() < self._entries[0].until_seconds:
                    return
                if not _over(self._entries[0].mark):
                    break
                entry = self._entries.popleft()
            entry.give_back()
        self._call_later()

    def _call_later(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        loop.call_later(self.seconds, self.collect)


def _over(mark: Mark | None) -> bool:
    try:
        return mark is None or mark.done()
    except DriverError:
        return True  # failed copies write nothing any more
