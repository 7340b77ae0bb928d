# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The runs of fuzzing that are on record cover every target, and the document has their figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .targets import TARGETS

REPOSITORY = Path(__file__).parents[2]
# By what the document calls their targets: an hour, and what came later.
RUNS = {"thirteen of them": "fuzzing", "`wire-message`, `wire-handshake`": "fuzzing_wire"}


def kept(name: str) -> dict[str, Any]:
    text = (REPOSITORY / f"benchmarks/results/{name}.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def test_runs_on_record_took_their_time_over_every_target_and_found_nothing() -> None:
    runs = [kept(name) for name in RUNS.values()]
    assert sorted(name for run in runs for name in run["targets"]) == sorted(TARGETS)
    assert runs[0]["seconds"] >= 3600
    assert len(runs[0]["targets"]) == 13
    for name, each in (pair for run in runs for pair in run["targets"].items()):
        assert each["seconds"] > 60, name
        assert each["executions"] > 0, name
        assert each["findings"] == [], name


@pytest.mark.parametrize(("title", "name"), RUNS.items())
def test_document_has_the_figures_of_a_run(title: str, name: str) -> None:
    run = kept(name)
    text = (REPOSITORY / "docs/understand/security.md").read_text(encoding="utf-8")

    least = int(min(each["seconds"] for each in run["targets"].values()))
    total = sum(each["executions"] for each in run["targets"].values())
    date = run["environment"]["date"]
    row = f"| {title} | {date} | {run['seconds']:,.0f} s together, each at least {least} |"

    assert f"{row} {total:,} | none |" in text
    assert total == run["executions"]
