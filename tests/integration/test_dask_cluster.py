# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Clusters with real worker processes, on simulated devices."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import cloudpickle
import distributed
import pytest
import rmm
from distributed import Client, LocalCluster, Nanny, SpecCluster
from distributed.process import AsyncProcess

import rmm_uvm
import rmm_uvm.dask
from rmm_uvm.dask.worker.figures import WorkerFigures
from rmm_uvm.errors import ConfigurationError

from .dask_in_process import start_offload_thread

# Dask's own warnings are no business of these tests.
pytestmark = pytest.mark.filterwarnings("default")

# Workers cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

MIB = 1 << 20
# A port is taken even so; let it be a free one.
NO_DASHBOARD: dict[str, Any] = {
    "dashboard_address": None,
    "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
}


@pytest.fixture(autouse=True, scope="module")
def _resource_tracker() -> None:
    """Start what Python and Dask start when they first need it, and keep until the end."""
    resource_tracker.ensure_running()
    start_offload_thread()


def local_cluster(n_workers: int, **keywords: Any) -> Any:
    """Start a cluster as light as it can be."""
    return rmm_uvm.dask.local_cluster(
        n_workers, **{"simulated": "64MiB", **NO_DASHBOARD, **keywords}
    )


def allocate_twice_the_device(number: int) -> dict[str, Any]:
    """Return what one worker did; a task."""
    installation = rmm_uvm.current_installation()
    pieces = [rmm.DeviceBuffer(size=16 * MIB, mr=installation.managed_mr) for _ in range(8)]
    snapshot = installation.monitor.snapshot()
    return {
        "number": number,
        "worker": distributed.get_worker().address,
        "allocated_bytes": sum(piece.size for piece in pieces),
        "footprint_bytes": snapshot.footprint_bytes,
        "simulated": snapshot.simulated,
    }


def sizes() -> tuple[int, str]:
    found = rmm_uvm.current_installation().devices[0].sizes
    return found.maximum_bytes, found.maximum_reason


# --- local_cluster -----------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.timeout(300)  # half a minute on two free cores
def test_sixteen_simulated_workers_each_do_a_task_on_more_data_than_fit() -> None:
    with local_cluster(16) as cluster, Client(cluster) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        # A function of this module would be sent by its name, which workers do not know.
        futures = [
            client.submit(
                lambda number: allocate_twice_the_device(number), number, workers=[address]
            )
            for number, address in enumerate(workers)
        ]
        results = client.gather(futures)

    assert len(workers) == 16
    assert {result["worker"] for result in results} == set(workers)
    assert all(result["allocated_bytes"] == 128 * MIB for result in results)
    assert all(result["footprint_bytes"] == 128 * MIB for result in results)
    assert all(result["simulated"] for result in results)
    told = [WorkerFigures.from_metrics(worker["metrics"]) for worker in workers.values()]
    assert all(figures.simulated for figures in told)
    assert [figures.ipc_pool_bytes for figures in told] == [8 * MIB] * 16


def test_four_workers_of_a_host_count_on_a_quarter_of_its_memory_each(tmp_path: Path) -> None:
    # What is available changes from moment to moment: all are told the same.
    preload = tmp_path / "available.py"
    preload.write_text(
        "from rmm_uvm.pool import build as pools\n"
        "from rmm_uvm.machine.host_memory import HostMemory\n"
        "pools.host_memory = lambda **_: HostMemory(64 << 30, 40 << 30)\n"
    )
    with local_cluster(4, preload=[str(preload)]) as cluster, Client(cluster) as client:
        found = list(client.run(sizes).values())

    assert all("shared by 4 workers" in reason for _, reason in found)
    assert [maximum_bytes for maximum_bytes, _ in found] == [9 << 30] * 4


def test_first_line_that_is_logged_tells_of_simulated_devices(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="rmm_uvm"), local_cluster(1):
        pass

    assert caplog.records[0].getMessage() == (
        "rmm_uvm: workers on simulated devices of 64MiB, as asked: no GPU is used"
    )


def test_settings_and_options_of_dask_reach_the_workers() -> None:
    with (
        local_cluster(
            1, initial_pool_size="16MiB", monitor={"interval_seconds": 1}, memory_limit="1GiB"
        ) as cluster,
        Client(cluster) as client,
    ):
        (found,) = client.run(lambda: rmm_uvm.current_installation().arguments).values()
        (limit_bytes,) = client.run(
            lambda dask_worker: dask_worker.memory_manager.memory_limit
        ).values()

    assert found["initial_pool_size"] == 16 * MIB
    assert found["monitor"] == {"interval_seconds": 1}
    assert limit_bytes == 1 << 30


def test_worker_that_cannot_have_its_pool_ends_the_cluster_with_its_line() -> None:
    before = set(SpecCluster._instances)
    with pytest.raises(ConfigurationError) as caught:
        local_cluster(2, initial_pool_size="1PiB")

    assert str(caught.value).startswith("initial_pool_size is 1.00 PiB, over the maximum of")
    assert str(caught.value).endswith("(one more worker did not start either)")
    left = {each for each in SpecCluster._instances if each not in before}
    assert all(each.status.name == "closed" for each in left)


def kill_late(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill the worker of a cluster by its nanny, where nothing is left of the nanny's time then."""
    (nanny,) = cluster.workers.values()
    nanny.auto_restart = False
    pid = nanny.pid
    os.kill(pid, signal.SIGSTOP)  # it cannot end by itself
    late = itertools.count(time.time(), 60)
    monkeypatch.setattr("distributed.nanny.time", lambda: next(late))

    async def kill_after_the_look(_: AsyncProcess) -> None:
        asyncio.get_running_loop().call_later(0.2, os.kill, pid, signal.SIGKILL)

    monkeypatch.setattr(AsyncProcess, "kill", kill_after_the_look)
    stopped = nanny.process.stopped
    try:
        cluster.sync(nanny.kill, timeout=0.5)
        assert stopped.is_set()
    finally:
        cluster.sync(stopped.wait)


def test_worker_that_is_killed_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with local_cluster(1) as cluster:
        kill_late(cluster, monkeypatch)


def test_dasks_own_nanny_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    # Once it does, rmm_uvm.dask.worker.nanny can go.
    with local_cluster(1, worker_class=Nanny) as cluster, pytest.raises(TimeoutError):
        kill_late(cluster, monkeypatch)


def test_cluster_that_cannot_even_be_begun_raises_its_own_error() -> None:
    with pytest.raises(TypeError, match="security must be a Security object") as raised:
        local_cluster(1, security="none")
    # Dask's warning of a cluster that is not closed, of one that could not even be made.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del raised
        gc.collect()


def test_script_without_a_guard_ends_with_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import rmm_uvm.dask\n"
        "rmm_uvm.dask.local_cluster(1, simulated='64MiB', dashboard_address=':0')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-P", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert 'follows it, under if __name__ == "__main__":' in ended.stderr


# --- Dask's and dask-cuda's own ----------------------------------------------------------------


@pytest.fixture
def _two_gpus_for_dask_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let dask-cuda run without a GPU, as its own tests do; our workers simulate theirs."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("DASK_CUDA_TEST_DISABLE_DEVICE_SPECIFIC", "1")
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    # It puts this into the environment of the process that makes the cluster, and leaves it there.
    monkeypatch.setenv("RAPIDS_NO_INITIALIZE", "True")


@pytest.mark.usefixtures("_two_gpus_for_dask_cuda")
def test_cluster_of_dask_cuda_with_our_preload_has_the_pool_on_each_worker(
    capfd: pytest.CaptureFixture[str],
) -> None:
    from dask_cuda import LocalCUDACluster

    with (
        LocalCUDACluster(
            device_memory_limit=0,
            preload=["rmm_uvm.dask"],
            **NO_DASHBOARD,
            preload_argv=["--initial-pool-size", "16MiB"],
        ) as cluster,
        Client(cluster) as client,
    ):
        found = client.run(lambda: rmm_uvm.current_installation().devices[0].sizes)
    assert [each.initial_bytes for each in found.values()] == [16 * MIB] * 2
    assert all("shared by 2 workers" in each.maximum_reason for each in found.values())
    # dask-cuda's own preload got its flag, which cannot be done here, and none of ours.
    said = capfd.readouterr().err
    assert said.count("Unable to start CUDA Context") == 2
    assert "No such option" not in said


@pytest.fixture
def _simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")


@pytest.fixture
def cluster_of_dask(_simulated: None) -> Iterator[tuple[LocalCluster, Client]]:
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            preload=["rmm_uvm.dask"],
            **NO_DASHBOARD,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield cluster, client


def end_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def nanny_is_closed(cluster: LocalCluster) -> str:
    (nanny,) = cluster.workers.values()
    await nanny.finished()
    return str(nanny.status.name)


def test_worker_that_comes_back_has_the_pool_again(
    cluster_of_dask: tuple[LocalCluster, Client],
) -> None:
    _, client = cluster_of_dask
    (before,) = client.run(os.getpid).values()
    client.restart()
    (found,) = client.run(lambda: (os.getpid(), rmm_uvm.current_installation() is None)).values()
    assert found[0] != before
    assert found[1] is False


def test_worker_that_comes_back_and_cannot_have_the_pool_is_not_started_for_ever(
    cluster_of_dask: tuple[LocalCluster, Client],
) -> None:
    cluster, client = cluster_of_dask
    client.run(
        lambda dask_worker: dask_worker.env.update({"RMM_UVM_MANAGED_LIMIT": "junk"}), nanny=True
    )
    ended = client.submit(lambda: end_process(), retries=0)

    async def waited() -> str:
        return await asyncio.wait_for(nanny_is_closed(cluster), 60)

    assert cluster.sync(waited) == "closed"
    assert client.scheduler_info()["workers"] == {}
    ended.release()
