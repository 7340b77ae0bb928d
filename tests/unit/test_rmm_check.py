# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Importing beside another RMM: one line that says what to install, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

OTHER_MINOR = "import rmm; rmm.__version__ = '26.12.00'"
CUDA_12 = """
import importlib.metadata as metadata
version = metadata.version
metadata.version = lambda name: '26.10.0' if name == 'librmm-cu12' else version(name)
"""
NO_RMM = "import sys; sys.modules['rmm'] = None"


def import_after(preparation: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", f"{preparation}\nimport rmm_uvm"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("preparation", "message"),
    [
        (OTHER_MINOR, "rmm_uvm is built for RMM 26.10 and found 26.12.00: install rmm-cu13==26.10.*"),
        (CUDA_12, "rmm_uvm is built for CUDA 13 and found RMM for CUDA 12: uninstall rmm-cu12"),
        (NO_RMM, "rmm_uvm needs RMM 26.10: install rmm-cu13==26.10.*"),
    ],
)
def test_import_beside_another_rmm_is_one_line(preparation: str, message: str) -> None:
    result = import_after(preparation)
    assert result.returncode != 0
    assert result.stderr.splitlines()[-1].startswith(f"ImportError: {message}")


def test_import_beside_the_right_rmm_works_and_is_silent() -> None:
    result = import_after("")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_import_initializes_no_gpu_and_loads_no_optional_library() -> None:
    watched = "('cudf', 'cupy', 'torch', 'pandas', 'numpy', 'matplotlib', 'xgboost')"
    result = import_after("")
    assert result.returncode == 0
    code = f"import sys, rmm; before = set(sys.modules); import rmm_uvm; print([name for name in {watched} if name in set(sys.modules) - before])"
    out = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert out.stdout.strip() == "[]"
