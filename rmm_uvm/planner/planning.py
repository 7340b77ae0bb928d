# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Plans: read a workload, replay it on cards of several sizes, and draw the conclusions.

Covers `plan`, which `rmm_uvm` exports. Does not cover reading workloads, replaying them, and
showing plans; see `rmm_uvm.planner.workload.loading`, `replaying` and `text`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from typing import Any

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.planner.advice.advising import ENOUGH, helps_most
from rmm_uvm.planner.advice.announced import AnnouncedTrial
from rmm_uvm.planner.advice.answers import TOLERABLE
from rmm_uvm.planner.advice.cards import (
    Around,
    least_capacity,
    planned_card,
    settable_ways,
    tried_card,
)
from rmm_uvm.planner.advice.notes import notes
from rmm_uvm.planner.advice.settling import Trial
from rmm_uvm.planner.outcome import MachineFacts
from rmm_uvm.planner.planned import Plan
from rmm_uvm.planner.request import PlanRequest, checked_request
from rmm_uvm.planner.trials.capacities import card_sizes
from rmm_uvm.planner.trials.replaying import replaying_here
from rmm_uvm.planner.trials.runs import PlanProgress, Replay, Runs, ShowProgress
from rmm_uvm.planner.workload.events import Workload
from rmm_uvm.planner.workload.stages import by_size_class, has_stages
from rmm_uvm.planner.workload.working_set import working_set
from rmm_uvm.support.machine_files import Machine, as_machine
from rmm_uvm.support.machine_profile import ThirdTier
from rmm_uvm.support.messages import shown

__all__ = ["plan", "plan_workload"]


def plan(
    trace: str | os.PathLike[str] | Workload,
    device_memory: int | str | Iterable[int | str] | None = None,
    *,
    machine: Any = "h200-pcie5",
    prefetch: str | Iterable[str] | None = None,
    driver_prefetch_threshold: int | Iterable[int] = 51,
    policy: str | Iterable[str] = "driver",
    workers: int = 1,
    host_memory: int | str | None = None,
    fitting_seconds: float | None = None,
    device: int | None = None,
    announced: bool = False,
    third_tier: str | ThirdTier | None = None,
    progress: ShowProgress | None = None,
) -> Plan:
    """Tell what a recorded workload would do on other cards, without one.

    Parameters
    ----------
    trace : path or Workload
        A trace of rmm_uvm, or a log of RMM's logging adaptor; either may be gzipped.
    device_memory : int, str, or several of them
        Card sizes, bytes or such as "24GiB", 16 MiB or more; by default sizes that cards have,
        from a quarter of the workload's peak to the first on which all of it fits.
    machine : str, path or Machine
        Machine profile: a name, a file, or a profile itself.
    prefetch : {"auto", "always", "never"}, or several of them
        Ways to replay on every card. By default "auto", and the others too where it moves data.
    driver_prefetch_threshold : int, or several
        The UVM kernel driver's ``uvm_perf_prefetch_threshold``, percent, 0 to 100.
    policy : {"driver", "discard-dead"}, or both
        "discard-dead" shows what dropping dead data in time would save; it is never advised, since
        no setting turns it on. A budget drops dead data by rules of its own.
    workers : int
        Processes like the recorded one that share a host, each on a card of its own; >= 1.
    host_memory : int or str, optional
        Host memory of all of them together; by default as much as they want.
    fitting_seconds : float, optional
        Time that the program takes on a GPU with room for everything, 1e-6 to 1e9; by default the
        recorded time, less the driver's work in it. A recording on a simulated device has no such
        time: there kernels are taken to run at the speed of device memory.
    device : int, optional
        Which device of a recording of several.
    announced : bool
        The program announces its uses, as by `rmm_uvm.touch`. Budgets with each eviction policy are
        then tried too, with the pool itself, and settings are for such a program. A recording with
        announced uses is of such a program in any case.
    third_tier : str or ThirdTier, optional
        What lies behind the memory of a host that is full, such as "2TB@6.8/4.0/80us": size, rates
        to read and to write in GB/s, and what an operation takes. Needs `host_memory`; workers
        share its size. By default that of the machine profile, which may have none.
    progress : callable, optional
        Called with a `PlanProgress` now and then.

    Returns
    -------
    Plan
        Prints as what ``rmm-uvm plan`` prints. The defaults ("auto", 51, "driver") are replayed
        on every card, whatever else is asked for.

    Raises
    ------
    ConfigurationError
        If an argument cannot be used, or there is no such machine profile.
    DataError
        If the file is missing or broken, or holds no allocation.
    MemoryError
        If this process has no addresses, or no memory, to replay it.

    Notes
    -----
    Needs no GPU. Ctrl-C ends it between two parts of a replay. Thread-safe.
    """
    request = checked_request(
        _several(device_memory),
        _several(prefetch),
        _several(driver_prefetch_threshold) or (),
        _several(policy) or (),
        workers,
        host_memory,
        fitting_seconds,
        announced=announced,
    )
    from rmm_uvm.planner.trials.pool_trial import PoolTrial
    from rmm_uvm.planner.trials.replaying import replay
    from rmm_uvm.planner.workload.loading import load_workload
    from rmm_uvm.simulator import DriverSettings

    profile = with_third_tier(as_machine(machine), third_tier, request)
    if tier := profile.third_tier:
        request = dataclasses.replace(request, third_tier_bytes=tier.capacity_bytes)
    if isinstance(trace, Workload):
        workload = trace
    else:
        workload = load_workload(trace, device=device, progress=_reading(progress))
    if workload.uses_announced:
        request = dataclasses.replace(request, announced=True)

    def driver_settings(threshold: int) -> DriverSettings:
        return DriverSettings(prefetch_threshold=threshold)

    trial = PoolTrial(workload, profile, driver_settings, progress)
    with replaying_here(workload):
        return plan_workload(
            workload,
            profile,
            request,
            replay=replay,
            driver_settings=driver_settings,
            trial=trial,
            announced_trial=trial if request.announced else None,
            progress=progress,
        )


def plan_workload(
    workload: Workload,
    machine: Any,
    request: PlanRequest,
    *,
    replay: Replay,
    driver_settings: Callable[[int], Any],
    trial: Trial | None = None,
    announced_trial: AnnouncedTrial | None = None,
    progress: ShowProgress | None = None,
) -> Plan:
    """Return the plan of a workload; what replays it, and what tries pool sizes, is given.

    Raises
    ------
    DataError
        If the workload has no allocation.
    """
    if not workload.allocations or not workload.peak_live_bytes:
        raise DataError(
            f"{workload.source} has no allocation: record a run that allocates through RMM"
        )
    tier = None if request.host_bytes is None else machine.third_tier
    facts = MachineFacts(
        machine.name, machine.gpu, machine.link, bool(machine.measured), machine.label, tier
    )
    staged = has_stages(workload)
    runs = Runs(
        workload if staged else by_size_class(workload),
        machine,
        replay,
        driver_settings,
        request.own_host_bytes,
        request.fitting_seconds,
        progress,
    )
    touched = working_set(workload)
    around = Around(runs, trial, request, facts, touched, staged, announced_trial)
    sizes = request.device_bytes or card_sizes(workload.peak_live_bytes)
    on_cards = [tried_card(around, size) for size in sizes]
    settable = settable_ways(around, on_cards)
    cards = tuple(planned_card(around, card, settable) for card in on_cards)
    return Plan(
        workload=workload,
        machine=facts,
        workers=request.workers,
        working_set=touched,
        fitting_seconds=runs.fitting_seconds,
        host_bytes=request.own_host_bytes,
        enough_bytes=least_capacity(runs, ENOUGH),
        tolerable_bytes=least_capacity(runs, TOLERABLE),
        cards=cards,
        curve=runs.curve,
        helps=helps_most([(card.device_bytes, card.defaults.slowdown) for card in cards]),
        by_size_class=not staged,
        notes=notes(
            *(runs, facts, request, touched),
            tried=trial is not None and trial.able,
            tried_announced=announced_trial is not None and announced_trial.able_announced,
        ),
    )


def with_third_tier(
    machine: Machine, third_tier: str | ThirdTier | None, request: PlanRequest
) -> Machine:
    """Return a machine with the third tier that was asked for, or its own, a worker's part of it.

    Raises
    ------
    ConfigurationError
        If it is none, or was asked for behind a host that never is full.
    """
    if third_tier is not None and request.host_bytes is None:
        raise ConfigurationError(
            f"third_tier={shown(third_tier)}: a host without a limit is never full; give "
            "host_memory too"
        )
    tier = ThirdTier.named(third_tier) if isinstance(third_tier, str) else third_tier
    if tier is not None and not isinstance(tier, ThirdTier):
        raise ConfigurationError(
            f"third_tier={shown(third_tier)}: text such as '2TB@6.8/4.0', or a ThirdTier"
        )
    tier = tier or machine.third_tier
    if tier is None:
        return machine
    own_bytes = max(tier.capacity_bytes // request.workers, 1)
    return machine.replace(third_tier=dataclasses.replace(tier, capacity_bytes=own_bytes))


def _several(given: Any) -> Any:
    """Return one value as a list of it."""
    return [given] if given is not None and isinstance(given, str | int) else given


def _reading(progress: ShowProgress | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(PlanProgress("reading", done, total, 0))
