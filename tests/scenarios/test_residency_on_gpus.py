# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What was measured of budgets on a GPU: the committed figures, and what they have to reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def kept(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())  # type: ignore[no-any-return]


LOOPS = kept("residency")


def row(program: str, factor: float, mode: str) -> dict[str, Any]:
    [found] = [
        one
        for one in LOOPS["rows"]
        if (one["program"], one["factor"], one["mode"]) == (program, factor, mode)
    ]
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("program", ["etl", "training"])
def test_data_that_fit_cost_nothing_with_a_budget(program: str) -> None:
    resident, fitting = row(program, 0.0, "resident"), row(program, 0.8, "repeat")
    assert fitting["seconds"] <= 1.01 * resident["seconds"]
    assert fitting["to_host_bytes"] == fitting["to_device_bytes"] == 0


@pytest.mark.parametrize("program", ["etl", "training"])
@pytest.mark.parametrize("factor", [1.25, 1.5, 2.0])
def test_default_takes_at_most_half_of_what_faults_take(program: str, factor: float) -> None:
    ours, theirs = row(program, factor, "repeat"), row(program, factor, "fault-driven")
    assert ours["seconds"] <= 0.5 * theirs["seconds"]
    assert ours["to_host_bytes"] < theirs["to_host_bytes"]
    assert ours["seconds"] <= row(program, factor, "lru")["seconds"]
    assert ours["residency"]["peak_resident_bytes"] <= ours["residency"]["budget_bytes"]
    assert ours["residency"]["failed_calls"] == 0


def test_dead_data_are_a_fraction_of_what_faults_move_where_little_is_lacking() -> None:
    for program in ("etl", "training"):
        ours, theirs = row(program, 1.25, "repeat"), row(program, 1.25, "fault-driven")
        assert ours["to_host_bytes"] <= 0.35 * theirs["to_host_bytes"]


def test_mortgage_has_the_same_features_however_little_memory_there_is() -> None:
    result = kept("residency_mortgage")
    assert {one["digest"] for one in result["rows"]} == {result["rows"][0]["digest"]}
    modes = {(one["factor"], one["mode"]): one for one in result["rows"]}
    for factor in (1.25, 1.5, 2.0):
        ours, theirs = modes[factor, "repeat"], modes[factor, "fault-driven"]
        assert ours["seconds"] < theirs["seconds"]
        assert ours["to_host_bytes"] < 0.5 * theirs["to_host_bytes"]


def test_discards_in_the_order_that_is_relied_on_lost_nothing_and_others_did() -> None:
    result = kept("deferred_discards")
    assert all(result["verdicts"].values())
    lost = result["lost_rounds"]
    assert all(lost[name] == 0 for name in result["verdicts"])
    assert lost["discard behind a busy stream, device synchronized after it"] > 0


def test_document_says_what_was_measured() -> None:
    document = (RESULTS.parents[1] / "docs" / "residency.md").read_text()
    rows = LOOPS["rows"] + kept("residency_mortgage")["rows"]
    at = {(one["program"], one["factor"], one["mode"]): one for one in rows}
    for program in ("etl", "training", "mortgage"):
        for factor in (1.25, 1.5, 2.0):
            ours, theirs = at[program, factor, "repeat"], at[program, factor, "fault-driven"]
            resident_seconds = at[program, 0.0, "resident"]["seconds"]
            figures = (
                ours["seconds"] / theirs["seconds"],
                ours["to_host_bytes"] / theirs["to_host_bytes"],
                ours["seconds"] / resident_seconds,
                ours["link_seconds"] / resident_seconds,
            )
            line = " | ".join(f"{figure:.2f}" for figure in figures)
            assert f"| {program} | {factor:g} | {line} |" in document


def test_launches_beside_small_pieces_hardly_wait_and_beside_large_calls_do() -> None:
    rows = kept("residency_launches")["rows"]
    document = (RESULTS.parents[1] / "docs" / "residency.md").read_text()
    assert rows["pieces of 4 MiB"]["ratio"] < 1.2 < rows["calls of 64 MiB"]["ratio"]
    for name in ("pieces of 2 MiB", "pieces of 4 MiB"):
        assert f"{rows[name]['ratio']:.2f}" in document
    assert all(row["to_host_bytes_per_second"] > 1e9 for row in rows.values())
