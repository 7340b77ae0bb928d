# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of monitors, where others trace the same resources."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import rmm

import rmm_uvm
import rmm_uvm.trace
from rmm_uvm._lib.monitor import FakeClock
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import DataError
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.watch.monitor import Monitor

MIB = 1 << 20


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("64MiB")


Make = Callable[..., Monitor]


@pytest.fixture
def make(device: SimulatedDevice) -> Iterator[Make]:
    """Make monitors whose time stands still until their `_clock` is advanced."""
    made: list[Monitor] = []

    def make_one(**keywords: object) -> Monitor:
        keywords = {"on_finding": None, "publish": False, "driver": device, **keywords}
        monitor = Monitor(**keywords)  # type: ignore[arg-type]
        monitor._clock = FakeClock()
        made.append(monitor)
        return monitor

    yield make_one
    for monitor in made:
        monitor.stop()


def _pool(device: SimulatedDevice) -> UvmResourceAdaptor:
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    return pool


def test_second_trace_is_refused_before_anything_changes(
    make: Make, device: SimulatedDevice, tmp_path: Path
) -> None:
    pool = _pool(device)
    threads = threading.active_count()
    with make(trace=tmp_path / "a") as first:
        with pytest.raises(DataError, match="a trace is being written already: stop"):
            make(trace=tmp_path / "b").start()
        assert threading.active_count() == threads + 1
        assert not (tmp_path / "b").exists()
        with make():  # without a trace
            pass
        pointer = pool.allocate(1 * MIB)
        device.touch(pointer, 1 * MIB)
        pool.deallocate(pointer, 1 * MIB)
        assert first.sources["trace"]

    assert len(rmm_uvm.trace.read(tmp_path / "a").events) == 3


@pytest.mark.parametrize("observed", ["pool", "device"])
def test_second_trace_of_either_resource_is_refused(
    make: Make, device: SimulatedDevice, tmp_path: Path, observed: str
) -> None:
    pool = _pool(device)
    source = {"pool": pool, "device": device}[observed]
    with rmm_uvm.trace.TraceWriter(tmp_path / "a") as writer:
        writer.observe(source)
        writer.observe(source)  # the same again
        with pytest.raises(DataError, match="written already"):
            make(trace=tmp_path / "b").start()
        assert source.observed
    assert not source.observed
    make(trace=tmp_path / "b").start().stop()  # what is closed is in nobody's way


def test_trace_that_ends_leaves_the_observer_of_another(
    make: Make, device: SimulatedDevice, tmp_path: Path
) -> None:
    pool = _pool(device)
    m = make(trace=tmp_path / "a").start()
    with rmm_uvm.trace.TraceWriter(tmp_path / "b") as writer:
        with pytest.raises(DataError, match="written already"):
            writer.observe(pool)
        pool.observe(writer)
        device.observe(writer)
        m.stop()
        assert (pool.observed, device.observed) == (True, True)
        pool.detach_observer(writer)
        assert not pool.observed


def test_pool_that_came_later_and_is_in_another_trace_is_said_to_be_left_out(
    make: Make, device: SimulatedDevice, tmp_path: Path
) -> None:
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    with make(trace=tmp_path / "a") as m, rmm_uvm.trace.TraceWriter(tmp_path / "b") as writer:
        writer.observe(pool)
        rmm.mr.set_per_device_resource(0, pool)
        m._tick()
        assert "in another trace already" in m.sources["trace"].reason
