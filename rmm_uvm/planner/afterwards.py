# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finds what would have helped a run that has just ended: its trace, done again in other ways.

Covers reading the trace and finding out how the run kept its memory. Does not cover which ways are
tried and told, see `rmm_uvm.planner.advice.remedies`.
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from rmm_uvm.planner.advice.line_hints import hints_at_lines
from rmm_uvm.planner.advice.remedies import AsItRan, remedies
from rmm_uvm.planner.trials.pool_trial import MOST_EVENTS, PoolTrial
from rmm_uvm.planner.trials.replaying import replaying_here
from rmm_uvm.planner.trials.runs import recorded_on_simulated, touched_bytes
from rmm_uvm.planner.workload.events import ALLOCATE, FREE, Workload
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.residency.policies import DEFAULT_POLICY, POLICIES
from rmm_uvm.support.machine_files import Machine, load_machine, shipped_names
from rmm_uvm.support.settings import PrefetchMode
from rmm_uvm.watch.judging.wording import own_remedies

__all__ = ["grows_to_the_end", "like", "with_remedies"]

_USUAL = "h200-pcie5"
_PARTS = 8
_GROWTH_FRACTION = 0.25


def with_remedies(
    recording: Recording, trace: Path, prefetch: PrefetchMode
) -> tuple[Recording, str]:
    """Return a recording with what would have helped, of the first device that was watched.

    What its other findings advise of this package is left out then: it was tried.

    Parameters
    ----------
    recording : Recording
        Of the run.
    trace : Path
        Its trace.
    prefetch : str
        When it prefetched allocations.

    Returns
    -------
    Recording
        The same if nothing was tried.
    str
        Why nothing was tried, or what came of it if nothing helps; else empty.

    Raises
    ------
    DataError
        If the trace is broken or has no allocation.
    """
    device = recording.devices[0] if recording.devices else None
    if device is None:
        return recording, "not tried on a model: no device was watched"
    workload = load_workload(trace, device=device.device_id)
    if len(workload.events) > MOST_EVENTS:
        return recording, (
            f"not tried on a model: {len(workload.events)} events are too many (at most "
            f"{MOST_EVENTS}); keep the trace, --trace FILE, and use rmm-uvm plan FILE"
        )
    machine, known = like(device.name)
    budget = recording.budgets.get(device.device_id, {})
    used = int(budget.get("wanted_bytes", 0) or 0)
    seconds = max(workload.seconds - float(budget.get("waited_seconds", 0.0) or 0.0), 0.0)
    if recorded_on_simulated(workload):
        seconds = touched_bytes(workload) / float(machine.memory_bytes_per_ns) / 1e9
    eviction = str(budget.get("policy", ""))
    ran = AsItRan(
        device_id=device.device_id,
        capacity_bytes=device.capacity_bytes,
        peak_bytes=workload.peak_live_bytes,
        slab_bytes=sum(slab.nbytes for slab in workload.slabs),
        prefetch=prefetch,
        budget_bytes=int(budget["budget_bytes"]) if budget.get("budget_bytes") else None,
        eviction=eviction if eviction in POLICIES else DEFAULT_POLICY,
        announced=workload.uses_announced or used > 0,
        grows=grows_to_the_end(workload),
        compute_seconds=seconds,
        seconds=recording.duration_seconds,
        machine=machine.name if known else f"{machine.name} (none of {device.name} is known)",
        others_bytes=int((budget.get("unmanaged_bytes") or 0) + (budget.get("hidden_bytes") or 0)),
        hints=tuple(hints_at_lines(recording.lines, workload)),
    )
    trial = PoolTrial(workload, machine, _driver_settings)
    with replaying_here(workload):
        found = remedies(ran, trial.announced)
    others = tuple(_without_own_remedies(each) for each in recording.findings)
    told = dataclasses.replace(recording, findings=(*found, *others))
    return told, "" if found else "tried on a model: no other way saves time"


def _without_own_remedies(finding: Finding) -> Finding:
    remedy = finding.remedy
    for budgeted in (False, True):
        remedy = remedy.removeprefix(own_remedies(ours=True, budgeted=budgeted))
    return dataclasses.replace(finding, remedy=remedy)


def like(gpu: str) -> tuple[Machine, bool]:
    """Return the machine profile of a GPU, and whether there is one; else that of an H200.

    Examples
    --------
    >>> machine, known = like("NVIDIA L40S")
    >>> machine.name, known
    ('l40s-pcie4', True)
    >>> like("simulated device")[0].name
    'h200-pcie5'
    """
    for name in shipped_names():
        machine = load_machine(name)
        model = machine.gpu.partition(",")[0]
        if gpu == model or gpu.startswith(f"{model} "):
            return machine, True
    return load_machine(_USUAL), gpu.lower().startswith("simulated")


def grows_to_the_end(workload: Workload) -> bool:
    """Return whether what is allocated never falls back while a workload runs, as with a leak.

    Of the last seven eighths each has more at its least than the one before, by a quarter of the
    peak in all.
    """
    events = workload.events[np.isin(workload.events["kind"], (ALLOCATE, FREE))]
    if len(events) < 4 * _PARTS:
        return False
    sizes = events["nbytes"].astype(np.int64)
    live = np.cumsum(np.where(events["kind"] == ALLOCATE, sizes, -sizes))
    live = live[: int(live.argmax()) + 1]  # what is freed at the end of a program says nothing
    if len(live) < 4 * _PARTS:
        return False
    least = [int(part.min()) for part in np.array_split(live, _PARTS)][1:]
    grown = all(after > before for before, after in itertools.pairwise(least))
    return grown and least[-1] - least[0] >= _GROWTH_FRACTION * workload.peak_live_bytes


def _driver_settings(threshold: int) -> Any:
    from rmm_uvm.simulator import DriverSettings

    return DriverSettings(prefetch_threshold=threshold)
