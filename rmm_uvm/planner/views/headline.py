# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sums up all cards of a plan, in sentences that agree with its table."""

from __future__ import annotations

from collections.abc import Sequence

from rmm_uvm.planner.advice.answers import no_card_is_enough
from rmm_uvm.planner.outcome import Card, Helps, PlanFigures
from rmm_uvm.support.units import format_bytes

__all__ = ["enough_text", "helps_text", "ran_out_text"]


def helps_text(plan: PlanFigures) -> str:
    """Return which step between the cards helps most, where memory ends, and how much is enough."""
    said = [_step(plan), ran_out_text(plan), enough_text(plan)]
    return " ".join(one for one in said if one)


def enough_text(plan: PlanFigures) -> str:
    """Return the least capacities for 1.05 and for 1.25 times the time; why there are none."""
    if plan.enough_bytes is None or plan.tolerable_bytes is None:
        said = no_card_is_enough(plan.host_bytes)
        return f"{said[0].upper()}{said[1:]}."
    # What is advised on a card may need less: each card tells that.
    other = any(card.advised is not card.defaults for card in plan.cards)
    ways = ["in a replay"] if _failing_though_enough(plan) else []
    ways += ["with the default settings"] if other else []
    said = " ".join(
        [
            *ways,
            f"{format_bytes(plan.enough_bytes)} are enough to run as if it fitted, and",
            f"{format_bytes(plan.tolerable_bytes)} for 1.25 times the time",
        ]
    )
    return f"{said[0].upper()}{said[1:]}{_pool_needs(plan)}."


def _failing_though_enough(plan: PlanFigures) -> list[Card]:
    """Return cards that are large enough in a replay, and on which RMM's pool ran out of memory."""
    enough_bytes = plan.tolerable_bytes or 0
    return [
        card
        for card in plan.cards
        if card.pool_out_of_memory and card.capacity_bytes >= enough_bytes
    ]


def _pool_needs(plan: PlanFigures) -> str:
    """Return what RMM's pool needs, where that is more than a replay says."""
    failing = _failing_though_enough(plan)
    if not failing:
        return ""
    largest_bytes = max(card.device_bytes for card in failing)
    runs = [card for card in plan.cards if card.device_bytes > largest_bytes]
    needs = f"it runs on {format_bytes(runs[0].device_bytes)}" if runs else "a larger card"
    if plan.host_bytes is not None:
        # Its maximum is the larger of the two, so that less host memory than that changes nothing.
        host = f"host memory beyond the card's (a process has {format_bytes(plan.host_bytes)})"
        needs += f", or with {host}" if runs else f", or {host}"
    return f"; RMM's pool breaks into pieces and needs more: {needs}"


def ran_out_text(plan: PlanFigures) -> str:
    """Return on which cards it runs out of memory; empty if on none."""
    always = [card for card in plan.cards if all(one.slowdown is None for one in card.variants)]
    defaults = [
        card for card in plan.cards if card.defaults.slowdown is None and card not in always
    ]
    said = []
    if always:
        ways = " in every way that was replayed" if len(always[0].variants) > 1 else ""
        on = "every card" if len(always) == len(plan.cards) > 1 else _named(always)
        said.append(f"It runs out of memory on {on}{ways}.")
    in_pool = [card for card in plan.cards if card.pool_out_of_memory and card not in always]
    if in_pool:
        said.append(
            f"Tried with RMM's pool, it runs out of memory on {_named(in_pool)}: the table, and "
            "what is enough, are of replays at the recorded addresses."
        )
        defaults = [card for card in defaults if card not in in_pool]
    if defaults:
        said.append(f"With the default settings it runs out of memory on {_named(defaults)}.")
    return " ".join(said)


def _step(plan: PlanFigures) -> str:
    if len(plan.cards) == 1:
        return ""
    if plan.helps is not None:
        return _helping(plan.helps)
    ran = [card for card in plan.cards if card.defaults.slowdown is not None]
    if not ran:
        return "" if plan.enough_bytes is not None else "No larger card helps."
    # Nothing that is larger saves time, and where it is the other way round the table says so.
    return f"No larger card than {format_bytes(ran[0].device_bytes)} makes it faster."


def _helping(helps: Helps) -> str:
    before = "from running out of memory"
    if helps.from_slowdown is not None:
        before = f"from {helps.from_slowdown:.2f}"
    return (
        f"The step that helps most: {format_bytes(helps.from_bytes)} to "
        f"{format_bytes(helps.to_bytes)}, {before} to {helps.to_slowdown or 1.0:.2f} times the "
        "time with room for everything."
    )


def _named(cards: Sequence[Card]) -> str:
    names = [format_bytes(card.device_bytes) for card in cards]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
