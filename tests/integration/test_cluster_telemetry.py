# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of real workers on simulated devices arrive at a real scheduler."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from distributed import Scheduler, Worker
from distributed.utils import offload
from tornado.httpclient import AsyncHTTPClient

import rmm_uvm
from rmm_uvm.dask.worker import telemetry
from rmm_uvm.dask.worker.figures import NAME, NO_PRELOAD, WorkerFigures

# Dask's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

MIB = 1 << 20
LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


@pytest.fixture(autouse=True, scope="module")
def _offload_thread() -> None:
    """Start the thread that Dask starts when it first needs one, and keeps until the end."""
    asyncio.run(offload(int))


def test_heartbeat_brings_the_figures_to_the_scheduler_and_metrics_to_prometheus() -> None:
    async def told() -> tuple[Any, str]:
        async with (
            Scheduler(port=0, dashboard=False, **LOCAL) as scheduler,
            Worker(scheduler.address, **LOCAL) as worker,
        ):
            telemetry.attach(worker)
            await worker.heartbeat()
            url = f"http://127.0.0.1:{worker.http_server.port}/metrics"
            answer = await AsyncHTTPClient().fetch(url)
            telemetry.detach(worker)
            return scheduler.workers[worker.address].metrics, answer.body.decode()

    with rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", ipc_pool_size="4MiB") as installed:
        pointer = installed.managed_mr.allocate(MIB)
        assert installed.monitor is not None
        installed.monitor._tick()
        metrics, exported = asyncio.run(told())
        installed.managed_mr.deallocate(pointer, MIB)

    figures = WorkerFigures.from_metrics(metrics)
    assert (figures.footprint_bytes, figures.ipc_pool_bytes) == (MIB, 4 * MIB)
    assert figures.simulated
    assert 'rmm_uvm_ipc_pool_bytes{device="0"} 4.194304e+06' in exported
    assert 'rmm_uvm_comm_bytes_total{direction="sent",way="staged"}' in exported


def test_worker_that_is_not_attached_tells_the_scheduler_nothing() -> None:
    async def told() -> Any:
        async with (
            Scheduler(port=0, dashboard=False, **LOCAL) as scheduler,
            Worker(scheduler.address, **LOCAL) as worker,
        ):
            await worker.heartbeat()
            return scheduler.workers[worker.address].metrics

    metrics = asyncio.run(told())

    assert NAME not in metrics
    assert WorkerFigures.from_metrics(metrics).reason == NO_PRELOAD


def test_figures_that_fail_leave_the_heartbeat_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: telemetry.Telemetry) -> WorkerFigures:
        raise RuntimeError("as asked")

    async def told() -> Any:
        async with (
            Scheduler(port=0, dashboard=False, **LOCAL) as scheduler,
            Worker(scheduler.address, **LOCAL) as worker,
        ):
            telemetry.attach(worker)
            await worker.heartbeat()
            telemetry.detach(worker)
            return scheduler.workers[worker.address].metrics

    monkeypatch.setattr(telemetry.Telemetry, "figures", fail)
    metrics = asyncio.run(told())

    assert metrics["memory"] > 0
    assert metrics[NAME]["reason"] == "figures could not be read: RuntimeError: as asked"
