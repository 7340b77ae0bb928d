# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The rows of the dashboard's page, as plain text and fractions: pure functions.

The template escapes it: names and messages come from workers. Does not cover drawing; see
`rmm_uvm.dask.dashboard.page`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from rmm_uvm.dask.comm.statistics import DIRECTIONS, WAYS, Way, bytes_moved
from rmm_uvm.dask.dashboard.history import HISTORY_SECONDS, Rates, sum_of_known
from rmm_uvm.dask.worker.figures import WorkerFigures
from rmm_uvm.report import words

__all__ = ["Bar", "ClusterFigure", "RateLines", "WorkerRow", "WorkerSeen", "cards", "rate", "rows"]

UNKNOWN = "unknown"
_MOST_LETTERS = 300


@dataclasses.dataclass(frozen=True)
class WorkerSeen:
    """A worker as the scheduler sees it, or one of its devices.

    Parameters
    ----------
    address, name : str
        As Dask knows it.
    status : str
        Such as "running" or "paused".
    figures : WorkerFigures
        What it tells.
    history : sequence of Rates
        Its rates of late.
    """

    address: str
    name: str
    status: str
    figures: WorkerFigures
    history: Sequence[Rates] = ()


@dataclasses.dataclass(frozen=True)
class Bar:
    """Footprint against capacity, as fractions of the bar's width, 0 to 1.

    Parameters
    ----------
    resident, elsewhere, unplaced : float
        The footprint: on the device, not there, and where it is not known which.
    capacity : float or None
        Where the managed capacity ends; None if it is not known.
    """

    resident: float
    elsewhere: float
    unplaced: float
    capacity: float | None


@dataclasses.dataclass(frozen=True)
class RateLines:
    """Rates over time, as corners of a line in a box of 100 by 20; empty for nothing."""

    to_device: str
    to_host: str


@dataclasses.dataclass(frozen=True)
class WorkerRow:
    """A worker's or its device's row, not escaped; `reason` alone if nothing is known."""

    name: str
    address: str
    status: str = ""
    reason: str = ""
    device: str = ""
    simulated: bool = False
    bar: Bar | None = None
    footprint: str = UNKNOWN
    capacity: str = UNKNOWN
    factor: str = ""
    resident: str = UNKNOWN
    line: RateLines = RateLines("", "")
    to_device: str = UNKNOWN
    to_host: str = UNKNOWN
    evicted: str = UNKNOWN
    evicted_rate: str = ""
    ipc_pool: str = UNKNOWN
    staged: str = ""
    direct: str = ""
    overflow: str = ""
    waits: str = ""
    findings_total: int = 0
    finding: str = ""
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ClusterFigure:
    """One figure of the whole cluster."""

    title: str
    value: str
    note: str = ""
    alarming: bool = False


def rate(bytes_per_second: float | None) -> str:
    """Return a rate in decimal units, as links and buses are specified in.

    Examples
    --------
    >>> rate(2.5e9), rate(12.0), rate(None)
    ('2.5 GB/s', '0 kB/s', 'unknown')
    """
    if bytes_per_second is None:
        return UNKNOWN
    scale, unit = words.rate_unit(bytes_per_second)
    return f"{bytes_per_second / scale:.{0 if unit == 'kB/s' else 1}f} {unit}"


def rows(workers: Sequence[WorkerSeen], now_seconds: float) -> list[WorkerRow]:
    """Return one row for each of them, in the order given; bars and lines share their scales.

    Parameters
    ----------
    workers : sequence of WorkerSeen
        The workers.
    now_seconds : float
        On the clock of the histories.
    """
    widest = max((_extent(worker.figures) for worker in workers), default=0)
    fastest = max((_fastest(worker.history) for worker in workers), default=0.0)
    return [_row(worker, widest, fastest, now_seconds) for worker in workers]


def cards(workers: Sequence[WorkerSeen]) -> list[ClusterFigure]:
    """Return figures of all workers together; what a worker does not know is not in them."""
    told = [worker.figures for worker in workers]
    addresses = {worker.address for worker in workers}
    silent = len(addresses - {w.address for w in workers if w.figures.footprint_bytes is not None})
    footprint, capacity = _sum(told, "footprint_bytes"), _sum(told, "capacity_bytes")
    of_capacity = "" if not capacity else f"of {words.size(int(capacity))} capacity"
    overflow = _comm_sum(told, "overflow")
    past_pools = f"{_size(overflow)} past the IPC pools" if overflow else ""
    findings = int(_sum(told, "findings_total") or 0)
    return [
        ClusterFigure(
            "Workers", str(len(addresses)), f"{silent} without figures" if silent else ""
        ),
        ClusterFigure("Footprint", _size(footprint), of_capacity, _over(footprint, capacity)),
        ClusterFigure("Resident", _size(_sum(told, "resident_bytes")), "on the devices"),
        ClusterFigure("To the devices", rate(_sum(told, "host_to_device_bytes_per_second"))),
        ClusterFigure("To the hosts", rate(_sum(told, "device_to_host_bytes_per_second"))),
        ClusterFigure("Evicted", _size(_sum(told, "evicted_bytes_estimate")), "estimate"),
        ClusterFigure("Between workers", _size(_comm_sum(told, *WAYS)), past_pools, bool(overflow)),
        ClusterFigure("Findings", str(findings), "", findings > 0),
    ]


def _row(worker: WorkerSeen, widest: int, fastest: float, now_seconds: float) -> WorkerRow:
    figures = worker.figures
    row = WorkerRow(
        name=words.plain_name(worker.name),
        address=worker.address,
        status="" if worker.status == "running" else worker.status,
    )
    if figures.footprint_bytes is None and figures.device_id is None:
        return dataclasses.replace(row, reason=words.plain_name(figures.reason, _MOST_LETTERS))
    notes = [figures.reason] if figures.reason else []
    notes += [f"not watched: {name}: {why}" for name, why in figures.missing.items()]
    factor = figures.oversubscription_factor
    resident = _size(figures.resident_bytes)
    if figures.resident_bytes is not None and not figures.resident_exact:
        resident = f"{resident} (estimate)"
    return dataclasses.replace(
        row,
        device=f"{figures.device_id}: {words.plain_name(figures.device_name)}",
        simulated=bool(figures.simulated),
        bar=_bar(figures, widest),
        footprint=_size(figures.footprint_bytes),
        capacity=_size(figures.capacity_bytes),
        factor="" if factor is None else f"{factor:.2f}",
        resident=resident,
        line=_line(worker.history, fastest, now_seconds),
        to_device=rate(figures.host_to_device_bytes_per_second),
        to_host=rate(figures.device_to_host_bytes_per_second),
        evicted=_size(figures.evicted_bytes_estimate),
        evicted_rate=_unless_nothing(rate, figures.evicted_bytes_estimate_per_second),
        **_comm(figures),
        findings_total=figures.findings_total or 0,
        finding=words.plain_name(figures.finding, _MOST_LETTERS) if figures.finding else "",
        notes=tuple(words.plain_name(note, _MOST_LETTERS) for note in notes),
    )


def _comm(figures: WorkerFigures) -> dict[str, str]:
    pool = figures.ipc_pool_bytes
    waited = figures.comm.get("chunk_wait_seconds", 0.0)
    return {
        "ipc_pool": UNKNOWN if pool is None else words.size(pool) if pool else "no IPC pool",
        **{way: _unless_nothing(_size, bytes_moved(figures.comm, way)) for way in WAYS},
        "waits": f"waited {waited:.1f} s for it" if waited >= 0.05 else "",
    }


def _comm_sum(told: Sequence[WorkerFigures], *ways: Way) -> float | None:
    """Return bytes that went between workers some ways.

    What one sends another receives. But one of them may find its pool exhausted and the other not,
    so the larger sum counts.
    """
    known = [one.comm for one in told if one.comm]
    if not known:
        return None
    return max(
        sum(bytes_moved(comm, *ways, directions=[one]) for comm in known) for one in DIRECTIONS
    )


def _unless_nothing(show: Callable[[float | None], str], value: float | None) -> str:
    return show(value) if value else ""


def _size(nbytes: float | None) -> str:
    return UNKNOWN if nbytes is None else words.size(int(nbytes))


def _sum(told: Sequence[WorkerFigures], name: str) -> float | None:
    return sum_of_known(getattr(one, name) for one in told)


def _over(footprint: float | None, capacity: float | None) -> bool:
    return bool(footprint is not None and capacity and footprint > capacity)


def _extent(figures: WorkerFigures) -> int:
    return max(figures.footprint_bytes or 0, figures.capacity_bytes or 0)


def _bar(figures: WorkerFigures, widest: int) -> Bar | None:
    footprint = figures.footprint_bytes
    if footprint is None or not widest:
        return None
    known = figures.resident_bytes is not None
    # Resident bytes are of slabs: a pool with room in it has more of them than are allocated.
    resident = min(footprint, figures.resident_bytes or 0)
    capacity = figures.capacity_bytes
    return Bar(
        resident=resident / widest,
        elsewhere=(footprint - resident) / widest if known else 0.0,
        unplaced=0.0 if known else footprint / widest,
        capacity=None if capacity is None else capacity / widest,
    )


def _fastest(history: Sequence[Rates]) -> float:
    return max((rate or 0.0 for point in history for rate in point[1:3]), default=0.0)


def _line(history: Sequence[Rates], fastest: float, now_seconds: float) -> RateLines:
    if len(history) < 2 or fastest <= 0:
        return RateLines("", "")
    return RateLines(
        _corners([(p.seconds, p.host_to_device) for p in history], fastest, now_seconds),
        _corners([(p.seconds, p.device_to_host) for p in history], fastest, now_seconds),
    )


def _corners(
    points: Sequence[tuple[float, float | None]], fastest: float, now_seconds: float
) -> str:
    corners = []
    for seconds, value in points:
        if value is not None:
            x = 100 * (1 - (now_seconds - seconds) / HISTORY_SECONDS)
            corners.append(f"{x:.1f},{19 - 18 * value / fastest:.1f}")
    return " ".join(corners)
