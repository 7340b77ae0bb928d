# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The table of benchmarks: every committed result is in it, and every command exists."""

from __future__ import annotations

import pytest

from .scripts import REPOSITORY, script

table = script("benchmarks", "_record_table")
RESULTS = REPOSITORY / "benchmarks" / "results"


def test_every_committed_result_is_run_again_or_says_why_not() -> None:
    committed = {str(path.relative_to(RESULTS).with_suffix("")) for path in RESULTS.rglob("*.json")}
    run = {benchmark.result for benchmark in table.BENCHMARKS}

    assert committed - run - set(table.NOT_RUN) == set()
    assert run & set(table.NOT_RUN) == set()
    assert set(table.NOT_RUN) <= committed


def test_no_result_is_made_twice() -> None:
    results = [benchmark.result for benchmark in table.BENCHMARKS]

    assert len(results) == len(set(results))


@pytest.mark.parametrize(
    "command",
    [command for benchmark in table.BENCHMARKS for command in benchmark.commands],
    ids=" ".join,
)
def test_command_is_a_script_that_writes_where_it_is_told(command: tuple[str, ...]) -> None:
    place = (
        REPOSITORY / command[0][1:]
        if command[0].startswith("/")
        else REPOSITORY / "benchmarks" / command[0]
    )

    assert place.is_file()
    assert table.FILE in command
