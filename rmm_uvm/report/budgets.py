# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How budgets of device memory were kept, in a report's words.

Counts are those of the pool since it was made, which may have been before the monitor began.
"""

from __future__ import annotations

from typing import Any

from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.report import words
from rmm_uvm.residency.policies import SIMPLE_POLICIES
from rmm_uvm.residency.statistics import ResidencyStatistics

__all__ = [
    "DRIVERS_OWN",
    "KEPT",
    "as_dict",
    "cells",
    "lines",
    "lost",
    "neighbor_lines",
    "of_device",
    "small_bytes",
]

_LEAST_LOST_SECONDS = 1e-3
_ROOM = 7 / 8  # of a device: what lines tell as the peak is less by up to a sixteenth

DRIVERS_OWN = "by the kernel driver"
"""Of evictions, where a budget has some of its own."""

KEPT = "with what the kernel driver keeps behind data that left"
"""Of resident bytes, where they are counted in pages: an eviction for a budget frees none."""


def of_device(recording: Recording, device: RecordedDevice) -> ResidencyStatistics | None:
    """Return the counts and levels of a device's budget as they were last; None without one."""
    found = recording.budgets.get(device.device_id)
    return None if found is None else ResidencyStatistics(**found)


def small_bytes(recording: Recording, peak_bytes: int) -> int:
    """Return the budgets if all would fit beside them on the devices; 0 if not, or without any.

    What others hold of a device is no room.
    """
    budget_bytes, room_bytes = 0, 0
    for device in recording.devices:
        if budget := of_device(recording, device):
            budget_bytes += budget.budget_bytes
            others_bytes = (budget.unmanaged_bytes or 0) + budget.hidden_bytes
            room_bytes += max(device.capacity_bytes - others_bytes, 0)
    is_enough = 0 < peak_bytes <= _ROOM * room_bytes
    # One that follows the device is nearly all of it.
    return budget_bytes if is_enough and budget_bytes <= _ROOM * room_bytes else 0


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


def lost(budget: ResidencyStatistics, seconds: float) -> str:
    """Return in a line how much of a run was waited for migrations; "" where none is known of.

    What streams wait for, and kernels that fault, is not known.
    """
    if budget.waited_seconds < _LEAST_LOST_SECONDS:
        return ""
    for_room = ""
    if budget.waited_for_room_seconds >= _LEAST_LOST_SECONDS:
        for_room = f", {words.clock_text(budget.waited_for_room_seconds)} of it for room"
    lost_text, all_text = words.clock_text(budget.waited_seconds), words.clock_text(seconds)
    return f"at least {lost_text} of {all_text} waited for data{for_room}"


def neighbor_lines(budget: ResidencyStatistics) -> list[str]:
    """Return what a summary says of neighbours: lines of at most 65 columns; none if all is 0."""
    found = []
    if budget.neighbor_bytes:
        found.append(
            f"at most {words.size(budget.peak_harvested_bytes)}; "
            f"went {words.size(budget.neighbor_bytes)}, "
            f"came back {words.size(budget.from_neighbor_bytes)}"
        )
    if budget.in_place_bytes or budget.copied_beside_bytes:
        found.append(
            f"used there {words.size(budget.in_place_bytes)}, "
            f"copied beforehand {words.size(budget.copied_beside_bytes)}"
        )
    if budget.staged_bytes:
        found.append(f"from the host by way of them {words.size(budget.staged_bytes)}")
    if budget.given_back_bytes:
        found.append(
            f"given back {words.size(budget.given_back_bytes)} to owners, "
            f"{words.size(budget.given_back_at_once_bytes)} without a copy"
        )
    if budget.held_back:
        found.append(f"busy {_times(budget.held_back)}: blocks left to the host")
    if budget.reclaims:
        found.append(f"{_waited(budget)} for memory that others held here")
    return found


def cells(budget: ResidencyStatistics | None) -> list[tuple[str, str, str]]:
    """Return name, figure and note of each figure on a page; none without a budget."""
    if budget is None:
        return []
    fraction = budget.overshoot_fraction
    share = "" if fraction is None else f"at most, estimate: {fraction * 100:.0f} % of the budget"
    lost_seconds = budget.waited_seconds
    lost_cell = (
        "Time lost",
        f"at least {words.clock_text(lost_seconds)}",
        "requests waited for data or room; what streams and page faults waited is not known",
    )
    return [
        *[lost_cell] * (lost_seconds >= _LEAST_LOST_SECONDS),
        ("Budget", words.size(budget.budget_bytes), "of device memory"),
        ("Budget taken", words.size(budget.peak_resident_bytes), "at most"),
        (
            "Evicted for the budget",
            words.size(budget.evicted_bytes),
            "copied to the host or to neighbours"
            if budget.neighbor_bytes
            else "copied to the host",
        ),
        (
            "Dropped for the budget",
            words.size(budget.dropped_bytes),
            "whole blocks, dead and so not copied",
        ),
        ("Fetched back", words.size(_fetched_bytes(budget)), "asked for, or ahead of use"),
        (
            "Faulted in beside",
            words.size(budget.peak_overshoot_bytes),
            share or words.plain_name(budget.faults_unknown or "not counted", 100),
        ),
        ("Eviction policy", budget.policy or words.UNKNOWN, _prediction(budget)),
        *_neighbor_cells(budget),
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


def _neighbor_cells(budget: ResidencyStatistics) -> list[tuple[str, str, str]]:
    size = words.size
    held, at_once = size(budget.harvested_bytes), size(budget.given_back_at_once_bytes)
    found = []
    if budget.neighbor_bytes:
        found += [
            ("On neighbours", size(budget.peak_harvested_bytes), f"at most; {held} at the end"),
            ("Evicted to neighbours", size(budget.neighbor_bytes), "and so not to the host"),
            ("Back from neighbours", size(budget.from_neighbor_bytes), "fetched for its use"),
        ]
    if budget.in_place_bytes:
        used = size(budget.in_place_bytes)
        found.append(("Used on neighbours", used, "through mappings, not fetched"))
    if budget.copied_beside_bytes:
        copied = size(budget.copied_beside_bytes)
        found.append(("Copied beforehand", copied, "to the host, of what lies on neighbours"))
    if budget.staged_bytes:
        staged = size(budget.staged_bytes)
        found.append(("By way of neighbours", staged, "fetched from the host"))
    if budget.given_back_bytes:
        given = size(budget.given_back_bytes)
        found.append(("Given back to owners", given, f"{at_once} of it without a copy"))
    if budget.held_back:
        found.append(("Neighbours busy", _times(budget.held_back), "blocks left to the host"))
    if budget.reclaims:
        found.append(("Reclaimed", _times(budget.reclaims), f"{_waited(budget)} in all"))
    return found


def _times(number: int) -> str:
    return "once" if number == 1 else f"{words.count(number)} times"


def _waited(budget: ResidencyStatistics) -> str:
    return f"waited {words.clock_text(budget.reclaim_wait_seconds)}"


def _fetched_bytes(budget: ResidencyStatistics) -> int:
    return budget.fetched_bytes + budget.fetched_ahead_bytes


def _prediction(budget: ResidencyStatistics) -> str:
    """Return whether a policy's prediction is on, in a few words."""
    if budget.policy in SIMPLE_POLICIES:
        return "predicts nothing"
    if budget.hit_rate is None:
        return "nothing was predicted"
    state = "on" if budget.foresees else "off, lru decides"
    return f"{state}; foresaw {budget.hit_rate * 100:.0f} % of {budget.predictions} uses"
