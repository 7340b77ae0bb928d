# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker tells of itself: everything known, nothing made up, and never an error."""

from __future__ import annotations

import statistics
import time
from types import SimpleNamespace
from typing import Any

import msgpack
import prometheus_client
import pytest

import rmm_uvm
from rmm_uvm._lib.monitor import FakeClock
from rmm_uvm.dask.comm.statistics import totals
from rmm_uvm.dask.worker import telemetry
from rmm_uvm.dask.worker.figures import NAME
from rmm_uvm.dask.worker.telemetry import Telemetry
from rmm_uvm.pool.installation import Installation

MIB = 1 << 20


@pytest.fixture
def watched() -> Any:
    """Install a pool whose monitor's time stands still."""
    device = rmm_uvm.simulated_device("64MiB")
    keywords: dict[str, Any] = {"driver": device, "ipc_pool_size": "4MiB", "monitor": False}
    with rmm_uvm.reinitialize("16MiB", **keywords) as installed:
        monitor = rmm_uvm.monitor(driver=device, on_finding="log", publish=False)
        monitor._clock = FakeClock()
        with monitor:
            yield SimpleNamespace(device=device, mr=installed.managed_mr, monitor=monitor)


def advance(watched: Any, seconds: float) -> None:
    watched.monitor._clock.advance(seconds)
    watched.monitor._tick()


def fake_worker() -> Any:
    return SimpleNamespace(metrics={})


def test_watched_worker_tells_levels_totals_and_rates(watched: Any) -> None:
    read = Telemetry()
    first = read()
    pointer = watched.mr.allocate(96 * MIB)
    watched.device.touch(pointer, 48 * MIB)
    watched.device.cpu_touch(pointer, 16 * MIB)
    advance(watched, 2.0)
    told = read()
    watched.mr.deallocate(pointer, 96 * MIB)

    assert told == msgpack.loads(msgpack.dumps(told))
    assert told["reason"] == ""
    assert (told["device_id"], told["simulated"], told["devices_total"]) == (0, True, 1)
    assert told["device_name"].startswith("simulated")
    assert told["footprint_bytes"] == 96 * MIB
    assert told["capacity_bytes"] == 60 * MIB  # the IPC pool takes 4
    assert told["oversubscription_factor"] == 1.6
    assert told["resident_exact"] is True
    assert told["ipc_pool_bytes"] == 4 * MIB
    grown = told["device_to_host_bytes"] - first["device_to_host_bytes"]
    assert grown >= 16 * MIB
    assert told["device_to_host_bytes_per_second"] == grown / 2.0
    assert first["device_to_host_bytes_per_second"] is None
    assert told["findings_total"] == len(watched.monitor.findings) > 0
    assert told["finding"] == str(watched.monitor.findings[-1])
    assert told["comm"] == totals().to_dict()


def test_rates_without_a_newer_sample_stay_as_they_were(watched: Any) -> None:
    read = Telemetry()
    read()
    pointer = watched.mr.allocate(16 * MIB)
    watched.device.cpu_touch(pointer, 16 * MIB)
    advance(watched, 1.0)
    moved = read()["device_to_host_bytes_per_second"]

    assert read()["device_to_host_bytes_per_second"] == moved == 16 * MIB
    advance(watched, 1.0)
    assert read()["device_to_host_bytes_per_second"] == 0
    watched.mr.deallocate(pointer, 16 * MIB)


def test_worker_without_a_monitor_tells_its_footprint_and_why_no_more() -> None:
    with rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", monitor=False) as installed:
        pointer = installed.managed_mr.allocate(MIB)
        told = Telemetry()()
        installed.managed_mr.deallocate(pointer, MIB)

    assert told["reason"] == "no monitor runs: as asked"
    assert told["footprint_bytes"] == MIB
    assert told["capacity_bytes"] is None
    assert told["ipc_pool_bytes"] == 0


def test_worker_without_a_pool_tells_that() -> None:
    told = Telemetry()()

    assert told["reason"] == "no pool of rmm_uvm is installed, and none watches"
    assert told["footprint_bytes"] is None


def test_monitor_of_the_installed_pool_comes_before_others(watched: Any) -> None:
    with rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB") as installed:
        assert telemetry.watching_monitor() is installed.monitor
        with rmm_uvm.monitor(driver="simulated:64MiB", publish=False):
            assert telemetry.watching_monitor() is installed.monitor
    assert telemetry.watching_monitor() is watched.monitor


@pytest.mark.parametrize("monitor", [True, False])
@pytest.mark.parametrize("later", [0, 1])
def test_worker_tells_of_each_device_that_has_a_pool_of_whichever_call(
    monitor: bool,
    later: int,
) -> None:
    size: dict[str, Any] = {"initial_pool_size": "16MiB", "driver": "simulated:64MiB"}
    ipc = {0: None, 1: "4MiB"}
    first = rmm_uvm.reinitialize(
        devices=1 - later, ipc_pool_size=ipc[1 - later], monitor=monitor, **size
    )
    second = rmm_uvm.reinitialize(devices=later, ipc_pool_size=ipc[later], **size)
    pools = {each.devices[0].info.device_id: each.managed_mr for each in (first, second)}
    pointers = {device: mr.allocate((device + 1) * MIB) for device, mr in pools.items()}
    told = Telemetry()()
    for device, pointer in pointers.items():
        pools[device].deallocate(pointer, (device + 1) * MIB)
    assert told == msgpack.loads(msgpack.dumps(told))
    (other,) = told["others"]
    assert (told["device_id"], other["device_id"]) == (0, 1)
    assert (told["devices_total"], other["devices_total"]) == (2, None)
    assert (told["ipc_pool_bytes"], other["ipc_pool_bytes"]) == (0, 4 * MIB)
    assert telemetry._ipc_pools() == {0: 0, 1: 4 * MIB}
    for device, figures in enumerate((told, other)):
        watched = monitor or later == device
        assert (figures["reason"] == "") is watched
        assert (figures["capacity_bytes"] is None) is not watched
        if not watched:
            assert figures["footprint_bytes"] == (device + 1) * MIB
    assert told["comm"]
    assert other["comm"] == {}
    del pools, first, second
    rmm_uvm.restore()


def test_worker_with_several_devices_of_one_call_tells_the_rates_of_each() -> None:
    with rmm_uvm.reinitialize("16MiB", devices=[0, 1], driver="simulated:64MiB") as installed:
        read = Telemetry()
        read()
        held = [(each.managed_mr, (i + 1) * 8 * MIB) for i, each in enumerate(installed.devices)]
        pointers = [mr.allocate(nbytes) for mr, nbytes in held]
        for (mr, nbytes), pointer in zip(held, pointers, strict=True):
            mr.driver.cpu_touch(pointer, nbytes)
        installed.monitor._tick()
        told = read()
        for (mr, nbytes), pointer in zip(held, pointers, strict=True):
            mr.deallocate(pointer, nbytes)
        del held, mr
    figures = [told, *told["others"]]
    assert [one["footprint_bytes"] for one in figures] == [8 * MIB, 16 * MIB]
    first, second = (one["device_to_host_bytes_per_second"] for one in figures)
    assert second == pytest.approx(2 * first, rel=0.5)


def test_figures_that_cannot_be_read_are_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Installation) -> None:
        raise RuntimeError("as asked")

    with rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB"):
        monkeypatch.setattr(rmm_uvm.monitor, "snapshot", fail)
        told = Telemetry()()

    assert told["reason"].startswith("figures could not be read: TypeError")
    assert told["footprint_bytes"] is None


def test_telling_costs_a_heartbeat_little() -> None:
    with rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB"):
        read = Telemetry()
        seconds = []
        for _ in range(200):
            begin = time.perf_counter()
            read()
            seconds.append(time.perf_counter() - begin)

    # 50 us where nothing else runs; the machine of a test may be busy.
    assert statistics.median(seconds) < 1e-3


def test_attached_worker_has_the_metric_until_it_is_detached() -> None:
    worker = fake_worker()
    telemetry.attach(worker)
    told = worker.metrics[NAME]
    telemetry.attach(worker)

    assert worker.metrics[NAME] is told
    assert b"rmm_uvm_comm_bytes_total" in prometheus_client.generate_latest()
    telemetry.detach(worker)
    telemetry.detach(worker)
    assert worker.metrics == {}
    assert b"rmm_uvm_comm_bytes_total" not in prometheus_client.generate_latest()


def test_heartbeat_that_waits_for_a_metric_outlives_attaching_and_detaching() -> None:
    def told_by_a_heartbeat(worker: Any) -> Any:  # as Dask's, which awaits each in this loop
        yield from worker.metrics.items()

    worker = fake_worker()
    worker.metrics.update(rmm=dict, gpu=dict)
    before = told_by_a_heartbeat(worker)
    next(before)
    telemetry.attach(worker)
    assert [name for name, _ in before] == ["gpu"]

    during = told_by_a_heartbeat(worker)
    next(during)
    telemetry.detach(worker)
    assert [name for name, _ in during] == ["gpu", NAME]
    assert worker.metrics == {"rmm": dict, "gpu": dict}


def test_metric_of_another_is_left_alone_when_detached() -> None:
    worker = fake_worker()
    worker.metrics[NAME] = dict
    telemetry.detach(worker)

    assert worker.metrics == {NAME: dict}
