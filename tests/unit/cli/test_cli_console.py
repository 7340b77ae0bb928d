# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The console of every command: it has a width, whatever the environment says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import rmm_uvm.cli
from rmm_uvm.cli import console, doctor
from rmm_uvm.cli.console import make_console
from rmm_uvm.doctor import examine

COMMANDS = Path(rmm_uvm.cli.__file__).parent


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)


def test_columns_of_nothing_are_80(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    monkeypatch.setenv("LINES", "0")
    monkeypatch.setattr("os.get_terminal_size", _refuse)
    assert make_console().size == (80, 24)
    assert make_console(stderr=True).size == (80, 24)


def test_columns_that_are_given_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "132")
    monkeypatch.setenv("LINES", "0")
    assert make_console().width == 132
    assert make_console().height > 0


def test_doctor_without_columns_prints_what_it_prints_at_80(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.get_terminal_size", _refuse)
    found = examine()  # once: how much memory is free may be another figure a moment later
    monkeypatch.setattr(doctor, "examine", lambda: found)
    at_80 = CliRunner().invoke(doctor.command, env={"COLUMNS": "80"}).output
    assert "Versions" in at_80
    assert CliRunner().invoke(doctor.command, env={"COLUMNS": "0"}).output == at_80


def test_no_command_makes_a_console_of_its_own() -> None:
    made = re.compile(r"\bConsole\(")
    makers = [path.name for path in sorted(COMMANDS.glob("*.py")) if made.search(path.read_text())]
    assert makers == [Path(console.__file__).name]


def _refuse(*_: object) -> None:
    raise OSError("no terminal")
