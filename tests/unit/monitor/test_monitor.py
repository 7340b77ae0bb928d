# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The monitor on simulated devices: what it says, and what becomes of it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib.monitor import FakeClock
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError, UvmError
from rmm_uvm.mr import ManagedMemoryResource, SimulatedCudaMemoryResource, UvmResourceAdaptor
from rmm_uvm.watch.board import Published, read_board
from rmm_uvm.watch.finding import Finding
from rmm_uvm.watch.monitor import Monitor, running
from rmm_uvm.watch.sample import SAMPLE_DTYPE

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _board_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


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


def advance(monitor: Monitor, seconds: float = 0.1) -> tuple[Finding, ...]:
    """Let time pass, and have the samples looked at in this thread."""
    assert monitor._clock is not None
    monitor._clock.advance(seconds)
    return monitor._tick()


def test_monitor_is_exported_under_its_short_name() -> None:
    assert rmm_uvm.monitor is Monitor


def test_bytes_each_way_are_exact_and_begin_at_zero(make: Make, device: SimulatedDevice) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(16 * MIB)
    device.cpu_touch(pointer, 16 * MIB)  # before the monitor began

    with make() as m:
        assert m.snapshot().device_to_host_bytes == 0
        before = m.snapshot()
        device.touch(pointer, 16 * MIB)
        device.prefetch(pointer, 4 * MIB, "host")
        window = m.window(before)

    assert (window.host_to_device_bytes, window.device_to_host_bytes) == (16 * MIB, 4 * MIB)
    assert window.own_to_host_bytes == 4 * MIB
    assert m.window().host_to_device_bytes == 16 * MIB
    mr.deallocate(pointer, 16 * MIB)


def test_figures_stay_after_stop(make: Make, device: SimulatedDevice) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(16 * MIB)
    with make() as m:
        device.cpu_touch(pointer, 16 * MIB)
    device.touch(pointer, 16 * MIB)  # not watched any more

    assert not m.running
    assert m.snapshot().device_to_host_bytes == 16 * MIB
    assert m.snapshot().host_to_device_bytes == 0
    assert len(m.samples()) == 3  # at the begin, the first of the thread, at the end
    assert m.recording().duration_seconds == 0
    mr.deallocate(pointer, 16 * MIB)


def test_snapshot_that_need_not_be_fresh_takes_no_sample(
    make: Make, device: SimulatedDevice
) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(16 * MIB)
    with make() as m:
        n_samples = len(m.samples())
        device.cpu_touch(pointer, 16 * MIB)

        assert m.snapshot(fresh=False).device_to_host_bytes == 0
        assert len(m.samples()) == n_samples
        assert m.snapshot().device_to_host_bytes == 16 * MIB
        assert m.snapshot(fresh=False) == m.snapshot()
    mr.deallocate(pointer, 16 * MIB)


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


def test_samples_are_an_array_or_a_frame(make: Make) -> None:
    with make() as m:
        advance(m)
        samples = m.samples(0)
        frame = m.samples(pandas=True)

    assert samples.dtype == SAMPLE_DTYPE
    assert list(frame.columns) == list(SAMPLE_DTYPE.names or ())
    assert len(frame) == len(samples)
    assert np.array_equal(frame["time_ns"], samples["time_ns"])


def test_samples_as_frame_without_pandas_say_what_to_install(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    with make() as m, pytest.raises(AvailabilityError, match="pip install pandas"):
        m.samples(pandas=True)


def test_history_keeps_the_newest_and_counts_the_lost(make: Make) -> None:
    with make(history=3) as m:
        for _ in range(5):
            advance(m)
        recording = m.recording()

    assert len(recording.samples) == 3
    assert recording.lost_samples > 0
    assert m.recording().lost_samples > recording.lost_samples


def test_device_that_is_not_watched_is_refused(make: Make) -> None:
    with make() as m:
        for ask in (m.snapshot, m.samples):
            with pytest.raises(ConfigurationError, match="device 5 is not watched; watched: 0"):
                ask(5)
        with pytest.raises(ConfigurationError, match="not watched"):
            m.window(device=5)


def test_two_devices_are_told_apart() -> None:
    with rmm_uvm.reinitialize(
        "8MiB", devices=[0, 1], driver="simulated:64MiB", libraries=(), monitor=False
    ) as uvm:
        with Monitor(on_finding=None, publish=False) as m:
            pointer = uvm.devices[1].managed_mr.allocate(4 * MIB)
            assert [facts.device_id for facts in m.devices] == [0, 1]
            assert m.snapshot().footprint_bytes == 0
            second = m.snapshot(1)
            assert second.footprint_bytes == 4 * MIB
            assert m.window(second).device_id == 1
            assert set(m.samples()["device_id"]) == {0, 1}
            assert set(m.samples(1)["device_id"]) == {1}
        uvm.devices[1].managed_mr.deallocate(pointer, 4 * MIB)


def test_findings_are_recorded_and_delivered(make: Make, device: SimulatedDevice) -> None:
    told: list[Finding] = []
    mr = ManagedMemoryResource(device)
    pointers = [mr.allocate(32 * MIB) for _ in range(3)]
    with make(on_finding=told.append) as m:
        for _ in range(6):
            for pointer in pointers:
                device.touch(pointer, 32 * MIB, write=True)
            advance(m)
        kinds = {finding.kind for finding in m.findings}

    assert "eviction" in kinds or "amplification" in kinds
    assert [finding.kind for finding in told] == [finding.kind for finding in m.findings]
    assert m.recording().findings == m.findings
    for pointer in pointers:
        mr.deallocate(pointer, 32 * MIB)


@pytest.mark.parametrize(("seconds", "found"), [(0.001, False), (0.1, True)])
def test_samples_within_one_burst_are_no_sustained_eviction(
    make: Make, device: SimulatedDevice, seconds: float, *, found: bool
) -> None:
    mr = ManagedMemoryResource(device)
    pointers = [mr.allocate(32 * MIB) for _ in range(3)]
    with make() as m:
        for pointer in pointers:
            device.touch(pointer, 32 * MIB, write=True)
        advance(m)
        for pointer in pointers * 2:  # less than amplification, however often
            device.touch(pointer, 2 * MIB, write=True)
            advance(m, seconds)
        kinds = {finding.kind for finding in m.findings}
    assert ("eviction" in kinds) == found
    for pointer in pointers:
        mr.deallocate(pointer, 32 * MIB)


def test_run_that_fits_has_no_finding(make: Make, device: SimulatedDevice) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(32 * MIB)
    with make() as m:
        for _ in range(10):
            device.touch(pointer, 32 * MIB, write=True)
            device.cpu_touch(pointer, 32 * MIB)
            advance(m)
        assert m.findings == ()
    mr.deallocate(pointer, 32 * MIB)


def test_attribution_tells_causes_that_add_up(make: Make, device: SimulatedDevice) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(16 * MIB)
    with make(attribution=True) as m:
        device.cpu_touch(pointer, 16 * MIB)
        device.prefetch(pointer, 16 * MIB)
        before = m.snapshot()
        device.cpu_touch(pointer, 4 * MIB)
        window = m.window(before)
    assert m.sources["cupti"]
    assert before.causes is not None
    assert window.causes is not None
    assert before.causes["host_to_device_bytes"]["user"] == 16 * MIB
    left = window.causes["device_to_host_bytes"]
    assert 0 < left["coherence"] < left["prefetch"]  # what faulted, and what came along with it
    assert left["coherence"] + left["prefetch"] == 4 * MIB
    assert window.causes["host_to_device_bytes"]["user"] == 0
    recording = m.recording()
    assert recording.causes is not None
    last = dict(zip(recording.causes["columns"], recording.causes["rows"][-1], strict=True))
    assert 0 < last["device_to_host_coherence_bytes"] < 4 * MIB
    assert sum(moved for _, *moved in recording.busiest for moved in moved) > 0
    mr.deallocate(pointer, 16 * MIB)


def test_without_attribution_there_are_no_causes(make: Make) -> None:
    with make() as m:
        assert m.snapshot().causes is None
        assert m.sources["cupti"].reason == "not asked for"
    assert m.recording().causes is None


def test_faults_are_counted_when_asked_for(make: Make, device: SimulatedDevice) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(4 * MIB)
    with make(faults=True) as m:
        assert m.sources["faults"]
        device.cpu_touch(pointer, 4 * MIB)
        faults = m.snapshot().cpu_faults
        assert faults is not None
        assert faults > 0
    with make() as m:
        device.touch(pointer, 4 * MIB)
        assert m.snapshot().gpu_faults is None
        assert m.sources["faults"].reason == "not asked for"
    mr.deallocate(pointer, 4 * MIB)


def test_counters_that_do_not_work_say_why() -> None:
    device = rmm_uvm.simulated_device("64MiB", counters=False)
    with Monitor(driver=device, on_finding=None, publish=False) as m:
        assert not m.sources["kernel_counters"]
        assert m.sources["kernel_counters"].reason
        assert m.snapshot().host_to_device_bytes is None


def test_without_gpu_it_starts_and_says_what_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver(*_: object) -> None:
        raise rmm_uvm.errors.DriverError("no NVIDIA driver here")

    monkeypatch.setattr("rmm_uvm.watch.sources.choose_driver", no_driver)
    with Monitor(on_finding=None, publish=False) as m, rmm_uvm.stage("etl"):
        assert m.sources["kernel_counters"].reason == "no NVIDIA driver here"
        snapshot = m.snapshot()
        assert snapshot.host_to_device_bytes is None
        assert snapshot.capacity_bytes is None or snapshot.capacity_bytes > 0
        assert "unknown" in repr(snapshot)
        assert m.window().seconds > 0
    assert [stage.name for stage in m.recording().stages] == ["etl"]
    assert str(m.report())


def test_any_rmm_chain_is_watched(make: Make) -> None:
    statistics = rmm.mr.StatisticsResourceAdaptor(
        SimulatedCudaMemoryResource(rmm_uvm.simulated_device("64MiB"))
    )
    rmm.mr.set_per_device_resource(0, statistics)
    with Monitor(on_finding=None, publish=False) as m:
        pointer = statistics.allocate(1000)
        assert m.sources["rmm_chain"]
        assert not m.sources["own_resources"]
        assert m.snapshot().footprint_bytes == 1000
        assert m.devices[0].chain[0] == "StatisticsResourceAdaptor"
        statistics.deallocate(pointer, 1000)
        assert m.snapshot().footprint_bytes == 0


def test_pool_that_is_replaced_is_let_go_and_the_new_one_followed() -> None:
    device = rmm_uvm.simulated_device("64MiB")
    rmm.mr.set_per_device_resource(
        0, rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    )
    with Monitor(on_finding=None, publish=False) as m:
        m._tick()
        assert m.snapshot().managed_bytes == 16 * MIB
        rmm.mr.set_per_device_resource(0, rmm.mr.CudaMemoryResource())
        gc.collect()
        assert device.statistics()["managed_bytes"] == 0
        assert m.snapshot().footprint_bytes is None
        assert not m.sources["own_resources"]
        new = rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB")
        rmm.mr.set_per_device_resource(0, new)
        m._tick()
        assert m.snapshot().managed_bytes == 8 * MIB
        assert m.sources["own_resources"]
        assert m.devices[0].chain[0] == "UvmResourceAdaptor"


def test_pool_on_another_simulated_device_is_said_to_be_unseen(device: SimulatedDevice) -> None:
    rmm.mr.set_per_device_resource(
        0, rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    )
    with Monitor(on_finding=None, publish=False) as m:
        rmm.mr.set_per_device_resource(
            0, rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
        )
        assert m.snapshot().managed_bytes == 8 * MIB
        assert "another simulated device" in m.sources["kernel_counters"].reason
        assert m.snapshot().host_to_device_bytes is None  # and not 0: it is not known
        m._tick()
    assert "another simulated device" in m.sources["kernel_counters"].reason
    assert "moved " not in str(m.report())
    assert "1. start a new monitor" in str(m.report())


def test_device_that_was_named_is_not_the_pools_and_one_that_was_given_is_meant(
    device: SimulatedDevice,
) -> None:
    pool = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="8MiB")
    with Monitor(driver="simulated:64MiB", on_finding=None, publish=False) as named:
        rmm.mr.set_per_device_resource(0, pool)
        assert named.snapshot().host_to_device_bytes is None
        assert named.sources["kernel_counters"].reason.startswith("not asked for")
        assert named._tick() == ()  # nobody is told of what was asked for
    with Monitor(driver=device, on_finding=None, publish=False) as given:
        assert given.snapshot().host_to_device_bytes == 0
        assert given.sources["kernel_counters"]


def test_stopped_monitor_keeps_neither_driver_nor_pool(make: Make) -> None:
    device = rmm_uvm.simulated_device("64MiB")
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    with Monitor(on_finding=None, publish=False) as m:
        assert m.snapshot().prefetch_skipped is not None
    before = sys.getrefcount(device)
    assert m._session is not None
    kept = [kind for kind in map(type, gc.get_referents(m._session)) if kind is SimulatedDevice]
    assert kept == []
    m.start()
    assert sys.getrefcount(device) > before
    m.stop()
    assert sys.getrefcount(device) == before


def test_capacity_leaves_out_what_others_hold(device: SimulatedDevice) -> None:
    other = SimulatedCudaMemoryResource(device)
    pointer = other.allocate(20 * MIB)
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    with Monitor(on_finding=None, publish=False) as m:
        assert m.devices[0].capacity_bytes == 44 * MIB
        assert m.devices[0].total_bytes == 64 * MIB
    other.deallocate(pointer, 20 * MIB)


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


def test_publishing_puts_figures_on_the_board_and_takes_them_off(
    make: Make, device: SimulatedDevice
) -> None:
    with make(publish=True) as m:
        assert m.sources["board"]
        advance(m)
        [published] = _own_publications()
        assert published.snapshots[0]["device_used_bytes"] == 0
        assert published.devices[0]["simulated"] is True
        assert published.sources["kernel_counters"] == ""
    assert _own_publications() == []


def _own_publications() -> list[Published]:
    """What this process publishes; others of this user may do so as well."""
    return [published for published in read_board() if published.pid == os.getpid()]


def test_board_that_cannot_be_used_is_a_reason(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr("rmm_uvm.watch.board.board_directories", lambda: (blocked / "below",))

    with make(publish=True) as m:
        advance(m)
        assert "nowhere to publish" in m.sources["board"].reason


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


def test_window_since_what_is_no_snapshot_of_this_run_is_refused(make: Make) -> None:
    with make() as m, make() as other:
        with pytest.raises(ConfigurationError, match="of another monitor"):
            m.window(other.snapshot())
        with pytest.raises(ConfigurationError, match="since=5: give what"):
            m.window(5)  # type: ignore[arg-type]
        earlier = m.snapshot()
        assert m.window(earlier).device_to_host_bytes == 0
    m.window(earlier)  # stopped, and the same run
    with m, pytest.raises(ConfigurationError, match="an earlier run of this one"):
        m.window(earlier)


def test_peaks_of_a_window_whose_samples_were_dropped_are_unknown(
    make: Make, device: SimulatedDevice
) -> None:
    pool = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    with make(history=4) as m:
        early = m.snapshot()
        assert m.window(early).peak_footprint_bytes is not None
        for _ in range(6):
            advance(m)
        late = m.snapshot()
        assert m.window(early).peak_footprint_bytes is None
        assert m.window().peak_resident_bytes is None
        assert m.window(late).peak_footprint_bytes is not None


def test_recording_names_settings_versions_and_sources(make: Make) -> None:
    with make() as m:
        recording = m.recording()

    assert recording.simulated
    assert recording.settings["interval"] == "0.1 s"
    assert recording.versions["rmm-uvm"]
    assert recording.began.endswith("+00:00")
    assert recording.sources["kernel_counters"]
    assert m.recording().cost_seconds >= 0


def test_snapshot_counts_prefetches_that_were_skipped_since_the_start(
    make: Make, device: SimulatedDevice
) -> None:
    pool: UvmResourceAdaptor = rmm_uvm.managed_pool(driver=device, initial_pool_size="16MiB")
    rmm.mr.set_per_device_resource(0, pool)
    pool.deallocate(pool.allocate(1000), 1000)
    with make() as m:
        before = m.snapshot().prefetch_skipped
        pool.deallocate(pool.allocate(1000), 1000)
        after = m.snapshot().prefetch_skipped
        rmm.mr.set_per_device_resource(0, rmm.mr.CudaMemoryResource())
        assert m.snapshot().prefetch_skipped == after

    assert before is not None
    assert after is not None
    assert (before["resident"], after["resident"]) == (0, 1)


def test_start_http_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises((AvailabilityError, ModuleNotFoundError)):
        Monitor.start_http(0)


def test_bytes_of_a_stage_are_not_shared_with_its_neighbours(
    device: SimulatedDevice, make: Make
) -> None:
    mr = ManagedMemoryResource(device)
    pointer = mr.allocate(16 * MIB)
    m = make(interval_seconds=60).start()  # no sample but at the edges
    device.cpu_touch(pointer, 4 * MIB)
    m._clock.advance(10)
    with rmm_uvm.stage("eight"):
        device.cpu_touch(pointer + 4 * MIB, 8 * MIB)
        m._clock.advance(10)
    device.cpu_touch(pointer + 12 * MIB, 4 * MIB)
    m._clock.advance(10)
    [row] = m.report().to_dict()["devices"][0]["by_stage"]
    assert (row["name"], row["device_to_host_bytes"]) == ("eight", 8 * MIB)
    mr.deallocate(pointer, 16 * MIB)


def test_samples_at_the_edges_of_many_short_stages_are_few(make: Make) -> None:
    m = make(interval_seconds=60).start()
    for _ in range(1000):
        m._clock.advance(0.05)  # 50 s: less than an interval
        with rmm_uvm.stage("short"):
            pass
    assert len(m.samples()) < 20
