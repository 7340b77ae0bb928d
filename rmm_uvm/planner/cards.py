# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One card of a plan: replayed in all ways that are asked for, then told and advised on."""

from __future__ import annotations

from dataclasses import dataclass

from rmm_uvm.planner.advice import ENOUGH, Facts, best
from rmm_uvm.planner.announced import AnnouncedTrial, tried_ways, with_way
from rmm_uvm.planner.answers import TOLERABLE, Asked, more_data, splitting
from rmm_uvm.planner.capacities import BLOCK_BYTES, whole_blocks
from rmm_uvm.planner.curve import smallest_capacity
from rmm_uvm.planner.outcome import AnnouncedWay, Card, MachineFacts, Variant
from rmm_uvm.planner.reasons import settings
from rmm_uvm.planner.request import DEFAULTS, Options, Request
from rmm_uvm.planner.result import StageResult
from rmm_uvm.planner.runs import Runs
from rmm_uvm.planner.settling import Trial, tried
from rmm_uvm.planner.working_set import WorkingSet
from rmm_uvm.sizing import ipc_pool_bytes

__all__ = ["Around", "least_capacity", "planned_card", "ways_to_run"]


@dataclass(frozen=True)
class Around:
    """What all cards of a plan share.

    Attributes
    ----------
    runs : Runs
        What replays the workload.
    trial : Trial or None
        What tries pool sizes.
    request : Request
        What was asked for.
    machine : MachineFacts
        What is simulated.
    touched : WorkingSet
        Of the workload.
    staged : bool
        Its stages are the program's, and not sizes of allocations.
    announced : AnnouncedTrial or None
        What tries ways with uses announced; None if that is not asked for.
    """

    runs: Runs
    trial: Trial | None
    request: Request
    machine: MachineFacts
    touched: WorkingSet
    staged: bool
    announced: AnnouncedTrial | None = None


def ways_to_run(around: Around, device_bytes: int) -> tuple[Variant, ...]:
    """Return the workload replayed on a card in all ways that are asked for, the defaults first."""
    runs, request = around.runs, around.request
    capacity_bytes = whole_blocks(device_bytes - _ipc_bytes(around, device_bytes))
    variants = [runs.variant(capacity_bytes, options) for options in request.options]
    if _moves(variants[0]):
        variants += [runs.variant(capacity_bytes, options) for options in request.alternatives]
    return tuple(variants)


def planned_card(around: Around, device_bytes: int) -> Card:
    """Return one card, everything on it replayed and told.

    Best after `ways_to_run` of all cards: what is said of one then agrees with the others.
    """
    runs, request = around.runs, around.request
    peak_bytes = runs.workload.peak_live_bytes
    ipc_bytes = _ipc_bytes(around, device_bytes)
    capacity_bytes = whole_blocks(device_bytes - ipc_bytes)
    variants = ways_to_run(around, device_bytes)
    facts = Facts(
        peak_bytes=peak_bytes,
        slab_bytes=sum(slab.nbytes for slab in runs.workload.slabs),
        capacity_bytes=capacity_bytes,
        ipc_bytes=ipc_bytes,
        workers=request.workers,
        enough_bytes=0,
        splits=False,
        host_bytes=request.own_host_bytes,
    )
    replayed = best(variants)
    settled = tried(around.trial, facts, variants[0], replayed)
    advised = settled.variant
    asked = Asked(
        device_bytes=device_bytes,
        capacity_bytes=capacity_bytes,
        peak_bytes=peak_bytes,
        advised=advised,
        tolerable_bytes=_least_here(runs, capacity_bytes, advised, TOLERABLE),
        machine=str(around.machine),
        host_bytes=request.own_host_bytes,
        fullest=_fullest(runs) if around.staged else None,
    )
    whole = splitting(asked)
    facts = facts._replace(
        enough_bytes=_least_here(runs, capacity_bytes, advised, ENOUGH),
        splits=whole.verdict == "no",
    )
    told = settings(facts, variants[0], settled, replayed)
    ways = _ways(around, facts, variants)
    return Card(
        device_bytes=device_bytes,
        capacity_bytes=capacity_bytes,
        oversubscription_factor=peak_bytes / capacity_bytes,
        working_set_factor=around.touched.nbytes / capacity_bytes,
        variants=variants,
        advised=advised,
        host_bytes=variants[0].result.host_page_bytes * request.workers,
        settings=with_way(told, ways) if ways else told,
        splitting=whole,
        more_data=more_data(asked),
        ways=ways,
    )


def least_capacity(runs: Runs, most_slowdown: float, options: Options = DEFAULTS) -> int | None:
    """Return the least managed capacity, bytes, at which a slowdown is not passed.

    None if it is passed with room for everything too, which is so where the host has too little
    memory for what the CPU touches. Contradicts no replay that was done before.
    """
    return smallest_capacity(
        lambda size: runs.variant(size, options).slowdown,
        runs.fitting_device_bytes,
        most_slowdown,
        known=runs.capacities(options),
    )


def _least_here(
    runs: Runs, capacity_bytes: int, advised: Variant, most_slowdown: float
) -> int | None:
    """Return the least capacity, bytes, with the advised options; agrees with what this card does.

    Where those are not enough even with room for everything, the defaults may be.
    """
    found = least_capacity(runs, most_slowdown, advised.options)
    if found is None:
        found = least_capacity(runs, most_slowdown)
    if advised.slowdown is not None and advised.slowdown <= most_slowdown:
        return capacity_bytes if found is None else min(found, capacity_bytes)
    return None if found is None else max(found, capacity_bytes + BLOCK_BYTES)


def _ipc_bytes(around: Around, device_bytes: int) -> int:
    return ipc_pool_bytes("auto", device_bytes) if around.request.workers > 1 else 0


def _ways(around: Around, facts: Facts, variants: tuple[Variant, ...]) -> tuple[AnnouncedWay, ...]:
    """Return the ways to run with uses announced; the kernel driver is as it is by default."""
    trial, runs = around.announced, around.runs
    if trial is None or not trial.able:
        return ()
    modes = dict.fromkeys(variant.options.prefetch for variant in variants)
    return tried_ways(trial, facts, modes, runs.beside_seconds, runs.fitting_seconds)


def _fullest(runs: Runs) -> StageResult:
    return max(runs.fitting.stages, key=lambda stage: stage.peak_live_bytes)


def _moves(variant: Variant) -> bool:
    """Return whether a card is too small for the workload to run as if it fitted."""
    return variant.slowdown is None or variant.result.evicted_bytes > 0
