# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`local_cluster` on all GPUs there are, and dask-cuda's options beside our preload."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.drivers import CudaDriver

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).with_name("local_cluster_program.py")
MIB = 1 << 20


def told_by(scenario: str) -> tuple[dict[str, Any], str]:
    """Return what the program prints, and what its processes log."""
    done = subprocess.run(
        [sys.executable, "-P", str(PROGRAM), scenario],
        env={**os.environ, "RMM_UVM_MANAGED_LIMIT": "1GiB"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told, done.stderr


def test_cluster_in_one_line_has_the_pool_on_every_gpu_and_no_spilling(gpu: CudaDriver) -> None:
    told, said = told_by("cluster")
    workers = told["workers"]

    assert told["kind"] == "LocalCUDACluster"
    assert "simulated" not in said
    assert {"rmm-uvm", "rmm-uvm-refused-starts"} <= set(told["scheduler_plugins"])
    for worker in workers:
        assert worker["resource"] == "UvmResourceAdaptor"
        assert not worker["simulated"]
        assert worker["maximum_bytes"] == 512 * MIB
        assert worker["ipc_bytes"] == 256 * MIB
        assert worker["host_sharers"] == len(workers)
        assert not worker["spills_device"]
        assert worker["told"] == gpu.info.name


def test_memory_that_dask_sees_grows_by_the_data_that_left_the_device(gpu: CudaDriver) -> None:
    told, _ = told_by("cluster")
    for seen in told["pause"]:
        # Other memory of the process comes and goes by a few MiB.
        assert 0.8 < (seen["on_host"] - seen["on_device"]) / seen["nbytes"] < 1.2


def test_memory_options_of_dask_cuda_are_refused_by_the_worker(gpu: CudaDriver) -> None:
    told, said = told_by("rmm options")
    assert not told["started"]
    (line,) = [each for each in said.splitlines() if "this worker does not start" in each]
    assert "--rmm-pool-size of dask-cuda would replace or wrap the managed pool" in line


def test_spilling_of_dask_cuda_is_remarked_on_and_the_worker_starts(gpu: CudaDriver) -> None:
    told, _ = told_by("spilling")
    assert told["started"]
    assert sum("set device_memory_limit=0" in line for line in told["lines"]) == 1
    assert sum("managed pool on" in line for line in told["lines"]) == 1
