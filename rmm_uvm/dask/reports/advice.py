# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The advice at the beginning of a report of a cluster, across all workers.

Pure functions. What one worker's own report advises is in it once, with how many workers it is
true of; before it comes what only shows when workers are compared.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence

from rmm_uvm.dask.comm.statistics import WAYS, bytes_moved
from rmm_uvm.dask.reports.worker_recording import WorkerRecording
from rmm_uvm.report import words
from rmm_uvm.report.advice import about, collect, message, verdict
from rmm_uvm.report.figures import Figures, in_all, of_device

__all__ = ["ClusterAdvice", "WorkerSums", "cluster_advice", "cluster_verdict", "sums_of"]

# Workers that differ less are alike, as far as anybody could do something about it.
_UNLIKE_FACTOR = 1.5
# Waiting for less than this of the time is not what makes a program slow.
_WAITING_FRACTION = 0.05
# Moving less than this of a device's capacity takes well below a second.
_LITTLE_FRACTION = 0.25


@dataclasses.dataclass(frozen=True)
class ClusterAdvice:
    """One thing to do.

    Parameters
    ----------
    kind : str
        "overflow", "ipc_pool", "skew", "bottleneck", or the kind of a finding.
    remedy : str
        What to do: one sentence without a full stop.
    message : str
        What is the case, with the figures.
    workers : tuple of str
        Names of the workers of which it is true, the worst first.
    """

    kind: str
    remedy: str
    message: str
    workers: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class WorkerSums:
    """The figures of one worker's devices together, and of its transfers.

    Parameters
    ----------
    worker : WorkerRecording
        Of whom.
    figures : Figures
        Bytes in sum, the highest peaks.
    peak_footprint_bytes, capacity_bytes : int or None
        Of the fullest device: the most that was allocated, and its managed capacity.
    moved_bytes : int or None
        Migrated both ways.
    between_bytes, overflow_bytes, waited_seconds : float
        Sent to and received from other workers; of that, past the IPC pool; and how long transfers
        waited for it. Since the process began.
    """

    worker: WorkerRecording
    figures: Figures
    peak_footprint_bytes: int | None
    capacity_bytes: int | None
    moved_bytes: int | None
    between_bytes: float
    overflow_bytes: float
    waited_seconds: float

    @property
    def name(self) -> str:
        """The worker's."""
        return self.worker.name

    @property
    def factor(self) -> float | None:
        """Peak footprint over capacity; None when either is not known."""
        return _factor(self.peak_footprint_bytes, self.capacity_bytes)


def sums_of(worker: WorkerRecording) -> WorkerSums:
    """Return the sums of one worker; of one without a recording, those of its transfers."""
    recording = worker.recording
    devices = () if recording is None else recording.devices
    each = [] if recording is None else [of_device(recording, device) for device in devices]
    figures = in_all(each)
    ways = (figures.host_to_device_bytes, figures.device_to_host_bytes)
    levels = [
        (of_one.peak_footprint_bytes, device.capacity_bytes or None)
        for of_one, device in zip(each, devices, strict=True)
    ]
    fullest = max(levels, key=lambda one: (_factor(*one) or -1.0, one[0] or -1), default=None)
    peak, capacity = fullest or (None, None)
    return WorkerSums(
        worker=worker,
        figures=figures,
        peak_footprint_bytes=peak,
        capacity_bytes=capacity,
        moved_bytes=None if None in ways else sum(way or 0 for way in ways),
        between_bytes=bytes_moved(worker.comm, *WAYS),
        overflow_bytes=bytes_moved(worker.comm, "overflow"),
        waited_seconds=worker.comm.get("chunk_wait_seconds", 0.0),
    )


def cluster_advice(workers: Sequence[WorkerRecording]) -> tuple[ClusterAdvice, ...]:
    """Return what to do, the most pressing first; empty when there is nothing to do."""
    sums = [sums_of(worker) for worker in workers]
    rules: list[Callable[[Sequence[WorkerSums]], ClusterAdvice | None]] = [
        _overflow,
        _waiting,
        _skew,
        _bottleneck,
    ]
    compared = [found for rule in rules if (found := rule(sums)) is not None]
    return (*compared, *_found(workers))


def cluster_verdict(workers: Sequence[WorkerRecording]) -> str:
    """Return the one sentence that stands where there is no advice."""
    recordings = [worker.recording for worker in workers if worker.recording is not None]
    if not recordings:
        return "no advice: no worker could be watched"
    said = {verdict(recording) for recording in recordings}
    if len(said) == 1:
        return said.pop()
    return "nothing to do: no threshold was passed"


def _overflow(sums: Sequence[WorkerSums]) -> ClusterAdvice | None:
    """Say that managed memory went over the wire."""
    slow = sorted((one for one in sums if one.overflow_bytes), key=lambda one: -one.overflow_bytes)
    if not slow:
        return None
    total = sum(one.overflow_bytes for one in slow)
    without = [one for one in slow if one.worker.ipc_pool_bytes == 0]
    largest = max((one.worker.ipc_pool_bytes or 0 for one in slow), default=0)
    remedy = "set ipc-pool-size on every worker" if without else _larger(largest)
    said = (
        f"{_size(total)} of what workers sent and received went past the IPC pool as managed "
        f"memory, which is slow; most on {_who(slow[0])} ({_size(slow[0].overflow_bytes)})"
    )
    return ClusterAdvice("overflow", remedy, said, tuple(one.name for one in slow))


def _waiting(sums: Sequence[WorkerSums]) -> ClusterAdvice | None:
    """Say that transfers waited for the IPC pool for a good part of the time."""

    def fraction(one: WorkerSums) -> float:
        return one.waited_seconds / one.figures.seconds if one.figures.seconds else 0.0

    if any(one.overflow_bytes for one in sums):
        return None  # comes of the same, and is worse
    slow = [one for one in sums if fraction(one) >= _WAITING_FRACTION]
    slow.sort(key=fraction, reverse=True)
    if not slow:
        return None
    worst = slow[0]
    said = (
        f"transfers of {_who(worst)} waited {words.clock_text(worst.waited_seconds)} for the IPC "
        f"pool, and it was watched for {words.clock_text(worst.figures.seconds)}"
        + _and_others(len(slow) - 1)
    )
    pool_bytes = max((one.worker.ipc_pool_bytes or 0 for one in slow), default=0)
    return ClusterAdvice("ipc_pool", _larger(pool_bytes), said, tuple(one.name for one in slow))


def _skew(sums: Sequence[WorkerSums]) -> ClusterAdvice | None:
    """Say that one worker holds more than fits on its device, and others much less."""
    known = [one for one in sums if one.factor is not None]
    if len(known) < 2:
        return None
    known.sort(key=lambda one: -(one.factor or 0.0))
    fullest, factors = known[0], [one.factor or 0.0 for one in known]
    median = statistics.median(factors[1:])
    if factors[0] <= 1.0 or factors[0] < _UNLIKE_FACTOR * median:
        return None
    said = (
        f"{_who(fullest)} held up to {factors[0]:.2f} times its capacity, "
        f"the others {median:.2f} times (median)"
    )
    if sum(factors) <= len(factors):
        said += "; spread evenly, everything would have fitted"
    over = tuple(one.name for one in known if (one.factor or 0.0) > 1.0)
    remedy = "spread the data evenly: repartition, or choose keys of which none is so frequent"
    return ClusterAdvice("skew", remedy, said, over)


def _bottleneck(sums: Sequence[WorkerSums]) -> ClusterAdvice | None:
    """Say that one worker moves much more than the others, which wait for it."""
    known = [(one.moved_bytes, one) for one in sums if one.moved_bytes is not None]
    if len(known) < 2:
        return None
    known.sort(key=lambda pair: -pair[0])
    most, worst = known[0]
    median = statistics.median(moved for moved, _ in known[1:])
    if most < _UNLIKE_FACTOR * median or most < _LITTLE_FRACTION * (worst.capacity_bytes or 0):
        return None
    times = _beside_none(known[1:])
    if median:
        times = f"{most / median:.1f} times the median of the others"
    said = f"{_who(worst)} moved {_size(most)} between device and host, {times}"
    remedy = f"look at {_who(worst)} first: whoever needs its results waits for its migrations"
    return ClusterAdvice("bottleneck", remedy, said, (worst.name,))


def _beside_none(others: Sequence[tuple[int, WorkerSums]]) -> str:
    """Return what workers moved of which at least half moved nothing, the most first."""
    moved = [(nbytes, one) for nbytes, one in others if nbytes]
    if not moved:
        return "the other none" if len(others) == 1 else "the others none"
    second, next_one = moved[0]
    idle = len(others) - len(moved)
    return f"{_who(next_one)} {_size(second)}, and {idle} of the {len(others)} others none"


def _found(workers: Sequence[WorkerRecording]) -> list[ClusterAdvice]:
    """Return what the workers' own reports advise, each thing once."""
    groups: dict[tuple[str, str], list[tuple[float, WorkerRecording, str, str]]] = {}
    for worker in workers:
        recording = worker.recording
        if recording is None:
            continue
        for one in collect(recording.findings):
            kind, _, source = about(one.finding)
            said = message(one.finding, recording)
            found = (one.finding.value, worker, one.finding.remedy, said)
            groups.setdefault((kind, source), []).append(found)
    advice = []
    for (kind, _), group in groups.items():
        group.sort(key=lambda found: -found[0])
        _, worst, remedy, said = group[0]
        names = tuple(dict.fromkeys(worker.name for _, worker, _, _ in group))
        where = f"worker {worst.name}"
        if len(names) > 1:
            where = f"{len(names)} of {len(workers)} workers, at worst {where}"
        advice.append(ClusterAdvice(kind, remedy, f"{where}: {said}", names))
    return sorted(advice, key=lambda one: (one.kind == "monitor", -len(one.workers)))


def _factor(peak_bytes: int | None, capacity_bytes: int | None) -> float | None:
    return None if peak_bytes is None or not capacity_bytes else peak_bytes / capacity_bytes


def _who(one: WorkerSums) -> str:
    return f"worker {words.plain_name(one.name)}"


def _size(nbytes: float) -> str:
    return words.size(int(nbytes))


def _larger(pool_bytes: int) -> str:
    known = f" than {words.size(pool_bytes)}" if pool_bytes else ""
    return f"make ipc-pool-size larger{known}, or send smaller partitions"


def _and_others(number: int) -> str:
    return f"; so it was on {number} more worker{'s' * (number > 1)}" if number else ""
