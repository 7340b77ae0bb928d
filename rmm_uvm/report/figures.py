# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of a report: what a device moved and held, in all and in each stage.

Pure functions of a recording. Does not cover showing them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np

from rmm_uvm.recording.recorded import RecordedDevice, Recording, Stage, exact_peak_bytes
from rmm_uvm.report.series import LEVELS, TOTALS, DeviceSeries

__all__ = [
    "OUTSIDE",
    "Figures",
    "StageFigures",
    "between",
    "by_stage",
    "gaps_between",
    "in_all",
    "of_device",
    "outside_stages",
    "stage_at",
]


OUTSIDE = "outside stages"
"""The name of the row for the time in which no stage ran."""


@dataclasses.dataclass(frozen=True)
class Figures:
    """Figures of a stretch of time; None for what is not known.

    Parameters
    ----------
    seconds : float
        Its length.
    host_to_device_bytes, device_to_host_bytes : int or None
        Bytes migrated each way.
    evicted_bytes_estimate : int or None
        Of the second, what left to make room.
    prefetched_bytes, discarded_bytes : int or None
        What came and what was not copied as this package asked; upper bounds.
    cpu_faults, gpu_faults : int or None
        Faults on managed pages.
    waited_ns : int or None
        In which at least one request waited for data or room; 0 without a budget, which counts it.
    peak_footprint_bytes, peak_managed_bytes, peak_resident_bytes, peak_device_used_bytes : int or None
        The most of each level, as sampled; the first no less than the exact peak of the run's pool.
    """  # noqa: E501

    seconds: float
    host_to_device_bytes: int | None = None
    device_to_host_bytes: int | None = None
    evicted_bytes_estimate: int | None = None
    prefetched_bytes: int | None = None
    discarded_bytes: int | None = None
    cpu_faults: int | None = None
    gpu_faults: int | None = None
    waited_ns: int | None = None
    peak_footprint_bytes: int | None = None
    peak_managed_bytes: int | None = None
    peak_resident_bytes: int | None = None
    peak_device_used_bytes: int | None = None

    @property
    def empty(self) -> bool:
        """Nothing at all is known."""
        return all(v is None for k, v in dataclasses.asdict(self).items() if k != "seconds")


@dataclasses.dataclass(frozen=True)
class StageFigures:
    """All runs of the stages of one name.

    Parameters
    ----------
    name : str
        As given; not escaped.
    depth : int
        The least of its runs.
    runs : int
        How often it began.
    open : bool
        One of the runs had not ended.
    figures : Figures
        Of the time in which at least one run was under way, so that nothing counts twice.
    """

    name: str
    depth: int
    runs: int
    open: bool
    figures: Figures


def of_device(recording: Recording, device: RecordedDevice) -> Figures:
    """Return the figures of a whole recording for one device; totals are exact.

    Notes
    -----
    A run knows the exact peak of its pool, which samples may have missed. It is of one device, and
    no recording says which of several.
    """
    series = DeviceSeries(recording.of(device.device_id))
    duration_seconds = recording.duration_seconds
    peaks = {f"peak_{name}": series.peak(name, 0.0, duration_seconds) for name in LEVELS}
    sampled_bytes = peaks["peak_footprint_bytes"]
    exact_bytes = exact_peak_bytes(recording) if len(recording.devices) == 1 else None
    if sampled_bytes is not None and exact_bytes is not None:
        peaks["peak_footprint_bytes"] = max(sampled_bytes, exact_bytes)
    return Figures(duration_seconds, **{name: series.total(name) for name in TOTALS}, **peaks)


def between(recording: Recording, device: RecordedDevice, begin: float, end: float) -> Figures:
    """Return the figures of one device from `begin` to `end`, seconds since the monitor began."""
    return _of_spans(DeviceSeries(recording.of(device.device_id)), [(begin, end)])


def by_stage(recording: Recording, device: RecordedDevice) -> tuple[StageFigures, ...]:
    """Return the figures of each stage of a device, in order of their first begin.

    Notes
    -----
    Samples seldom fall on the edges of a stage: there totals are split in proportion of time, so a
    stage of less than a sampling interval is told roughly.
    """
    series = DeviceSeries(recording.of(device.device_id))
    runs_of: dict[str, list[Stage]] = {}
    for stage in recording.stages:
        runs_of.setdefault(stage.name, []).append(stage)
    rows = []
    for name, runs in runs_of.items():
        spans = _union((s.begin_seconds, end_of(s, recording)) for s in runs)
        still_open = any(math.isnan(stage.end_seconds) for stage in runs)
        depth = min(stage.depth for stage in runs)
        rows.append(StageFigures(name, depth, len(runs), still_open, _of_spans(series, spans)))
    return tuple(rows)


def outside_stages(recording: Recording, device: RecordedDevice) -> Figures | None:
    """Return the figures of the time in which no stage ran; None where there is none such."""
    gaps = gaps_between(recording.stages, recording)
    return _of_spans(DeviceSeries(recording.of(device.device_id)), gaps) if gaps else None


def gaps_between(stages: Sequence[Stage], recording: Recording) -> list[tuple[float, float]]:
    """Return the stretches of a recording in which none of the stages ran; none without stages."""
    spans = _union((stage.begin_seconds, end_of(stage, recording)) for stage in stages)
    if not spans:
        return []
    begins = [0.0, *(end for _, end in spans)]
    ends = [*(begin for begin, _ in spans), recording.duration_seconds]
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]


def stage_at(recording: Recording, seconds: float) -> str:
    """Return the name of the innermost stage at a time since the monitor began; "" for none.

    Where threads have stages of their own, the main thread's goes first.
    """
    around = [
        stage
        for stage in recording.stages
        if stage.begin_seconds < seconds <= end_of(stage, recording)
    ]
    if not around:
        return ""
    return max(around, key=lambda one: (one.thread == "MainThread", one.begin_seconds)).name


def end_of(stage: Stage, recording: Recording) -> float:
    """Return when a stage ended, or when the recording did if the stage did not."""
    if math.isnan(stage.end_seconds):
        return max(recording.duration_seconds, stage.begin_seconds)
    return stage.end_seconds


def in_all(figures: Sequence[Figures]) -> Figures:
    """Return what several devices did in the same time: bytes in sum, peaks of the fullest."""

    def joined(name: str) -> int | None:
        values = [value for one in figures if (value := getattr(one, name)) is not None]
        if not values:
            return None
        total: int = max(values) if name.startswith("peak_") else sum(values)
        return total

    names = [field.name for field in dataclasses.fields(Figures) if field.name != "seconds"]
    return Figures(
        max((one.seconds for one in figures), default=0.0), **{n: joined(n) for n in names}
    )


def _union(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return spans that do not overlap and cover the same time."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def _of_spans(series: DeviceSeries, spans: Sequence[tuple[float, float]]) -> Figures:
    begins, ends = (np.array(edges, dtype=np.float64) for edges in zip(*spans, strict=True))
    known: dict[str, int | None] = {}
    for name in TOTALS:
        before, after = series.totals_at(name, begins), series.totals_at(name, ends)
        if before is not None and after is not None:
            known[name] = round(float(np.sum(after - before)))
    for name in LEVELS:
        peaks = [series.peak(name, begin, end) for begin, end in spans]
        known[f"peak_{name}"] = max((p for p in peaks if p is not None), default=None)
    return Figures(float(np.sum(ends - begins)), **known)
