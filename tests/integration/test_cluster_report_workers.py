# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings gathered from real workers: from each what it has, and a reason where it has none."""

from __future__ import annotations

import asyncio
import sys
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from distributed import Client, LocalCluster, Scheduler, Worker
from distributed.utils import offload

import rmm_uvm
from rmm_uvm.dask.reports import gathered as cluster_report
from rmm_uvm.dask.reports import worker_recording
from rmm_uvm.dask.reports.gathered import ClusterReport
from rmm_uvm.dask.worker.figures import NOT_THERE

# Dask's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

# Workers cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

MIB = 1 << 20
LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


@pytest.fixture(autouse=True, scope="module")
def _kept_until_the_end() -> None:
    """Start what Dask and Python start when they first need it, and keep until the end."""
    resource_tracker.ensure_running()
    asyncio.run(offload(int))


def _install(**keywords: Any) -> None:
    import rmm_uvm

    uvm = rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", ipc_pool_size="4MiB", **keywords)
    uvm.managed_mr.deallocate(uvm.managed_mr.allocate(96 << 20), 96 << 20)


def _lose_package() -> None:
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "rmm_uvm"]:
        del sys.modules[name]
    sys.modules["rmm_uvm"] = None  # type: ignore[assignment]


async def _slow() -> bytes:
    import asyncio

    await asyncio.sleep(60)
    return b""


async def _of_another_version() -> bytes:
    return b"\x80\x05crmm_uvm.watch.recording\nNoSuchThing\n."


def test_report_of_worker_processes_tells_of_each_what_it_can(tmp_path: Path) -> None:
    with (
        LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
        client.run(_install, workers=addresses[:1])
        client.run(_install, monitor=False, workers=addresses[1:2])
        client.run(_lose_package, workers=addresses[2:3])
        told = cluster_report.report(client)

    assert isinstance(told, ClusterReport)
    of = {worker.address: worker for worker in told.workers}
    watched, unwatched, without, empty = (of[address] for address in addresses)
    assert watched.reason == ""
    assert watched.recording is not None
    assert watched.recording.simulated
    assert watched.ipc_pool_bytes == unwatched.ipc_pool_bytes == 4 * MIB
    assert watched.comm["sent_staged_bytes"] == 0
    assert watched.samples_total >= 1
    assert unwatched.reason == "no monitor runs there: as asked"
    assert without.reason == NOT_THERE
    assert empty.reason == "no monitor runs there, and no pool of rmm_uvm is installed"
    assert empty.ipc_pool_bytes is None
    assert "cluster of 4 workers, 3 without figures" in str(told)
    told.save_html(tmp_path / "cluster.html")
    assert "Cluster memory report (simulated)" in (tmp_path / "cluster.html").read_text()


def test_report_of_an_asynchronous_client_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> ClusterReport:
        async with (
            Scheduler(port=0, dashboard=False, **LOCAL) as scheduler,
            Worker(scheduler.address, name="1", **LOCAL),
            Worker(scheduler.address, name="0", **LOCAL),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            told: ClusterReport = await cluster_report.report(client)
            return told

    with rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB"):
        told = asyncio.run(run())

    assert [worker.name for worker in told.workers] == ["0", "1"]
    assert [worker.reason for worker in told.workers] == ["", ""]
    assert told.made


@pytest.mark.parametrize(
    ("instead", "timeout_seconds", "reason"),
    [
        (_slow, 0.5, "it did not answer within 0.5 s: it may be busy; ask again"),
        (_of_another_version, 60, "its recording cannot be read, another version of rmm_uvm may"),
    ],
)
def test_worker_that_answers_late_or_strangely_is_listed_with_that(
    instead: Any, timeout_seconds: float, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> ClusterReport:
        async with (
            Scheduler(port=0, dashboard=False, **LOCAL) as scheduler,
            Worker(scheduler.address, **LOCAL),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            told: ClusterReport = await cluster_report.report(
                client, timeout_seconds=timeout_seconds
            )
            return told

    monkeypatch.setattr(worker_recording, "recorded", instead)
    (worker,) = asyncio.run(run()).workers

    assert worker.reason.startswith(reason)
    assert worker.recording is None


def test_worker_that_leaves_meanwhile_is_listed_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> ClusterReport:
        async with (
            Scheduler(port=0, dashboard=False, **LOCAL) as scheduler,
            Worker(scheduler.address, name="0", **LOCAL) as first,
            Worker(scheduler.address, name="1", **LOCAL),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            of_worker = worker_recording._of_worker

            async def after_it_left(client: Any, address: str, *rest: Any) -> Any:
                if address == first.address:
                    await first.close()
                return await of_worker(client, address, *rest)

            monkeypatch.setattr(worker_recording, "_of_worker", after_it_left)
            told: ClusterReport = await cluster_report.report(client, timeout_seconds=5)
            return told

    with rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB"):
        gone, stayed = asyncio.run(run()).workers

    assert gone.reason == worker_recording.LEFT
    assert stayed.reason == ""
    assert stayed.recording is not None
