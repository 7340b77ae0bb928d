# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every command of ``rmm-uvm`` in the documents is run on a simulated device, or says why not.

That all commands exist with their options is for `test_snippet_lines.py`.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

import rmm_uvm
from rmm_uvm.cli.main import make_group
from rmm_uvm.support.units import format_bytes

from ...support.snippets import REPOSITORY, SNIPPETS

PLANNED = "run without --html, of which etl.trace has the like"
MEASURES = "measures a GPU: test_cli_measure.py has one that is simulated"
# By command without its comment, why it is not run here.
NOT_RUN: Mapping[str, str] = {
    "rmm-uvm plan tests/data/mortgage-h200.trace.gz --html plan.html": PLANNED,
    "rmm-uvm doctor --measure": MEASURES,
    "rmm-uvm doctor --measure --save my-workstation": MEASURES,
    "rmm-uvm doctor --measure --json figures.json": MEASURES,
    "rmm-uvm run --lines --device simulated:64MiB --html loop.html docs/lines/loop.py 4": (
        "another program: tests/scenarios/test_guilty_lines.py runs it"
    ),
    "rmm-uvm run --torch train.py --epochs 3": "a GPU: test_torch_run.py has one that is not real",
}
# What would go on until Ctrl-C is told to end.
ONCE = {"rmm-uvm top": "--once"}
# What a document shows below a command.
SHOWN = {
    "rmm-uvm plan tests/data/mortgage-h200.trace.gz": [
        one.text
        for one in SNIPPETS
        if one.document == "planner.md" and re.match(r"\* |The step that helps", one.text)
    ]
}
PROGRAM = """
import rmm
mr = rmm.mr.get_per_device_resource(0)
for _ in range(3):
    frames = [rmm.DeviceBuffer(size=8 << 20, mr=mr) for _ in range(10)]
    del frames
"""
PEAK_BYTES = 80 << 20


def commands() -> Iterator[str]:
    """Yield commands without comments, each once, in the order of the documents."""
    found: dict[str, None] = {}
    for snippet in SNIPPETS:
        if snippet.kind in ("", "bash"):
            for line in snippet.text.replace("\\\n", " ").splitlines():
                if line.startswith("rmm-uvm "):
                    found[line.partition(" #")[0].strip()] = None
    yield from found


COMMANDS = list(commands())
# Programs become processes: what they change stays theirs.
PROGRAMS = [each for each in COMMANDS if each.startswith("rmm-uvm run ") and each not in NOT_RUN]
OTHERS = [each for each in COMMANDS if each not in (*PROGRAMS, *NOT_RUN)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    (folder / "etl.py").write_text(PROGRAM)
    (folder / "tests").symlink_to(REPOSITORY / "tests")  # documents name recordings there
    for name in ("new.json", "old.json"):
        with rmm_uvm.monitor(driver="simulated:64MiB", publish=False) as watching:
            pass
        watching.report().save_json(folder / name)
    return folder


@pytest.fixture(autouse=True)
def _simulated(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.chdir(folder)


def files_of(command: str) -> list[str]:
    """Return the files that a command is asked to write."""
    words = shlex.split(command)
    writing = {"--html", "--trace", "--json"}
    return [after for word, after in itertools.pairwise(words) if word in writing]


@pytest.fixture(scope="module")
def programs(folder: Path) -> Mapping[str, str]:
    """Run programs as the documents say; what each printed."""
    printed = {}
    for command in PROGRAMS:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "rmm_uvm", *shlex.split(command)[1:]],
            env={**os.environ, "RMM_UVM_DRIVER": "simulated:64MiB", "CUDA_VISIBLE_DEVICES": ""},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed[command] = done.stdout + done.stderr
    return printed


@pytest.mark.parametrize("command", PROGRAMS)
def test_program_runs_on_a_pool_and_is_told_of(
    programs: Mapping[str, str], folder: Path, command: str
) -> None:
    assert f"most allocated at a time: {format_bytes(PEAK_BYTES)}" in programs[command]
    for name in files_of(command):
        assert (folder / name).stat().st_size > 0


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("command", OTHERS)
def test_command_ends_well_and_writes_what_it_is_to(folder: Path, command: str) -> None:
    words = shlex.split(f"{command} {ONCE.get(command, '')}")
    result = CliRunner().invoke(make_group(), words[1:])
    assert result.exit_code == 0, result.output
    missing = [line for line in SHOWN.get(command, ()) if line not in result.output]
    assert missing == [], result.output
    assert result.output
    for name in files_of(command):
        assert (folder / name).stat().st_size > 0


def test_what_is_not_run_is_in_a_document() -> None:
    assert [command for command in (*NOT_RUN, *ONCE) if command not in COMMANDS] == []
    assert [len(lines) for lines in SHOWN.values()] == [4]
    assert len(PROGRAMS) >= 2
    assert len(OTHERS) >= 4


def test_command_that_fails_does_not_end_well() -> None:
    result = CliRunner().invoke(make_group(), ["plan", "none.trace"])
    assert result.exit_code != 0
