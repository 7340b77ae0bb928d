# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How calls grow: the committed figures, the document, and a call that looks at everything."""

from __future__ import annotations

import pytest

from .residency_scripts import BENCHMARKS, committed, script

growth = script("pool/growth")
KEPT = committed("growth")
DOCUMENT = BENCHMARKS.parent / "docs" / "measure" / "growth.md"


def test_no_call_on_record_grows_with_what_lives() -> None:
    assert KEPT["counts"] == list(growth.COUNTS)
    assert [name for name, one in KEPT["verdicts"].items() if not one["reached"]] == []


def test_document_has_the_table_of_the_result() -> None:
    text = DOCUMENT.read_text()
    assert growth.with_part(text, DOCUMENT, growth.BEGIN, growth.END, growth.table(KEPT)) == text


def test_every_call_is_measured_and_told() -> None:
    result = growth.measured([50, 100])
    names = {section: list(rows) for section, rows in result["microseconds"].items()}
    assert names == {section: list(rows) for section, rows in KEPT["microseconds"].items()}
    rows = sum(map(len, names.values()))
    assert len(result["verdicts"]) == rows
    assert growth.table(result).count("\n") == len(names) + rows + 1


def test_call_that_looks_at_everything_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def calls(_mr: object, _large: int, live: list[int]) -> object:
        yield "sum", lambda: sum(live)
        yield "first", lambda: live[0]

    monkeypatch.setattr(growth, "calls", calls)
    monkeypatch.setattr(
        growth, "sections", lambda counts: [("beside", growth.of_live_allocations(counts))]
    )
    found = growth.measured([10, 100, 10_000])["verdicts"]
    assert [name for name, one in found.items() if not one["reached"]] == [
        "sum, beside, 10,000 / 100"
    ]
