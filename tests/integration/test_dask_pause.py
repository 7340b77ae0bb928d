# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Dask's memory pause sees data that left a simulated device."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import rmm
from distributed import Scheduler, Worker
from distributed.core import Status

import rmm_uvm
from rmm_uvm.dask.worker import host_pause

from . import dask_in_process as cluster

# Dask's own warnings are no business of these tests, nor are the monitor's.
pytestmark = pytest.mark.filterwarnings("default")

MIB = 1 << 20
GIB = 1 << 30
LIMIT_BYTES = 4 * GIB


@pytest.fixture(autouse=True, scope="module")
def _offload_thread() -> None:
    cluster.start_offload_thread()


def on_a_worker(
    test: Callable[[Worker], Awaitable[Any]], *arguments: str, driver: str = "simulated:256MiB"
) -> None:
    async def with_worker(scheduler: Scheduler) -> None:
        async with cluster.worker(
            scheduler,
            *("--driver", driver, "--prefetch", "always", "--workers-per-host", "1"),
            *arguments,
            memory_limit=LIMIT_BYTES,
        ) as worker:
            await test(worker)

    cluster.run(with_worker, **{"distributed.worker.memory.monitor-interval": "1h"})


def allocated(size_bytes: int) -> list[rmm.DeviceBuffer]:
    """Write what does not fit: each piece pushes others out."""
    mr = rmm_uvm.current_installation().managed_mr
    pieces = []
    for _ in range(size_bytes // (64 * MIB)):
        pieces.append(rmm.DeviceBuffer(size=64 * MIB, mr=mr))
        mr.managed_mr.driver.touch(pieces[-1].ptr, pieces[-1].size, write=True)
    rmm_uvm.current_installation().monitor.snapshot()  # takes a sample
    return pieces


async def looked(worker: Worker) -> Status:
    """Let Dask look at the worker's memory, as it does five times a second."""
    if not rmm_uvm.current_installation().monitor:
        raise AssertionError("the monitor did not start")
    rmm_uvm.current_installation().monitor.snapshot()
    await worker.memory_manager.memory_monitor(worker)
    return worker.status


def test_worker_whose_data_left_is_paused_and_resumes_when_they_are_freed() -> None:
    async def test(worker: Worker) -> None:
        assert await looked(worker) == Status.running
        data = allocated(LIMIT_BYTES)
        assert await looked(worker) == Status.paused
        data.clear()
        assert await looked(worker) == Status.running

    on_a_worker(test)


def test_worker_without_the_figure_is_not_paused() -> None:
    async def test(worker: Worker) -> None:
        host_pause.detach(worker)
        data = allocated(LIMIT_BYTES)
        assert await looked(worker) == Status.running
        data.clear()

    on_a_worker(test)


def test_data_that_stay_on_the_device_do_not_count() -> None:
    async def test(worker: Worker) -> None:
        data = allocated(LIMIT_BYTES)
        assert host_pause.evicted_bytes() == 0
        assert await looked(worker) == Status.running
        data.clear()

    on_a_worker(test, driver="simulated:8GiB")


def test_figure_is_what_lives_on_the_host_and_on_top_of_the_process() -> None:
    async def test(worker: Worker) -> None:
        data = allocated(1 * GIB)
        snapshot = rmm_uvm.current_installation().monitor.snapshot()
        assert 700 * MIB < GIB - snapshot.resident_bytes <= host_pause.evicted_bytes() <= GIB
        with_it = worker.monitor.get_process_memory()
        host_pause.detach(worker)
        assert with_it - worker.monitor.get_process_memory() > 600 * MIB
        data.clear()

    on_a_worker(test)


def test_nothing_is_added_for_what_is_not_known() -> None:
    async def test(worker: Worker) -> None:
        del worker
        data = [rmm.DeviceBuffer(size=GIB, mr=rmm_uvm.current_installation().managed_mr)]
        assert host_pause.evicted_bytes() == 0
        data.clear()

    on_a_worker(test, "--monitor", "false")
    assert host_pause.evicted_bytes() == 0


def test_worker_has_its_own_reader_again_when_the_pool_is_gone() -> None:
    kept = []

    async def test(worker: Worker) -> None:
        host_pause.attach(worker)  # again: nothing
        assert "get_process_memory" in vars(worker.monitor)
        kept.append(worker)

    on_a_worker(test)
    assert "get_process_memory" not in vars(kept[0].monitor)


def test_reader_that_somebody_else_put_there_stays() -> None:
    kept = []

    async def test(worker: Worker) -> None:
        worker.monitor.get_process_memory = lambda: 7
        kept.append(worker)

    on_a_worker(test)
    assert kept[0].monitor.get_process_memory() == 7
