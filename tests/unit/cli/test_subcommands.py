# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Subcommands that other distributions add: listed, run, missing and broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rmm_uvm.cli import subcommands
from rmm_uvm.cli.main import make_group

from ...support.projects import CONTENTS

GREETING = """
import click
print("imported")
command = click.Command("greet", callback=lambda: click.echo("hello"))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of packages, which is looked into."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def install(folder: Path, module: str, source: str, name: str = "greet") -> None:
    """Install a distribution that adds one subcommand."""
    (folder / f"{module}.py").write_text(source)
    metadata = folder / f"{module}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2\nSummary: Say hello.\n"
    )
    (metadata / "entry_points.txt").write_text(
        f"[others]\n{name} = others:command\n\n"
        f"[{subcommands.GROUP}]\n{name} = {module}:command\n\n[more]\nz = z:command\n"
    )


def told(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(make_group(), words)
    return result.exit_code, result.output


def test_added_subcommand_is_listed_by_its_summary_and_not_imported(folder: Path) -> None:
    install(folder, "greeting_one", GREETING)
    status, output = told("--help")
    assert status == 0
    names = [line.split()[0] for line in output.partition("Commands:")[2].splitlines()[1:]]
    assert names == ["doctor", "greet", "mortgage", "plan", "report", "run", "top"]
    assert "greet     Say hello." in output
    assert CONTENTS["rmm-uvm-mortgage"]["project"]["description"] in output
    assert "imported" not in output
    assert "greeting_one" not in sys.modules


def test_added_subcommand_is_run(folder: Path) -> None:
    install(folder, "greeting_two", GREETING)
    assert told("greet") == (0, "imported\nhello\n")


def test_added_subcommand_is_not_in_the_way_of_ours(folder: Path) -> None:
    install(folder, "greeting_three", GREETING, name="doctor")
    status, output = told("doctor", "--help")
    assert status == 0
    assert "imported" not in output
    assert "Say hello" not in told("--help")[1]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise ValueError('one\\ntwo')", "ValueError: one"),
        ("command = 1", "int is no click.Command"),
        ("", "AttributeError: module 'broken' has no attribute 'command'"),
    ],
)
def test_added_subcommand_that_is_broken_is_one_line(
    folder: Path, source: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    install(folder, "broken", source)
    assert told("greet") == (
        1,
        f"Error: rmm-uvm greet: broken 1.2 adds it, and cannot be loaded (broken:command: {problem}"
        "): install another version, or uninstall it\n",
    )
    assert told("--help")[0] == 0  # the others are as before
    assert told("doctor", "--help")[0] == 0
    monkeypatch.delitem(sys.modules, "broken", raising=False)


def test_pipeline_that_is_not_installed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rmm_uvm.cli.subcommands._distributions", list)
    status, output = told("mortgage", "--compare")
    assert status == 1
    assert output.splitlines() == [
        "Error: rmm-uvm mortgage: the mortgage pipeline is a package of its own, "
        "which is not installed.",
        "Install it: pip install 'rmm-uvm-mortgage[cpu]'. What is there: rmm-uvm --help",
    ]
    assert "mortgage" not in told("--help")[1]


def test_what_is_said_to_be_installable_is_a_project_here() -> None:
    for name, (_, package) in subcommands.KNOWN.items():
        distribution, _, extra = package.rstrip("]").partition("[")
        project = CONTENTS[distribution]["project"]
        assert name in project["entry-points"][subcommands.GROUP]
        assert extra in project["optional-dependencies"]


def test_subcommand_of_ours_needs_no_entry_points(tmp_path: Path) -> None:
    code = (
        "from rmm_uvm.cli import main, subcommands\n"
        "def none():\n    raise AssertionError('asked')\n"
        "subcommands._distributions = none\n"
        "main(['top', '--help'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
