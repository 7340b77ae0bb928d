# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `rmm_uvm.plan` advises is never slower than the defaults, through the whole chain."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from .residency_scripts import BENCHMARKS, script

NAMES = ("etl loop", "hash join", "growing frame", "training-like loop", "random small")


@pytest.fixture(scope="module")
def programs() -> ModuleType:
    """Return the programs of the benchmark."""
    return script("planner/advice_programs")


@pytest.mark.parametrize("name", NAMES)
def test_advised_settings_are_never_slower_than_the_defaults(
    programs: ModuleType, name: str, tmp_path: Path
) -> None:
    rows = programs.compared(name, tmp_path)
    assert rows[0].device_bytes < rows[0].peak_bytes <= rows[-1].device_bytes
    for row in rows:
        assert row.advised_seconds <= row.default_seconds, row
    # What fits costs next to nothing, what does not costs something. With the defaults the pool of
    # the loop spreads data that fit over more slabs than the card holds.
    assert rows[-1].advised_seconds * 100 < rows[0].advised_seconds
    less = 4 if name == "etl loop" else 100
    assert rows[-1].default_seconds * less < rows[0].default_seconds


def test_settings_against_the_advice_can_be_slower(programs: ModuleType) -> None:
    advised = programs.run("hash join", 192 << 20)
    assert programs.run("hash join", 192 << 20, prefetch="never") > advised


def test_committed_figures_name_these_programs_and_reach_their_bounds() -> None:
    kept = json.loads((BENCHMARKS / "results" / "advice.json").read_text())
    assert {row["program"] for row in kept["rows"]} == set(NAMES)
    assert all(row["advised_seconds"] <= row["default_seconds"] for row in kept["rows"])
    assert any(row["ratio"] < 0.9 for row in kept["rows"])
