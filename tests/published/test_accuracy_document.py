# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""docs/measure/simulator-accuracy.md says what the committed results say."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from .places import DOCUMENT, RESULTS

Script = Callable[[str], ModuleType]


def committed(script: Script) -> list[dict[str, Any]]:
    """Return the committed tables in the order of the document."""
    return [
        json.loads((RESULTS / f"{name}.json").read_text())["table"] for name in script("all").NAMES
    ]


def test_document_is_what_the_committed_results_say(script: Script) -> None:
    text = DOCUMENT.read_text()

    assert script("_accuracy").document_with(text, committed(script)) == text, (
        "run: python benchmarks/published/all.py --write"
    )


def test_another_figure_changes_the_document(script: Script) -> None:
    text = DOCUMENT.read_text()
    tables = committed(script)
    tables[0]["rows"][0]["ours"] += 1000

    assert script("_accuracy").document_with(text, tables) != text


def rows_off(
    tables: list[dict[str, Any]], reason: str, quantity: str = "", *, short: bool = False
) -> list[float]:
    """Return how many times too much figures are, or too little, that a reason is given for."""
    return [
        row["theirs"] / row["ours"] if short else row["ours"] / row["theirs"]
        for table in tables
        for row in table["rows"]
        if reason in row.get("reason", "") and quantity in row["quantity"]
    ]


CPU_TIME, EDGE = "the kernel driver's CPU time", "at the edge of what fits"
IN_PLACE, SHORT = "what is read where it lies counts whole pages", "under a millisecond"
BATCHES, WRITTEN = (
    "only distinct pages of 4096 threads at a time",
    "each page is written by a",
)
ASSUMED = "time of computing are assumed"


def claims(tables: list[dict[str, Any]]) -> list[str]:
    """Return what "What the tables say" says of figures, by the tables."""
    (cliff,) = (
        row["ours"] / row["theirs"]
        for table in tables
        for row in table["rows"]
        if row["case"] == "no prefetch, 2.17 x" and row["quantity"] == "epoch"
    )
    (written,) = rows_off(tables, WRITTEN)
    return [
        f"({cliff:.2f} of theirs beyond its cliff, at 2.17 times)",
        f"They are off, up to {bound(tables):.1f} times, where a block's faults",
        f"| {max(rows_off(tables, EDGE)):.0f} times too long in order, "
        f"{max(rows_off(tables, EDGE, short=True)):.0f} times too short at random |",
        f"whole pages | up to {max(rows_off(tables, IN_PLACE)):.0f} times too long |",
        f"less than a millisecond | up to {max(rows_off(tables, SHORT, short=True)):.0f} times too",
        f"moved up to {max(rows_off(tables, BATCHES, 'to the ', short=True)):.0f} times more, "
        f"in kernels that took up to {max(rows_off(tables, BATCHES, 'kernels', short=True)):.0f} ",
        f"is here ({written:.2f} of theirs)",
        f"of computing is assumed | up to {max(rows_off(tables, ASSUMED)):.1f} times too much |",
    ]


def bound(tables: list[dict[str, Any]]) -> float:
    return max(rows_off(tables, CPU_TIME))


def further_off(tables: list[dict[str, Any]]) -> set[str]:
    """Return the reasons of figures that are further off than the summary says of most."""
    return {
        row.get("reason", "none")
        for table in tables
        for row in table["rows"]
        if row["ours"] and row["theirs"]
        if max(row["ours"] / row["theirs"], row["theirs"] / row["ours"]) > bound(tables)
    }


def unnamed(tables: list[dict[str, Any]]) -> list[str]:
    named = (EDGE, IN_PLACE, SHORT, BATCHES, WRITTEN, ASSUMED)
    return [why for why in further_off(tables) if not any(name in why for name in named)]


def test_summary_has_the_figures_of_its_tables(script: Script) -> None:
    said = " ".join(DOCUMENT.read_text().split("<!-- begin")[0].split())
    assert [claim for claim in claims(committed(script)) if claim not in said] == []


def test_figure_that_changed_is_missing_in_the_summary(script: Script) -> None:
    said = " ".join(DOCUMENT.read_text().split("<!-- begin")[0].split())
    tables = committed(script)
    for row in (row for table in tables for row in table["rows"]):
        row["ours"] *= 1.3
    assert [claim for claim in claims(tables) if claim in said] == []


def test_summary_names_everything_that_is_further_off(script: Script) -> None:
    tables = committed(script)
    assert further_off(tables)
    assert unnamed(tables) == []
    tables[0]["rows"][0]["ours"] *= 1.01 * bound(tables)
    assert len(unnamed(tables)) == 1


def test_figures_that_the_summary_calls_met_are(script: Script) -> None:
    rows = [(table["name"], row) for table in committed(script) for row in table["rows"]]
    met = [
        row["verdict"]
        for name, row in rows
        if (name == "uvm_discard" and row["case"].startswith("fir") and row["quantity"] == "time")
        or (name == "nvshare_tenants" and row["case"] in ("turns of 60 s", "turns of 20 s"))
        or (name == "gcn_epochs" and "no prefetch" in row["case"] and "2.17" not in row["case"])
    ]
    assert len(met) > 20
    assert set(met) <= {"within 15 %", "by construction"}


@pytest.mark.parametrize("text", ["", "<!-- end -->", "# no marks"])
def test_document_without_marks_is_refused(script: Script, text: str) -> None:
    with pytest.raises(ValueError, match=r"simulator-accuracy\.md has no part"):
        script("_accuracy").document_with(text, committed(script))
