# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A report as plain values for other programs; None stands for what is not known."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import advice, budgets, by_line, causes
from rmm_uvm.report.figures import by_stage, of_device, outside_stages, stage_at
from rmm_uvm.report.series import DeviceSeries

__all__ = ["FORMAT", "FORMAT_VERSION", "as_dict"]

FORMAT = "rmm_uvm report"
"""The format that a kept report names."""

FORMAT_VERSION = 1
"""Grows when a key changes its meaning or goes away, not when one is added."""


def as_dict(recording: Recording) -> dict[str, Any]:
    """Return what the summary says and the findings, stages and settings, ready for JSON.

    Names and messages are as they were given. Samples are not in it; see `Monitor.samples`.
    """
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "simulated": recording.simulated,
        "began": recording.began,
        "duration_seconds": recording.duration_seconds,
        "interval_seconds": recording.interval_seconds,
        "samples": len(recording.samples),
        "lost_samples": recording.lost_samples,
        "cost_seconds": recording.cost_seconds,
        "failure": recording.failure,
        "about": dict(recording.about),
        "verdict": _verdict(recording),
        "advice": [
            dataclasses.asdict(one)
            | {"text": str(one.finding), "stage": stage_at(recording, one.first_seconds)}
            for one in advice.collect(recording.findings)
        ],
        "devices": [_device(recording, device) for device in recording.devices],
        "findings": [dataclasses.asdict(finding) for finding in recording.findings],
        "stages": [
            dataclasses.asdict(stage) | {"end_seconds": _finite(stage.end_seconds)}
            for stage in recording.stages
        ],
        "busiest_blocks": [
            {"address": address, "host_to_device_bytes": there, "device_to_host_bytes": back}
            for address, there, back in recording.busiest
        ],
        "lines": by_line.as_dict(recording),
        "sources": {name: dataclasses.asdict(why) for name, why in recording.sources.items()},
        "settings": dict(recording.settings),
        "versions": dict(recording.versions),
    }


def _verdict(recording: Recording) -> str:
    """Return what stands where there is no advice, nor a line to look at."""
    if recording.findings or (by_line.has_culprit(recording) and not recording.failure):
        return ""
    return advice.verdict(recording)


def _device(recording: Recording, device: RecordedDevice) -> dict[str, Any]:
    figures = of_device(recording, device)
    by_cause = causes.of_device(recording, device.device_id)
    peak_bytes = figures.peak_footprint_bytes
    known = peak_bytes is not None and device.capacity_bytes > 0
    outside = outside_stages(recording, device)
    return {
        **dataclasses.asdict(device),
        **dataclasses.asdict(figures),
        "peak_oversubscription_factor": (
            round(peak_bytes / device.capacity_bytes, 6)
            if known and peak_bytes is not None
            else None
        ),
        "resident_exact": DeviceSeries(recording.of(device.device_id)).resident_exact,
        "budget": budgets.as_dict(budgets.of_device(recording, device)),
        "causes": None if by_cause is None else by_cause.last(),
        "by_stage": [
            {"name": row.name, "depth": row.depth, "runs": row.runs, "open": row.open}
            | dataclasses.asdict(row.figures)
            for row in by_stage(recording, device)
        ],
        "outside_stages": None if outside is None else dataclasses.asdict(outside),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
