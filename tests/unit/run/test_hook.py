# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The hook in child processes: it watches the first one, and is not noticed by any."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rmm_uvm.run import child, handover
from rmm_uvm.run.command import environment
from rmm_uvm.run.request import RunRequest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "run"
    found.mkdir()
    request = RunRequest(
        driver="simulated:64MiB", settings={"initial_pool_size": 16 << 20, "libraries": ()}
    )
    (found / child.REQUEST).write_text(request.to_json())
    return found


def python(folder: Path, code: str, *paths: str) -> subprocess.CompletedProcess[str]:
    inherited = dict(os.environ)
    if paths:
        inherited["PYTHONPATH"] = os.pathsep.join([*paths, inherited.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment(folder, inherited),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parent,
    )


SEES = """
import os, rmm, sys
print(type(rmm.mr.get_per_device_resource(0)).__name__)
print("UVM_RUN_FOLDER" in os.environ, [p for p in sys.path if "hook" in p],
      "hook" in os.environ.get("PYTHONPATH", ""))
"""


def test_first_process_has_the_pool_and_leaves_its_recording(folder: Path) -> None:
    done = python(folder, SEES)
    assert done.stdout.splitlines() == ["UvmResourceAdaptor", "False [] False"]
    assert (done.stderr, done.returncode) == ("", 0)
    recording = handover.load(folder)
    assert recording is not None
    assert recording.simulated
    assert json.loads((folder / child.NOTES).read_text()) == []


def test_second_process_is_left_alone(folder: Path) -> None:
    (folder / child.CLAIM).touch()
    done = python(folder, SEES)
    assert done.stdout.splitlines() == ["CudaMemoryResource", "False [] False"]
    assert (done.stderr, done.returncode) == ("", 0)


def test_process_that_outlives_the_command_is_left_alone(folder: Path) -> None:
    shutil.rmtree(folder)
    done = python(folder, "print('runs')")
    assert (done.stdout, done.stderr) == ("runs\n", "")


def test_other_sitecustomize_is_run_as_if_the_hook_were_not_there(
    folder: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import sys; sys.marked = __file__")
    code = "import sys; print(sys.marked, sys.modules['sitecustomize'].__file__)"
    done = python(folder, code, str(theirs))
    assert done.stdout.split() == [str(theirs / "sitecustomize.py")] * 2
    assert (folder / child.CLAIM).exists()


def test_other_sitecustomize_that_fails_does_not_stop_the_watching(
    folder: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("raise ValueError('theirs')")
    done = python(folder, "print('runs')", str(theirs))
    assert done.stdout == "runs\n"
    assert "ValueError: theirs" in done.stderr  # site's own words
    assert handover.load(folder) is not None


def test_request_that_cannot_be_met_is_one_line_and_the_program_runs(folder: Path) -> None:
    (folder / child.REQUEST).write_text(RunRequest(driver="simulated:1000").to_json())
    done = python(folder, "print('runs')")
    assert (done.stdout, done.returncode) == ("runs\n", 0)
    assert done.stderr.count("\n") == 1
    assert "a simulated device has a multiple of 2 MiB" in done.stderr


def test_request_that_cannot_be_met_leaves_a_program_without_error_stream_alone(
    folder: Path,
) -> None:
    (folder / child.REQUEST).write_text(RunRequest(driver="simulated:1000").to_json())
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" 2>&-', "sh", sys.executable, "-c", "print('runs')"],
        env=environment(folder, os.environ),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("runs\n", 0)
    assert (folder / "complained").exists()


def test_python_without_this_package_says_so_once(folder: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    (hidden / "rmm_uvm").mkdir(parents=True)
    (hidden / "rmm_uvm" / "__init__.py").write_text("raise ImportError('not here')")
    lines = [python(folder, "print('runs')", str(hidden)).stderr for _ in range(2)]
    assert lines[0].endswith(": not here\n")
    assert lines[1] == ""
    assert not (folder / child.CLAIM).exists()


def test_fork_of_the_process_leaves_no_recording_of_its_own(folder: Path) -> None:
    code = """
import os, sys
if os.fork() == 0:
    sys.exit(0)
os.wait()
print(os.path.exists("run/recording.json"))
"""
    assert python(folder, code).stdout == "False\n"
    assert handover.load(folder) is not None
