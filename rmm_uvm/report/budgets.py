# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How budgets of device memory were kept, in a report's words.

Counts are those of the pool since it was made, which may have been before the monitor began.
"""

from __future__ import annotations

from typing import Any

from rmm_uvm.report import words
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.watch.recording import DeviceFacts, Recording

__all__ = ["as_dict", "cells", "lines", "of_device"]


def of_device(recording: Recording, device: DeviceFacts) -> ResidencyStatistics | None:
    """Return the counts and levels of a device's budget as they were last; None without one."""
    found = recording.budgets.get(device.device_id)
    return None if found is None else ResidencyStatistics(**found)


def lines(budget: ResidencyStatistics) -> list[str]:
    """Return what a summary says of a budget: lines of at most 65 columns."""
    found = [
        f"{words.size(budget.budget_bytes)}, at most {words.size(budget.peak_resident_bytes)} "
        "taken",
        f"evicted {words.size(budget.evicted_bytes)}, "
        f"dropped {words.size(budget.dropped_bytes)} dead, "
        f"fetched {words.size(_fetched_bytes(budget))}",
        f"policy {budget.policy}: {_prediction(budget)}",
    ]
    if budget.peak_overshoot_bytes is None:
        found[0] += "; faults unknown"
    elif budget.peak_overshoot_bytes:
        found[0] += f"; {words.size(budget.peak_overshoot_bytes)} beside it"
    return found


def cells(budget: ResidencyStatistics | None) -> list[tuple[str, str, str]]:
    """Return name, figure and note of each figure on a page; none without a budget."""
    if budget is None:
        return []
    fraction = budget.overshoot_fraction
    share = "" if fraction is None else f"at most, estimate: {fraction * 100:.0f} % of the budget"
    return [
        ("Budget", words.size(budget.budget_bytes), "of device memory"),
        ("Budget taken", words.size(budget.peak_resident_bytes), "at most"),
        ("Evicted for the budget", words.size(budget.evicted_bytes), "copied to the host"),
        ("Dropped for the budget", words.size(budget.dropped_bytes), "dead, and so not copied"),
        ("Fetched back", words.size(_fetched_bytes(budget)), "asked for, or ahead of use"),
        (
            "Faulted in beside",
            words.size(budget.peak_overshoot_bytes),
            share or words.plain_name(budget.faults_unknown or "not counted", 100),
        ),
        ("Eviction policy", budget.policy or words.UNKNOWN, _prediction(budget)),
    ]


def as_dict(budget: ResidencyStatistics | None) -> dict[str, Any] | None:
    """Return the same for other programs."""
    if budget is None:
        return None
    # Not dataclasses.asdict alone: rates belong to it.
    return {
        **vars(budget),
        "hit_rate": budget.hit_rate,
        "present_rate": budget.present_rate,
        "overshoot_fraction": budget.overshoot_fraction,
    }


def _fetched_bytes(budget: ResidencyStatistics) -> int:
    return budget.fetched_bytes + budget.fetched_ahead_bytes


def _prediction(budget: ResidencyStatistics) -> str:
    """Return whether a policy's prediction is on, in a few words."""
    if budget.policy in ("fifo", "lru"):
        return "predicts nothing"
    if budget.hit_rate is None:
        return "nothing was predicted"
    state = "on" if budget.foresees else "off, lru decides"
    return f"{state}; foresaw {budget.hit_rate * 100:.0f} % of {budget.predictions} uses"
