# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a command made, and its child, where SIGTERM ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rmm_uvm.run.tidying import temporary_folder

PROGRAM = """
import os, signal, subprocess, sys, time
from rmm_uvm.run.tidying import ended_with_us, temporary_folder
with temporary_folder("a-") as outer, temporary_folder("b-") as inner:
    (outer / "file").touch()
    (inner / "file").touch()
    with temporary_folder("c-"):
        pass
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with ended_with_us(child):
        print(child.pid, len(list(outer.parent.iterdir())), flush=True)
        {then}
"""


def run(folder: Path, then: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.format(then=then)],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_process_that_is_terminated_leaves_neither_folders_nor_its_child(tmp_path: Path) -> None:
    done = run(tmp_path, "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)")
    assert done.returncode == -signal.SIGTERM, done.stderr
    child, folders = done.stdout.split()
    assert folders == "2"
    assert list(tmp_path.iterdir()) == []
    assert not Path("/proc", child).exists()


def test_fork_that_is_terminated_takes_nothing_away(tmp_path: Path) -> None:
    fork = "if os.fork() == 0: os.kill(os.getpid(), signal.SIGTERM)"
    done = run(tmp_path, f"{fork}\n        os.wait(); print(outer.exists()); child.kill()")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[2] == "True"
    assert list(tmp_path.iterdir()) == []


def test_folder_is_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = os.umask(0)
    try:
        with temporary_folder("rmm-uvm-test-") as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_signal_is_the_systems_again_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with temporary_folder("rmm-uvm-test-") as folder:
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
    assert not folder.exists()
