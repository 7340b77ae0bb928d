# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The monitor that `reinitialize` starts and `restore` stops."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import ConfigurationError, EvictionWarning, ReplacedResourceWarning
from rmm_uvm.pool.installation import Installation
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.watch import monitor as monitor_module
from rmm_uvm.watch.monitor import Monitor, running


def install(**keywords: Any) -> Installation:
    keywords = {"driver": "simulated:64MiB", "libraries": (), **keywords}
    return rmm_uvm.reinitialize("16MiB", **keywords)


def test_reinitialize_watches_its_devices_and_restore_stops() -> None:
    with install(devices=[0, 1]) as uvm:
        assert uvm.monitor is not None
        assert uvm.monitor.running
        assert [facts.device_id for facts in uvm.monitor.devices] == [0, 1]
        assert rmm_uvm.current_installation().monitor is uvm.monitor
        assert "monitor" in repr(uvm)
        assert "warns of evictions" in repr(uvm)
    assert not uvm.monitor.running
    assert uvm.monitor.snapshot().managed_bytes == 16 << 20


@pytest.mark.parametrize("initial", ["16MiB", "60MiB", "128MiB", None])
def test_capacity_leaves_out_the_ipc_pool_however_large_the_first_slab(initial: str | None) -> None:
    with rmm_uvm.reinitialize(
        initial, "128MiB", driver="simulated:64MiB", libraries=(), ipc_pool_size="8MiB"
    ) as uvm:
        assert uvm.monitor is not None
        assert [facts.capacity_bytes for facts in uvm.monitor.devices] == [56 << 20]


def test_monitor_false_watches_nothing() -> None:
    threads = threading.active_count()
    with install(monitor=False) as uvm:
        assert uvm.monitor is None
        assert running() == ()
        assert threading.active_count() == threads
        assert "as asked" in repr(uvm)


def test_monitor_keywords_are_passed_on() -> None:
    with install(monitor={"interval_seconds": 2.0, "on_finding": None}) as uvm:
        assert uvm.monitor is not None
        assert uvm.monitor.recording().interval_seconds == 2.0


@pytest.mark.parametrize(
    ("monitor", "message"),
    [
        ("yes", "monitor='yes'"),
        (1, "monitor=1"),
        ({"interval_second": 1}, "'interval_second'"),
        ({"devices": [0]}, "'devices'"),
        ({"driver": "cuda"}, "'driver'"),
        ({"interval_seconds": 0}, "interval_seconds=0"),
    ],
)
def test_bad_monitor_argument_changes_nothing(monitor: Any, message: str) -> None:
    before = rmm.mr.get_per_device_resource(0)

    with pytest.raises(ConfigurationError, match=message):
        install(monitor=monitor)

    assert rmm.mr.get_per_device_resource(0) is before
    assert rmm_uvm.current_installation() is None
    assert running() == ()


def test_trace_that_cannot_be_written_is_refused_before_anything_changes(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.trace"
    with install(monitor={"trace": earlier}) as first:
        kept = earlier.read_bytes()
        for path, told in (
            (earlier, r"monitor: the trace .*earlier\.trace exists: name another file"),
            (tmp_path, "cannot be written: Is a directory"),
            (tmp_path / "no" / "folder", "cannot be written: No such file"),
            (Path("/dev/null"), "is not a regular file"),
        ):
            with pytest.raises(ConfigurationError, match=told):
                install(monitor={"trace": path})
        assert rmm_uvm.current_installation() is first
        assert first.monitor is not None
        assert first.monitor.running
        assert earlier.read_bytes().startswith(kept)
    assert list(tmp_path.iterdir()) == [earlier]


def test_trace_to_an_empty_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "empty.trace").touch()  # as mktemp makes one
    with install(monitor={"trace": str(tmp_path / "empty.trace")}) as uvm:
        assert uvm.monitor is not None
        assert uvm.monitor.sources["trace"]
    assert (tmp_path / "empty.trace").stat().st_size


def test_monitor_that_cannot_start_is_a_row_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Monitor) -> Monitor:
        raise RuntimeError("no more threads")

    monkeypatch.setattr(Monitor, "start", fail)
    with install() as uvm:
        assert uvm.monitor is None
        assert "could not start: no more threads" in repr(uvm)
        uvm.managed_mr.deallocate(uvm.managed_mr.allocate(1000), 1000)


def test_reinitialize_again_stops_the_first_monitor() -> None:
    first = install().monitor
    second = install().monitor
    assert first is not None
    assert second is not None
    assert (first.running, second.running) == (False, True)
    assert running() == (second,)
    rmm_uvm.restore()
    assert running() == ()


def test_rmm_reinitialize_stops_the_monitor() -> None:
    uvm = install()
    with pytest.raises(ReplacedResourceWarning):
        rmm_uvm.pool.install._notice_rmm_reinitialize()

    assert uvm.monitor is not None
    assert not uvm.monitor.running


def test_monitor_stopped_by_hand_is_shown_as_stopped() -> None:
    with install() as uvm:
        assert uvm.monitor is not None
        uvm.monitor.stop()
        assert "its recording is kept" in repr(uvm)


def test_warning_that_is_an_error_surfaces_when_all_is_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = rmm.mr.get_per_device_resource(0)
    uvm = install()
    assert uvm.monitor is not None
    stop = uvm.monitor.stop

    def stop_and_warn() -> None:
        stop()
        warnings.warn("pages leave", EvictionWarning, stacklevel=1)

    monkeypatch.setattr(uvm.monitor, "stop", stop_and_warn)
    with pytest.raises(EvictionWarning):
        rmm_uvm.restore()

    assert rmm.mr.get_per_device_resource(0) is before
    assert uvm.devices == ()
    assert rmm_uvm.current_installation() is None


class OtherMonitor:
    """A monitor of the program that watches a GPU, as ``rmm-uvm run`` starts one."""

    def __init__(self, on_finding: object, device_id: int = 0, *, simulated: bool = False) -> None:
        self.on_finding = on_finding
        self.devices = (RecordedDevice(device_id, "gpu", "GPU-1", 1 << 30, 1 << 30, simulated),)


@pytest.mark.parametrize(
    ("other", "heard"),
    [
        (OtherMonitor("warn"), 0),
        (OtherMonitor("warn", device_id=1), 1),
        (OtherMonitor("log"), 1),  # nobody sees that
        (OtherMonitor("warn", simulated=True), 1),
        (None, 1),  # it has stopped meanwhile
    ],
)
def test_monitor_leaves_warnings_to_another_one_while_that_warns(
    monkeypatch: pytest.MonkeyPatch, other: OtherMonitor | None, heard: int
) -> None:
    with install(device_budget=None) as uvm:
        assert uvm.monitor is not None
        monkeypatch.setattr(
            monitor_module, "running", lambda: (uvm.monitor, other) if other else ()
        )
        pointer = uvm.managed_mr.allocate(80 << 20)  # of 64 MiB
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = uvm.monitor._tick()
        assert [finding.kind for finding in found] == ["footprint"]
        assert len(caught) == heard
        uvm.managed_mr.deallocate(pointer, 80 << 20)


def test_monitor_that_was_told_what_to_do_leaves_nothing_to_others() -> None:
    with install(monitor={"on_finding": "warn"}) as uvm:
        assert uvm.monitor is not None
        assert not uvm.monitor._settings.others_warn(0)
