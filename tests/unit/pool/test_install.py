# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Installing and restoring: what is there before, between and after."""

from __future__ import annotations

import gc
import inspect
from typing import Any

import pytest
import rmm
import rmm.statistics

import rmm_uvm
import rmm_uvm.pool.install
from rmm_uvm.errors import AvailabilityError, ConfigurationError, ReplacedResourceWarning
from rmm_uvm.integrations import Wiring
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.pool.install import current_installation

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
