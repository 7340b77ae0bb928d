# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Plans: read a workload, replay it on cards of several sizes, and draw the conclusions.

Covers `plan`, which `rmm_uvm` exports. Does not cover reading workloads, replaying them, and
showing plans; see `rmm_uvm.planner.workload`, `replaying` and `text`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from rmm_uvm.errors import DataError
from rmm_uvm.planner.advice import ENOUGH, Facts, best, helps_most, settings
from rmm_uvm.planner.answers import TOLERABLE, Asked, more_data, splitting
from rmm_uvm.planner.capacities import BLOCK_BYTES, card_sizes, whole_blocks
from rmm_uvm.planner.curve import smallest_capacity
from rmm_uvm.planner.events import Workload
from rmm_uvm.planner.notes import notes
from rmm_uvm.planner.outcome import Card, MachineFacts, Plan, Variant
from rmm_uvm.planner.request import DEFAULTS, Options, Request, checked_request
from rmm_uvm.planner.runs import PlanProgress, Replay, Runs, ShowProgress
from rmm_uvm.planner.settling import Trial, tried
from rmm_uvm.planner.size_classes import by_size_class, has_stages
from rmm_uvm.planner.working_set import WorkingSet, working_set
from rmm_uvm.sizing import ipc_pool_bytes

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
    device: int | None = None,
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
        "discard-dead" shows what dropping dead data in time would save; it is never advised.
    workers : int
        Processes like the recorded one that share a host, each on a card of its own; >= 1.
    host_memory : int or str, optional
        Host memory of all of them together; by default as much as they want.
    device : int, optional
        Which device of a recording of several.
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
    )
    from rmm_uvm.planner.pool_trial import PoolTrial
    from rmm_uvm.planner.replaying import replay
    from rmm_uvm.planner.workload import load_workload
    from rmm_uvm.simulator import DriverSettings, load_machine

    if isinstance(machine, str | os.PathLike):
        machine = load_machine(machine)
    if isinstance(trace, Workload):
        workload = trace
    else:
        workload = load_workload(trace, device=device, progress=_reading(progress))

    def driver_settings(threshold: int) -> DriverSettings:
        return DriverSettings(prefetch_threshold=threshold)

    return plan_workload(
        workload,
        machine,
        request,
        replay=replay,
        driver_settings=driver_settings,
        trial=PoolTrial(workload, machine, driver_settings),
        progress=progress,
    )


def plan_workload(
    workload: Workload,
    machine: Any,
    request: Request,
    *,
    replay: Replay,
    driver_settings: Callable[[int], Any],
    trial: Trial | None = None,
    progress: ShowProgress | None = None,
) -> Plan:
    """Return the plan of a workload; what replays it, and what tries pool sizes, is given.

    Raises
    ------
    DataError
        If the workload has no allocation.
    """
    if not workload.allocations or not workload.peak_live_bytes:
        raise DataError(f"{workload.source} has no allocation: there is nothing to plan")
    facts = MachineFacts(
        machine.name, machine.gpu, machine.link, bool(machine.measured), machine.label
    )
    staged = has_stages(workload)
    host_bytes = None if request.host_bytes is None else request.host_bytes // request.workers
    runs = Runs(
        workload if staged else by_size_class(workload),
        machine,
        replay,
        driver_settings,
        host_bytes,
        progress,
    )
    enough_bytes = _least_capacity(runs, ENOUGH)
    tolerable_bytes = _least_capacity(runs, TOLERABLE)
    touched = working_set(workload)
    sizes = request.device_bytes or card_sizes(workload.peak_live_bytes)
    cards = tuple(_card(runs, trial, size, request, facts, touched, host_bytes) for size in sizes)
    return Plan(
        workload=workload,
        machine=facts,
        workers=request.workers,
        working_set=touched,
        fitting_seconds=runs.fitting_seconds,
        enough_bytes=enough_bytes,
        tolerable_bytes=tolerable_bytes,
        cards=cards,
        curve=runs.curve,
        helps=helps_most([(card.device_bytes, card.defaults.slowdown) for card in cards]),
        by_size_class=not staged,
        notes=notes(runs, facts, request, tried=trial is not None and trial.able),
    )


def _card(
    runs: Runs,
    trial: Trial | None,
    device_bytes: int,
    request: Request,
    machine: MachineFacts,
    touched: WorkingSet,
    host_bytes: int | None,
) -> Card:
    """Return one card, everything on it replayed and told."""
    workload = runs.workload
    ipc_bytes = ipc_pool_bytes("auto", device_bytes) if request.workers > 1 else 0
    capacity_bytes = whole_blocks(device_bytes - ipc_bytes)
    variants = [runs.variant(capacity_bytes, options) for options in request.options]
    if _moves(variants[0]):
        variants += [runs.variant(capacity_bytes, options) for options in request.alternatives]
    given = Facts(
        peak_bytes=workload.peak_live_bytes,
        slab_bytes=sum(slab.nbytes for slab in workload.slabs),
        capacity_bytes=capacity_bytes,
        ipc_bytes=ipc_bytes,
        workers=request.workers,
        enough_bytes=0,
        splits=False,
        host_bytes=host_bytes,
    )
    advised, sized = tried(trial, given, variants[0], best(variants))
    asked = Asked(
        device_bytes=device_bytes,
        capacity_bytes=capacity_bytes,
        peak_bytes=workload.peak_live_bytes,
        advised=advised,
        tolerable_bytes=_least_here(runs, capacity_bytes, advised, TOLERABLE),
        machine=str(machine),
        host_bytes=host_bytes,
    )
    whole = splitting(asked)
    given = given._replace(
        enough_bytes=_least_here(runs, capacity_bytes, advised, ENOUGH),
        splits=whole.verdict == "no",
    )
    return Card(
        device_bytes=device_bytes,
        capacity_bytes=capacity_bytes,
        oversubscription_factor=workload.peak_live_bytes / capacity_bytes,
        working_set_factor=touched.nbytes / capacity_bytes,
        variants=tuple(variants),
        advised=advised,
        host_bytes=variants[0].result.host_page_bytes * request.workers,
        settings=settings(given, variants[0], advised, sized=sized),
        splitting=whole,
        more_data=more_data(asked),
    )


def _moves(variant: Variant) -> bool:
    """Return whether a card is too small for the workload to run as if it fitted."""
    return variant.slowdown is None or variant.result.evicted_bytes > 0


def _least_capacity(runs: Runs, most_slowdown: float, options: Options = DEFAULTS) -> int:
    return smallest_capacity(
        lambda size: runs.variant(size, options).slowdown, runs.fitting_device_bytes, most_slowdown
    )


def _least_here(runs: Runs, capacity_bytes: int, advised: Variant, most_slowdown: float) -> int:
    """Return the least capacity, bytes, with the advised options; agrees with what this card does.

    The search knows the curve at some places only, and it need not be monotonous.
    """
    found = _least_capacity(runs, most_slowdown, advised.options)
    if advised.slowdown is not None and advised.slowdown <= most_slowdown:
        return min(found, capacity_bytes)
    return max(found, capacity_bytes + BLOCK_BYTES)


def _several(given: Any) -> Any:
    """Return one value as a list of it."""
    return [given] if given is not None and isinstance(given, str | int) else given


def _reading(progress: ShowProgress | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(PlanProgress("reading", done, total, 0))
