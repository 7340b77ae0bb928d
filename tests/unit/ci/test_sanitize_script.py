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

REPOSITORY = Path(__file__).resolve().parents[3]
OTHERS = ("contract", "unit/mortgage/test_engines.py")  # beside tests/gpu
SCRIPT = REPOSITORY / "ci" / "sanitize_gpu.sh"


def run(
    folder: Path, *words: str, status: int | str = 0, **settings: str
) -> subprocess.CompletedProcess[str]:
    tool = folder / "compute-sanitizer"
    tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@"\nexit {status}\n')
    tool.chmod(0o755)
    return subprocess.run(
        ["bash", str(SCRIPT), *words],
        env={**os.environ, "PYTHON": sys.executable, "SANITIZER": str(tool), **settings},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def options(words: list[str], name: str) -> list[str]:
    """Return what follows each of an option's."""
    return [words[at + 1] for at, word in enumerate(words) if word == name]


def test_each_file_runs_under_memcheck_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = run(tmp_path, RMM_UVM_MANAGED_LIMIT="24GiB")
    assert done.returncode == 0, done.stderr
    calls = [call.split() for call in done.stdout.split("--tool\n")[1:]]
    for words in calls:
        assert words[:3] == ["memcheck", "--target-processes", "all"]
        assert words[words.index("--show-backtrace") + 1] == "device"
        assert words[words.index("-m") + 1] == "pytest"
    ignored = set(options(calls[0], "--ignore"))
    files = [words[-1] for words in calls]
    there = {str(path) for path in (REPOSITORY / "tests" / "gpu").glob("test_*.py")}
    assert ignored < there
    others = {str(REPOSITORY / "tests" / one) for one in OTHERS}
    assert sorted(files) == sorted(others | (there - ignored))


def test_every_folder_with_tests_for_gpus_is_among_them() -> None:
    marked = [
        str(path.relative_to(REPOSITORY / "tests"))
        for path in (REPOSITORY / "tests").rglob("*.py")
        if re.search(r"mark\.gpu\b", path.read_text()) and path != Path(__file__)
    ]
    assert all(one.startswith(("gpu/", *OTHERS)) for one in marked)
    assert len(marked) > len(OTHERS)


def test_tests_that_are_named_from_any_folder_run_in_their_place(tmp_path: Path) -> None:
    named = "tests/gpu/test_ipc.py::test_reader"
    done = run(tmp_path, named, "-k", "reader", RMM_UVM_MANAGED_LIMIT="24GiB")
    assert done.stdout.split()[-3:] == [str(REPOSITORY / named), "-k", "reader"]
    assert "test_contents.py" not in done.stdout


def test_what_is_left_out_runs_where_it_is_named_by_itself(tmp_path: Path) -> None:
    settings = {"RMM_UVM_MANAGED_LIMIT": "24GiB"}
    words = run(tmp_path, "x", **settings).stdout.split()
    tests, files = options(words, "--deselect"), options(words, "--ignore")
    words = run(tmp_path, tests[0], *files[:1], **settings).stdout.split()
    assert options(words, "--deselect") == tests[1:]
    assert options(words, "--ignore") == files[1:]
    words = run(tmp_path, tests[0].partition("::")[0], **settings).stdout.split()
    assert options(words, "--deselect") == tests  # its file is not itself


def test_what_is_left_out_exists(tmp_path: Path) -> None:
    words = run(tmp_path, "x", RMM_UVM_MANAGED_LIMIT="24GiB").stdout.split()
    left_out = options(words, "--deselect")
    assert left_out
    for one in left_out:
        file, _, name = one.partition("::")
        assert re.search(rf"^def {name}\(", (REPOSITORY / file).read_text(), re.MULTILINE)


def test_one_file_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    done = run(tmp_path, status=1, RMM_UVM_MANAGED_LIMIT="24GiB")
    assert done.returncode == 1
    assert done.stdout.count("--tool") > 2


def test_wrong_access_is_told_by_the_status_whatever_fails_after_it(tmp_path: Path) -> None:
    status = "$(case $* in *test_contents.py*) echo 86 ;; *) echo 1 ;; esac)"
    assert run(tmp_path, status=status, RMM_UVM_MANAGED_LIMIT="24GiB").returncode == 86


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
