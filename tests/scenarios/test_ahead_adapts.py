# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The committed comparison of look-aheads is what the code does; where a fixed one is bad."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from .residency_scripts import committed, script

ahead = script("residency/ahead_adapts")
KEPT = committed("ahead_adapts_simulated")
DECISION = Path(__file__).parents[2] / "docs" / "understand" / "decisions" / "0014-look-ahead.md"
MODELS = script("training/models").NAMES


def kept_row(kind: str, program: str, factor: float, way: str) -> dict[str, Any]:
    """Return a committed row."""
    case = (kind, program, factor, way)
    found: dict[str, Any] = next(
        row
        for row in KEPT["rows"]
        if (row["kind"], row["program"], row["factor"], row["way"]) == case
    )
    return found


def test_table_has_every_case_once() -> None:
    cases = [(row["kind"], row["program"], row["factor"], row["way"]) for row in KEPT["rows"]]
    kinds = (
        (ahead.PACED, MODELS, ahead.WAYS),
        (ahead.AT_ONCE, MODELS, (ahead.EIGHTH, ahead.ADAPTS)),
        (ahead.LOOP, ahead.PROGRAMS, ahead.WAYS),
    )
    assert sorted(cases) == sorted(
        (kind, name, factor, way)
        for kind, names, ways in kinds
        for name in names
        for factor in ahead.FACTORS
        for way in ways
    )


def test_verdicts_and_means_are_those_of_the_rows_and_none_is_missed() -> None:
    assert KEPT["verdicts"] == ahead.verdicts(KEPT["rows"])
    assert KEPT["summary"] == ahead.summary(KEPT["rows"])
    assert all(KEPT["verdicts"].values())


@pytest.mark.parametrize("slow", [ahead.ADAPTS, ahead.EIGHTH])
def test_verdicts_of_rows_that_are_slow_are_missed(slow: str) -> None:
    rows = [
        {**row, "seconds": row["seconds"] * (2 if row["way"] == slow else 1)}
        for row in KEPT["rows"]
    ]
    held = ahead.verdicts(rows)["never more than 2 % slower than an eighth"]
    assert held == (slow == ahead.EIGHTH)


def test_verdict_of_a_fixed_one_that_changed_is_missed() -> None:
    rows = [dict(row) for row in KEPT["rows"]]
    next(row for row in rows if row["way"] == ahead.EIGHTH)["ahead_bytes"] += 1
    assert not ahead.verdicts(rows)["a fixed one never changes"]


def test_half_is_bad_for_the_recorded_etl_and_adapting_is_not() -> None:
    half, adapts = (
        kept_row(ahead.LOOP, "mortgage", 3.0, way) for way in (ahead.HALF, ahead.ADAPTS)
    )
    assert half["seconds"] > 1.15 * adapts["seconds"]
    assert adapts["ahead_bytes"] < half["ahead_bytes"] / 2


def test_decision_has_the_figures_of_the_result() -> None:
    text = " ".join(DECISION.read_text().split())
    lines = re.findall(
        r"\| ([a-z, ]+) \| (1/32|1/2|adapts) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|", text
    )
    assert len(lines) == 7
    for kind, way, mean, least, most in lines:
        found = KEPT["summary"][f"{kind}: {way}"]
        program, factor = found["most_at"]
        assert (mean, least) == (f"{found['mean']:.3f}", f"{found['least']:.3f}")
        assert most == f"{found['most']:.3f}, {program} at {factor:g}"


@pytest.mark.parametrize("model", ahead.TRANSFORMERS)
def test_eighth_is_short_for_transformers_and_adapting_looks_further(model: str) -> None:
    eighth, adapts = (
        kept_row(ahead.PACED, model, 1.5, way) for way in (ahead.EIGHTH, ahead.ADAPTS)
    )
    assert adapts["seconds"] < 0.98 * eighth["seconds"]
    assert adapts["ahead_bytes"] > 2 * eighth["ahead_bytes"]


@pytest.mark.parametrize("way", [ahead.EIGHTH, ahead.ADAPTS])
def test_loop_computed_again_is_the_committed_one(way: str) -> None:
    assert ahead.loop_row("etl", 2.0, way) == kept_row(ahead.LOOP, "etl", 2.0, way)


@pytest.mark.parametrize("way", [ahead.EIGHTH, ahead.ADAPTS])
def test_model_computed_again_is_about_the_committed_one(way: str) -> None:
    program = ahead.record("alexnet")
    again = ahead.training_row(ahead.PACED, "alexnet", program, 2.0, way)
    kept = kept_row(ahead.PACED, "alexnet", 2.0, way)
    # Other versions of torch have other operators.
    for figure in ("seconds", "to_device_bytes", "to_host_bytes", "ahead_bytes"):
        assert again[figure] == pytest.approx(kept[figure], rel=0.05), figure
