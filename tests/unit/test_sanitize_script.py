# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What ci/sanitize_gpu.sh runs: under a tool that only says what it was asked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "ci" / "sanitize_gpu.sh"


def run(
    folder: Path, *words: str, status: int = 0, **settings: str
) -> subprocess.CompletedProcess[str]:
    tool = folder / "compute-sanitizer"
    tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@"\nexit {status}\n')
    tool.chmod(0o755)
    return subprocess.run(
        ["bash", str(SCRIPT), *words],
        env={**os.environ, "PYTHON": sys.executable, "SANITIZER": str(tool), **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_tests_run_under_memcheck_with_every_process_of_theirs(tmp_path: Path) -> None:
    done = run(tmp_path, RMM_UVM_MANAGED_LIMIT="24GiB")
    words = done.stdout.split()
    assert done.returncode == 0, done.stderr
    assert words[:4] == ["--tool", "memcheck", "--target-processes", "all"]
    assert words[words.index("-m") + 1] == "pytest"
    selected = [Path(word) for word in words if word.endswith(".py") and "ignore" not in word]
    assert {path.name for path in selected} >= {"test_contents.py", "test_residency.py"}
    assert all(path.exists() for path in selected)


def test_tests_that_are_named_run_in_their_place(tmp_path: Path) -> None:
    done = run(tmp_path, "tests/gpu/test_ipc.py", "-k", "reader", RMM_UVM_MANAGED_LIMIT="24GiB")
    assert done.stdout.split()[-3:] == ["tests/gpu/test_ipc.py", "-k", "reader"]
    assert "test_contents.py" not in done.stdout


def test_what_is_left_out_exists(tmp_path: Path) -> None:
    words = run(tmp_path, RMM_UVM_MANAGED_LIMIT="24GiB").stdout.split()
    ignored = [words[at + 1] for at, word in enumerate(words) if word == "--ignore"]
    assert len(ignored) == 2
    assert all(Path(path).exists() for path in ignored)
    file, _, name = words[words.index("--deselect") + 1].partition("::")
    assert re.search(rf"^def {name}\(", (REPOSITORY / file).read_text(), re.MULTILINE)


@pytest.mark.parametrize("status", [1, 86])
def test_failure_of_a_test_or_of_an_access_is_the_scripts(tmp_path: Path, status: int) -> None:
    assert run(tmp_path, status=status, RMM_UVM_MANAGED_LIMIT="24GiB").returncode == status


def test_nothing_runs_without_a_cap(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 2
    assert "set RMM_UVM_MANAGED_LIMIT" in done.stderr
    assert done.stdout == ""


def test_missing_tool_is_told_with_where_it_comes_from(tmp_path: Path) -> None:
    bare = {"RMM_UVM_MANAGED_LIMIT": "24GiB", "CUDA_HOME": str(tmp_path)}
    done = run(
        tmp_path, **{**bare, "SANITIZER": str(tmp_path / "nothing"), "PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 2
    assert "install the toolkit's, or set SANITIZER" in done.stderr


def test_tool_of_the_toolkit_is_found(tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    settings = {"SANITIZER": "", "CUDA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = run(bin_folder, RMM_UVM_MANAGED_LIMIT="24GiB", **settings)
    assert done.returncode == 0
    assert "memcheck" in done.stdout
