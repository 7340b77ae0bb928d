# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The advice at the beginning of a report, each piece once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import Recording, exact_peak_bytes
from rmm_uvm.report import budgets, words
from rmm_uvm.report.figures import Figures, of_device, stage_at
from rmm_uvm.support.off_switch import OFF

__all__ = ["Advice", "about", "alike", "collect", "message", "verdict", "when"]


_ORDER = {"replayed": 0, "monitor": 2}


@dataclasses.dataclass(frozen=True)
class Advice:
    """Findings of one kind on one device, as one.

    Parameters
    ----------
    finding : Finding
        The one that passed its threshold furthest.
    count : int
        How many there were.
    first_seconds : float
        When the first was, since the monitor began.
    """

    finding: Finding
    count: int
    first_seconds: float


def collect(findings: Sequence[Finding]) -> tuple[Advice, ...]:
    """Return each piece of advice once, in order of its first time.

    What was tried comes first, and what cannot be watched last.

    Examples
    --------
    >>> finding = Finding("eviction", 0, 3.0, 2e9, 1e9, "2 GB/s leave the device", "use less")
    >>> [(one.count, one.finding.remedy) for one in collect([finding, finding])]
    [(2, 'use less')]
    """
    collected = [
        Advice(
            max(group, key=lambda one: one.value),
            len(group),
            min(one.time_seconds for one in group),
        )
        for group in alike(findings)
    ]
    return tuple(sorted(collected, key=lambda a: (_ORDER.get(a.finding.kind, 1), a.first_seconds)))


def alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return findings by the piece of advice that they give, each group in their order."""
    groups: dict[tuple[str, int, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(about(finding), []).append(finding)
    return list(groups.values())


def about(finding: Finding) -> tuple[str, int, str]:
    """Return what is the same for all findings that give one piece of advice."""
    # Two sources that fail are two things, and two remedies; two evictions are one.
    return finding.kind, finding.device_id, finding.message if finding.kind in _ORDER else ""


def message(finding: Finding, recording: Recording) -> str:
    """Return what was the case, with what became of it in the rest of the recording.

    A footprint is found when it passes the capacity, once, and goes on growing. Data that come back
    again and again are found once, and go on coming.
    """
    device = next((one for one in recording.devices if one.device_id == finding.device_id), None)
    if device is None:
        return finding.message
    figures = of_device(recording, device)
    if finding.kind == "amplification" and figures.host_to_device_bytes:
        came = words.size(figures.host_to_device_bytes)
        return finding.message if came in finding.message else f"{finding.message}; {came} in all"
    if finding.kind != "footprint" or not device.capacity_bytes:
        return finding.message
    peak_bytes = figures.peak_footprint_bytes or 0
    factor = words.factor(peak_bytes, device.capacity_bytes)
    if float(factor) <= round(finding.value, 2):
        return finding.message
    return f"{finding.message}; at most {words.size(peak_bytes)}, {factor} times"


def when(advice: Advice, recording: Recording) -> str:
    """Return how often something was found, when first, and in which stage that was.

    Empty for what was found when all was over.
    """
    if advice.finding.kind == "replayed":
        return ""
    stage = stage_at(recording, advice.first_seconds)
    in_stage = f" in stage {words.plain_name(stage, 40)}" if stage else ""
    first = f"at {words.clock_text(advice.first_seconds)}{in_stage}"
    return first if advice.count == 1 else f"{advice.count} times, first {first}"


def verdict(recording: Recording) -> str:
    """Return the one sentence that stands where there is no advice.

    Only what is known counts: a run of which nothing could be seen is not said to have fitted, and
    of one that died nobody can say that there is nothing to do.
    """
    if recording.failure:
        return words.plain_name(recording.failure, 300)
    figures = [of_device(recording, device) for device in recording.devices]
    told = {source.reason for source in recording.sources.values()}
    if OFF in told:
        return f"no advice: {OFF}"
    if all(_blind(one) for one in figures):
        return "no advice: no memory could be watched"
    unknown = not exact_peak_bytes(recording)  # what came and went between two samples
    if unknown and all(one.peak_footprint_bytes == 0 and not _moved(one) for one in figures):
        return "nothing to do: in no sample was anything allocated"
    left = any(budget.get("evicted_bytes") for budget in recording.budgets.values())
    if not left and all(
        _fitted(one, d.capacity_bytes) for one, d in zip(figures, recording.devices, strict=True)
    ):
        if any(one.peak_footprint_bytes is None for one in figures):
            return "no advice: nothing was evicted, and how much was allocated is unknown"
        return "nothing to do: everything fitted"
    peak_bytes = sum(one.peak_footprint_bytes or 0 for one in figures)
    if left and (small := budgets.small_bytes(recording, peak_bytes)):
        return (
            f"nothing to do, unless the budget of {words.size(small)} may be larger: all fits on "
            "the device"
        )
    return "nothing to do: no threshold was passed"


def _blind(figures: Figures) -> bool:
    return (
        figures.peak_footprint_bytes is None
        and figures.host_to_device_bytes is None
        and figures.peak_resident_bytes is None
    )


def _moved(figures: Figures) -> bool:
    return bool(figures.host_to_device_bytes or figures.device_to_host_bytes)


def _fitted(figures: Figures, capacity_bytes: int) -> bool:
    footprint, evicted = figures.peak_footprint_bytes, figures.evicted_bytes_estimate
    if footprint is None:
        return evicted == 0
    return footprint <= capacity_bytes and not evicted
