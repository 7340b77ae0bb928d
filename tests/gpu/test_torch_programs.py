# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled, distributed and checkpointed models past a budget on a GPU: they train as without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.gpu

PROGRAM = Path(__file__).with_name("torch_program.py")


def run(what: str, folder: Path) -> dict[str, Any]:
    """Run the program; return what it says once it has trained past its budget."""
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), what, str(folder)],
        env={**os.environ, "RMM_UVM_MANAGED_LIMIT": "2GiB"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    assert result["acting"]
    assert result["residency"]["evicted_bytes"] > 0
    assert result["residency"]["failed_calls"] == 0
    return result


def test_compiled_model_past_the_budget_has_the_losses_of_one_that_is_not_compiled(
    tmp_path: Path,
) -> None:
    pytest.importorskip("triton", reason="torch's default backend compiles with Triton")
    if not any(shutil.which(one) for one in (os.environ.get("CC"), "gcc", "clang") if one):
        pytest.skip("Triton needs a C compiler, and there is none")
    result = run("compiled", tmp_path)
    assert result["graphs"] > 0  # it was compiled
    assert result["losses"] == pytest.approx(result["expected"], rel=1e-3)
    assert result["losses"][-1] < result["losses"][0]


def test_distributed_model_past_the_budget_has_the_losses_of_the_model_alone(
    tmp_path: Path,
) -> None:
    if not torch.distributed.is_nccl_available():
        pytest.skip("this build of torch has no NCCL")
    result = run("distributed", tmp_path)
    assert result["losses"] == result["expected"]
    assert result["residency"]["dropped_bytes"] == 0  # several streams
    assert result["segments"]["unfenced"] > 0


def test_checkpointed_model_past_the_budget_has_its_losses_and_has_them_after_it(
    tmp_path: Path,
) -> None:
    # Torch's telling loses errors that pass through its operators, such as that by which
    # checkpointing ends.
    result = run("checkpointed", tmp_path)
    assert result["losses"] == result["expected"] == result["after"]
