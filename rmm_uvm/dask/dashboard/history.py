# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The last two minutes of every worker's rates, for the lines on the dashboard's page.

Dask keeps only the newest metrics of a worker. Kept by the scheduler and not by a page, so that a
page has its lines as soon as it is opened.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rmm_uvm.dask.worker.figures import WorkerFigures

__all__ = ["HISTORY_SECONDS", "History", "Rates", "sum_of_known"]

HISTORY_SECONDS = 120.0
"""How far it reaches back."""

_MOST_POINTS = 240  # of each worker, however often somebody notes


class Rates(NamedTuple):
    """Rates of one device of a worker at one time, bytes a second; None where not known."""

    seconds: float
    host_to_device: float | None
    device_to_host: float | None
    evicted: float | None


class History:
    """Rates by worker and device.

    Notes
    -----
    Not thread-safe: for the thread of the scheduler's event loop.

    Examples
    --------
    >>> history = History()
    >>> told = WorkerFigures(device_id=0, host_to_device_bytes_per_second=5.0)
    >>> history.note({"tcp://a": told}, 100.0)
    >>> history.note({"tcp://a": told}, 101.0)
    >>> [point.host_to_device for point in history.of("tcp://a", 0)]
    [5.0, 5.0]
    >>> history.note({}, 102.0)  # it left
    >>> history.of("tcp://a", 0)
    ()
    """

    def __init__(self) -> None:
        self._points: dict[tuple[str, int | None], collections.deque[Rates]] = {}

    def note(self, figures: Mapping[str, WorkerFigures], now_seconds: float) -> None:
        """Add a point for each device of every worker, and forget those that left."""
        former, self._points = self._points, {}
        each = ((address, told) for address, one in figures.items() for told in one.of_devices)
        for address, told in each:
            place = (address, told.device_id)
            points = former.get(place) or collections.deque(maxlen=_MOST_POINTS)
            self._points[place] = points
            points.append(
                Rates(
                    now_seconds,
                    told.host_to_device_bytes_per_second,
                    told.device_to_host_bytes_per_second,
                    told.evicted_bytes_estimate_per_second,
                )
            )
            while points[0].seconds < now_seconds - HISTORY_SECONDS:
                points.popleft()

    def of(self, address: str, device_id: int | None) -> tuple[Rates, ...]:
        """Return the points of a worker's device, in order of time; empty for an unknown one."""
        return tuple(self._points.get((address, device_id), ()))

    def of_all(self) -> tuple[Rates, ...]:
        """Return the sums over all workers, in order of time."""
        at: dict[float, list[Rates]] = {}
        for points in self._points.values():
            for point in points:
                at.setdefault(point.seconds, []).append(point)
        return tuple(
            Rates(seconds, *map(sum_of_known, list(zip(*at[seconds], strict=True))[1:]))
            for seconds in sorted(at)
        )


def sum_of_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of what is known, None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
