# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Counts of instructions: read from callgrind, compared with the record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .scripts import REPOSITORY, script

counts = script("ci", "instruction_counts")

PROFILE = """# callgrind format
events: Ir
fl=(1) ???
fn=(1) rmm_uvm::benchmarks::(anonymous namespace)::hot_path_touch(int, unsigned long)
0 100
cfn=(2) rmm_uvm::pool::use()
calls=10 0
0 400
+3 20

fn=(2)
0 400
fn=(3) rmm_uvm::benchmarks::hot_path_replay(unsigned long) [clone .noipa]
* 30
fn=(1)
0 80
"""


def test_counts_hold_what_a_path_calls_and_are_divided_by_rounds() -> None:
    assert counts.inclusive_counts(PROFILE) == {"touch": 600, "replay": 30}
    assert counts.per_operation(PROFILE, {"touch": 10, "replay": 10}) == {
        "touch": 60.0,
        "replay": 3.0,
    }


def test_path_that_was_run_and_is_not_found_is_an_error() -> None:
    with pytest.raises(ValueError, match="a path was inlined"):
        counts.per_operation(PROFILE, {"touch": 10, "replay": 10, "free": 1})


def test_rise_over_a_tenth_fails_and_names_the_path() -> None:
    _, failed, fallen = counts.compared({"touch": 111.0}, {"touch": 100.0})

    assert failed == ["touch rose by 11%"]
    assert fallen == []


def test_rise_of_a_tenth_passes_and_a_fall_is_told() -> None:
    lines, failed, fallen = counts.compared(
        {"touch": 110.0, "free": 50.0}, {"touch": 100.0, "free": 100.0}
    )

    assert failed == []
    assert fallen == ["free"]
    assert lines[-1].split() == ["touch", "100.0", "110.0", "1.100"]


def test_path_without_record_and_record_without_path_fail() -> None:
    _, failed, _ = counts.compared({"new": 1.0}, {"old": 1.0})

    assert failed == ["new is not recorded", "old is not counted any more"]


def test_another_compiler_compares_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "counts.json"
    record.write_text(json.dumps({"built_with": {"compiler": "g++ 1.0", "c_library": "glibc 2"}}))
    monkeypatch.setattr(
        counts, "built_with", lambda _: {"compiler": "g++ 2.0", "c_library": "glibc 2"}
    )

    assert counts.main(["nowhere", "--result", str(record)]) == 0
    assert "skipped: recorded with g++ 1.0, glibc 2; here is g++ 2.0" in capsys.readouterr().out


def test_every_path_of_the_program_is_recorded() -> None:
    sources = (REPOSITORY / "cpp" / "benchmarks" / "instructions").glob("*.cpp")
    paths = {
        line.split('"')[1]
        for source in sources
        for line in source.read_text().splitlines()
        if line.lstrip().startswith('count("')
    }
    recorded = json.loads(counts.RESULT.read_text())["instructions_per_operation"]

    assert paths == set(recorded)
