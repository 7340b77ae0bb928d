# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What processes are called: command lines of which every word is known again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rmm_uvm.machine.process_facts import command_line, command_of
from rmm_uvm.top.columns import label
from rmm_uvm.top.program import program_name
from rmm_uvm.top.view import ProcessRow
from rmm_uvm.watch.telling.board import Board, read_board


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/a dir with ü space/etl job.py", "--out", "x.csv"], "etl job.py"),
        (["-W", "ignore", "-X", "faulthandler", "self.py"], "self.py"),
        (["-Wignore", "-Xfaulthandler", "-uW", "error", "self.py"], "self.py"),
        (["--check-hash-based-pycs", "always", "self.py", "-m", "x"], "self.py"),
        (["--", "self.py"], "self.py"),
        (["-m", "distributed.nanny", "a.py"], "-m distributed.nanny"),
        (["-Im", "etl", "a.py"], "-m etl"),
        (["-metl"], "-m etl"),
        (["-c", "print(1)", "a.py"], "python3"),
        (["-Wignore", "-cprint(1)", "a.py"], "python3"),
        (["-", "a.py"], "python3"),
        (["-W"], "python3"),
        ([], "python3"),
        (["it's.py"], "it's.py"),
    ],
)
def test_python_is_called_as_what_it_runs(words: list[str], expected: str) -> None:
    command = command_line(["/opt/my python/bin/python3", *words])
    assert program_name("python3", command) == expected
    row = ProcessRow(7, "python3", command)
    assert label(row) == expected
    assert row.to_dict()["name"] == expected


def test_launcher_is_called_as_what_it_runs_and_others_keep_their_name() -> None:
    assert ProcessRow(7, "rmm-uvm", "python3 'etl job.py'").to_dict()["name"] == "etl job.py"
    assert ProcessRow(7, "nvcc", "nvcc a.cu").to_dict()["name"] == "nvcc"


def test_command_line_of_another_kind_is_read_as_far_as_it_goes() -> None:
    assert program_name("python3", "python3 it's.py") == "it's.py"


def test_words_of_a_process_are_told_apart() -> None:
    code = "print(flush=True); input()"
    words = [sys.executable, "-c", code, "two words", "", "end"]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()  # it runs: before, the kernel may have no words of it yet
        assert command_of(child.pid).endswith(f"-c '{code}' 'two words' '' end")
    finally:
        child.communicate(b"\n")


def test_zeros_behind_a_title_are_no_words(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(b"worker\0\0\0\0")
    assert command_of(7, tmp_path) == "worker"
    (tmp_path / "7" / "cmdline").write_bytes(b"")
    assert command_of(7, tmp_path) == ""


def test_long_command_line_is_cut_and_still_read() -> None:
    command = command_line(["python3", "etl job.py", "x y" * 1000, "z"], 1000)
    assert 990 <= len(command) <= 1010
    assert program_name("python3", command) == "etl job.py"


def test_board_keeps_the_words_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(sys, "orig_argv", ["python3", "/a b/etl job.py"])
    board = Board([tmp_path])
    board.publish(
        {"interval_seconds": 1.0, "devices": [], "snapshots": [], "sources": {}, "findings": []}
    )
    (found,) = read_board([tmp_path])
    board.remove()
    assert found.pid == os.getpid()
    assert program_name("python3", found.command) == "etl job.py"
