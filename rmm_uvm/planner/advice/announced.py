# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ways to run a program that announces its uses: with the kernel driver's evictions, or a budget.

Each is tried through RMM's pool on the simulated card, with every use announced as by
`rmm_uvm.touch`. Does not cover replays, which know of no announcement.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from rmm_uvm.planner.advice.advising import (
    INITIAL_FACTOR,
    WORTH_SETTING,
    AdviceFacts,
    default_sizes,
    pool_sizes,
    room_bytes,
)
from rmm_uvm.planner.advice.reasons import compared
from rmm_uvm.planner.outcome import AnnouncedWay, Settings
from rmm_uvm.planner.request import DEFAULTS
from rmm_uvm.report.words import clock_text
from rmm_uvm.residency.policies import DEFAULT_POLICY, POLICIES
from rmm_uvm.support.settings import LEAST_BUDGET_BYTES, PrefetchMode
from rmm_uvm.support.units import format_bytes, whole_blocks

__all__ = ["AnnouncedTrial", "Moved", "advised_way", "tried_ways", "with_way"]

_THRESHOLD = "uvm_perf_prefetch_threshold"


class Moved(NamedTuple):
    """Modelled seconds that the program waits for, and bytes that were copied each way.

    Driver work that is done beside kernels is not waited for.
    """

    seconds: float
    to_device_bytes: int
    to_host_bytes: int


class AnnouncedTrial(Protocol):
    """Runs a workload that announces its uses: `rmm_uvm.planner.trials.pool_trial.PoolTrial`."""

    @property
    def able(self) -> bool:
        """Whether the workload is short enough to try all ways."""

    @property
    def able_announced(self) -> bool:
        """Whether it is short enough to try the default modes and policy."""

    def announced(
        self,
        capacity_bytes: int,
        host_bytes: int | None,
        way: AnnouncedWay,
        compute_seconds: float,
        *,
        announces: bool = True,
    ) -> Moved | None:
        """Return what it takes, with uses announced or without; None for running out of memory.

        Kernels compute for `compute_seconds` in all, and what a budget moves goes on beside them.
        """


def tried_ways(
    trial: AnnouncedTrial,
    facts: AdviceFacts,
    modes: Iterable[PrefetchMode],
    beside_seconds: float,
    fitting_seconds: float,
) -> tuple[AnnouncedWay, ...]:
    """Return all ways to run on a card, tried: the defaults first, and then others in two sizes.

    Parameters
    ----------
    trial : AnnouncedTrial
        What tries.
    facts : AdviceFacts
        Of workload and card.
    modes : iterable of str
        Prefetch modes without a budget; the default is tried in any case.
    beside_seconds : float
        Time of the workload beside the kernel driver's work.
    fitting_seconds : float
        Its time with room for everything.

    Notes
    -----
    Budgets are tried where the card holds less than the peak, and is large enough for one. Of long
    workloads only the default mode and policy are tried. The way to advise is tried once more with
    nothing announced, where it moves data.
    """

    def run(way: AnnouncedWay) -> AnnouncedWay:
        moved = trial.announced(facts.capacity_bytes, facts.host_bytes, way, beside_seconds)
        if moved is None:
            return way
        predicted_seconds = beside_seconds + moved.seconds
        return dataclasses.replace(
            way,
            driver_seconds=moved.seconds,
            predicted_seconds=predicted_seconds,
            slowdown=predicted_seconds / fitting_seconds if fitting_seconds > 0 else 1.0,
            to_device_bytes=moved.to_device_bytes,
            to_host_bytes=moved.to_host_bytes,
        )

    def told(tried: Sequence[AnnouncedWay]) -> tuple[AnnouncedWay, ...]:
        """Return the ways, the advised one with what it takes where nothing is announced."""
        advised = advised_way(tried)
        if not trial.able or not advised.driver_seconds:
            return tuple(tried)
        without = trial.announced(
            facts.capacity_bytes, facts.host_bytes, advised, beside_seconds, announces=False
        )
        seconds = None if without is None else without.seconds
        shown = dataclasses.replace(advised, unannounced_seconds=seconds)
        return tuple(shown if one is advised else one for one in tried)

    initial_bytes, maximum_bytes = default_sizes(facts)
    usual = AnnouncedWay(DEFAULTS.prefetch, None, None, initial_bytes, maximum_bytes, sized=False)
    others = [mode for mode in modes if trial.able and mode != DEFAULTS.prefetch]
    ways = [run(dataclasses.replace(usual, prefetch=mode)) for mode in (DEFAULTS.prefetch, *others)]
    initial_bytes, maximum_bytes = pool_sizes(facts)
    ways.append(run(_fastest(ways).in_sizes(initial_bytes, maximum_bytes)))
    budget_bytes = whole_blocks(room_bytes(facts))
    if facts.peak_bytes <= facts.capacity_bytes or budget_bytes < LEAST_BUDGET_BYTES:
        return told(ways)
    # The default policy first: of ways that take the same time the first is advised.
    policies = (
        DEFAULT_POLICY,
        *(name for name in POLICIES if trial.able and name != DEFAULT_POLICY),
    )
    kept = [
        run(
            dataclasses.replace(
                usual, budget_bytes=budget_bytes, eviction=policy, initial_bytes=budget_bytes
            )
        )
        for policy in policies
    ]
    # With a budget the device need not hold the first slab: one for everything breaks up least.
    whole_bytes = whole_blocks(facts.peak_bytes * INITIAL_FACTOR)
    kept.append(run(_fastest(kept).in_sizes(whole_bytes, max(maximum_bytes, whole_bytes))))
    return told((*ways, *kept))


def advised_way(ways: Sequence[AnnouncedWay]) -> AnnouncedWay:
    """Return the fastest way, or the defaults if it gains less than three hundredths over them."""
    usual, fastest = ways[0], _fastest(ways)
    return fastest if _seconds(fastest) < _seconds(usual) * WORTH_SETTING else usual


def with_way(settings: Settings, ways: Sequence[AnnouncedWay]) -> Settings:
    """Return the settings of a card as they are for a program that announces its uses."""
    way = advised_way(ways)
    reasons = dict(settings.reasons)
    for name in ("pool sizes", "initial_pool_size", "maximum_pool_size", "prefetch", _THRESHOLD):
        reasons.pop(name, None)
    usual = ways[0]
    gain = f"uses announced, {compared(way.driver_seconds, usual.driver_seconds)}"
    told: dict[str, str] = {}
    if way.sized:
        told["initial_pool_size"] = gain
        told["maximum_pool_size"] = "room for the pool to grow; a leak ends in MemoryError"
    else:
        told["pool sizes"] = "uses announced, others gain less than three hundredths"
    told["prefetch"] = gain
    if way is usual:
        told["prefetch"] = "the default: uses announced, no other is faster by three hundredths"
    if way.unannounced_seconds is not None:
        unannounced = clock_text(way.unannounced_seconds)
        told["uses"] = f"{_time(way)} of driver work then, {unannounced} where nobody announces any"
        if way.prefetch == "never" and _costs_more(way.unannounced_seconds, way.driver_seconds):
            told["prefetch"] += "; what is not announced comes by page faults then, see uses"
    if way.eviction is not None:
        told["device_budget"] = "the card, less what page tables and other memory may take"
        told["eviction"] = f"{gain}; {_others(ways, way)}"
    return dataclasses.replace(
        settings,
        initial_pool_bytes=way.initial_bytes if way.sized else None,
        maximum_pool_bytes=way.maximum_bytes if way.sized else None,
        prefetch=way.prefetch,
        driver_prefetch_threshold=None,  # others were not tried with uses announced
        eviction=way.eviction,
        device_budget_bytes=way.budget_bytes,
        reasons=(*told.items(), *reasons.items()),
    )


def _costs_more(seconds: float, than_seconds: float | None) -> bool:
    return than_seconds is None or seconds > than_seconds / WORTH_SETTING


def _others(ways: Sequence[AnnouncedWay], chosen: AnnouncedWay) -> str:
    """Return the times of the other policies, alike in everything else."""
    budget = format_bytes(chosen.budget_bytes or 0)
    times = [f"{one.eviction} {_time(one)}" for one in ways if one.eviction and not one.sized]
    return f"in a first slab of {budget}: {', '.join(times)}"


def _fastest(ways: Sequence[AnnouncedWay]) -> AnnouncedWay:
    return min(ways, key=_seconds)


def _seconds(way: AnnouncedWay) -> float:
    return math.inf if way.predicted_seconds is None else way.predicted_seconds


def _time(way: AnnouncedWay) -> str:
    return "out of memory" if way.driver_seconds is None else clock_text(way.driver_seconds)
