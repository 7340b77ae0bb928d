# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Notes for readers of a plan: whence its times come, and what was assumed."""

from __future__ import annotations

from rmm_uvm.planner.advice.advising import spread
from rmm_uvm.planner.outcome import MachineFacts
from rmm_uvm.planner.request import PlanRequest
from rmm_uvm.planner.trials.runs import Runs
from rmm_uvm.planner.workload.working_set import WorkingSet
from rmm_uvm.report.words import plain_name

__all__ = ["notes"]


def notes(
    runs: Runs,
    machine: MachineFacts,
    request: PlanRequest,
    touched: WorkingSet,
    *,
    tried: bool,
    tried_announced: bool = False,
) -> tuple[str, ...]:
    """Return sentences, the most important first.

    Parameters
    ----------
    runs : Runs
        What was replayed.
    machine : MachineFacts
        Where.
    request : PlanRequest
        What was asked for.
    touched : WorkingSet
        Of the workload.
    tried : bool
        Whether pool sizes were tried with the pool itself.
    tried_announced : bool
        Whether that was done with uses announced, at least in the default ways.
    """
    workload = runs.workload
    where = plain_name(workload.device_name, 60) if workload.device_name else "an unknown GPU"
    told = [
        f"Predicted time is the recorded time on {where} with the kernel driver's work as it would "
        "be on the card; kernels are taken to be as fast there."
    ]
    if runs.given_seconds is not None:
        told = [
            f"Predicted time is {runs.given_seconds:g} s, as given for room for everything, with "
            "the kernel driver's work as it would be on the card."
        ]
    elif runs.recorded_on_simulated_device:
        told = [
            "It was recorded on a simulated device, whose time is not a GPU's: kernels are taken "
            "to run at the speed of device memory, and so how many times as long it takes is an "
            "upper bound. Give fitting seconds if you know them."
        ]
    elif runs.recorded_oversubscribed:
        told.append(
            "It was recorded on a device too small for it; what migrated then, by the model, is "
            "taken off the recorded time."
        )
    if workload.cut_off:
        told.append(f"The recording ends early: {plain_name(workload.cut_off, 200)}.")
    told += [f"While it was read: {plain_name(remark, 200)}." for remark in workload.remarks]
    if workload.touches_assumed:
        told.append(
            "The recording says nothing of touches: an allocation is taken to be written when it "
            "is made and read just before it is freed. What is used more often moves more often."
        )
    if workload.uses_announced:
        told.append(
            "Of uses the recording has those that were announced; an allocation is taken to be "
            "written when it is made. What nobody announces is missing."
        )
    if not machine.measured:
        told.append(
            f"The constants of {machine} are published ones, not measured by us: trust the "
            "order of cards and settings more than the times."
        )
    if request.workers > 1:
        told.append(
            f"All {request.workers} workers are taken to do what the recorded process did; what "
            "they send each other is not modelled."
        )
    addresses = spread(workload.peak_live_bytes, touched.nbytes)
    if addresses:
        told.append(
            "More is touched in one window than is allocated at a time. A replay keeps the "
            "recorded addresses: times, answers and what is enough hold for a pool that spreads "
            "data as the recorded one did; one that puts them closer needs less. Factors are of "
            "the peak."
        )
    if not tried:
        told.append(
            "The recording is too long to try it with the pool: answers rest on replays alone, and "
            f"pool sizes {'are left out' if addresses else 'follow from the peak'}."
        )
    if request.announced and not tried_announced:
        told.append(
            "The recording is too long to try budgets: settings are for a program that announces "
            "none of its uses."
        )
    elif request.announced:
        told.append(
            "Settings are for a program that announces its uses: cuDF columns, or rmm_uvm.touch. "
            "Tables and answers are of replays, where nothing is announced and no budget is kept."
            + " The recording is long: of budgets only the default policy was tried."
            * (not tried)
        )
    told.append("More data, or parts of them, are taken to need memory and time in proportion.")
    return tuple(told)
