# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The discard paper's programs under a budget: committed figures are computed, bytes are theirs."""

from __future__ import annotations

import pytest

from .residency_scripts import committed, script

discards = script("residency/discards")
KEPT = {(row["program"], row["factor"]): row for row in committed("residency_discards")["rows"]}


@pytest.mark.parametrize(("program", "factor"), [("fir", 2), ("fir", 4), ("hash join", 3)])
def test_figures_computed_again_are_the_committed_ones(program: str, factor: int) -> None:
    assert discards.compared(program, factor) == KEPT[program, factor]


def test_committed_verdicts_are_those_of_the_rows() -> None:
    kept = committed("residency_discards")
    assert kept["verdicts"] == discards.verdicts(kept["rows"])


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_fir_sends_no_more_to_the_host_than_the_paper_says(factor: int) -> None:
    row = KEPT["fir", factor]
    assert row["to_host_against_fetching"] <= row["published_to_host"]
    assert row["against_fault_driven"] <= row["published"]


def test_without_dropping_as_much_leaves_as_in_the_paper() -> None:
    # What the paper's program moves without discarding: 6.2, 8.3 and 9.3 GB.
    for factor, gigabytes in ((2, 6.2), (3, 8.3), (4, 9.3)):
        moved = KEPT["fir", factor]["ways"]["fetching"]["to_host_gb"]
        assert moved == pytest.approx(gigabytes, rel=0.05)


def test_verdict_of_a_slower_budget_is_missed() -> None:
    slow = [{**row, "against_fault_driven": 0.99} for row in KEPT.values()]
    missed = [name for name, one in discards.verdicts(slow).items() if not one["reached"]]
    assert sum("against fault-driven" in name for name in missed) == len(slow)
