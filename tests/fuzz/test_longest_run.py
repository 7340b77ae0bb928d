# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The hour of fuzzing that is on record covers every target, and the document has its figures."""

from __future__ import annotations

import json
from pathlib import Path

from .targets import TARGETS

REPOSITORY = Path(__file__).parents[2]
KEPT = json.loads((REPOSITORY / "benchmarks/results/fuzzing.json").read_text(encoding="utf-8"))


def test_run_on_record_took_an_hour_over_every_target_and_found_nothing() -> None:
    assert set(KEPT["targets"]) == set(TARGETS)
    assert KEPT["seconds"] >= 3600
    assert min(each["seconds"] for each in KEPT["targets"].values()) > 60
    assert all(each["executions"] > 0 for each in KEPT["targets"].values())
    assert [name for name, each in KEPT["targets"].items() if each["findings"]] == []


def test_document_has_the_figures_of_that_run() -> None:
    text = (REPOSITORY / "docs/fuzzing.md").read_text(encoding="utf-8")

    least = int(min(each["seconds"] for each in KEPT["targets"].values()))
    total = sum(each["executions"] for each in KEPT["targets"].values())
    date = KEPT["environment"]["date"]
    row = f"| all thirteen | {date} | {KEPT['seconds']:,.0f} s together, each at least {least} |"

    assert f"{row} {total:,} | none |" in text
    assert len(TARGETS) == 13
    assert total == KEPT["executions"]
