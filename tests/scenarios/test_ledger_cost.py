# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a budget costs the host: the committed figures, their verdicts, and the document."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from .residency_scripts import BENCHMARKS, committed, script

ledger_cost = script("pool/ledger_cost")
KEPT = committed("ledger_cost")
DOCUMENT = (BENCHMARKS.parent / "docs" / "measure" / "growth.md").read_text()


def judged(kept: dict[str, Any]) -> dict[str, Any]:
    """Return the verdicts on the figures of a result."""
    found: dict[str, Any] = ledger_cost.verdicts(
        kept["bytes_a_block"], kept["calls"], kept["uses"], kept["threads"]
    )
    return found


# Two processors that truly work at once pay for the lock.
LEFT = ["fits: processor time of a call, 8 threads / 1"]


def missed(kept: dict[str, Any]) -> list[str]:
    return [
        name
        for name, verdict in judged(kept).items()
        if verdict is False or (verdict is not True and not verdict["reached"])
    ]


def changed(rows: str, factor: float, figure: str, **which: int) -> dict[str, Any]:
    """Return the committed result with a figure of some rows multiplied."""
    kept = copy.deepcopy(KEPT)
    for row in kept[rows]:
        if all(row[name] == value for name, value in which.items()):
            row[figure] *= factor
    return kept


def test_committed_verdicts_are_those_of_the_figures_and_some_are_missed() -> None:
    assert KEPT["verdicts"] == judged(KEPT)
    assert missed(KEPT) == LEFT
    assert KEPT["record_bytes"] <= KEPT["bytes_a_block"] <= 64


def test_every_case_was_measured_once() -> None:
    programs = [(row["ledger_gib"], row["budget_gib"], row["threads"]) for row in KEPT["threads"]]
    assert sorted(programs) == sorted(
        (*sizes, count) for sizes in ledger_cost.PROGRAMS.values() for count in ledger_cost.THREADS
    )
    calls = [(row["blocks"], row["ledger_gib"], row["budget_gib"]) for row in KEPT["calls"]]
    assert len(calls) == len(set(calls)) == 17
    uses = [(row["blocks"], row["ledger_gib"]) for row in KEPT["uses"]]
    assert sorted(uses) == sorted(
        (blocks, gib) for blocks in ledger_cost.USED_BLOCKS for gib in ledger_cost.USED_GIB
    )


def test_verdict_of_a_larger_record_is_missed() -> None:
    assert set(missed({**KEPT, "bytes_a_block": 65.0})) == {"bytes a block", *LEFT}


def test_verdict_of_cost_that_grows_with_the_ledger_is_missed() -> None:
    slower = changed("calls", 4, "ns", ledger_gib=64)
    assert "8 blocks, 64 GiB kept / 1 GiB" in missed(slower)
    assert "a block more, dearest / cheapest, 64 GiB kept" not in missed(slower)


def test_verdict_of_room_that_costs_more_where_more_is_kept_is_missed() -> None:
    assert "use of 64 MiB, 256 GiB kept / 8 GiB" in missed(changed("uses", 4, "ns", ledger_gib=256))


def test_uses_that_make_room_for_less_are_not_compared_with_others() -> None:
    kept = changed("uses", 0.5, "evicted_a_use", ledger_gib=16)  # what `repeat` does at that size
    assert missed(kept) == ["each use makes room for all of itself", *LEFT]


def test_verdict_of_a_cost_that_is_not_linear_is_missed() -> None:
    slower = changed("calls", 4, "ns", blocks=512)
    assert "a block more, dearest / cheapest, 64 GiB kept" in missed(slower)


@pytest.mark.parametrize("program", ledger_cost.PROGRAMS)
def test_verdict_of_threads_that_hold_each_other_up_is_missed(program: str) -> None:
    ledger_gib, budget_gib = ledger_cost.PROGRAMS[program]
    which = {"ledger_gib": ledger_gib, "budget_gib": budget_gib, "threads": 8}
    one, many = (ledger_cost.thread_row(KEPT["threads"], program, count) for count in (1, 8))
    factor = 0.4 * one["calls_per_second"] / many["calls_per_second"]
    slower = changed("threads", factor, "calls_per_second", **which)
    assert set(missed(slower)) == {f"{program}: calls a second, 8 threads / 1", *LEFT}
    one, many = (ledger_cost.thread_row(KEPT["threads"], program, count) for count in (1, 8))
    factor = 2.1 * one["cpu_us_a_call"] / many["cpu_us_a_call"]
    dearer = changed("threads", factor, "cpu_us_a_call", **which)
    assert set(missed(dearer)) == {f"{program}: processor time of a call, 8 threads / 1", *LEFT}


def test_verdict_of_a_failed_call_is_missed() -> None:
    failed = copy.deepcopy(KEPT)
    failed["threads"][0]["failed_calls"] = 1
    assert judged(failed)["no call failed"] is False


def test_rows_of_what_the_program_prints_are_its_medians() -> None:
    name = "allocate_free/blocks:8/ledger_gib:64/half_budgets_gib:128"
    alike = {"run_name": name, "cpu_time": 500.0}
    shown = [
        {**alike, "aggregate_name": "mean"},
        {**alike, "aggregate_name": "median", "cpu_time": 400.0},
        {
            "run_name": "use_in_turn/blocks:32/ledger_gib:8/half_budgets_gib:8",
            "aggregate_name": "median",
            "cpu_time": 9000.0,
            "evicted_a_use": 0.99998,
        },
    ]
    assert ledger_cost.rows_of(shown) == {
        "calls": [{"blocks": 8, "ledger_gib": 64, "budget_gib": 64.0, "ns": 400.0}],
        "uses": [
            {"blocks": 32, "ledger_gib": 8, "budget_gib": 4.0, "ns": 9000.0, "evicted_a_use": 1.0}
        ],
        "threads": [],
    }


def test_document_says_what_was_measured() -> None:
    assert ledger_cost.written(DOCUMENT, KEPT) == DOCUMENT
    other = changed("calls", 10, "ns", blocks=64)
    assert ledger_cost.written(DOCUMENT, other) != DOCUMENT


def test_sentence_about_the_lock_has_the_ratios_of_the_rows() -> None:
    one, two, many = (
        ledger_cost.thread_row(KEPT["threads"], "fits", count)["cpu_us_a_call"]
        for count in (1, 2, 8)
    )
    sentence = f"{two / one:.1f} times the processor time with 2 threads, and {{:.1f}} times with 8"
    assert sentence.format(many / one) in DOCUMENT
    dearer = changed("threads", 2, "cpu_us_a_call", ledger_gib=64, budget_gib=64, threads=8)
    assert sentence.format(2 * many / one) in ledger_cost.table(dearer)


@pytest.mark.parametrize("factor", [1e-3, 1, 1e3, 1e6])
def test_times_in_the_table_have_no_exponent(factor: float) -> None:
    text = ledger_cost.table(changed("threads", factor, "cpu_us_a_call"))
    assert not re.search(r"\de[+-]\d", text)
    assert f"0%, {0.051 * factor:,.6f}".rstrip("0").rstrip(".") in text


def test_document_without_a_place_for_the_tables_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"growth\.md"):
        ledger_cost.written("# Residency\n", KEPT)
