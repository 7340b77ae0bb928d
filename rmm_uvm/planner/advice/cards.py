# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One card of a plan: replayed in all ways that are asked for, then told and advised on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rmm_uvm.planner.advice.advising import ENOUGH, AdviceFacts, best
from rmm_uvm.planner.advice.announced import AnnouncedTrial, tried_ways, with_way
from rmm_uvm.planner.advice.answers import TOLERABLE, AnswerFacts, more_data, splitting
from rmm_uvm.planner.advice.reasons import settings
from rmm_uvm.planner.advice.settling import Settled, Trial, tried
from rmm_uvm.planner.outcome import AnnouncedWay, Card, MachineFacts, Variant
from rmm_uvm.planner.request import DEFAULTS, Options, PlanRequest
from rmm_uvm.planner.trials.capacities import smallest_capacity
from rmm_uvm.planner.trials.runs import Runs
from rmm_uvm.planner.workload.result import StageResult
from rmm_uvm.planner.workload.working_set import WorkingSet
from rmm_uvm.pool.sizing import ipc_pool_bytes
from rmm_uvm.support.units import VA_BLOCK_BYTES, whole_blocks

__all__ = [
    "Around",
    "TriedCard",
    "least_capacity",
    "planned_card",
    "settable_ways",
    "tried_card",
    "ways_to_run",
]

_WORTH_TELLING = 0.95  # of the memory: a way that needs more than that is not told beside another


@dataclass(frozen=True)
class Around:
    """Facts that all cards of a plan share.

    Attributes
    ----------
    runs : Runs
        What replays the workload.
    trial : Trial or None
        What tries pool sizes.
    request : PlanRequest
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
    request: PlanRequest
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


class TriedCard(NamedTuple):
    """One card: in which ways the workload was replayed there, and which of them stands.

    Attributes
    ----------
    device_bytes : int
        Memory of the card.
    facts : AdviceFacts
        Of workload and card, `enough_bytes` and `splits` not found yet.
    variants : tuple of Variant
        All that were replayed; the defaults first.
    replayed : Variant
        The one that replays speak for.
    settled : Settled
        What is advised, after trials with the pool.
    """

    device_bytes: int
    facts: AdviceFacts
    variants: tuple[Variant, ...]
    replayed: Variant
    settled: Settled


def tried_card(around: Around, device_bytes: int) -> TriedCard:
    """Return one card with the workload replayed there, and tried with the pool."""
    runs, request = around.runs, around.request
    ipc_bytes = _ipc_bytes(around, device_bytes)
    variants = ways_to_run(around, device_bytes)
    facts = AdviceFacts(
        peak_bytes=runs.workload.peak_live_bytes,
        slab_bytes=sum(slab.nbytes for slab in runs.workload.slabs),
        capacity_bytes=whole_blocks(device_bytes - ipc_bytes),
        ipc_bytes=ipc_bytes,
        workers=request.workers,
        enough_bytes=0,
        splits=False,
        host_bytes=request.own_host_bytes,
        working_set_bytes=around.touched.nbytes,
        third_tier_bytes=request.third_tier_bytes,
    )
    replayed = best(variants)
    settled = tried(around.trial, facts, variants[0], replayed)
    return TriedCard(device_bytes, facts, variants, replayed, settled)


def settable_ways(around: Around, cards: Sequence[TriedCard]) -> tuple[Options, ...]:
    """Return the ways to run that can be set, less those that were faster only when replayed."""
    rejected = {
        card.replayed.options for card in cards if card.settled.variant is not card.replayed
    }
    ways = (*around.request.options, *around.request.alternatives)
    return tuple(
        way for way in ways if way.policy == DEFAULTS.policy and way not in rejected - {DEFAULTS}
    )


def planned_card(around: Around, card: TriedCard, settable: Sequence[Options]) -> Card:
    """Return one card, everything on it replayed and told.

    Best after `tried_card` of all cards: what is said of one then agrees with the others.

    Parameters
    ----------
    around : Around
        What all cards share.
    card : TriedCard
        The card.
    settable : sequence of Options
        Ways to run that more data may take.
    """
    runs, request = around.runs, around.request
    device_bytes, facts, variants, replayed, settled = card
    peak_bytes, capacity_bytes = facts.peak_bytes, facts.capacity_bytes
    advised = settled.variant
    ways = _ways(around, facts, variants)
    works = any(way.driver_seconds is not None for way in ways)
    pool_fails = settled.out_of_memory and not works
    tolerable_bytes, tolerable_options = _tolerable(runs, capacity_bytes, advised, settable)
    asked = AnswerFacts(
        device_bytes=device_bytes,
        capacity_bytes=capacity_bytes,
        peak_bytes=peak_bytes,
        advised=advised,
        tolerable_bytes=tolerable_bytes,
        machine=str(around.machine),
        host_bytes=request.own_host_bytes,
        third_tier_bytes=request.third_tier_bytes,
        fullest=_fullest(runs) if around.staged else None,
        pool_fails=pool_fails,
        defaults=None if advised is variants[0] else variants[0],
        tolerable_options=tolerable_options,
    )
    whole = splitting(asked)
    facts = facts._replace(
        enough_bytes=_least_here(runs, capacity_bytes, advised, ENOUGH),
        splits=whole.verdict == "no",
    )
    told = settings(facts, variants[0], settled, replayed)
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
        pool_out_of_memory=pool_fails,
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
    return None if found is None else max(found, capacity_bytes + VA_BLOCK_BYTES)


def _tolerable(
    runs: Runs, capacity_bytes: int, advised: Variant, settable: Sequence[Options]
) -> tuple[int | None, Options]:
    """Return the least tolerable capacity, bytes, and the way to run that it is of.

    More data are as these on a smaller card, where another way may do better than the advised one:
    a larger card is then not told to hold less. Only where these data run well themselves.
    """
    least, way = _least_here(runs, capacity_bytes, advised, TOLERABLE), advised.options
    if least is None or advised.slowdown is None or advised.slowdown > TOLERABLE:
        return least, way
    for options in settable:
        less = whole_blocks(least * _WORTH_TELLING)
        # One replay tells whether a search is worth its time.
        slowdown = runs.variant(less, options).slowdown if less < least else None
        if slowdown is not None and slowdown <= TOLERABLE:
            found = least_capacity(runs, TOLERABLE, options)
            if found is not None and found < least:
                least, way = found, options
    return least, way


def _ipc_bytes(around: Around, device_bytes: int) -> int:
    return ipc_pool_bytes("auto", device_bytes) if around.request.workers > 1 else 0


def _ways(
    around: Around, facts: AdviceFacts, variants: tuple[Variant, ...]
) -> tuple[AnnouncedWay, ...]:
    """Return the ways to run with uses announced; the kernel driver is as it is by default."""
    trial, runs = around.announced, around.runs
    if trial is None or not trial.able_announced:
        return ()
    modes = dict.fromkeys(variant.options.prefetch for variant in variants)
    return tried_ways(trial, facts, modes, runs.beside_seconds, runs.fitting_seconds)


def _fullest(runs: Runs) -> StageResult:
    return max(runs.fitting.stages, key=lambda stage: stage.peak_live_bytes)


def _moves(variant: Variant) -> bool:
    """Return whether a card is too small for the workload to run as if it fitted."""
    return variant.slowdown is None or variant.result.evicted_bytes > 0
