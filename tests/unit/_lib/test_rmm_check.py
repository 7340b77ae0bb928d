# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Using the package beside another RMM: one line that says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[3]
PRETEND = """
import importlib.metadata as metadata
true_version, pretended = metadata.version, {pretended}
def version(name):
    if pretended.get(name, "") is None:
        raise metadata.PackageNotFoundError(name)
    return pretended.get(name) or true_version(name)
metadata.version = version
"""
OTHER_MINOR = PRETEND.format(pretended={"rmm": None, "rmm-cu12": None, "rmm-cu13": "26.12.0"})
BOTH = PRETEND.format(pretended={"rmm": None, "rmm-cu12": "26.10.0", "rmm-cu13": "26.10.0"})
NO_RMM = PRETEND.format(pretended={"rmm-cu12": None, "rmm-cu13": None, "rmm": None}) + (
    "import sys; sys.modules['rmm'] = None"
)
NOT_COMPILED = """
import pathlib
true_glob = pathlib.Path.glob
def glob(path, pattern):
    found = true_glob(path, pattern)
    if pattern != "rmm-*/mr.*.so":
        return found
    return [path / name / "mr.abi3.so" for name in ("rmm-26.02", "rmm-old")]
pathlib.Path.glob = glob
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def use_after(preparation: str) -> subprocess.CompletedProcess[str]:
    return run(f"{preparation}\nfrom rmm_uvm import reinitialize")


@pytest.mark.parametrize(
    ("preparation", "message"),
    [
        (OTHER_MINOR, "rmm-cu13 26.12.0 is not tested, 26.06, 26.08 and 26.10 are: pip install"),
        (BOTH, "rmm-cu12 and rmm-cu13 are installed over each other: pip uninstall rmm-cu12"),
        (NO_RMM, "RMM is not installed: pip install"),
        (NOT_COMPILED, "it is compiled for RMM 26.02, beside "),
    ],
)
def test_use_beside_another_rmm_is_one_line(preparation: str, message: str) -> None:
    result = use_after(preparation)
    assert result.returncode != 0
    assert result.stderr.splitlines()[-1].startswith(
        f"ImportError: rmm_uvm cannot be used: {message}"
    )


def test_use_beside_the_right_rmm_works_and_is_silent() -> None:
    result = use_after("")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_import_works_beside_any_rmm_so_that_the_doctor_can_start() -> None:
    result = run(f"{NO_RMM}\nimport rmm_uvm")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(
    bool(list(SOURCES.glob("rmm_uvm/_lib/*.so"))), reason="the sources are compiled in place"
)
def test_import_from_the_sources_says_so_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import rmm_uvm; rmm_uvm.reinitialize"],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: these are the sources of rmm_uvm, which are not compiled: "
        "run from another directory"
    )


def test_use_loads_no_optional_library() -> None:
    watched = {"cudf", "cupy", "torch", "pandas", "matplotlib", "xgboost", "distributed"}
    result = run("import sys; from rmm_uvm import reinitialize; print(*sys.modules)")
    assert watched.isdisjoint(result.stdout.split())
