# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Findings of many workers become few warnings: one of a kind and minute, "on 3 workers".

`gather` is the policy, a pure function. `WarningGatherer` lets time pass and says what is due.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from rmm_uvm import errors
from rmm_uvm.dask.worker.findings import FindingEvent

__all__ = ["GATHER_SECONDS", "QUIET_SECONDS", "Gathered", "Said", "WarningGatherer", "gather"]

GATHER_SECONDS = 2.0
"""How long the first finding of a kind waits for those of other workers."""

QUIET_SECONDS = 60.0
"""After a warning, its kind is silent for this long."""

_Key = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Gathered:
    """Findings of one kind that were not said yet.

    Parameters
    ----------
    worst : FindingEvent or None
        The one that passed its threshold furthest; None: nothing waits.
    workers : frozenset of str
        Addresses of all whose findings wait.
    since_seconds : float
        When the first of them came.
    said_seconds : float
        When the kind was said last; minus infinity: never.
    """

    worst: FindingEvent | None = None
    workers: frozenset[str] = frozenset()
    since_seconds: float = 0.0
    said_seconds: float = -math.inf

    @property
    def due_seconds(self) -> float:
        """When it is to be said."""
        if self.worst is None:
            return math.inf
        return max(self.since_seconds + GATHER_SECONDS, self.said_seconds + QUIET_SECONDS)


@dataclasses.dataclass(frozen=True)
class Said:
    """One warning of the cluster.

    Parameters
    ----------
    category : type
        Class of the warning.
    text : str
        One line.
    """

    category: type[errors.FindingWarning]
    text: str


def gather(
    state: Mapping[_Key, Gathered], event: FindingEvent | None, now_seconds: float
) -> tuple[dict[_Key, Gathered], list[Said]]:
    """Return what waits after an event, and what is to be said now.

    Parameters
    ----------
    state : mapping
        What waited before; empty at first.
    event : FindingEvent or None
        What came; None: only time passed.
    now_seconds : float
        Of a clock that only grows.

    Examples
    --------
    >>> found = FindingEvent("eviction", "EvictionWarning", "pages leave", worker="a", value=1.0)
    >>> state, said = gather({}, found, 0.0)
    >>> said
    []
    >>> state, said = gather(state, dataclasses.replace(found, worker="b", value=2.0), 1.0)
    >>> state, said = gather(state, None, 2.0)
    >>> said[0].text
    'on 2 workers, at worst on b: pages leave'
    """
    new = dict(state)
    if event is not None:
        key = (event.kind, event.about)
        new[key] = _joined(new.get(key, Gathered()), event, now_seconds)
    said = []
    for key, waiting in new.items():
        if waiting.worst is not None and now_seconds >= waiting.due_seconds:
            said.append(_said(waiting.worst, len(waiting.workers)))
            new[key] = Gathered(said_seconds=now_seconds)
    # What was said long ago is forgotten: a source's message may never come again.
    kept = {k: w for k, w in new.items() if w.worst or now_seconds < w.said_seconds + QUIET_SECONDS}
    return kept, said


def _joined(waiting: Gathered, event: FindingEvent, now_seconds: float) -> Gathered:
    workers = waiting.workers | {event.worker}
    if waiting.worst is None:
        return dataclasses.replace(waiting, worst=event, workers=workers, since_seconds=now_seconds)
    worst = max(waiting.worst, event, key=lambda one: one.value or 0.0)
    return dataclasses.replace(waiting, worst=worst, workers=workers)


def _said(worst: FindingEvent, n_workers: int) -> Said:
    device = ""
    if worst.device_id is not None:
        device = f" (device {worst.device_id}{': ' * bool(worst.device_name)}{worst.device_name})"
    where = f"on {worst.worker}{device}"
    if n_workers > 1:
        where = f"on {n_workers} workers, at worst {where}"
    return Said(worst.warning, f"{where}: {worst.text}")


class Loop(Protocol):
    """The part of a tornado event loop that a gatherer needs."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> object:
        """Call something after some seconds; return what takes that back."""

    def remove_timeout(self, timeout: object) -> None:
        """Take it back."""


class WarningGatherer:
    """Hears of events and says warnings when they are due.

    Parameters
    ----------
    loop : tornado.ioloop.IOLoop
        Calls back when something is due.
    say : callable
        Called with each `Said`.
    clock : callable
        Returns seconds that only grow.

    Notes
    -----
    Not thread-safe: for the loop's thread.
    """

    def __init__(
        self,
        loop: Loop,
        say: Callable[[Said], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop = loop
        self._say = say
        self._clock = clock
        self._state: dict[_Key, Gathered] = {}
        self._timeout: object | None = None
        self._closed = False

    def hear(self, message: object) -> None:
        """Take a message of our topic; one that is no finding is passed over."""
        event = FindingEvent.from_dict(message)
        if event is not None and not self._closed:
            self._step(event)

    def close(self) -> None:
        """Say at once what waits, and then nothing more; may be called twice."""
        if self._closed:
            return
        self._closed = True
        self._forget_timeout()
        waiting, self._state = list(self._state.values()), {}
        for one in waiting:
            if one.worst is not None:
                self._say(_said(one.worst, len(one.workers)))

    def _step(self, event: FindingEvent | None = None) -> None:
        now = self._clock()
        self._state, said = gather(self._state, event, now)
        self._forget_timeout()
        due = min((one.due_seconds for one in self._state.values()), default=math.inf)
        if due < math.inf:
            self._timeout = self._loop.call_later(max(due - now, 0.0), self._due)
        for one in said:  # last: a warning may be an error
            self._say(one)

    def _due(self) -> None:
        self._timeout = None
        self._step()

    def _forget_timeout(self) -> None:
        timeout, self._timeout = self._timeout, None
        if timeout is not None:
            self._loop.remove_timeout(timeout)
