# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Causes over time: asking a source of migration events now and then, and keeping its totals.

Covers what a monitor keeps of them. Does not cover where they come from; see
`rmm_uvm.watch.sampling.causes`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.support.process_lock import ProcessLock
from rmm_uvm.watch.sampling.causes import COLUMNS, cause_row, cost_note, open_events

if TYPE_CHECKING:
    from rmm_uvm._lib.events import CauseTotals

__all__ = ["Attribution", "EventSource"]

_BUSIEST = 20
# When there are so many rows, every other one goes and rows come half as often: a day takes a few
# MiB, and the whole of it stays in sight.
_MOST_ROWS = 20_000


class EventSource(Protocol):
    """Migration events with causes, of one device; see `rmm_uvm._lib.events`."""

    def start(self) -> Availability:
        """Begin; say whether it does."""
        ...

    def stop(self) -> None:
        """Stop; the totals stay, and are complete."""

    def read(self) -> CauseTotals:
        """Return totals since the start."""
        ...

    def busiest(self, most: int) -> Sequence[tuple[int, int, int]]:
        """Return address, bytes to the device and to the host of the blocks that moved most."""
        ...


class Attribution:
    """Bytes by cause, of all watched devices.

    Parameters
    ----------
    drivers : mapping of int to UvmDriver
        By CUDA ordinal.
    open_events : callable
        Makes the source for a driver.

    Attributes
    ----------
    available : Availability
        Whether causes are told; if not of all devices, the first reason.
    cost : str
        What it costs, for people to read; empty where it costs nothing.

    Notes
    -----
    Thread-safe.
    """

    def __init__(
        self,
        drivers: Mapping[int, UvmDriver],
        open_events: Callable[[UvmDriver], tuple[EventSource | None, Availability]] = open_events,
    ) -> None:
        self.available = Availability(available=False, reason="no device that could tell causes")
        self._sources: dict[int, EventSource] = {}
        self._latest: dict[int, CauseTotals] = {}
        self._rows: list[list[float]] = []
        self._spacing_seconds = 0.0
        self._last_seconds = -1.0
        self._lock = ProcessLock()
        self._busiest: tuple[tuple[int, int, int], ...] = ()
        answers = [
            self._open(device_id, *open_events(driver)) for device_id, driver in drivers.items()
        ]
        if answers:
            self.available = next((answer for answer in answers if not answer), answers[0])
        notes = (cost_note(drivers[device_id]) for device_id in self._sources)
        self.cost = next((note for note in notes if note), "")
        if self.cost:  # on standard error, unless the program set logging up
            logging.getLogger("rmm_uvm.watch").warning(self.cost)

    def described(self) -> dict[str, str]:
        """Return what a reader of the recording must know of it."""
        return {"attribution": self.cost} if self.cost else {}

    def _open(
        self, device_id: int, source: EventSource | None, answer: Availability
    ) -> Availability:
        if source is None:
            return answer
        answer = source.start()
        if answer:
            self._sources[device_id] = source
        return answer

    def look(self, now_seconds: float) -> None:
        """Read all sources, and keep a row of each."""
        with self._lock():
            if not self._sources:
                return
            for device_id, source in self._sources.items():
                self._latest[device_id] = source.read()
            if now_seconds - self._last_seconds >= self._spacing_seconds:
                self._add_rows(now_seconds)

    def _add_rows(self, now_seconds: float) -> None:
        self._last_seconds = now_seconds
        for device_id, totals in self._latest.items():
            self._rows.append(cause_row(now_seconds, device_id, totals))
        if len(self._rows) > _MOST_ROWS:
            self._thin()

    def _thin(self) -> None:
        moments = sorted({row[0] for row in self._rows})
        kept = set(moments[-1::-2])  # the newest stays
        self._rows = [row for row in self._rows if row[0] in kept]
        span_seconds = moments[-1] - moments[0]
        self._spacing_seconds = max(2 * self._spacing_seconds, 2 * span_seconds / len(moments))

    def latest(self, device_id: int) -> Mapping[str, Any] | None:
        """Return the totals of a device as of the last look; None if it tells none."""
        with self._lock():
            return self._latest.get(device_id)

    def recorded(self) -> Mapping[str, Any] | None:
        """Return what `Recording.causes` holds; None if nothing was told."""
        with self._lock():
            if not self._rows:
                return None
            return {"columns": list(COLUMNS), "rows": [list(row) for row in self._rows]}

    def busiest(self) -> tuple[tuple[int, int, int], ...]:
        """Return the blocks that moved most, of all devices, the busiest first."""
        with self._lock():
            if self._sources and self._lock.here:  # in a forked child they count nothing
                self._busiest = _busiest(self._sources.values())
            return self._busiest

    def stop(self, now_seconds: float) -> None:
        """Stop all sources, and keep their last totals; idempotent.

        Parameters
        ----------
        now_seconds : float
            Since the monitor began.
        """
        with self._lock():
            sources, self._sources = self._sources, {}
            if not sources:
                return
            for device_id, source in sources.items():
                source.stop()
                self._latest[device_id] = source.read()  # complete only now
            self._busiest = _busiest(sources.values())
            self._add_rows(now_seconds)


def _busiest(sources: Iterable[EventSource]) -> tuple[tuple[int, int, int], ...]:
    found = [block for source in sources for block in source.busiest(_BUSIEST)]
    return tuple(sorted(found, key=lambda block: block[1] + block[2], reverse=True)[:_BUSIEST])
