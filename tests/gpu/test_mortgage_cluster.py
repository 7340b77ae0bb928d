# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage pipeline on Dask workers with GPUs: cuDF and XGBoost over the installed pools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cudf")
pytest.importorskip("dask_cuda")
pytest.importorskip("xgboost")

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).with_name("mortgage_cluster_program.py")


def told_by(scenario: str, folder: Path) -> dict[str, Any]:
    """Return what the program prints; 8 GiB of managed memory in all."""
    done = subprocess.run(
        [sys.executable, "-P", str(PROGRAM), scenario, str(folder)],
        env={**os.environ, "RMM_UVM_MANAGED_LIMIT": "4GiB"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_run_on_gpus_gives_the_features_of_plain_pandas(tmp_path: Path) -> None:
    told = told_by("compared", tmp_path)

    assert not told["out_of_memory"]
    assert not told["simulated"]
    assert told["features"] in ("identical", "equal to 1e-6")
    assert all(told["peak_bytes"])
    assert told["training_workers"] == len(told["peak_bytes"])
    assert told["auc"] > 0.6


def test_pool_that_is_too_small_is_reported_with_its_worker(tmp_path: Path) -> None:
    told = told_by("too small", tmp_path)

    assert told["part"] == "2000Q1"
    assert told["worker"] in told["workers"]
