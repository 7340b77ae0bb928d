# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A budget that acts like a smaller card is slower and faster where a smaller card is."""

from __future__ import annotations

import pytest

from .residency_scripts import committed, script

emulation = script("residency_emulation")
KEPT = committed("residency_emulation")
COUNTING = [row for row in KEPT["rows"] if not row["too_large"]]


@pytest.mark.parametrize(("program", "factor"), [("fir", 2.0), ("training", 1.1), ("etl", 3.0)])
def test_figures_computed_again_are_the_committed_ones(program: str, factor: float) -> None:
    kept = next(r for r in KEPT["rows"] if (r["program"], r["factor"]) == (program, factor))
    assert emulation.compared(program, factor) == kept


def test_factors_of_every_program_are_in_the_order_of_the_kernel_driver() -> None:
    assert emulation.out_of_order(KEPT["rows"], "program") == []
    assert len(COUNTING) >= 25
    assert max(row["ratio"] for row in COUNTING) < 2


def test_programs_in_another_order_are_the_committed_ones() -> None:
    assert emulation.out_of_order(KEPT["rows"], "factor") == KEPT["out_of_order"]["factor"]


def test_turned_order_is_found() -> None:
    turned = [{**row, "emulated_seconds": -row["emulated_seconds"]} for row in COUNTING]
    assert emulation.out_of_order(turned, "program")


def test_rows_with_an_allocation_above_the_budget_count_for_nothing() -> None:
    wrong = [row for row in KEPT["rows"] if row["too_large"]]
    assert {row["program"] for row in wrong} == {"etl", "hash join"}
    # They move far too little: what does not fit into a budget is not held back on a large card.
    assert all(row["ratio"] < 0.7 for row in wrong)
