# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run -- COMMAND``: whole runs in processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .started import COMMAND, SIMULATED, USES_THE_POOL, run, script


def test_command_gives_its_first_python_the_pool_and_a_summary(tmp_path: Path) -> None:
    path = script(tmp_path, USES_THE_POOL)
    figures = tmp_path / "figures.json"
    shell = f"{sys.executable} {path}; {sys.executable} {path.with_name('second.py')}"
    script(tmp_path, "import rmm; print(rmm.mr.get_per_device_resource(0))", "second.py")
    done = run(tmp_path, *SIMULATED, "--json", figures, "--", "sh", "-c", f"{shell}; exit 5")
    assert done.returncode == 5
    assert done.stdout.splitlines()[0] == "UvmResourceAdaptor"
    assert "CudaMemoryResource" in done.stdout.splitlines()[1]
    assert "simulated" in done.stderr.splitlines()[0]
    assert "40.00 MiB" in done.stderr
    assert json.loads(figures.read_text())["simulated"] is True


def test_command_that_is_no_python_is_watched_from_outside(tmp_path: Path) -> None:
    done = run(tmp_path, "--", "sh", "-c", "exit 4")
    assert done.returncode == 4
    assert done.stderr.startswith("rmm_uvm: no device was watched: the command did not use CUDA\n")


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (["no-such-command-here"], 127, "Error: command not found: no-such-command-here\n"),
        (["./data"], 126, "Error: ./data cannot be run: Permission denied\n"),
    ],
)
def test_command_that_cannot_start_is_one_line(
    tmp_path: Path, words: list[str], status: int, line: str
) -> None:
    script(tmp_path, "", "data")
    done = run(tmp_path, "--", *words)
    assert (done.stdout, done.stderr, done.returncode) == ("", line, status)


def test_command_interrupted_passes_the_signal_on_and_tells(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    text = f"trap 'exit 9' TERM; : > {ready}; while :; do sleep 0.01; done"
    process = subprocess.Popen(
        [*COMMAND, "--", "sh", "-c", text], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not ready.exists():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 9
    assert "the command did not use CUDA" in errors
