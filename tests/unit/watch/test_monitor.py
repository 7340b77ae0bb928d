# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The monitor on simulated devices: what it says, and what becomes of it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.mr import ManagedMemoryResource
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.watch.monitor import Monitor

from .monitors import MIB, Make, advance


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


def test_samples_are_an_array_or_a_frame(make: Make) -> None:
    with make() as m:
        advance(m)
    samples = m.samples(0)  # once it takes no more
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
