# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated card whose thread goes on as the link has time: what comes late, and what is learnt.

Kernels write 4 MiB each, in the same order every round: two thirds of them fit on the card.
"""

from __future__ import annotations

import dataclasses

import pytest

from rmm_uvm.planner.trials.shadow_device import ShadowDevice
from rmm_uvm.planner.trials.shadow_statistics import ShadowStatistics
from rmm_uvm.residency import Budget
from rmm_uvm.simulator import load_machine

from ...support.shadow_rounds import rounds_of

MIB = 1 << 20
BUDGET = Budget(64 * MIB, ahead=True)
BEGINS_BYTES = 8 * MIB  # an eighth, and a piece


def last_round(
    kernel_seconds: float, budget: Budget | None = BUDGET, *, paced: bool = True
) -> tuple[ShadowStatistics, int]:
    """Return what the last round took, and how far is looked ahead then."""
    program = rounds_of(kernel_seconds, tensors=24, rounds=12)
    card = ShadowDevice(72 * MIB, load_machine("h200-pcie5"), budget, paced=paced)
    replay = program.replayer(card)
    replay(0, program.marks[-2])
    before = card.statistics()
    replay(program.marks[-2], None)
    return card.statistics().since(before), card.ahead_bytes


def test_kernels_that_are_long_enough_find_all_of_it_and_nothing_is_learnt() -> None:
    took, ahead_bytes = last_round(0.02)
    assert took.hit_rate == 1.0
    assert took.seconds == pytest.approx(took.compute_seconds, rel=1e-6)
    assert ahead_bytes == BEGINS_BYTES


def test_kernels_that_are_too_short_find_some_away_and_more_is_looked_ahead() -> None:
    took, ahead_bytes = last_round(1e-4)
    assert took.hit_rate < 1.0
    assert took.seconds > 1.1 * took.compute_seconds
    assert ahead_bytes == BUDGET.budget_bytes // 2


def test_kernels_without_time_have_nothing_fetched_ahead_unless_all_is_done_at_once() -> None:
    paced, _ = last_round(0.0)
    at_once, _ = last_round(0.0, paced=False)
    assert paced.hit_rate < 1.0
    assert at_once.hit_rate == 1.0


def test_number_that_is_given_stays_where_another_one_is_learnt() -> None:
    given = dataclasses.replace(BUDGET, ahead_bytes=BEGINS_BYTES)
    _, ahead_bytes = last_round(1e-4, given)
    assert ahead_bytes == BEGINS_BYTES


def test_paced_runs_are_the_same_each_time() -> None:
    assert last_round(1e-3) == last_round(1e-3)


def test_card_without_a_budget_looks_nowhere_ahead() -> None:
    _, ahead_bytes = last_round(1e-3, None)
    assert ahead_bytes == 0
