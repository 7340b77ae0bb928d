# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How calls grow: the committed figures, the document, and a call that looks at everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from .residency_scripts import BENCHMARKS, committed, script

growth = script("pool/growth")
KEPT = committed("growth")
DOCUMENT = BENCHMARKS.parent / "docs" / "growth.md"


def test_no_call_on_record_grows_with_what_lives() -> None:
    assert KEPT["counts"] == list(growth.COUNTS)
    assert [name for name, one in KEPT["verdicts"].items() if not one["reached"]] == []


def test_document_has_the_table_of_the_result() -> None:
    text = DOCUMENT.read_text()
    assert growth.with_part(text, DOCUMENT, growth.BEGIN, growth.END, growth.table(KEPT)) == text


def test_every_call_is_measured_and_told(tmp_path: Path) -> None:
    result = growth.measured([50, 100])
    assert set(result["microseconds"]) == set(KEPT["microseconds"])
    assert len(result["verdicts"]) == len(result["microseconds"])
    assert growth.table(result).count("\n") == len(result["microseconds"]) + 1


def test_call_that_looks_at_everything_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def calls(_mr: object, _large: int, live: list[int]) -> object:
        yield "sum", lambda: sum(live)

    monkeypatch.setattr(growth, "calls", calls)
    monkeypatch.setattr(growth, "of_stages", lambda counts: dict.fromkeys(counts, 1.0))
    monkeypatch.setattr(growth, "of_events", lambda counts: (dict.fromkeys(counts, 1.0),) * 2)
    found = growth.measured([10, 100, 10_000])["verdicts"]
    assert [name for name, one in found.items() if not one["reached"]] == ["sum, 10,000 / 100"]
