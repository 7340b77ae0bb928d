# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The commands for `torch_training.json` make all that is in it, at the same batches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .scripts import REPOSITORY, script

figures = script("benchmarks", "common/record_figures")
table = script("benchmarks", "common/record_table")
training = script("benchmarks", "training/past_the_edge")
models = script("benchmarks", "training/models")

Case = tuple[str, str, str, int]


@pytest.fixture
def committed() -> dict[str, Any]:
    path = REPOSITORY / "benchmarks" / "results" / "torch_training.json"
    kept: dict[str, Any] = json.loads(path.read_text())
    return kept


def cases_of(kept: dict[str, Any]) -> set[Case]:
    """Return part, model, type and batch of each row."""
    return {
        (part, row["model"], row["dtype"], row["batch"])
        for part in ("rows", "fits", "losses")
        for row in kept[part]
    }


def cases_of_commands() -> set[Case]:
    """Return the same of what the commands run."""
    [benchmark] = [one for one in table.BENCHMARKS if one.result == "torch_training"]
    cases: set[Case] = set()
    for command in benchmark.commands:
        asked = training.parsed(command[1:])
        part = "losses" if asked.losses_steps else "fits" if asked.fits else "rows"
        for name in asked.models:
            batch = max(1, round(models.full_batch(name) * asked.batch_fraction))
            cases |= {(part, name, dtype, batch) for dtype in asked.dtypes}
    return cases


def test_commands_of_the_table_make_every_part_of_the_committed_file(
    committed: dict[str, Any],
) -> None:
    assert cases_of_commands() == cases_of(committed)


def test_parts_that_are_calls_of_their_own_are_found_where_they_are_gone(
    committed: dict[str, Any],
) -> None:
    cut = {**committed, "fits": [], "losses": [], "verdicts": {}}

    found = figures.compared(committed, cut, clocked=True)

    assert {name.partition("/")[0] for name in found.different} == {"fits", "verdicts"}


def test_rows_of_another_commit_card_and_memory_of_another_way_are_compared(
    committed: dict[str, Any],
) -> None:
    now = json.loads(json.dumps(committed))
    for part in ("rows", "fits", "losses"):
        for row in now[part]:
            row |= {"commit": "0123456", "device": "another card"}
            if "memory of" in row.get("way", ""):
                row["factor"] += 0.0001

    found = figures.compared(committed, now, clocked=True)

    assert found.different == {}
    assert set(found.ratios.values()) == {1.0}
