# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Our figures at the endpoint that a Dask worker has anyway."""

from __future__ import annotations

import asyncio

import pytest
from distributed import Scheduler, Worker
from distributed.utils import offload
from tornado.httpclient import AsyncHTTPClient

from rmm_uvm.integrations import prometheus
from rmm_uvm.watch.monitor import Monitor

# Dask's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(autouse=True, scope="module")
def _offload_thread() -> None:
    """Start the thread that Dask starts when it first needs one, and keeps until the end."""
    asyncio.run(offload(int))


async def _metrics_of_a_worker() -> str:
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler,
        Worker(scheduler.address, host="127.0.0.1", dashboard_address="127.0.0.1:0") as worker,
    ):
        url = f"http://127.0.0.1:{worker.http_server.port}/metrics"
        answer = await AsyncHTTPClient().fetch(url)
        return answer.body.decode()


def test_registered_figures_are_served_by_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    with Monitor(publish=False):
        assert prometheus.register()
        try:
            text = asyncio.run(_metrics_of_a_worker())
        finally:
            prometheus.unregister()

    assert "dask_worker_tasks" in text
    assert 'rmm_uvm_migrated_bytes_total{device="0",direction="host_to_device"}' in text


def test_unregistered_figures_are_not_served() -> None:
    assert "rmm_uvm_" not in asyncio.run(_metrics_of_a_worker())
