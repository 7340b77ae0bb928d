# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The ways to run that a plan compares, as settings of a pool, with a budget as a smaller card."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rmm_uvm.planner.advice.announced import advised_way
from rmm_uvm.planner.outcome import AnnouncedWay, Card
from rmm_uvm.planner.trials.pool_trial import PoolSettings, pool_seconds
from rmm_uvm.planner.workload.events import Workload
from rmm_uvm.residency import Budget
from rmm_uvm.simulator import DriverSettings
from rmm_uvm.simulator.card import simulated_card

ROOM_BYTES = 24 << 30
DEFAULT, FAULTS = "default", "faults"


@dataclass(frozen=True)
class Way:
    """One way to run on one card.

    Attributes
    ----------
    name : str
        Alike on all cards.
    prefetch : str
        When allocations are prefetched.
    budget : Budget or None
        Ours, or what stands for the kernel driver of a smaller card.
    initial_bytes, maximum_bytes : int
        Sizes of the pool.
    sized : bool
        The maximum is an advised one, and to be set.
    emulated : bool
        The budget stands for the kernel driver.
    predicted_seconds : float or None
        What the plan says of it; None if the plan says nothing.
    """

    name: str
    prefetch: str
    budget: Budget | None
    initial_bytes: int
    maximum_bytes: int
    sized: bool
    emulated: bool
    predicted_seconds: float | None

    def settings(self, *, background: bool) -> dict[str, Any]:
        """Return the arguments of `rmm_uvm.managed_pool`.

        `background`: whether a thread keeps a budget of ours too.
        """
        settings: dict[str, Any] = {
            "initial_pool_size": self.initial_bytes,
            "prefetch": self.prefetch,
        }
        if self.sized:
            settings["maximum_pool_size"] = self.maximum_bytes
        if self.budget is not None:
            mine = background and not self.emulated
            settings["device_budget"] = dataclasses.replace(self.budget, background=mine)
        return settings


def driver_of(card_bytes: int, *, fetch: bool) -> Budget:
    """Return the budget that does what the kernel driver does on a smaller card.

    First in, first out, and dead data copied; what is allocated and announced is brought in as
    without a budget, or left to faults.
    """
    return Budget(
        card_bytes, policy="fifo", discard_dead=False, fetch=fetch, ahead=False, background=False
    )


def ways_of(card: Card) -> dict[str, Way]:
    """Return all ways of a planned card by name, the defaults first."""
    small = card.oversubscription_factor > 1
    ways = [_way(one, card, small=small) for one in card.ways]
    if small:
        usual = ways[0]
        budget = driver_of(card.capacity_bytes, fetch=False)
        ways.append(dataclasses.replace(usual, name=FAULTS, budget=budget, predicted_seconds=None))
    return {way.name: way for way in ways}


def advised_name(card: Card) -> str:
    """Return the name of the way that the plan's settings are.

    Raises
    ------
    ValueError
        If the settings are not those of the way.
    """
    advised = advised_way(card.ways)
    keywords = card.settings.keywords()
    expected: dict[str, Any] = {"prefetch": advised.prefetch}
    if advised.sized:
        expected["initial_pool_size"] = advised.initial_bytes
        expected["maximum_pool_size"] = advised.maximum_bytes
    if advised.eviction is not None:
        expected |= {"device_budget": advised.budget_bytes, "eviction": advised.eviction}
    if keywords != expected:
        raise ValueError(f"the plan sets {keywords}, its fastest way is {expected}")
    return _name(advised)


def predicted_as_run(
    workload: Workload, machine: Any, way: Way, beside_seconds: float
) -> float | None:
    """Return what the model says of a run as it is made: with room, and a budget for a card."""
    device = simulated_card(machine, DriverSettings(), ROOM_BYTES, None, kernels_take_time=False)
    budget = way.settings(background=False).get("device_budget")
    settings = PoolSettings(
        way.initial_bytes,
        way.maximum_bytes,
        way.prefetch,  # type: ignore[arg-type]
        budget,
        announced=True,
    )
    seconds = pool_seconds(workload, device, settings)
    return None if seconds is None else beside_seconds + seconds


def beside_seconds(ways: Sequence[AnnouncedWay]) -> float:
    """Return the time of a program beside the kernel driver's work, as the plan has it."""
    found = next(way for way in ways if way.predicted_seconds is not None)
    return (found.predicted_seconds or 0.0) - (found.driver_seconds or 0.0)


def plain(way: Way) -> Mapping[str, Any]:
    """Return a way as values for JSON."""
    return {
        "prefetch": way.prefetch,
        "initial_pool_bytes": way.initial_bytes,
        "emulated": way.emulated,
        "budget_bytes": None if way.budget is None else way.budget.budget_bytes,
        "policy": None if way.budget is None else way.budget.policy,
    }


def _name(one: AnnouncedWay) -> str:
    sized = ", sized" if one.sized else ""
    if one.eviction is not None:
        return f"{one.eviction}{sized}"
    return f"{DEFAULT if one.prefetch == 'auto' else one.prefetch}{sized}"


def _way(one: AnnouncedWay, card: Card, *, small: bool) -> Way:
    budget = None
    if one.eviction is not None:
        budget = Budget(one.budget_bytes or 0, policy=one.eviction)
    elif small:
        budget = driver_of(card.capacity_bytes, fetch=True)
    return Way(
        name=_name(one),
        prefetch=one.prefetch,
        budget=budget,
        initial_bytes=one.initial_bytes,
        maximum_bytes=one.maximum_bytes,
        sized=one.sized,
        emulated=small and one.eviction is None,
        predicted_seconds=one.predicted_seconds,
    )
