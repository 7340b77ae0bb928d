# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Installing and restoring: what is there before, between and after."""

from __future__ import annotations

import gc
import inspect
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rmm
import rmm.statistics

import rmm_uvm
import rmm_uvm.pool.install
from rmm_uvm.errors import AvailabilityError, ConfigurationError, ReplacedResourceWarning
from rmm_uvm.integrations import Wiring
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.pool.install import (
    current_installation,
    installations,
    installed_devices,
    restore_devices,
)
from rmm_uvm.pool.slabs import RMM_KEEPS
from rmm_uvm.watch.monitor import running

MIB = 1 << 20


@pytest.fixture
def device() -> rmm_uvm.drivers.SimulatedDevice:
    return rmm_uvm.simulated_device("64MiB")


def install(driver: Any = "simulated:64MiB", **arguments: Any) -> Any:
    arguments.setdefault("initial_pool_size", "16MiB")
    return rmm_uvm.reinitialize(driver=driver, **arguments)


# --- installing --------------------------------------------------------------------------------


def test_reinitialize_installs_the_chain_for_rmm() -> None:
    handle = install()
    current = rmm.mr.get_per_device_resource(0)
    assert current is handle.managed_mr
    assert isinstance(current, UvmResourceAdaptor)
    assert isinstance(current.upstream_mr, rmm.mr.PoolMemoryResource)
    assert isinstance(current.upstream_mr.upstream_mr, ManagedMemoryResource)
    assert current.upstream_mr.pool_size() == 16 * MIB
    assert current_installation() is handle


def test_buffers_after_reinitialize_come_from_the_pool() -> None:
    handle = install()
    buffer = rmm.DeviceBuffer(size=1000, mr=rmm.mr.get_per_device_resource(0))
    assert handle.managed_mr.get_allocated_bytes() == 1000
    del buffer


def test_reinitialize_takes_several_devices() -> None:
    handle = install(devices=[0, 1])
    assert [each.info.device_id for each in handle.devices] == [0, 1]
    assert rmm.mr.get_per_device_resource(1) is handle.devices[1].managed_mr
    rmm_uvm.restore()
    assert type(rmm.mr.get_per_device_resource(1)) is rmm.mr.CudaMemoryResource


def test_reinitialize_leaves_other_devices_alone(users_mr: Any) -> None:
    handle = install(devices=1)
    assert rmm.mr.get_per_device_resource(0) is users_mr
    assert rmm.mr.get_per_device_resource(1) is handle.managed_mr


def test_reinitialize_with_ipc_pool_makes_a_fixed_one(device: Any) -> None:
    handle = install(device, ipc_pool_size="8MiB")
    assert handle.ipc_mr.pool_size() == 8 * MIB
    assert device.statistics()["device_bytes"] == 8 * MIB
    assert handle.devices[0].sizes.capacity_bytes == 56 * MIB


def test_reinitialize_takes_driver_from_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:128MiB")
    assert rmm_uvm.reinitialize("16MiB").devices[0].info.total_bytes == 128 * MIB


@pytest.mark.parametrize("mode", ["auto", "always", "never"])
def test_reinitialize_passes_prefetch_mode_on(mode: Any) -> None:
    assert install(prefetch=mode).managed_mr.prefetch == mode


def test_reinitialize_with_logging_wraps_and_names_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Any, ...]] = []

    def logging_adaptor(upstream: Any, log_file_name: str | None) -> Any:
        asked.append((upstream, log_file_name))
        return rmm.mr.TrackingResourceAdaptor(upstream)

    with monkeypatch.context() as patch:
        patch.setattr(rmm.mr, "LoggingResourceAdaptor", logging_adaptor)
        handle = install(logging=True, log_file_name="log.csv")
    assert asked == [(handle.managed_mr, "log.csv")]
    assert rmm.mr.get_per_device_resource(0).upstream_mr is handle.managed_mr
    assert handle.devices[0].current


def test_reinitialize_runs_users_hooks_last_registered_first() -> None:
    order: list[str] = []
    rmm.register_reinitialize_hook(order.append, "first")
    rmm.register_reinitialize_hook(order.append, "second")
    install()
    assert order == ["second", "first"]


def test_hook_that_raises_changes_nothing(users_mr: Any) -> None:
    def refuse() -> None:
        raise RuntimeError("buffers in use")

    rmm.register_reinitialize_hook(refuse)
    with pytest.raises(RuntimeError, match="buffers in use"):
        install()
    assert rmm.mr.get_per_device_resource(0) is users_mr
    assert current_installation() is None


# --- restoring ---------------------------------------------------------------------------------


def test_libraries_may_be_an_iterator() -> None:
    handle = install(libraries=iter(["cupy"]))
    assert "cupy" in [wiring.library for wiring in handle.wirings]


def test_handle_keeps_every_argument_until_it_is_released() -> None:
    handle = install(initial_pool_size="16MiB")
    assert handle.arguments["initial_pool_size"] == "16MiB"
    assert set(handle.arguments) == set(inspect.signature(rmm_uvm.reinitialize).parameters)
    rmm_uvm.restore()
    assert handle.arguments == {}


def test_table_says_how_many_workers_share_the_host() -> None:
    alone = install().devices[0].sizes.maximum_bytes
    handle = install(host_sharers=4)
    assert "shared by 4 workers" in repr(handle)
    assert handle.devices[0].sizes.maximum_bytes < alone / 3


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "4"])
def test_host_sharers_that_is_no_number_of_processes_is_refused(number: Any) -> None:
    with pytest.raises(ConfigurationError, match="host_sharers"):
        install(host_sharers=number)
    assert rmm_uvm.current_installation() is None


def test_restore_puts_back_the_same_object() -> None:
    before = rmm.mr.get_per_device_resource(0)
    install()
    rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(0) is before
    assert current_installation() is None


def test_restore_without_installation_does_nothing() -> None:
    before = rmm.mr.get_per_device_resource(0)
    rmm_uvm.restore()
    rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(0) is before


def test_leaving_the_context_restores_even_after_an_error() -> None:
    before = rmm.mr.get_per_device_resource(0)
    with pytest.raises(AttributeError), install():
        rmm.mr.get_per_device_resource(0).no_such_attribute  # noqa: B018 - raises
    assert rmm.mr.get_per_device_resource(0) is before


def test_restore_gives_the_memory_back_though_the_handle_lives(device: Any) -> None:
    # IPython keeps every handle that a cell showed.
    handle = install(device)
    assert device.statistics()["managed_bytes"] == 16 * MIB
    rmm_uvm.restore()
    gc.collect()
    assert device.statistics()["managed_bytes"] == 0
    assert repr(handle) == "rmm_uvm: this pool is not installed any more"
    with pytest.raises(AvailabilityError, match="not installed any more"):
        _ = handle.managed_mr


def test_memory_alive_at_restore_is_freed_where_it_came_from(device: Any) -> None:
    handle = install(device)
    buffer = rmm.DeviceBuffer(size=1000, mr=handle.managed_mr)
    rmm_uvm.restore()
    gc.collect()
    assert device.statistics()["managed_bytes"] == 16 * MIB
    del buffer
    gc.collect()
    assert device.statistics()["managed_bytes"] == 0


def test_restore_undoes_wirings(monkeypatch: pytest.MonkeyPatch) -> None:
    undone: list[str] = []
    wiring = Wiring("cupy", active=True, reason="", undo=lambda: undone.append("cupy"))
    monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", lambda *_args, **_kwargs: [wiring])
    install()
    rmm_uvm.restore()
    assert undone == ["cupy"]


# --- a second time -----------------------------------------------------------------------------


def test_second_reinitialize_takes_other_settings_and_restores_the_first_state() -> None:
    before = rmm.mr.get_per_device_resource(0)
    first = install(prefetch="never")
    second = install(initial_pool_size="8MiB", prefetch="always")
    assert second.managed_mr.prefetch == "always"
    assert rmm.mr.get_per_device_resource(0) is second.managed_mr
    assert first.devices == ()
    rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(0) is before


def test_second_reinitialize_under_the_cap_counts_the_first_pool_as_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "40MiB")
    first = install(initial_pool_size="32MiB")
    second = install(initial_pool_size="32MiB", maximum_pool_size="32MiB")
    assert second.devices[0].sizes.initial_bytes == 32 * MIB
    assert first.devices == ()


def test_wrong_second_call_keeps_the_first_installation() -> None:
    first = install()
    with pytest.raises(ConfigurationError):
        install(initial_pool_size="64MiB", maximum_pool_size="32MiB")
    assert rmm.mr.get_per_device_resource(0) is first.managed_mr
    assert current_installation() is first


def test_reinitialize_after_out_of_memory_with_frames_alive_says_what_stays(device: Any) -> None:
    # GIVEN a function that runs out of memory with buffers in its frame
    install(device, maximum_pool_size="32MiB")

    def run_out() -> None:
        alive = []
        while True:
            mr = rmm.mr.get_per_device_resource(0)
            alive.append(rmm.DeviceBuffer(size=4 * MIB, mr=mr))

    # WHEN the pool is made anew while the traceback holds that frame
    try:
        run_out()
    except MemoryError:
        handle = install(device, maximum_pool_size="48MiB")

    # THEN it works and says what is left in the old pool
    assert handle.devices[0].old_live_bytes == 32 * MIB <= handle.devices[0].old_kept_bytes
    assert "old pool" in repr(handle)
    assert "32.00 MiB" in repr(handle)
    assert handle.managed_mr.allocate(1000) != 0


def test_reinitialize_default_sizes_after_out_of_memory_begin_small(device: Any) -> None:
    handle = install(device, device_budget=None)
    held = rmm.DeviceBuffer(size=64 * MIB, mr=handle.managed_mr)
    device.touch(held.ptr, held.size, write=True)
    handle = rmm_uvm.reinitialize(driver=device, device_budget=None)
    assert handle.devices[0].sizes.initial_reason == "small: little device memory is free"


# --- the handle --------------------------------------------------------------------------------


def test_handle_prints_every_size_and_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "48MiB")
    handle = install(ipc_pool_size="8MiB", libraries=("cupy", "numba", "torch"), prefetch="never")
    rows = {line[:15].strip(): line[15:].split("  ")[0] for line in repr(handle).splitlines()[1:]}
    assert repr(handle).splitlines()[0] == "rmm_uvm on device 0: simulated device, 64.00 MiB"
    assert rows == {
        "initial size": "16.00 MiB",
        "maximum size": "48.00 MiB",
        "IPC pool": "8.00 MiB",
        "cap": "48.00 MiB",
        "budget": "54.00 MiB",
        "": "",
        "eviction": "repeat",
        "migrations": "by libcuda",
        "page faults": "found",
        "prefetch": "off",
        "discard": "on",
        "counters": "on",
        "cupy": "off",
        "numba": "off",
        "torch": "off",
        "cudf_prefetch": "off",
        "rmm device": "on",
        "monitor": "on",
    }


def test_handle_says_why_something_is_off() -> None:
    device = rmm_uvm.simulated_device("64MiB", discard=False, counters=False)
    text = repr(install(device))
    assert "made without discard" in text
    assert "made without counters" in text
    assert "a simulated device runs no kernels" in text


def test_reinitialize_logging_without_a_file_is_refused_before_anything_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RMM_LOG_FILE", raising=False)
    before = rmm.mr.get_per_device_resource(0)
    with pytest.raises(ConfigurationError, match="RMM_LOG_FILE"):
        rmm_uvm.reinitialize(driver="simulated:64MiB", logging=True)
    assert rmm.mr.get_per_device_resource(0) is before


@pytest.mark.parametrize("name", ["pool_allocator", "managed_memory"])
def test_keywords_of_rmm_that_say_what_is_installed_are_taken_and_others_refused(name: str) -> None:
    with rmm_uvm.reinitialize(driver="simulated:64MiB", libraries=(), **{name: True}) as handle:
        assert handle.managed_mr is not None
    with pytest.raises(ConfigurationError, match=f"^{name}=False: .*rmm.reinitialize installs"):
        rmm_uvm.reinitialize(driver="simulated:64MiB", libraries=(), **{name: False})
    assert rmm_uvm.current_installation() is None


def test_logging_that_cuda_refuses_is_told_with_what_to_do_and_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class CUDARuntimeError(Exception):
        pass

    def refused(*_: object) -> None:
        raise CUDARuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(rmm.mr, "LoggingResourceAdaptor", refused)
    before = rmm.mr.get_per_device_resource(0)
    with pytest.raises(AvailabilityError, match=r"needs a GPU.*InsufficientDriver.*leave it out"):
        rmm_uvm.reinitialize(driver="simulated:64MiB", logging=True, log_file_name="log.csv")
    assert rmm.mr.get_per_device_resource(0) is before
    assert rmm_uvm.current_installation() is None


# --- RMM's own calls on a simulated device ------------------------------------------------------


def test_rmms_calls_without_a_resource_mean_the_simulated_device() -> None:
    handle = rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", libraries=())
    assert "rmm device on RMM's current one is 0" in " ".join(repr(handle).split())
    buffer = rmm.DeviceBuffer(size=1000)
    assert rmm.mr.get_current_device_resource() is handle.managed_mr
    assert handle.managed_mr.get_allocated_bytes() == 1000
    rmm.statistics.enable_statistics()
    with rmm.statistics.statistics():
        del buffer
        rmm.DeviceBuffer(size=5000)
        assert rmm.statistics.get_statistics().peak_bytes == 5000
    with pytest.warns(ReplacedResourceWarning):
        rmm_uvm.restore()
    with pytest.raises(Exception, match=r"cudaErrorInsufficientDriver|cudaErrorNoDevice"):
        rmm.mr.get_current_device_resource()


def test_current_device_that_cuda_has_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def has_one() -> int:
        return 3

    monkeypatch.setattr("rmm.pylibrmm.memory_resource._memory_resource.getDevice", has_one)
    handle = rmm_uvm.reinitialize("16MiB", driver="simulated:64MiB", libraries=())
    assert "rmm device" not in repr(handle)
    from rmm.pylibrmm.memory_resource import _memory_resource

    assert _memory_resource.getDevice is has_one


# --- one device after another -------------------------------------------------------------------


def one(devices: Any, **arguments: Any) -> Any:
    arguments.setdefault("maximum_pool_size", "32MiB")
    arguments.setdefault("libraries", ())
    return rmm_uvm.reinitialize("8MiB", devices=devices, driver="simulated:64MiB", **arguments)


def now(*device_ids: int) -> list[Any]:
    return [rmm.mr.get_per_device_resource(each) for each in device_ids or (0, 1)]


def ordinals(handle: Any) -> list[int]:
    return [each.info.device_id for each in handle.devices]


def test_second_device_leaves_the_first_ones_pool_in_place() -> None:
    before = now()
    first = one(0)
    kept = rmm.DeviceBuffer(size=1000, mr=first.managed_mr)
    second = one(1)
    assert now() == [first.managed_mr, second.managed_mr]
    assert (ordinals(first), ordinals(second)) == ([0], [1])
    assert (first.state, second.state) == ("on", "on")
    assert first.managed_mr.get_allocated_bytes() == 1000
    assert current_installation() is second
    assert [ordinals(each) for each in installations()] == [[0], [1]]
    assert [each.info.device_id for each in installed_devices()] == [1, 0]
    assert [facts.device_id for facts in first.monitor.devices] == [0]
    assert first.monitor.running
    assert second.monitor.running
    del kept
    rmm_uvm.restore()
    assert (first.state, second.state) == ("released", "released")
    assert now() == before
    assert installed_devices() == ()


def test_of_two_devices_the_one_that_is_made_again_is_new_and_the_other_stays() -> None:
    before = now()
    both = one([0, 1])
    zero, other = now()
    below, gone = other.managed_mr, weakref.ref(both.devices[1])
    again = one(1)
    del other
    assert now() == [zero, again.managed_mr]
    assert (ordinals(both), ordinals(again)) == ([0], [1])
    assert both.arguments["devices"] == [0, 1]
    assert gone() is None
    assert below.slab_bytes == 0
    rmm_uvm.restore()
    assert now() == before


def test_later_call_for_all_devices_takes_over_those_of_earlier_calls() -> None:
    before = now()
    first = one(0)
    second = one([1, 0])
    assert (first.state, ordinals(second)) == ("released", [1, 0])
    assert now() == [second.devices[1].managed_mr, second.devices[0].managed_mr]
    assert [each.previous_mr for each in second.devices] == before[::-1]


def test_cell_that_is_run_again_leaves_the_device_of_another_cell() -> None:
    before = now()
    first = one(0)
    other = one(1)
    below, pool = first.managed_mr.managed_mr, other.managed_mr
    again = one(0)
    assert (first.state, other.state, again.state) == ("released", "on", "on")
    assert current_installation() is again
    assert now() == [again.managed_mr, pool]
    assert below.slab_bytes == 0
    assert again.devices[0].previous_mr is before[0]
    with pytest.raises(AvailabilityError, match="not installed any more"):
        _ = first.managed_mr


def test_drivers_of_two_simulated_devices_are_installed_one_after_the_other() -> None:
    devices = [rmm_uvm.simulated_device("64MiB", device=number) for number in (0, 3)]
    handles = [install(each, libraries=()) for each in devices]
    assert [ordinals(each) for each in handles] == [[0], [3]]
    assert [each.statistics()["managed_bytes"] for each in devices] == [16 * MIB, 16 * MIB]
    with handles[1]:
        pass
    assert [each.statistics()["managed_bytes"] for each in devices] == [16 * MIB, 0]


def test_leaving_a_context_puts_back_its_own_devices_in_either_order() -> None:
    before = now()
    with one(0) as outer:
        with one(1) as inner:
            assert now() == [outer.managed_mr, inner.managed_mr]
        assert now() == [outer.managed_mr, before[1]]
        assert current_installation() is outer
        assert outer.monitor.running
    assert now() == before
    outer, inner = one(0), one(1)
    outer.__exit__(None, None, None)
    assert now() == [before[0], inner.managed_mr]
    assert (outer.state, inner.state) == ("released", "on")
    inner.__exit__(None, None, None)
    assert now() == before


def test_leaving_a_context_twice_on_one_device_restores_once() -> None:
    before = now()
    with one(0):
        with one(0):
            pass
        assert now() == before
    assert now() == before


def test_leaving_a_context_takes_a_later_calls_pool_on_its_device_and_not_on_others() -> None:
    before = now()
    with one(0):
        later = one([0, 1])
    assert now() == [before[0], later.managed_mr]
    assert ordinals(later) == [1]


def test_rmms_current_device_is_that_of_the_last_call_that_is_left() -> None:
    with one(0) as outer:
        with one(1) as inner:
            assert rmm.mr.get_current_device_resource() is inner.managed_mr
        assert rmm.mr.get_current_device_resource() is outer.managed_mr


def test_rmm_reinitialize_takes_the_pools_of_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rmm.rmm, "_initialize", lambda **_: None)
    before = now()
    handles = [one(1), one(0)]
    with pytest.warns(ReplacedResourceWarning, match="on device 0, 1: call"):
        rmm.reinitialize()
    assert now() == before
    assert [each.state for each in handles] == ["released", "released"]


def test_hints_and_figures_mean_the_pools_of_all_devices() -> None:
    one(0, device_budget="16MiB")
    one(1, device_budget="24MiB")
    budgets = [rmm_uvm.residency_statistics(device=device_id).budget_bytes for device_id in (0, 1)]
    assert budgets == [16 * MIB, 24 * MIB]
    assert rmm_uvm.residency_statistics().budget_bytes == 24 * MIB  # of the last call
    buffers = [rmm.DeviceBuffer(size=4 * MIB, mr=each) for each in now()]
    assert rmm_uvm.touch([(each.ptr, each.size) for each in buffers]) == 8 * MIB
    del buffers
    if not RMM_KEEPS:
        assert rmm_uvm.trim().given_back_bytes == 16 * MIB


def test_monitor_of_a_call_that_lost_a_device_watches_what_is_left(tmp_path: Path) -> None:
    asked = {"interval_seconds": 2.0, "on_finding": None, "trace": tmp_path / "x.trace"}
    both = one([0, 1], monitor=asked)
    whole = both.monitor
    again = one(1, monitor={"trace": tmp_path / "y.trace"})
    assert (whole.running, both.monitor.running, again.monitor.running) == (False, True, True)
    watched = [[facts.device_id for facts in each.devices] for each in running()]
    assert watched == [[0], [1]]
    assert both.monitor.recording().interval_seconds == 2.0
    assert both.monitor.on_finding is None
    assert again.monitor.sources["trace"]
    assert len(whole.recording().samples) >= 4
    again.__exit__(None, None, None)
    assert both.monitor.running


def test_monitor_that_was_stopped_by_hand_stays_stopped() -> None:
    both = one([0, 1])
    both.monitor.stop()
    one(1)
    assert not both.monitor.running


def test_callback_that_restores_all_while_one_device_goes_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rmm_uvm.watch.advisor._PAUSE_SECONDS", 3600.0)  # looks when it ends
    before = now()
    both = one([0, 1], maximum_pool_size="256MiB")
    pool = both.managed_mr
    both.monitor.stop()
    both.monitor = rmm_uvm.monitor(
        devices=[0, 1], interval_seconds=60, on_finding=lambda _: rmm_uvm.restore(), publish=False
    ).start()
    kept = rmm.DeviceBuffer(size=100 * MIB, mr=pool)
    restore_devices([1])
    assert now() == before
    assert installed_devices() == ()
    assert running() == ()
    del kept


def test_callback_may_not_install_while_its_pool_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rmm_uvm.watch.advisor._PAUSE_SECONDS", 3600.0)  # looks when it ends
    before = now()
    first = one(0, maximum_pool_size="256MiB")
    refused = []

    def again(_: object) -> None:
        with pytest.raises(AvailabilityError) as error:
            one(0)
        refused.append(str(error.value))

    first.monitor.stop()
    first.monitor = rmm_uvm.monitor(
        devices=0, interval_seconds=60, on_finding=again, publish=False
    ).start()
    kept = rmm.DeviceBuffer(size=100 * MIB, mr=first.managed_mr)
    second = one(0)
    assert set(refused) == {
        "reinitialize is refused: a monitor that ends with its pool called it; call later"
    }
    assert now() == [second.managed_mr, before[1]]
    assert second.devices[0].previous_mr is before[0]
    assert installations() == (second,)
    del kept


# --- what fails on the second device --------------------------------------------------------------


def fail_by(way: str, monkeypatch: pytest.MonkeyPatch) -> tuple[type[BaseException], Any]:
    """Return what a call for device 1 will raise, and what makes it."""
    if way == "size":
        return ConfigurationError, {"maximum_pool_size": "4MiB"}
    if way == "memory":
        driver = rmm_uvm.simulated_device("64MiB", device=1)
        driver.fail_call("allocate_managed", "out_of_memory")
        monkeypatch.setattr("rmm_uvm.pool.arguments.choose_driver", lambda *_: driver)
        return MemoryError, {}
    raised: dict[str, BaseException] = {
        "hook": RuntimeError("in use"),
        "interrupt": KeyboardInterrupt(),
        "context": KeyboardInterrupt(),
        "monitor": KeyboardInterrupt(),
        "wiring": AvailabilityError("no library"),
    }

    def fail(*_: Any, **__: Any) -> None:
        raise raised[way]

    if way == "hook":
        rmm.register_reinitialize_hook(fail)
    if way == "interrupt":
        monkeypatch.setattr(rmm_uvm.pool.install, "install_one", fail)
    if way == "context":  # RMM has the pool by then
        monkeypatch.setattr("rmm_uvm.pool.device.ensure_context", fail)
    if way == "monitor":
        monkeypatch.setattr(rmm_uvm.pool.install.Installation, "start_monitor", fail)
    if way == "wiring":
        # Once: what was wired before is wired again.
        wire_all = rmm_uvm.pool.install._wire_all

        def fail_once(*_: Any, **__: Any) -> Any:
            monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", wire_all)
            fail()

        monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", fail_once)
    return type(raised[way]), {}


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize(
    "way", ["size", "memory", "hook", "interrupt", "context", "wiring", "monitor"]
)
def test_what_fails_for_a_second_device_leaves_the_first_as_it_was(
    way: str, is_replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = now()
    first = one(0)
    second = one(1) if is_replaced else None
    keeps = second is not None and way in ("size", "hook")  # seen before anything changes
    other = second.managed_mr if keeps else before[1]
    below = None if second is None or keeps else second.managed_mr.managed_mr
    error, arguments = fail_by(way, monkeypatch)
    with pytest.raises(error) as raised:
        one(1, **arguments)
    assert below is None or below.slab_bytes == 0  # nor does the traceback keep it
    del raised
    assert now() == [first.managed_mr, other]
    assert current_installation() is (second if keeps else first)
    assert first.monitor.running
    assert [each.active for each in first.wirings if each.library == "rmm device"] == [True]
    assert rmm.mr.get_current_device_resource() is (other if keeps else first.managed_mr)
    rmm_uvm.restore()
    assert now() == before


def test_torch_that_allocates_through_one_device_keeps_others_from_being_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wiring = Wiring("torch", active=True, reason="allocates through RMM", permanent=True)
    monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", lambda *_args, **_kwargs: [wiring])
    first = one(0)
    for refused in (lambda: one(1), lambda: first.__exit__(None, None, None)):
        with pytest.raises(AvailabilityError, match="is refused: torch allocates"):
            refused()
    assert now(0) == [first.managed_mr]


# --- wirings of several devices -------------------------------------------------------------------


def test_libraries_are_wired_to_all_devices_as_the_last_call_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wired: list[Any] = []

    def wire_all(
        _: object, prefetch: object, drivers: Any, devices: Any, **__: object
    ) -> list[Wiring]:
        made = (prefetch, [each.info.device_id for each in devices])
        assert made[1] == [each.info.device_id for each in drivers]
        wired.append(made)
        return [Wiring("x", active=True, reason=str(made), undo=lambda: wired.remove(made))]

    monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", wire_all)
    first = one(0, cudf_prefetch=True)
    assert wired == [(True, [0])]
    second = one(1, cudf_prefetch=False)
    assert wired == [(False, [1, 0])]
    assert first.wirings == second.wirings
    assert first.wirings[0].reason == str(wired[0])
    one(0, cudf_prefetch="auto")
    assert wired == [("auto", [0, 1])]
    second.__exit__(None, None, None)
    assert wired == [("auto", [0])]
    with one(2, cudf_prefetch=True):
        assert wired == [(True, [2, 0])]
    assert wired == [("auto", [0])]
    rmm_uvm.restore()
    assert wired == []


def test_libraries_announce_to_the_pools_of_all_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def wire_libcudf(residencies: Any) -> Wiring:
        told.append([*residencies])
        return Wiring("libcudf_calls", active=True, reason="")

    monkeypatch.setattr(rmm_uvm.pool.install, "wire_libcudf", wire_libcudf)
    wire_all = rmm_uvm.pool.install._wire_all
    on_a_gpu = SimpleNamespace(info=SimpleNamespace(simulated=False), counters_available=bool)
    monkeypatch.setattr(  # a simulated device runs no kernels, and nothing is told
        rmm_uvm.pool.install,
        "_wire_all",
        lambda names, prefetch, _, devices, **__: wire_all(names, prefetch, [on_a_gpu], devices),
    )
    handles = [one(number, device_budget="8MiB") for number in (0, 1)]
    residencies = [each.managed_mr.managed_mr.residency for each in handles]
    assert told == [residencies[:1], residencies[::-1]]
    buffers = [[rmm.DeviceBuffer(size=4 * MIB, mr=each) for _ in range(3)] for each in now()]
    for each in buffers:
        each[0].__cuda_array_interface__  # noqa: B018 - announces what had to leave
    fetched = [rmm_uvm.residency_statistics(device=each).fetched_bytes for each in (0, 1)]
    assert fetched == [4 * MIB, 4 * MIB]
    del buffers, each
    restore_devices([1])
    assert told[-1] == residencies[:1]


def test_libraries_are_wired_to_gpus_where_simulated_devices_are_installed_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu, simulated = (
        SimpleNamespace(info=SimpleNamespace(simulated=each), managed_mr=SimpleNamespace(driver=1))
        for each in (False, True)
    )
    wired: list[Any] = []
    monkeypatch.setattr(
        rmm_uvm.pool.install, "_wire_all", lambda *given, **_: wired.append(given[3]) or []
    )
    for devices in ([simulated, gpu], [simulated]):
        rmm_uvm.pool.install._wire((), False, devices)
    assert wired == [[gpu], [simulated]]


@pytest.fixture
def wires(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return how each library is wired, as on a GPU: how to undo it, or why it cannot be."""
    how: dict[str, Any] = {}

    def wire(name: str) -> Wiring:
        if isinstance(how[name], str):
            raise AvailabilityError(how[name])
        return Wiring(name, active=True, reason="", undo=how[name])

    monkeypatch.setattr(rmm_uvm.pool.install, "wire", wire)
    wire_all = rmm_uvm.pool.install._wire_all
    on_a_gpu = SimpleNamespace(info=SimpleNamespace(simulated=False), counters_available=bool)

    def as_on_a_gpu(names: Any, prefetch: Any, _: object, *given: Any, **keywords: Any) -> Any:
        return wire_all(names, prefetch, [on_a_gpu], *given, **keywords)

    monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", as_on_a_gpu)
    return how


def reasons(handle: Any) -> dict[str, Any]:
    known = {each.library: each.reason or each.active for each in handle.wirings}
    return {name: known[name] for name in ("cupy", "numba")}


def test_library_that_cannot_be_wired_any_more_is_a_row_when_a_device_goes(wires: Any) -> None:
    before = now()
    wires.update(cupy=list, numba=list)
    first = one(0, libraries=("cupy", "numba"))
    second = one(1)
    wires["numba"] = "numba has used a GPU already"
    second.__exit__(None, None, None)
    assert now() == [first.managed_mr, before[1]]
    assert reasons(first) == {"cupy": True, "numba": "numba has used a GPU already"}
    with pytest.raises(AvailabilityError, match="used a GPU"):  # a new call is told
        one(1, libraries=("numba",))
    assert reasons(first) == {"cupy": True, "numba": "numba has used a GPU already"}


def test_library_that_cannot_be_wired_any_more_hides_no_error_of_a_call(
    wires: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wires.update(cupy=list, numba=list)
    first = one(0, libraries=("cupy", "numba"))
    one(1)
    wires["numba"] = "numba has used a GPU already"
    error, arguments = fail_by("memory", monkeypatch)
    with pytest.raises(error):
        one(1, **arguments)
    assert reasons(first) == {"cupy": True, "numba": "numba has used a GPU already"}


# --- what fails while pools go --------------------------------------------------------------------


def test_what_fails_before_pools_go_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = now()
    handle = one([0, 1])

    def fail(*_: object) -> None:
        raise OSError("no leases")

    with monkeypatch.context() as patch:
        patch.setattr(rmm_uvm.pool.install.Farewell, "to", fail)
        with pytest.raises(OSError, match="no leases"):
            rmm_uvm.restore()
    assert now() == [each.managed_mr for each in handle.devices]
    assert handle.monitor.running
    rmm_uvm.restore()
    assert now() == before


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_library_that_refuses_to_be_put_back_stops_nothing_else(
    kind: type[BaseException], wires: Any, caplog: pytest.LogCaptureFixture
) -> None:
    before = now()
    undone: list[str] = []

    def refuse() -> None:
        raise kind("inside using_allocator")

    wires.update(cupy=refuse, numba=lambda: undone.append("numba"))
    one([0, 1], libraries=("cupy", "numba"))
    if kind is ValueError:
        rmm_uvm.restore()
        assert "cupy cannot be put back: inside using_allocator" in caplog.text
    else:
        with pytest.raises(kind):
            rmm_uvm.restore()
    assert undone == ["numba"]
    assert now() == before


def test_interrupt_while_one_monitor_stops_stops_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = now()
    first, second = one(0), one(1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(first.monitor, "stop", interrupt)
        with pytest.raises(KeyboardInterrupt):
            rmm_uvm.restore()
    assert running() == (first.monitor,)
    first.monitor.stop()
    assert not second.monitor.running
    assert now() == before


def test_callback_that_raises_when_pools_go_keeps_no_other_from_being_told() -> None:
    before, hooks = now(), [*rmm.rmm._reinitialize_hooks]
    told: list[int] = []

    def fail() -> None:
        raise RuntimeError("not mine any more")

    handles = one(0), one(1)
    for number, each in enumerate(handles):
        each.when_released(lambda number=number: told.append(number))
        each.when_released(fail)
    with pytest.raises(RuntimeError, match="not mine any more"):
        rmm_uvm.restore()
    assert told == [0, 1]
    assert [each.arguments for each in handles] == [{}, {}]
    assert rmm.rmm._reinitialize_hooks == hooks
    assert now() == before


# --- memory of the host ---------------------------------------------------------------------------


def test_later_device_plans_with_the_host_memory_that_earlier_pools_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = HostMemory(total_bytes=1 << 30, available_bytes=1000 * MIB)
    monkeypatch.setattr("rmm_uvm.pool.build.host_memory", lambda **_: host)
    first = one(0, maximum_pool_size=None).devices[0].sizes
    assert first.maximum_bytes == 900 * MIB
    second = one(1, maximum_pool_size=None).devices[0].sizes
    assert second.maximum_bytes == 90 * MIB
    assert "host memory, less what other devices' pools may take" in second.maximum_reason
    third = one(2, maximum_pool_size=None).devices[0].sizes
    assert third.maximum_bytes == 62 * MIB
    assert third.maximum_reason.startswith("the budget; the host has less to back more, less what")
    with pytest.raises(ConfigurationError, match="less what other devices' pools may take"):
        one(3, maximum_pool_size="300MiB")
    again = one([0, 1, 2], maximum_pool_size=None).devices
    assert [each.sizes.maximum_bytes for each in again] == [298 * MIB] * 3


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.CapacityWarning")
@pytest.mark.parametrize(
    ("facts", "first_mib", "second_mib"),
    [
        ({"concurrent_managed_access": False}, 64, 900),
        ({"concurrent_managed_access": False, "integrated": True}, 56, 848),
        ({"integrated": True}, 56, 848),
        ({}, 900, 90),
    ],
)
def test_pools_that_can_take_no_host_memory_leave_all_of_it(
    facts: dict[str, bool], first_mib: int, second_mib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = HostMemory(total_bytes=1 << 30, available_bytes=1000 * MIB)
    monkeypatch.setattr("rmm_uvm.pool.build.host_memory", lambda **_: host)
    first = install(rmm_uvm.simulated_device("64MiB", **facts)).devices[0].sizes
    second = one(1, maximum_pool_size=None).devices[0].sizes
    assert (first.maximum_bytes, second.maximum_bytes) == (first_mib * MIB, second_mib * MIB)
