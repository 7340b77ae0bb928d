# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Causes over time: asking a source of migration events now and then, and keeping its totals.

Covers what a monitor keeps of them. Does not cover where they come from; see
`rmm_uvm.watch.causes`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm.device_info import Availability
from rmm_uvm.watch.recording import CAUSES

__all__ = ["Attribution", "EventSource"]

_DIRECTIONS = ("host_to_device", "device_to_host")
_BUSIEST = 20
# When there are so many rows, every other one goes and rows come half as often: a day takes a few
# MiB, and the whole of it stays in sight.
_MOST_ROWS = 20_000


class EventSource(Protocol):
    """Migration events with causes, of one device."""

    def start(self) -> Availability:
        """Begin; say whether it does."""
        ...

    def stop(self) -> None:
        """Stop; the totals stay."""

    def read(self) -> Mapping[str, Any]:
        """Return totals: by direction, a mapping by cause."""
        ...

    def busiest(self, most: int) -> Sequence[tuple[int, int, int]]:
        """Return address, bytes to the device and to the host of the blocks that moved most."""
        ...


Opener = Callable[[UvmDriver], tuple[EventSource | None, Availability]]


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

    Notes
    -----
    Thread-safe.
    """

    columns = (
        "time_seconds",
        "device_id",
        *(f"{direction}_{cause}_bytes" for direction in _DIRECTIONS for cause in CAUSES),
    )

    def __init__(self, drivers: Mapping[int, UvmDriver], open_events: Opener) -> None:
        self.available = Availability(available=False, reason="no device that could tell causes")
        self._sources: dict[int, EventSource] = {}
        self._latest: dict[int, Mapping[str, Any]] = {}
        self._rows: list[tuple[float, ...]] = []
        self._spacing_seconds = 0.0
        self._last_seconds = -1.0
        self._lock = threading.Lock()
        self._busiest: tuple[tuple[int, int, int], ...] = ()
        answers = [self._open(*each, open_events) for each in drivers.items()]
        if answers:
            self.available = next((answer for answer in answers if not answer), answers[0])

    def _open(self, device_id: int, driver: UvmDriver, open_events: Opener) -> Availability:
        source, answer = open_events(driver)
        if source is None:
            return answer
        answer = source.start()
        if answer:
            self._sources[device_id] = source
        return answer

    def look(self, now_seconds: float) -> None:
        """Read all sources, and keep a row of each."""
        with self._lock:
            for device_id, source in self._sources.items():
                self._latest[device_id] = source.read()
            if now_seconds - self._last_seconds < self._spacing_seconds:
                return
            self._last_seconds = now_seconds
            for device_id, totals in self._latest.items():
                self._rows.append((now_seconds, device_id, *_flat(totals)))
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
        with self._lock:
            return self._latest.get(device_id)

    def recorded(self) -> Mapping[str, Any] | None:
        """Return what `Recording.causes` holds; None if nothing was told."""
        with self._lock:
            if not self._rows:
                return None
            return {"columns": list(self.columns), "rows": [list(row) for row in self._rows]}

    def busiest(self) -> tuple[tuple[int, int, int], ...]:
        """Return the blocks that moved most, of all devices, the busiest first."""
        with self._lock:
            found = [block for s in self._sources.values() for block in s.busiest(_BUSIEST)]
        if not found:
            return self._busiest
        return tuple(sorted(found, key=lambda block: block[1] + block[2], reverse=True)[:_BUSIEST])

    def stop(self) -> None:
        """Stop all sources; what was kept stays. Takes 2 s on a GPU."""
        with self._lock:
            found = [block for s in self._sources.values() for block in s.busiest(_BUSIEST)]
            found.sort(key=lambda block: block[1] + block[2], reverse=True)
            self._busiest = tuple(found[:_BUSIEST])
            sources, self._sources = self._sources, {}
        for source in sources.values():
            source.stop()


def _flat(totals: Mapping[str, Any]) -> list[int]:
    values = []
    for direction in _DIRECTIONS:
        by_cause = totals.get(f"{direction}_bytes", {})
        values += [int(by_cause.get(cause, 0)) for cause in CAUSES]
    return values
