# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A recording with fewer samples that tells the same: for sending one over a network.

An hour at ten samples a second is 4 MB. Every figure of a report stays as it was: totals, peaks,
what a stage moved and held, and the highest rate. See also `rmm_uvm.report.thinning`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice, Recording, Stage
from rmm_uvm.report.advice import alike
from rmm_uvm.report.figures import end_of, gaps_between
from rmm_uvm.report.series import LEVELS, TOTALS, DeviceSeries
from rmm_uvm.report.thinning import thinned

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["lighter"]

_BUCKETS = 400
_MOST_STAGES = 500
_MOST_FINDINGS = 1000
_MOST_CAUSE_ROWS = 2000
_RATES = ("host_to_device_bytes", "device_to_host_bytes", "evicted_bytes_estimate")


def lighter(recording: Recording, n_buckets: int = _BUCKETS) -> Recording:
    """Return a recording that makes the same report and is at most about 1 MB.

    Left out are samples between which nothing changes its extremes, the shortest of very many
    stages, findings of a kind that came often, and rows of causes between others; `settings` say
    how many stages and findings.

    Parameters
    ----------
    recording : Recording
        Any; a short one is returned as it is.
    n_buckets : int
        Into how many parts time is cut, >= 1; of each, the extremes are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from rmm_uvm.recording.sample import SAMPLE_DTYPE
    >>> samples = np.zeros(36_000, SAMPLE_DTYPE)
    >>> samples["time_ns"] = np.arange(36_000) * 10**8
    >>> facts = RecordedDevice(0, "GPU", "", 0, 0)
    >>> light = lighter(Recording(samples, (facts,)))
    >>> len(light.samples) < 5000, light.duration_seconds
    (True, 3599.9)
    """
    stages = _longest(recording)
    findings = _worst(recording.findings)
    dropped = {
        "stages left out": len(recording.stages) - len(stages),
        "findings left out": len(recording.findings) - len(findings),
    }
    kept = [_kept(recording, device, stages, n_buckets) for device in recording.devices]
    positions = np.unique(np.concatenate(kept)) if kept else np.zeros(0, np.intp)
    return dataclasses.replace(
        recording,
        samples=recording.samples[positions],
        stages=stages,
        findings=findings,
        causes=_fewer_causes(recording.causes),
        settings={
            **recording.settings,
            **{name: str(number) for name, number in dropped.items() if number},
        },
    )


def _longest(recording: Recording) -> tuple[Stage, ...]:
    """Return the longest stages, in order of their begin."""
    longest = sorted(recording.stages, key=lambda s: s.begin_seconds - end_of(s, recording))
    chosen = set(map(id, longest[:_MOST_STAGES]))
    return tuple(stage for stage in recording.stages if id(stage) in chosen)


def _worst(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the worst of each kind, the first of each, and then the newest, in order of time."""
    if len(findings) <= _MOST_FINDINGS:
        return tuple(findings)
    chosen: dict[int, Finding] = {}
    for group in alike(findings):
        for one in (max(group, key=lambda one: one.value), group[0]):
            chosen[id(one)] = one
    for one in reversed(findings):
        if len(chosen) >= _MOST_FINDINGS:
            break
        chosen[id(one)] = one
    return tuple(finding for finding in findings if id(finding) in chosen)


def _kept(
    recording: Recording, device: RecordedDevice, stages: Sequence[Stage], n_buckets: int
) -> NDArray[np.intp]:
    """Return the positions of the samples of one device that are kept."""
    own = np.flatnonzero(recording.samples["device_id"] == device.device_id)
    samples = recording.samples[own]
    if not len(samples):
        return own
    series = DeviceSeries(samples)
    spans = [(stage.begin_seconds, end_of(stage, recording)) for stage in stages]
    spans += gaps_between(stages, recording)
    edges = [edge for span in spans for edge in span]
    marks = [f.time_seconds for f in recording.findings if f.device_id == device.device_id]
    times = [time for time in (*edges, *marks[-_MOST_FINDINGS:]) if math.isfinite(time)]
    levels = {name: series.values(name) for name in LEVELS}
    rates = [series.rates(name) for name in _RATES]
    chosen = thinned(series.seconds, [*levels.values(), *rates], n_buckets, times)
    # A rate is of the interval before its sample: without the one before it would be lower.
    before = np.maximum(chosen - 1, 0)
    peaks = [_peaks(series.seconds, level, spans) for level in levels.values()]
    # A total may be known of earlier samples than the last.
    last = [np.flatnonzero(~np.isnan(series.values(name)))[-1:] for name in TOTALS]
    kept: NDArray[np.intp] = np.unique(np.concatenate([chosen, before, *peaks, *last]))
    return np.asarray(own[kept])


def _peaks(
    seconds: NDArray[np.float64],
    level: NDArray[np.float64],
    spans: Sequence[tuple[float, float]],
) -> NDArray[np.intp]:
    """Return where a level is highest within each span; see `DeviceSeries.peak`."""
    values = np.nan_to_num(level, nan=-1.0)
    found = []
    for begin, end in spans:
        first = max(int(np.searchsorted(seconds, begin, side="right")) - 1, 0)
        last = int(np.searchsorted(seconds, end, side="right"))
        if last > first:
            found.append(first + int(np.argmax(values[first:last])))
    return np.array(found, dtype=np.intp)


def _fewer_causes(causes: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return every so manieth row, those of one moment together, and the last."""
    if causes is None or len(causes["rows"]) <= _MOST_CAUSE_ROWS:
        return causes
    at = list(causes["columns"]).index("time_seconds")
    times = list(dict.fromkeys(row[at] for row in causes["rows"]))
    step = -(-len(causes["rows"]) // _MOST_CAUSE_ROWS)
    kept = {*times[::step], times[-1]}
    return {**causes, "rows": [row for row in causes["rows"] if row[at] in kept]}
