# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Attribution: which source of migration events a driver has, and its causes over time.

Covers opening the source, naming its columns, and what a monitor keeps of them. Does not cover when
it is on; see `rmm_uvm.watch.monitor`.

References
----------
The cost was measured on an NVIDIA H200 with driver 580 and CUDA 13.0, on a kernel that does nothing
but fault.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.events import MigrationEvents, cupti_events, simulated_events
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.machine.cupti_library import find_cupti
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.recorded import CAUSES
from rmm_uvm.support.process_lock import ProcessLock

if TYPE_CHECKING:
    from rmm_uvm._lib.events import CauseTotals

__all__ = [
    "COLUMNS",
    "COST_NOTE",
    "Attribution",
    "EventSource",
    "cause_row",
    "cost_note",
    "open_events",
]

COST_NOTE = (
    "attribution is on: code that faults takes two to four times as long meanwhile (CUPTI; 2.3 to "
    "3.6 measured on an H200)"
)
"""What attribution costs on a GPU, for everything that prints it."""

_WITHOUT_CAUSE = (
    "device_to_device_bytes",
    "cpu_faults",
    "gpu_fault_groups",
    "thrashing_bytes",
    "throttling_ns",
    "remote_map_bytes",
    "dropped_records",
    "forgotten_bytes",
)

COLUMNS = (
    "time_seconds",
    "device_id",
    *(f"host_to_device_{cause}_bytes" for cause in CAUSES),
    *(f"device_to_host_{cause}_bytes" for cause in CAUSES),
    *_WITHOUT_CAUSE,
)
"""Columns of `rmm_uvm.recording.recorded.Recording.causes`; the rows come from `cause_row`."""


def open_events(driver: UvmDriver) -> tuple[MigrationEvents | None, Availability]:
    """Open the source that tells why pages of a device move; it is off until started.

    Parameters
    ----------
    driver : UvmDriver
        Of the device. On a GPU libcupti is looked for, and loaded.

    Returns
    -------
    tuple of (MigrationEvents or None, Availability)
        None, and why, where there is none. That another profiler holds CUPTI is known only when it
        is started.

    Notes
    -----
    Thread-safe. Sources of one process share CUPTI, whatever their devices: any number may be on.

    Examples
    --------
    >>> import rmm_uvm
    >>> events, found = open_events(rmm_uvm.simulated_device("64MiB"))
    >>> bool(found), bool(events.start())
    (True, True)
    >>> events.stop()
    """
    if isinstance(driver, SimulatedDevice):
        return simulated_events(driver), Availability(available=True)
    access = driver.info.concurrent_managed_access
    if not access:
        return None, Availability(available=False, reason=f"nothing migrates: {access.reason}")
    path, found = find_cupti()
    if path is None:
        return None, found
    return cupti_events([driver.info.device_id], [path])


def cost_note(driver: UvmDriver) -> str:
    """Return what attribution costs with this driver; empty on a simulated device.

    Examples
    --------
    >>> import rmm_uvm
    >>> cost_note(rmm_uvm.simulated_device("64MiB"))
    ''
    """
    return "" if driver.info.simulated else COST_NOTE


def cause_row(time_seconds: float, device_id: int, totals: CauseTotals) -> list[float]:
    """Return the sums of one device at one time as a row under `COLUMNS`.

    Parameters
    ----------
    time_seconds : float
        Since the monitor began.
    device_id : int
        CUDA ordinal.
    totals : dict
        As from `MigrationEvents.read`.

    Examples
    --------
    >>> import rmm_uvm
    >>> events, _ = open_events(rmm_uvm.simulated_device("64MiB"))
    >>> row = cause_row(1.5, 0, events.read())
    >>> dict(zip(COLUMNS, row))["device_to_host_eviction_bytes"]
    0
    """
    told = cast("Mapping[str, Any]", totals)
    return [
        time_seconds,
        device_id,
        *(told["host_to_device_bytes"][cause] for cause in CAUSES),
        *(told["device_to_host_bytes"][cause] for cause in CAUSES),
        *(told[name] for name in _WITHOUT_CAUSE),
    ]


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
