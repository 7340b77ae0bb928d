# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Advice against the defaults, with the pool itself: what would be slower is not advised."""

from __future__ import annotations

from typing import Protocol

from rmm_uvm.planner.advice import WORTH_SETTING, Facts, default_sizes, pool_sizes
from rmm_uvm.planner.outcome import Variant
from rmm_uvm.planner.request import Options

__all__ = ["Trial", "tried"]


class Trial(Protocol):
    """Runs a workload through a real pool: `rmm_uvm.planner.pool_trial.PoolTrial`, or a test's."""

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


def tried(
    trial: Trial | None, facts: Facts, defaults: Variant, advised: Variant
) -> tuple[Variant, bool]:
    """Return the variant that stays advised, and whether sizes of the pool do.

    Parameters
    ----------
    trial : Trial or None
        What tries; None for advice that rests on replays alone.
    facts : Facts
        Of workload and card.
    defaults, advised : Variant
        What runs where nothing is set, and what replays speak for.

    Returns
    -------
    tuple
        The fastest of all combinations; the defaults where none is faster by a hundredth.
    """
    if trial is None or not trial.able:
        return advised, True
    as_default, as_advised = default_sizes(facts), pool_sizes(facts)

    def seconds(variant: Variant, *, sized: bool) -> float:
        sizes = as_advised if sized else as_default
        found = trial(facts.capacity_bytes, facts.host_bytes, sizes, variant.options)
        return float("inf") if found is None else found

    usual = seconds(defaults, sized=False)
    # In one slab that holds everything nothing hangs on where the pool puts things. Elsewhere it
    # does, and a program run again is a little faster or slower.
    in_one_slab = as_advised[0] >= facts.peak_bytes
    if in_one_slab and advised is defaults:
        return defaults, seconds(defaults, sized=True) <= usual
    ways = [(advised, True), (advised, False), (defaults, True)]
    if advised is defaults:
        ways = ways[:1]
    told = [(seconds(variant, sized=sized), variant, sized) for variant, sized in ways]
    least, variant, sized = min(told, key=lambda one: one[0])
    return (variant, sized) if least < usual * WORTH_SETTING else (defaults, False)
