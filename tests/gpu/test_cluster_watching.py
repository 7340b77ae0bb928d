# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker on a real device tells in its heartbeat, and what that costs."""

from __future__ import annotations

import asyncio
import statistics
import time
import warnings

import cupy
import pytest

import rmm_uvm
from rmm_uvm.dask.reports import worker_recording
from rmm_uvm.dask.reports.gathered import ClusterReport
from rmm_uvm.dask.reports.worker_recording import WorkerRecording
from rmm_uvm.dask.worker.telemetry import Telemetry
from rmm_uvm.drivers import CudaDriver

pytestmark = pytest.mark.gpu

MIB = 1 << 20
# What 50 us of Python take on a machine that does something else as well.
MOST_SECONDS = 300e-6


def test_heartbeat_tells_what_the_device_holds_and_moved(gpu: CudaDriver) -> None:
    with rmm_uvm.reinitialize("256MiB", "512MiB", ipc_pool_size="64MiB") as uvm:
        assert uvm.monitor is not None
        read = Telemetry()
        read()
        array = cupy.ones(128 * MIB, dtype=cupy.uint8)
        uvm.managed_mr.driver.prefetch(array.data.ptr, array.nbytes, "host")
        uvm.managed_mr.driver.synchronize()
        uvm.monitor.snapshot()  # takes a sample
        told = read()
        del array

    assert told["reason"] == ""
    assert told["device_name"] == gpu.info.name
    assert told["simulated"] is False
    assert told["footprint_bytes"] == 128 * MIB
    assert told["capacity_bytes"] > 512 * MIB
    assert told["device_to_host_bytes"] >= 128 * MIB
    assert told["device_to_host_bytes_per_second"] > 0
    assert told["ipc_pool_bytes"] == 64 * MIB


def test_heartbeat_costs_little(gpu: CudaDriver) -> None:
    with rmm_uvm.reinitialize("64MiB", "64MiB") as uvm:
        assert uvm.monitor is not None
        read = Telemetry()
        seconds = []
        for _ in range(300):
            begin = time.perf_counter()
            read()
            seconds.append(time.perf_counter() - begin)

    assert statistics.median(seconds) < MOST_SECONDS


def test_recording_of_a_worker_makes_a_report_of_a_cluster(gpu: CudaDriver) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rmm_uvm.errors.FindingWarning)
        with rmm_uvm.reinitialize("64MiB", "64MiB"):
            known = worker_recording.unpacked(asyncio.run(worker_recording.recorded()))
    worker = WorkerRecording("tcp://127.0.0.1:1", "0", "127.0.0.1", **known)

    assert worker.reason == ""
    assert gpu.info.name in ClusterReport([worker]).html()
    assert "cluster of 1 worker, watched for" in str(ClusterReport([worker]))
