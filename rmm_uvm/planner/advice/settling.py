# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Advice against the defaults, with the pool itself: what would be slower is not advised."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from rmm_uvm.planner.advice.advising import (
    WORTH_SETTING,
    AdviceFacts,
    default_sizes,
    pool_sizes,
    spread,
)
from rmm_uvm.planner.outcome import Variant
from rmm_uvm.planner.request import Options

__all__ = ["Settled", "Trial", "Tried", "cost", "tried"]


class Trial(Protocol):
    """Runs a workload through a real pool: `PoolTrial` of `rmm_uvm.planner.trials`, or a test's."""

    @property
    def able(self) -> bool:
        """Whether the workload is short enough."""

    def __call__(
        self,
        capacity_bytes: int,
        host_bytes: int | None,
        sizes: tuple[int, int],
        options: Options,
    ) -> float | None:
        """Return the modelled seconds of driver work; None for running out of memory."""


class Tried(NamedTuple):
    """One way to run, tried with the pool itself.

    Attributes
    ----------
    variant : Variant
        The way.
    sized : bool
        With the sizes of `pool_sizes`, and not with those of `default_sizes`.
    seconds : float or None
        Modelled time of driver work; None for running out of memory.
    """

    variant: Variant
    sized: bool
    seconds: float | None


class Settled(NamedTuple):
    """The settings that are advised after all.

    Attributes
    ----------
    variant : Variant
        The way to run.
    sized : bool
        Whether sizes of the pool are advised too.
    told : tuple of Tried
        All that was tried, the defaults first; empty if nothing was.
    """

    variant: Variant
    sized: bool
    told: tuple[Tried, ...] = ()

    @property
    def out_of_memory(self) -> bool:
        """Whether it was tried, and ran out of memory in every way."""
        return bool(self.told) and all(one.seconds is None for one in self.told)


def cost(tried: Tried) -> float:
    """Return the seconds of a way to run, for comparisons: no end of them without memory for it."""
    return math.inf if tried.seconds is None else tried.seconds


def tried(trial: Trial | None, facts: AdviceFacts, defaults: Variant, advised: Variant) -> Settled:
    """Return what stays advised: the fastest of all; the defaults if none gains three hundredths.

    Parameters
    ----------
    trial : Trial or None
        What tries; None for advice that rests on replays alone.
    facts : AdviceFacts
        Of workload and card.
    defaults, advised : Variant
        What runs where nothing is set, and what replays speak for.
    """
    if trial is None or not trial.able:
        # Sizes that were not tried rest on the peak alone.
        return Settled(advised, sized=not spread(facts.peak_bytes, facts.working_set_bytes))
    as_default, as_advised = default_sizes(facts), pool_sizes(facts)

    def run(variant: Variant, *, sized: bool) -> Tried:
        sizes = as_advised if sized else as_default
        found = trial(facts.capacity_bytes, facts.host_bytes, sizes, variant.options)
        return Tried(variant, sized, found)

    usual = run(defaults, sized=False)
    # In one slab that holds everything nothing hangs on where the pool puts things. Elsewhere it
    # does, and a program run again is a little faster or slower.
    in_one_slab = as_advised[0] >= facts.peak_bytes
    if in_one_slab and advised is defaults:
        sized = run(defaults, sized=True)
        works = sized.seconds is not None and cost(sized) <= cost(usual)
        return Settled(defaults, works, (usual, sized))
    ways = [(advised, True), (advised, False), (defaults, True)]
    if advised is defaults:
        ways = ways[:1]
    told = [run(variant, sized=sized) for variant, sized in ways]
    least = min(told, key=cost)
    if cost(least) < cost(usual) * WORTH_SETTING:
        return Settled(least.variant, least.sized, (usual, *told))
    return Settled(defaults, sized=False, told=(usual, *told))
