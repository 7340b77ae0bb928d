# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What stands on the HTML page beside the charts, as plain text; the template escapes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import budgets, causes, words
from rmm_uvm.report.advice import Advice, collect, message, verdict
from rmm_uvm.report.figures import StageFigures, by_stage, of_device
from rmm_uvm.report.series import DeviceSeries

__all__ = ["contents"]

_MOST_STAGES = 200
_MOST_FINDINGS = 200
_STAGE_HEADERS = (
    "Stage", "Runs", "Time", "To device", "To host", "Evicted", "Prefetched", "Peak footprint",
)  # fmt: skip
_BUDGET_STAGE_HEADERS = (
    "Stage", "Runs", "Time", "To device", "To host", "Of it by the driver",
    "Prefetched beside the budget", "Peak footprint",
)  # fmt: skip
_BUSIEST_HEADERS = ("Address", "To device", "To host")


def contents(
    recording: Recording, charts: Mapping[int, Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the variables of the template.

    Parameters
    ----------
    recording : Recording
        What to show.
    charts : mapping of int to sequence of mapping
        The charts of each device, by its number.
    """
    advice = collect(recording.findings)
    return {
        "title": "Memory report" + (" (simulated)" if recording.simulated else ""),
        "simulated": recording.simulated,
        "watched": _watched(recording),
        "advice": [_advice(one, recording) for one in advice],
        "failure": words.plain_name(recording.failure, 300) if recording.failure else "",
        "verdict": verdict(recording),
        "devices": [
            _device(recording, device, charts.get(device.device_id, ()))
            for device in recording.devices
        ],
        "stage_headers": _BUDGET_STAGE_HEADERS if recording.budgets else _STAGE_HEADERS,
        "busiest_headers": _BUSIEST_HEADERS,
        "busiest": [
            (f"{address:#x}", words.size(there), words.size(back))
            for address, there, back in recording.busiest
        ],
        "notes": _notes(recording),
        "findings": [
            (
                words.clock_text(f.time_seconds),
                f.device_id,
                f.kind,
                words.plain_name(f.message, 300),
            )
            for f in recording.findings[:_MOST_FINDINGS]
        ],
        "findings_caption": _findings_caption(recording),
        "sources": [
            (words.plain_name(name), "on" if why else f"off: {words.plain_name(why.reason, 300)}")
            for name, why in recording.sources.items()
        ],
        "settings": _settings(recording),
    }


def _watched(recording: Recording) -> str:
    text = f"Watched for {words.clock_text(recording.duration_seconds)}"
    if recording.began:
        text += f" from {words.plain_name(recording.began, 40)}"
    if recording.interval_seconds:
        text += f", a sample every {recording.interval_seconds:g} s"
    if recording.lost_samples:
        text += f"; the {recording.lost_samples} oldest samples are lost"
    return f"{text}. Watching took {words.clock_text(recording.cost_seconds)} of processor time."


def _advice(one: Advice, recording: Recording) -> dict[str, str]:
    finding = one.finding
    where = f"device {finding.device_id}, " if len(recording.devices) > 1 else ""
    when = f"{where}at {words.clock_text(one.first_seconds)}"
    if one.count > 1:
        when = f"{where}{one.count} times, first at {words.clock_text(one.first_seconds)}"
    return {
        "remedy": words.plain_name(finding.remedy, 300),
        "message": words.plain_name(message(finding, recording), 300),
        "when": when,
    }


def _device(
    recording: Recording, device: RecordedDevice, charts: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    stages = sorted(by_stage(recording, device), key=lambda row: -row.figures.seconds)
    shown = {id(row) for row in stages[:_MOST_STAGES]}
    rows = [_stage(row) for row in by_stage_order(stages, recording) if id(row) in shown]
    if more := len(stages) - len(rows):
        rows.append((f"and {more} shorter stages", *[""] * (len(_STAGE_HEADERS) - 1)))
    return {
        "id": device.device_id,
        "name": words.plain_name(device.name),
        "figures": _figures(recording, device),
        "charts": charts,
        "stages": rows,
    }


def by_stage_order(rows: Sequence[StageFigures], recording: Recording) -> list[StageFigures]:
    """Return rows in order of the first begin of their stages."""
    place: dict[str, int] = {}
    for number, stage in enumerate(recording.stages):
        place.setdefault(stage.name, number)
    return sorted(rows, key=lambda row: place[row.name])


def _stage(row: StageFigures) -> tuple[str, ...]:
    figures = row.figures
    return (
        "\u2003" * min(row.depth, 4) + words.plain_name(row.name),
        words.count(row.runs),
        words.clock_text(figures.seconds) + (" (not ended)" if row.open else ""),
        words.size(figures.host_to_device_bytes),
        words.size(figures.device_to_host_bytes),
        words.size(figures.evicted_bytes_estimate),
        words.size(figures.prefetched_bytes),
        words.size(figures.peak_footprint_bytes),
    )


def _figures(recording: Recording, device: RecordedDevice) -> list[tuple[str, str, str]]:
    figures = of_device(recording, device)
    by_cause = causes.of_device(recording, device.device_id)
    exact = DeviceSeries(recording.of(device.device_id)).resident_exact
    factor = words.factor(figures.peak_footprint_bytes, device.capacity_bytes)
    evicted, how = (
        figures.evicted_bytes_estimate,
        "estimate" if figures.evicted_bytes_estimate else "",
    )
    if by_cause is not None:
        evicted, how = by_cause.last()["device_to_host"].get("eviction", 0), "told by cause"
    budget = budgets.of_device(recording, device)
    resident = "" if exact else "estimate"
    if exact and budget is not None:
        resident = budgets.KEPT
    rows = [
        (
            "Peak footprint",
            words.size(figures.peak_footprint_bytes),
            "" if factor == words.UNKNOWN else f"{factor} times capacity",
        ),
        (
            "Managed capacity",
            words.size(device.capacity_bytes or None),
            f"of {words.size(device.total_bytes)} on the device" if device.total_bytes else "",
        ),
        ("Peak resident", words.size(figures.peak_resident_bytes), resident),
        ("Moved to the device", words.size(figures.host_to_device_bytes), ""),
        ("Moved to the host", words.size(figures.device_to_host_bytes), ""),
        ("Evicted" if budget is None else "Evicted by the driver", words.size(evicted), how),
        (
            "Prefetched",
            words.size(figures.prefetched_bytes),
            "by rmm_uvm" if budget is None else "by rmm_uvm, beside what the budget fetched",
        ),
        ("Discarded", words.size(figures.discarded_bytes), "and so not copied"),
        ("GPU faults", words.count(figures.gpu_faults), ""),
        ("CPU faults", words.count(figures.cpu_faults), ""),
    ]
    kept = [row for row in rows if row[1] != words.UNKNOWN]
    return kept + budgets.cells(budget)


def _findings_caption(recording: Recording) -> str:
    shown, there = min(len(recording.findings), _MOST_FINDINGS), len(recording.findings)
    return (
        f"{there} warning{'s' * (there != 1)}"
        if shown == there
        else f"The first {shown} of {there} warnings"
    )


def _notes(recording: Recording) -> list[str]:
    notes = [
        "Footprint is what the program has allocated and not freed. Above the managed capacity, "
        "pages have to leave the device before others can come. Peaks are those of samples: what "
        "was allocated and freed between two of them is in a trace only.",
        "Sizes are in binary units (1 GiB = 1024³ bytes), rates in decimal ones "
        "(1 GB/s = 10⁹ bytes a second). A dash: not known.",
        "Evicted bytes are an estimate unless told by cause: what left a full device and was not "
        "asked for.",
    ]
    if any(not DeviceSeries(recording.of(d.device_id)).resident_exact for d in recording.devices):
        notes.append(
            "Resident bytes are an estimate: what was allocated less what left and did not "
            "come back."
        )
    if recording.budgets:
        notes.append(
            "A budget binds what rmm_uvm moves. What kernels faulted in beside it is estimated "
            "from bytes. Its figures count since the pool was made. What left for it is in the "
            "bytes moved to the host, and not among those that the kernel driver evicted."
        )
    if any(budget.get("neighbor_bytes") for budget in recording.budgets.values()):
        notes.append(
            "Neighbours are other devices: their idle memory takes what leaves before the host "
            "does. Bytes between two devices are in no chart."
        )
    if recording.stages:
        notes.append(
            "A stage's bytes are those that the whole process moved while it ran; stages that "
            "nest or run side by side count the same bytes. Edges between two samples split what "
            "moved in proportion of time."
        )
    if len(recording.samples) > 10_000:
        notes.append(
            f"The charts show a choice of the {len(recording.samples):,} samples: every peak and "
            "every low is in it. The figures are of all samples."
        )
    return notes


def _settings(recording: Recording) -> list[tuple[str, str]]:
    rows = []
    for device in recording.devices:
        text = f"{words.plain_name(device.name)}, {words.plain_name(device.uuid)}"
        rows.append((f"device {device.device_id}", text))
        if device.chain:
            chain = " over ".join(words.plain_name(name) for name in device.chain)
            rows.append((f"memory resources {device.device_id}", chain))
    for given in (recording.settings, recording.versions):
        rows += [
            (words.plain_name(name), words.plain_name(text, 300)) for name, text in given.items()
        ]
    return rows
