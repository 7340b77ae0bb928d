# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of monitors, where others trace the same resources."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import rmm

import rmm_uvm
import rmm_uvm.trace
from rmm_uvm._lib.trace import TraceWriter
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError, UvmError
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.trace.events import EventKind
from rmm_uvm.watch.monitor import running
from rmm_uvm.watch.sampling import tracing

from .monitors import MIB, Make, advance


def _pool(device: SimulatedDevice) -> UvmResourceAdaptor:
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    return pool


def test_trace_is_written_and_read_back(
    make: Make, device: SimulatedDevice, tmp_path: Path
) -> None:
    import rmm_uvm.trace

    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    path = tmp_path / "run.trace"
    with make(trace=path) as m:
        with rmm_uvm.stage("etl"):
            pointer = pool.allocate(1 * MIB)
            pool.deallocate(pointer, 1 * MIB)
        advance(m)
        assert m.sources["trace"]
    pool.deallocate(pool.allocate(1000), 1000)  # not any more

    trace = rmm_uvm.trace.read(path)
    assert [int(size) for size in trace.events["bytes"]] == [MIB, MIB]
    assert [stage.name for stage in trace.stages] == ["etl"]
    assert len(trace.samples) == len(m.samples())


@pytest.mark.parametrize("gpu", [True, False])
def test_trace_of_a_gpu_has_announced_uses_and_of_a_simulated_device_the_kernels(
    make: Make,
    device: SimulatedDevice,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gpu: bool,
) -> None:
    if gpu:  # one that nothing here is an instance of
        monkeypatch.setattr(tracing, "SimulatedDevice", type("Simulated", (), {}))
    pool = _pool(device)
    residency = pool.managed_mr.residency
    assert residency.all_present
    with make(trace=tmp_path / "run.trace"):
        assert residency.observed is gpu
        assert residency.all_present is not gpu  # or libraries would announce nothing
        pointer = pool.allocate(MIB)
        rmm_uvm.touch((pointer, 1000), mr=pool)
        residency.touch_all([(pointer, 2000, pointer), (pointer, 0, pointer)], only_read=True)
        device.touch(pointer, 3000)
        pool.deallocate(pointer, MIB)
    assert residency.all_present
    assert not residency.observed
    residency.touch(pointer, 4000, pointer)  # not any more

    trace = rmm_uvm.trace.read(tmp_path / "run.trace")
    uses = [(EventKind.WRITE, 1000), (EventKind.READ, 2000)] if gpu else [(EventKind.READ, 3000)]
    assert [(int(row["kind"]), int(row["bytes"])) for row in trace.events] == [
        (EventKind.ALLOCATE, MIB),
        *uses,
        (EventKind.FREE, MIB),
    ]
    assert load_workload(tmp_path / "run.trace").uses_announced is gpu


def test_uses_are_announced_to_a_trace_also_where_all_was_found_present(
    make: Make, device: SimulatedDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "SimulatedDevice", type("Simulated", (), {}))
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB", device_budget="12MiB")
    rmm.mr.set_per_device_resource(0, pool)
    residency = pool.managed_mr.residency
    pointer = pool.allocate(MIB)
    rmm_uvm.touch((pointer, MIB), mr=pool)
    assert residency.confirm_present()
    assert residency.confirmed_present()
    with make(trace=tmp_path / "run.trace"):
        assert not residency.confirmed_present()  # or torch would announce nothing
    assert residency.confirmed_present()
    pool.deallocate(pointer, MIB)


def test_pool_that_was_replaced_while_a_trace_was_written_is_free_after_it(
    make: Make, device: SimulatedDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "SimulatedDevice", type("Simulated", (), {}))
    residency = _pool(device).managed_mr.residency
    with make(trace=tmp_path / "run.trace"):
        _pool(device)
        assert not residency.all_present
    assert residency.all_present
    assert not residency.observed


def test_uses_of_a_pool_that_is_in_another_trace_are_left_out(
    make: Make, device: SimulatedDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "SimulatedDevice", type("Simulated", (), {}))
    residency = _pool(device).managed_mr.residency
    with TraceWriter(tmp_path / "other.trace") as other:
        other.observe(residency)
        with pytest.raises(DataError, match="a trace is being written already"):
            make(trace=tmp_path / "run.trace").start()
    assert not (tmp_path / "run.trace").exists()
    with make(trace=tmp_path / "run.trace") as m:
        assert m.sources["trace"]


@pytest.mark.parametrize("path", ["/dev/null", "/dev/full", "."])
def test_trace_to_what_is_no_file_is_refused_and_nobody_is_told_to_remove_it(
    make: Make, path: str
) -> None:
    with pytest.raises(DataError, match=f"the trace {path} is not a regular file") as caught:
        make(trace=Path(path)).start()
    assert "remove" not in str(caught.value)


def test_trace_that_cannot_be_written_is_refused_before_anything_starts(
    make: Make, tmp_path: Path
) -> None:
    threads = threading.active_count()
    m = make(trace=tmp_path / "missing" / "run.trace")

    with pytest.raises((DataError, ConfigurationError, AvailabilityError)) as caught:
        m.start()

    assert len(str(caught.value).splitlines()) == 1
    assert not m.running
    assert running() == ()
    assert threading.active_count() == threads


def test_trace_over_an_existing_file_is_refused(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    path.write_text("precious")

    with pytest.raises(UvmError):
        make(trace=path).start()

    assert path.read_text() == "precious"


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
