# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of a monitor: started, stopped, started again, and dropped."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.mr import ManagedMemoryResource
from rmm_uvm.watch.monitor import Monitor, running

from .monitors import MIB, Make


def test_monitor_that_was_never_started_says_so() -> None:
    m = Monitor(publish=False)

    for ask in (m.snapshot, m.window, m.samples, m.recording, m.report):
        with pytest.raises(AvailabilityError, match="not started"):
            ask()
    assert (m.devices, dict(m.sources), m.findings, m.cost_seconds) == ((), {}, (), 0.0)
    assert "not started" in repr(m)
    m.stop()


def test_start_and_stop_twice_change_nothing(make: Make) -> None:
    m = make()

    assert m.start() is m.start()
    assert running() == (m,)
    m.stop()
    m.stop()
    assert running() == ()
    assert "stopped" in repr(m)


def test_started_again_has_a_fresh_recording(make: Make, device: SimulatedDevice) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(16 * MIB)
    m = make()
    with m:
        device.cpu_touch(pointer, 16 * MIB)
        with rmm_uvm.stage("first"):
            pass
    with m:
        assert m.snapshot().device_to_host_bytes == 0
        assert m.recording().stages == ()
    mr.deallocate(pointer, 16 * MIB)


def test_two_monitors_at_once_each_begin_at_zero(make: Make, device: SimulatedDevice) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(16 * MIB)
    with make() as first:
        device.cpu_touch(pointer, 8 * MIB)
        with make() as second, rmm_uvm.stage("both"):
            assert running() == (first, second)
            device.cpu_touch(pointer + 8 * MIB, 8 * MIB)
            assert first.snapshot().device_to_host_bytes == 16 * MIB
            assert second.snapshot().device_to_host_bytes == 8 * MIB
    assert [stage.name for stage in first.recording().stages] == ["both"]
    assert [stage.name for stage in second.recording().stages] == ["both"]
    mr.deallocate(pointer, 16 * MIB)


def test_monitor_that_is_dropped_stops(make: Make, device: SimulatedDevice) -> None:
    before = set(threading.enumerate())
    m = Monitor(driver=device, on_finding=None, publish=False)
    m.start()
    [advisor] = set(threading.enumerate()) - before
    reference = weakref.ref(m)
    del m
    gc.collect()
    assert reference() is None
    for late in set(threading.enumerate()) - before:
        late.join(10)
    assert not advisor.is_alive()
    assert set(threading.enumerate()) == before
    assert running() == ()


def test_monitor_collected_by_the_advising_thread_stops(device: SimulatedDevice) -> None:
    threads = set(threading.enumerate())
    m = Monitor(driver=device, on_finding=None, publish=False)
    m.start()
    assert m._session is not None
    session, m.itself = m._session, m  # type: ignore[attr-defined]
    del m
    thread = threading.Thread(target=lambda: (session.round(), gc.collect()))
    thread.start()
    thread.join()
    for late in set(threading.enumerate()) - threads:
        late.join(10)
    assert not session.running
