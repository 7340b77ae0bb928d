# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A run that finds something fails and names the file; one that cannot be says so.

In place of atheris stands a module that prints what libFuzzer does: not every Python has it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FUZZER = """
import contextlib, sys

def instrument_imports(include):
    return contextlib.nullcontext()

def Setup(arguments, target):
    print([one for one in arguments if one.startswith("-seed=")], flush=True)
    folder = [one for one in arguments if one.startswith("-artifact_prefix=")][0].split("=")[1]
    if {finds}:
        open(folder + "crash-1", "w").close()
        print("Test unit written to " + folder + "crash-1", flush=True)
    if {works}:
        print("number_of_executed_units: 7", flush=True)

def Fuzz():
    sys.exit(77 if {finds} else 0)
"""


def fuzzed(
    folder: Path, finds: bool = False, works: bool = True, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run two targets with a fuzzer that finds something, or nothing."""
    (folder / "atheris.py").write_text(FUZZER.format(finds=finds, works=works))
    (folder / "atheris-0.dist-info").mkdir(exist_ok=True)
    (folder / "atheris-0.dist-info/METADATA").write_text("Name: atheris\nVersion: 0\n")
    command = [sys.executable, "-P", "-m", "fuzz.run", "--seconds", "2", "--fresh"]
    command += [*options, "--result", str(folder / "result.json"), "--work", str(folder / "work")]
    return subprocess.run(
        [*command, "handle", "machine"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_run_that_finds_what_an_earlier_one_found_fails_and_names_the_file(tmp_path: Path) -> None:
    found = {name: tmp_path / f"work/{name}/found/crash-1" for name in ("handle", "machine")}
    found["handle"].parent.mkdir(parents=True)
    found["handle"].touch()
    done = fuzzed(tmp_path, finds=True)
    told = [line.split(";")[0] for line in done.stdout.splitlines() if "FOUND" in line]

    assert done.returncode == 1, done.stderr
    assert told == [f"FOUND {path}" for path in found.values()]


def test_run_that_finds_nothing_passes_and_keeps_nothing_that_grew(tmp_path: Path) -> None:
    done = fuzzed(tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())

    assert done.returncode == 0, done.stderr
    assert {name: each["findings"] for name, each in result["targets"].items()} == {
        "handle": [],
        "machine": [],
    }
    assert min(each["executions"] for each in result["targets"].values()) >= 7
    assert not list(tmp_path.glob("work/*/grown"))


@pytest.mark.parametrize(("options", "given"), [((), []), (("--seed", "7"), ["-seed=7"])])
def test_seed_that_is_given_is_the_fuzzers(
    tmp_path: Path, options: tuple[str, ...], given: list[str]
) -> None:
    assert fuzzed(tmp_path, options=options).returncode == 0
    assert (tmp_path / "work/handle.log").read_text().splitlines()[0] == str(given)


def test_run_that_executes_nothing_fails(tmp_path: Path) -> None:
    done = fuzzed(tmp_path, works=False)

    assert done.returncode == 1
    assert "handle: nothing was executed" in done.stderr


def test_script_without_an_atheris_to_install_says_so(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    script = shutil.copy(TESTS.parent / "ci/fuzz.sh", tmp_path / "ci")
    shutil.copy(TESTS.parent / "ci/prerequisites.sh", tmp_path / "ci")
    # In place of the interpreter: one that has none, and whose pip finds none.
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/bash\n"
        'case "$*" in *platform*) echo 3.99.0; exit ;; *pip*) echo "none for it" ;; esac; exit 1\n'
    )
    python.chmod(0o755)
    done = subprocess.run(
        ["bash", script, "--short"],
        env={**os.environ, "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (
        3,
        "fuzzing: nothing was fuzzed, no atheris for Python 3.99.0: none for it\n",
    )
