# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Dask workers on managed memory on real GPUs, as many as there are, at most two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.drivers import CudaDriver
from rmm_uvm.errors import UvmError

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(500)]

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def gpus(gpu: CudaDriver) -> int:
    try:
        rmm_uvm.cuda_driver(1)
    except UvmError:
        return 1
    return 2


def run(*arguments: str, managed_limit: str) -> subprocess.CompletedProcess[str]:
    """Run a program that divides `managed_limit` among its workers, or is one of them."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "RMM_UVM_MANAGED_LIMIT": managed_limit},
        capture_output=True,
        text=True,
        timeout=450,
        check=False,
    )


def told_by(scenario: str, gpus: int) -> Any:
    done = run(str(HERE / "dask_program.py"), scenario, str(gpus), managed_limit="1GiB")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def total(told: Any, name: str) -> float:
    return sum(each[name] for each in told["totals"])


def test_results_between_two_workers_arrive_intact_by_way_of_the_pool(gpus: int) -> None:
    told = told_by("with pool", gpus)

    assert [each["resource"][0] for each in told["workers"]] == ["UvmResourceAdaptor"] * 2
    assert len({each["uuid"] for each in told["workers"]}) == gpus
    assert total(told, "sent_staged_bytes") == told["sent_bytes"]
    assert total(told, "sent_overflow_bytes") == 0
    assert total(told, "received_overflow_bytes") == 0


def test_results_between_two_workers_without_pool_arrive_intact_and_are_warned_of(
    gpus: int,
) -> None:
    told = told_by("without pool", gpus)

    assert total(told, "sent_staged_bytes") == 0
    assert total(told, "sent_overflow_bytes") == told["sent_bytes"]
    assert any("ipc-pool-size" in text for heard in told["warnings"] for text in heard)


def test_plugin_on_running_workers_installs_the_pool_where_there_was_none(gpus: int) -> None:
    told = told_by("plugin", gpus)

    assert [each["resource"] for each in told["before"]] == [["CudaMemoryResource"]] * gpus
    assert [each["resource"][0] for each in told["after"]] == ["UvmResourceAdaptor"] * gpus


def test_worker_killed_in_mid_transfer_costs_the_others_nothing(gpus: int, tmp_path: Path) -> None:
    result = tmp_path / "killed.json"

    done = run(
        *(str(BENCHMARKS / "cluster/worker_killed.py"), "--gpus", str(gpus), "--json", str(result)),
        *("--size", "512MiB", "--managed", "2GiB", "--ipc-pool-size", "32MiB"),
        managed_limit="6GiB",
    )

    assert result.exists(), done.stderr
    verdicts = json.loads(result.read_text())["verdicts"]
    assert len(verdicts) == 8
    assert [name for name, reached in verdicts.items() if not reached] == []
