# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``RMM_UVM=off``: what was there stays, and what a program asks of us is answered all the same.

Each test asks the same with the switch on, where the answer is another one.
"""

from __future__ import annotations

import json
import logging
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rmm
import rmm.rmm as rmm_module

import rmm_uvm
from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.mr import ManagedPool, SimulatedCudaMemoryResource

MIB = 1 << 20


@pytest.fixture(params=["off", "on"], ids=["off", "on"])
def off(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setenv("RMM_UVM", request.param)
    return bool(request.param == "off")


@pytest.fixture
def switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM", " OFF ")  # as lenient as every other variable


@pytest.fixture
def plain() -> Iterator[rmm.mr.DeviceMemoryResource]:
    """A program's own resource, from which memory can be had without a GPU."""
    before = rmm.mr.get_per_device_resource(0)
    mr = SimulatedCudaMemoryResource(rmm_uvm.simulated_device("64MiB"))
    rmm.mr.set_per_device_resource(0, mr)
    yield mr
    rmm.mr.set_per_device_resource(0, before)


@pytest.mark.usefixtures("switched_off")
def test_monitor_of_a_call_left_out_ends_with_the_next_call_and_with_restore() -> None:
    first, second = install(monitor=True), install(monitor=True)
    assert first.monitor is not None
    assert second.monitor is not None
    assert (first.monitor.running, second.monitor.running) == (False, True)
    rmm_uvm.restore()
    assert not second.monitor.running


@pytest.mark.usefixtures("switched_off", "plain")
@pytest.mark.parametrize("device", ["a", None, -1, True])
def test_device_of_a_pool_that_is_left_out_is_checked(device: Any) -> None:
    with pytest.raises(ConfigurationError, match="device"):
        rmm_uvm.managed_pool(device)


def install(**settings: Any) -> Any:
    return rmm_uvm.reinitialize("8MiB", driver="simulated:64MiB", **{"monitor": False, **settings})


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.ReplacedResourceWarning")
def test_resource_of_rmm_stays_only_with_the_switch_off(off: bool, plain: Any) -> None:
    handle = install()
    assert (rmm.mr.get_per_device_resource(0) is plain) == off
    assert (rmm_uvm.current_installation() is None) == off
    assert handle.state == ("off" if off else "on")
    rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(0) is plain
    assert handle.state == ("off" if off else "released")


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.ReplacedResourceWarning")
def test_hooks_of_rmm_are_run_only_with_the_switch_on(off: bool) -> None:
    ran: list[str] = []
    rmm.register_reinitialize_hook(ran.append, "ran")
    before = list(rmm_module._reinitialize_hooks)
    try:
        install()
        assert ran == ([] if off else ["ran"])
        assert (rmm_module._reinitialize_hooks == before) == off
    finally:
        rmm.unregister_reinitialize_hook(ran.append)
        rmm_uvm.restore()


def test_thread_is_started_only_with_the_switch_on(off: bool, monkeypatch: Any) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    before = set(threading.enumerate())
    with rmm_uvm.monitor(), rmm_uvm.reinitialize("8MiB", monitor=True):
        assert (set(threading.enumerate()) == before) == off


def test_handle_says_that_it_is_off_and_why(switched_off: None) -> None:
    handle = install()
    assert "switched off by RMM_UVM=off" in repr(handle)
    assert handle.reason == "switched off by RMM_UVM=off"
    assert repr(pickle.loads(pickle.dumps(handle))) == repr(handle)


def test_memory_can_be_had_from_what_a_handle_gives(switched_off: None, plain: Any) -> None:
    with install() as handle:
        assert handle.managed_mr is plain
        assert handle.ipc_mr is None
        assert [*handle.devices, *handle.wirings, *handle.permanent] == []
        handle.set_budget("16MiB")
        buffer = rmm.DeviceBuffer(size=1 * MIB, mr=handle.managed_mr)
        assert buffer.size == 1 * MIB
    assert rmm.mr.get_per_device_resource(0) is plain


def test_hints_do_nothing(switched_off: None, plain: Any) -> None:
    handle = install()
    buffer = rmm.DeviceBuffer(size=4 * MIB, mr=plain)
    for mr in (None, handle.managed_mr, rmm_uvm.managed_pool()):
        assert rmm_uvm.touch(buffer, mr=mr) == 0
        assert rmm_uvm.prefetch(buffer, mr=mr) == 0
        assert rmm_uvm.evict(buffer, mr=mr).moved_bytes == 0
        assert rmm_uvm.advise(buffer, read_mostly=True, mr=mr).advised_bytes == 0
        with rmm_uvm.pin(buffer, mr=mr) as pinned_bytes:
            assert pinned_bytes == 0
        assert rmm_uvm.residency_statistics(mr).evicted_bytes == 0
    assert "0 B moved to the host" in str(rmm_uvm.residency_statistics(device=3))


def test_hints_refuse_foreign_memory_with_the_switch_on(plain: Any) -> None:
    buffer = rmm.DeviceBuffer(size=4 * MIB, mr=plain)
    with pytest.warns(rmm_uvm.errors.ReplacedResourceWarning):
        install()
    with pytest.raises(DataError):
        rmm_uvm.touch(buffer)


def test_pool_that_is_asked_for_is_what_rmm_has(off: bool, plain: Any) -> None:
    settings: dict[str, Any] = {"driver": "simulated:64MiB", "initial_pool_size": "8MiB"}
    assert (rmm_uvm.managed_pool(**settings) is plain) == off
    assert (ManagedPool(**settings) is plain) == off
    device = rmm_uvm.simulated_device("64MiB", device=1)
    other = rmm.mr.get_per_device_resource(1)
    assert (rmm_uvm.managed_pool(driver=device) is other) == off


def test_arguments_are_checked_all_the_same(off: bool) -> None:
    del off
    wrong: list[dict[str, Any]] = [
        {"devices": [0, 0]},
        {"prefetch": "sometimes"},
        {"monitor": {"interval": 1}},
        {"managed_memory": False},
        {"logging": True},
    ]
    for arguments in wrong:
        with pytest.raises(ConfigurationError):
            install(**arguments)


@pytest.mark.parametrize("value", ["0", "false", "offf"])
def test_other_value_is_an_error_that_names_it(value: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("RMM_UVM", value)
    calls = (install, rmm_uvm.managed_pool, ManagedPool, lambda: rmm_uvm.monitor().start())
    for call in calls:
        with pytest.raises(ConfigurationError, match=f"RMM_UVM is '{value}': use 'on' or 'off'"):
            call()


def test_empty_value_is_on(monkeypatch: Any) -> None:
    monkeypatch.setenv("RMM_UVM", " ")
    assert install().state == "on"


def test_monitor_answers_everything_and_its_report_says_why_it_is_empty(
    switched_off: None, tmp_path: Path
) -> None:
    trace = tmp_path / "run.trace"
    handle = install(monitor={"trace": trace, "attribution": True, "faults": True})
    with rmm_uvm.monitor() as own, rmm_uvm.stage("merge"):
        before = own.snapshot()
    for monitor in (handle.monitor, own):
        report = monitor.report()
        assert "no advice: switched off by RMM_UVM=off" in str(report)
        report.save_json(tmp_path / "report.json")
        stored = json.loads((tmp_path / "report.json").read_text())
        assert stored["sources"]["kernel_counters"]["reason"] == "switched off by RMM_UVM=off"
        assert monitor.snapshot().device_to_host_bytes is None
        assert monitor.findings == ()
    assert own.window(before).host_to_device_bytes is None
    assert len(own.samples()) > 0
    assert [stage.name for stage in own.recording().stages] == ["merge"]
    handle.monitor.stop()
    assert trace.stat().st_size > 0


def test_line_about_what_is_on_is_logged(off: bool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rmm_uvm"):
        install(device_budget="16MiB", monitor=True)
    ((name, level, line),) = caplog.record_tuples
    assert (name, level) == ("rmm_uvm", logging.INFO)
    assert "\n" not in line
    if off:
        assert "switched off by RMM_UVM=off" in line
    else:
        assert "managed pool on device 0 (simulated device, 64.00 MiB): 8.00 MiB, at most" in line
        assert "budget 16.00 MiB" in line
        assert "monitor on" in line


def test_pool_from_before_the_switch_stays_until_it_is_restored(monkeypatch: Any) -> None:
    handle = install()
    monkeypatch.setenv("RMM_UVM", "off")
    assert install().state == "off"
    buffer = rmm.DeviceBuffer(size=4 * MIB, mr=handle.managed_mr)
    assert rmm_uvm.touch(buffer) == 4 * MIB
    rmm_uvm.restore()
    assert handle.state == "released"
