# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The committed table of eviction policies is what the policies do, and says what has to hold."""

from __future__ import annotations

from typing import Any

import pytest

from rmm_uvm.residency import POLICIES

from .residency_scripts import committed, script

policies = script("residency/policies")
card_module = script("residency/policy_card")
document = script("residency/policy_document")
KEPT = committed("residency_policies")


def kept_row(program: str, factor: float, way: str) -> dict[str, Any]:
    """Return a committed row."""
    case = (program, factor, way)
    found: dict[str, Any] = next(
        row for row in KEPT["rows"] if (row["program"], row["factor"], row["way"]) == case
    )
    return found


@pytest.mark.parametrize("way", ["driver, prefetching", "lru", "correlation, ahead", "repeat"])
@pytest.mark.parametrize("program", ["fir", "training"])
def test_figures_computed_again_are_the_committed_ones(program: str, way: str) -> None:
    assert policies.row(program, 2.0, way) == kept_row(program, 2.0, way)


def test_recording_computed_again_is_the_committed_one_at_every_run() -> None:
    first, second = (policies.row("mortgage", 1.5, "lru") for _ in range(2))
    assert first == second == kept_row("mortgage", 1.5, "lru")


def test_every_policy_is_compared_and_a_choice() -> None:
    compared = {way.budget["policy"] for way in card_module.WAYS if "policy" in (way.budget or {})}
    assert compared == set(POLICIES)
    assert set(POLICIES) <= set(card_module.CHOICES)


def test_table_has_every_case_once() -> None:
    cases = [(row["program"], row["factor"], row["way"]) for row in KEPT["rows"]]
    cases += [tuple(case) for case in KEPT["not_ended"]]
    assert sorted(cases) == sorted(
        (program, factor, way.name)
        for program in policies.PROGRAMS
        for factor in policies.FACTORS
        for way in card_module.WAYS
    )


def test_verdicts_are_those_of_the_rows() -> None:
    assert KEPT["verdicts"] == policies.verdicts(KEPT["rows"], KEPT["not_ended"])


def test_what_has_to_hold_holds_but_for_what_is_told_as_missed() -> None:
    missed = [
        name
        for name, holds in KEPT["verdicts"].items()
        if not (holds["reached"] if isinstance(holds, dict) else holds)
    ]
    assert missed == ["the default wins on the recordings"]
    assert "that bound is missed" in document.DOCUMENT.read_text()
    # Without look-ahead, which cannot gain where computing takes no time, the policy wins.
    seconds = policies.total_seconds(KEPT["rows"], policies.RECORDED)
    assert min(card_module.CHOICES, key=seconds.__getitem__) == "repeat"


def test_verdicts_of_a_slow_default_and_a_slow_policy_are_missed() -> None:
    rows = [dict(row) for row in KEPT["rows"]]
    for row in rows:
        if row["way"] in (card_module.DEFAULT_NAME, "lru"):
            row["seconds"] *= 100
    assert policies.slower_than_the_driver(rows)
    verdicts = policies.verdicts(rows, [])
    assert not verdicts["the default wins on the recordings"]
    over = "the default / the kernel driver alone"
    assert not verdicts[f"{over}, median"]["reached"]
    assert not verdicts[f"{over}, dearest"]["reached"]


def test_one_card_on_which_the_default_loses_to_the_driver_is_missed() -> None:
    rows = [dict(row) for row in KEPT["rows"]]
    chosen = ("etl", 4.0, card_module.DEFAULT_NAME)
    for row in rows:
        if (row["program"], row["factor"], row["way"]) == chosen:
            row["seconds"] *= 1.5
    verdicts = policies.verdicts(rows, [])
    over = "the default / the kernel driver alone"
    assert verdicts[f"{over}, median"]["reached"]
    assert not verdicts[f"{over}, dearest"]["reached"]


def test_fastest_baseline_prefetches_what_is_used() -> None:
    for program in policies.PROGRAMS:
        for factor in policies.FACTORS:
            seconds = {
                way: kept_row(program, factor, way)["seconds"] for way in card_module.BASELINES
            }
            fastest = min(seconds, key=seconds.__getitem__)
            assert fastest in ("driver, cuDF's prefetches", "driver, prefetching")


def test_faster_baseline_makes_a_policy_slower_than_it() -> None:
    rows = [dict(row) for row in KEPT["rows"]]
    for row in rows:
        if row["way"] == "driver, RMM's prefetches":
            row["seconds"] /= 100
    assert policies.slower_than_the_driver(rows)


def test_copying_the_dead_and_not_fetching_move_more() -> None:
    for factor in (1.25, 1.5, 2.0):
        lru, stale = (kept_row("mortgage", factor, way) for way in ("lru", "fault-driven"))
        assert lru["to_host_bytes"] < 0.5 * stale["to_host_bytes"]
        assert lru["seconds"] < 0.6 * stale["seconds"]
        copied, dropped = (
            kept_row("mortgage", factor, f"default, {way}")
            for way in ("not fetching", "dropping without fetching")
        )
        # Without fetching nothing is dropped, whatever is asked for.
        assert copied["seconds"] > 1.5 * lru["seconds"]
        assert {**dropped, "way": ""} == {**copied, "way": ""}


def test_kernel_driver_evicts_nothing_under_fifo_and_lru() -> None:
    rows = [row for row in KEPT["rows"] if row["way"] in ("fifo", "lru")]
    assert len(rows) == 2 * len(policies.PROGRAMS) * len(policies.FACTORS)
    assert {row["driver_evicted_bytes"] for row in rows if row["program"] == "mortgage"} == {0}


@pytest.mark.parametrize(
    ("way", "figure", "old", "new"),
    [
        ("lru", "to_host_bytes", '"lru" sends 14 to 46 %', '"lru" sends 28 to 92 %'),
        ("fifo", "to_host_bytes", '"fifo" 14 to 43 %', '"fifo" 28 to 85 %'),
        ("driver", "seconds", "| driver | 1.74 to 2.19 | ", "| driver | 3.48 to 4.39 | "),
        ("driver", "seconds", "0.16 to 0.80 times as long", "0.08 to 0.40 times as long"),
        ("repeat, ahead", "seconds", "baseline on 6 of 30", "baseline on 26 of 30"),
        ("lru", "seconds", "mortgage 1.23 to 1.26, etl 0.99,", "mortgage 2.46 to 2.52, etl 1.98"),
    ],
)
def test_sentences_have_the_figures_of_the_rows(way: str, figure: str, old: str, new: str) -> None:
    twice = [{**row, figure: row[figure] * (2 if row["way"] == way else 1)} for row in KEPT["rows"]]
    assert old in document.sentences(KEPT)
    assert new in document.sentences({**KEPT, "rows": twice})


def test_document_without_a_place_for_the_sentences_is_refused() -> None:
    text = document.DOCUMENT.read_text().replace(document.SAID, "")
    with pytest.raises(ValueError, match=r"policies\.md has no part"):
        document.document_with(text, KEPT)
