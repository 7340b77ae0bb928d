# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The table of benchmarks: every committed result is in it, and every command exists."""

from __future__ import annotations

import re

import click
import pytest

from rmm_uvm.cli.main import make_group

from .scripts import REPOSITORY, script

table = script("benchmarks", "common/record_table")
RESULTS = REPOSITORY / "benchmarks" / "results"


def test_every_committed_result_is_run_again_or_says_why_not() -> None:
    committed = {str(path.relative_to(RESULTS).with_suffix("")) for path in RESULTS.rglob("*.json")}
    run = {benchmark.result for benchmark in table.BENCHMARKS}

    assert committed - run - set(table.NOT_RUN) == set()
    assert run & set(table.NOT_RUN) == set()
    assert set(table.NOT_RUN) <= committed


@pytest.mark.parametrize("name", table.NOT_RUN)
def test_result_that_is_not_run_says_what_it_is_and_why(name: str) -> None:
    what, why = table.NOT_RUN[name]

    assert len(what.split()) > 3
    assert len(why.split()) > 8
    assert names_that_are_not_there(f"{what} {why}") == []


def names_that_are_not_there(text: str) -> list[str]:
    """Return the scripts and the commands of `rmm-uvm` that a text names and that do not exist."""
    missing = [
        name
        for name in re.findall(r"[\w/]+\.(?:py|sh)\b", text)
        if not any((folder / name).is_file() for folder in (REPOSITORY, RESULTS.parent))
    ]
    for command in re.findall(r"`rmm-uvm ([^`]*)`", text):
        name, *words = command.split()
        group = make_group()
        found = group.get_command(click.Context(group), name)
        try:
            there = found is not None and found.make_context(name, words) is not None
        except click.UsageError:
            there = False
        missing += [] if there else [f"rmm-uvm {command}"]
    return missing


def test_names_of_no_script_and_no_command_are_found() -> None:
    assert names_that_are_not_there("ci/check_instructions.sh, `rmm-uvm doctor --measure`") == []
    told = "gone.py writes it, `rmm-uvm measure` and `rmm-uvm doctor --gone` make it"
    assert names_that_are_not_there(told) == ["gone.py", "rmm-uvm measure", "rmm-uvm doctor --gone"]


def test_no_result_is_made_twice() -> None:
    results = [benchmark.result for benchmark in table.BENCHMARKS]

    assert len(results) == len(set(results))


@pytest.mark.parametrize(
    "command",
    [benchmark.command for benchmark in table.BENCHMARKS],
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
