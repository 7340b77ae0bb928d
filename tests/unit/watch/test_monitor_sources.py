# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The monitor's sources: what each tells, and what is said where one is not there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.mr import ManagedMemoryResource
from rmm_uvm.watch.monitor import Monitor
from rmm_uvm.watch.telling.board import Published, read_board

from .monitors import MIB, Make, advance


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

    monkeypatch.setattr("rmm_uvm.watch.sampling.sources.choose_driver", no_driver)
    with Monitor(on_finding=None, publish=False) as m, rmm_uvm.stage("etl"):
        assert m.sources["kernel_counters"].reason == "no NVIDIA driver here"
        snapshot = m.snapshot()
        assert snapshot.host_to_device_bytes is None
        assert snapshot.capacity_bytes is None or snapshot.capacity_bytes > 0
        assert "unknown" in repr(snapshot)
        assert m.window().seconds > 0
    assert [stage.name for stage in m.recording().stages] == ["etl"]
    assert str(m.report())


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
    monkeypatch.setattr(
        "rmm_uvm.watch.telling.board.board_directories", lambda: (blocked / "below",)
    )

    with make(publish=True) as m:
        advance(m)
        assert "nowhere to publish" in m.sources["board"].reason


def test_start_http_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises((AvailabilityError, ModuleNotFoundError)):
        Monitor.start_http(0)


@pytest.mark.parametrize("prefetch", ["auto", "always"])
def test_prefetched_and_discarded_are_no_more_than_moved(
    make: Make, device: SimulatedDevice, prefetch: Any
) -> None:
    mr = rmm_uvm.managed_pool(
        driver=device, initial_pool_size="128MiB", prefetch=prefetch, device_budget=None
    )
    rmm.mr.set_per_device_resource(0, mr)
    with make() as m:
        data = [mr.allocate(24 * MIB) for _ in range(2)]
        for address in data:
            mr.deallocate(address, 24 * MIB)
        # The slab was empty, and all fits: nothing came, and nothing would have been copied.
        fits = m.snapshot()
        for _ in range(4):
            data = [mr.allocate(24 * MIB) for _ in range(4)]
            for address in data:
                device.touch(address, 24 * MIB, write=True)
            for address in data:
                mr.deallocate(address, 24 * MIB)
        over = m.snapshot()
    asked = mr.statistics()
    assert (fits.prefetched_bytes, fits.discarded_bytes) == (0, 0)
    assert asked["slab_prefetched_bytes"] > 0
    assert 0 <= over.prefetched_bytes <= over.host_to_device_bytes
    assert over.prefetched_bytes + over.discarded_bytes > 0
    assert over.discarded_bytes <= over.device_to_host_bytes
    assert over.prefetched_bytes + over.discarded_bytes <= (
        asked["prefetched_bytes"] + asked["discarded_bytes"]
    )
