# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Tests for GPUs run only where each GPU that is seen has the cap free."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rmm_uvm

from ...gpu.room import lacking

SCRIPT = Path(__file__).resolve().parents[3] / "ci" / "test_gpu.sh"
GIB = 1 << 30

# What the script asks of the package, of devices with that much free.
PACKAGE = """
import types
from rmm_uvm.errors import UvmError

FREE_BYTES = {free_bytes}

def cuda_driver(device):
    if not FREE_BYTES:
        raise UvmError("no NVIDIA driver")
    memory = lambda: (FREE_BYTES[device], 80 << 30)
    return types.SimpleNamespace(device_count=len(FREE_BYTES), memory=memory)
"""
LIMITS = "def managed_limit_bytes(): return {limit_bytes}\n"


def run(folder: Path, free_gib: list[int], limit_gib: int = 8) -> subprocess.CompletedProcess[str]:
    """Run the script with a package that only says what is free, and no pytest."""
    package = folder / "rmm_uvm"
    package.mkdir()
    free_bytes = [one * GIB for one in free_gib]
    (package / "__init__.py").write_text(PACKAGE.format(free_bytes=free_bytes))
    (package / "errors.py").write_text("class UvmError(Exception): ...\n")
    (package / "_lib").mkdir()
    (package / "_lib" / "__init__.py").touch()
    (package / "_lib" / "limits.py").write_text(LIMITS.format(limit_bytes=limit_gib * GIB))
    (folder / "pytest.py").write_text("print('tests run')\n")
    return subprocess.run(
        ["/bin/bash", str(SCRIPT), "tests"],
        env={
            **os.environ,
            "PYTHON": sys.executable,
            "PYTHONPATH": str(folder),
            "RMM_UVM_MANAGED_LIMIT": f"{limit_gib}GiB",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("free_gib", [[8], [8, 80]])
def test_tests_run_where_each_device_has_the_cap_free(tmp_path: Path, free_gib: list[int]) -> None:
    done = run(tmp_path, free_gib)
    assert (done.returncode, done.stdout) == (0, "tests run\n"), done.stderr


@pytest.mark.parametrize("free_gib", [[7], [7, 80], [80, 7], [80, 80, 7]])
def test_nothing_runs_where_a_device_has_less_free_than_the_cap(
    tmp_path: Path, free_gib: list[int]
) -> None:
    done = run(tmp_path, free_gib)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"free on each device that is seen: {[one * GIB for one in free_gib]}" in done.stderr


def test_nothing_runs_without_a_device_or_with_a_cap_of_more_than_24_gib(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    done = run(tmp_path / "none", [])
    assert (done.returncode, done.stderr) == (2, "test_gpu: no NVIDIA driver\n")
    (tmp_path / "much").mkdir()
    done = run(tmp_path / "much", [80], limit_gib=25)
    assert (done.returncode, done.stdout) == (2, "")


def test_device_has_room_for_tests_while_the_cap_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    device = rmm_uvm.simulated_device(memory="1GiB")
    free_bytes = device.memory()[0]
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", str(free_bytes))
    assert lacking(device) == ""
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", str(free_bytes + 1))
    assert lacking(device) == (
        f"{free_bytes} bytes are free on device 0: fewer than RMM_UVM_MANAGED_LIMIT"
    )
    monkeypatch.delenv("RMM_UVM_MANAGED_LIMIT")
    assert lacking(device) == "RMM_UVM_MANAGED_LIMIT is not set"
