# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Verdicts of published tables: what is met, explained, missed, in order; exit status and files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Script = Callable[[str], ModuleType]


@pytest.fixture
def harness(script: Script) -> ModuleType:
    """The harness of the tables."""
    return script("_published")


def table_of(harness: ModuleType, *rows: Any, orders: tuple[Any, ...] = ()) -> Any:
    """Return a table with these rows."""
    return harness.Table(
        *("made_up", "Made up", "nobody", "none (published only)", "nothing"),
        rows=rows,
        orders=orders,
    )


@pytest.mark.parametrize(
    ("theirs", "ours", "reason", "verdict"),
    [
        (100.0, 115.0, "", "within 15 %"),
        (100.0, 85.0, "", "within 15 %"),
        (100.0, 115.1, "", "missed"),
        (100.0, 84.9, "a reason", "explained"),
        (0.0, 0.0, "", "within 15 %"),
        (0.0, 1.0, "", "missed"),
    ],
)
def test_verdict_of_a_figure_is_by_its_ratio(
    harness: ModuleType, theirs: float, ours: float, reason: str, verdict: str
) -> None:
    assert harness.Row("case", "time", "s", theirs, ours, reason).verdict == verdict


@pytest.mark.parametrize(
    ("ours", "right"), [((1.0, 2.0, 3.0), True), ((1.0, 1.0, 3.0), False), ((2.0, 1.0), False)]
)
def test_order_is_right_only_when_figures_rise(
    harness: ModuleType, ours: tuple[float, ...], right: bool
) -> None:
    assert harness.Order("claim", ("a", "b", "c")[: len(ours)], ours, "s").right is right


def test_figure_by_construction_is_no_evidence_and_hides_nothing(harness: ModuleType) -> None:
    met = harness.Row("case", "time", "s", 100.0, 100.0, by_construction=True)
    missed = harness.Row("case", "time", "s", 100.0, 200.0, by_construction=True)
    right = harness.Order("claim", ("a", "b"), (1.0, 2.0), "s", by_construction=True)
    wrong = harness.Order("claim", ("a", "b"), (2.0, 1.0), "s", by_construction=True)

    assert [one.verdict for one in (met, missed)] == ["by construction", "missed"]
    assert [one.verdict for one in (right, wrong)] == ["by construction", "wrong"]
    counted = table_of(harness, met, orders=(right,)).verdicts
    assert {name: number for name, number in counted.items() if number} == {
        "by construction": 1,
        "orders by construction": 1,
    }
    assert harness.exit_status(table_of(harness, missed)) == 1
    assert harness.exit_status(table_of(harness, orders=(wrong,))) == 1


def test_summary_counts_evidence_and_what_is_none_apart(
    harness: ModuleType, script: Script
) -> None:
    rows = (
        harness.Row("case", "time", "s", 100.0, 100.0),
        harness.Row("case", "time", "s", 100.0, 100.0, by_construction=True),
        harness.Row("case", "time", "s", 100.0, 200.0, "why"),
    )
    orders = (
        harness.Order("claim", ("a", "b"), (1.0, 2.0), "s"),
        harness.Order("other", ("a", "b"), (1.0, 2.0), "s", by_construction=True),
    )
    table = table_of(harness, *rows, orders=orders).to_json()

    text = script("_accuracy").computed_part([table, table])

    assert "| [made_up](#made_up) | none (published only) | 2 | 1 | 1 | 1 of 1 | 1, 1 |" in text
    assert "| **all** | | 4 | 2 | 2 | 2 of 2 | 2, 2 |" in text
    assert "| 1.00 (c) |" in text


def test_order_that_is_not_right_is_explained_by_its_reason(harness: ModuleType) -> None:
    order = harness.Order("claim", ("a", "b"), (2.0, 1.0), "s", "not modelled")

    assert order.verdict == "explained"
    assert harness.exit_status(table_of(harness, orders=(order,))) == 0


def test_exit_status_of_a_missed_figure_is_1(harness: ModuleType) -> None:
    met = harness.Row("case", "time", "s", 100.0, 100.0)
    missed = harness.Row("case", "time", "s", 100.0, 200.0)
    wrong = harness.Order("claim", ("a", "b"), (2.0, 1.0), "s")

    assert harness.exit_status(table_of(harness, met)) == 0
    assert harness.exit_status(table_of(harness, met, missed)) == 1
    assert harness.exit_status(table_of(harness, met, orders=(wrong,))) == 1


def test_text_of_a_table_says_simulated_and_why(harness: ModuleType) -> None:
    row = harness.Row("case", "time", "s", 100.0, 200.0, "another processor")
    wrong = harness.Order("claim", ("a", "b"), (2.0, 1.0), "s")

    text = harness.text_of(table_of(harness, row, orders=(wrong,)))

    assert text.startswith("Simulated on none (published only)\n")
    assert "explained: another processor" in text
    assert "order wrong: claim: a (2) < b (1) s" in text


def test_result_file_has_table_and_environment(harness: ModuleType, tmp_path: Path) -> None:
    row = harness.Row("case", "time", "s", 100.0, 100.0 / 3)

    harness.write_result(table_of(harness, row), tmp_path / "new" / "made_up.json")

    report = json.loads((tmp_path / "new" / "made_up.json").read_text())
    assert report["environment"]["simulated"] is True
    assert report["environment"]["date"]
    assert report["table"]["rows"][0]["ours"] == 33.3333
    assert report["table"]["rows"][0]["verdict"] == "missed"
