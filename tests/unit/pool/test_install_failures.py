# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Installing beside others, and installing that fails: nothing is lost or half-installed."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from typing import Any

import pytest
import rmm

import rmm_uvm
import rmm_uvm.pool.install
from rmm_uvm.errors import (
    AvailabilityError,
    CapacityWarning,
    ConfigurationError,
    DriverError,
    ReplacedResourceWarning,
)
from rmm_uvm.integrations import Wiring
from rmm_uvm.pool.install import current_installation
from rmm_uvm.pool.slabs import RMM_KEEPS

MIB = 1 << 20


@pytest.fixture
def device() -> rmm_uvm.drivers.SimulatedDevice:
    return rmm_uvm.simulated_device("64MiB")


def install(driver: Any = "simulated:64MiB", **arguments: Any) -> Any:
    arguments.setdefault("initial_pool_size", "16MiB")
    return rmm_uvm.reinitialize(driver=driver, **arguments)


def torch_is_wired(monkeypatch: pytest.MonkeyPatch) -> None:
    wiring = Wiring("torch", active=True, reason="allocates through RMM", permanent=True)
    monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", lambda *_args, **_kwargs: [wiring])


# --- others' resources -------------------------------------------------------------------------


def test_replacing_a_users_resource_warns_once_and_restore_puts_it_back(users_mr: Any) -> None:
    with pytest.warns(ReplacedResourceWarning, match="replaces StatisticsResourceAdaptor") as seen:
        install()
    assert len(seen) == 1
    assert seen[0].filename == __file__
    rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(0) is users_mr


def over(kind: str, mr: rmm.mr.DeviceMemoryResource) -> rmm.mr.DeviceMemoryResource:
    """Put an adaptor of RMM over a resource, as programs, cuDF and profilers do."""
    made = {
        "statistics": rmm.mr.StatisticsResourceAdaptor,
        "tracking": rmm.mr.TrackingResourceAdaptor,
        "failure": lambda inner: rmm.mr.FailureCallbackResourceAdaptor(inner, lambda _: False),
        "limiting": lambda inner: rmm.mr.LimitingResourceAdaptor(inner, 32 * MIB),
        "two": lambda inner: rmm.mr.TrackingResourceAdaptor(
            rmm.mr.StatisticsResourceAdaptor(inner)
        ),
    }[kind](mr)
    rmm.mr.set_per_device_resource(0, made)
    return made


ADAPTORS = ("statistics", "tracking", "failure", "limiting", "two")


@pytest.mark.parametrize("kind", ADAPTORS)
def test_adaptor_over_ours_is_no_replacement_and_goes_with_it(kind: str) -> None:
    before = rmm.mr.get_per_device_resource(0)
    handle = install()
    below = handle.managed_mr.managed_mr
    adaptor = over(kind, handle.managed_mr)
    name = type(adaptor).__name__
    assert handle.devices[0].current
    assert handle.devices[0].adaptors[0] == name
    assert f"put over it by others: {name}" in " ".join(repr(handle).split())
    assert "replaced by" not in repr(handle)
    buffer = rmm.DeviceBuffer(size=1000, mr=adaptor)
    assert handle.managed_mr.get_allocated_bytes() == 1000
    del buffer
    with pytest.warns(ReplacedResourceWarning, match=f"{name}.* over rmm_uvm's pool") as seen:
        rmm_uvm.restore()
    assert (len(seen), seen[0].filename) == (1, __file__)
    assert rmm.mr.get_per_device_resource(0) is before
    del adaptor, handle
    gc.collect()
    assert below.slab_bytes == 0


@pytest.mark.parametrize("kind", ADAPTORS)
def test_cell_that_is_run_twice_leaves_no_dead_pool(kind: str) -> None:
    before = rmm.mr.get_per_device_resource(0)
    earlier = []
    for turn in range(4):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            handle = install()
        assert [each.category for each in seen] == [ReplacedResourceWarning] * (turn > 0)
        assert all(each.filename == __file__ for each in seen)
        earlier.append(handle.managed_mr.managed_mr)
        over(kind, handle.managed_mr)
        assert handle.devices[0].previous_mr is before
    gc.collect()
    assert [each.slab_bytes for each in earlier[:-1]] == [0, 0, 0]
    with pytest.warns(ReplacedResourceWarning):
        rmm_uvm.restore()


def test_pool_whose_logging_adaptor_was_taken_away_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rmm_uvm.pool.device._logging_adaptor",
        lambda managed, _file: rmm.mr.TrackingResourceAdaptor(managed),  # logging needs a GPU
    )
    before = rmm.mr.get_per_device_resource(0)
    handle = install(logging=True, log_file_name="x")
    assert handle.devices[0].adaptors == ()  # it is our own
    rmm.mr.set_per_device_resource(0, handle.managed_mr)  # as rmm.disable_logging does
    assert handle.devices[0].current
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(0) is before


def test_what_an_old_pool_keeps_is_told_beside_what_lives_in_it() -> None:
    handle = install()
    small = rmm.DeviceBuffer(size=1 * MIB, mr=handle.managed_mr)
    large = rmm.DeviceBuffer(size=40 * MIB, mr=handle.managed_mr)
    del large
    slab_bytes = handle.managed_mr.managed_mr.slab_bytes
    device = install().devices[0]
    kept_bytes = slab_bytes if RMM_KEEPS else 16 * MIB
    assert (device.old_live_bytes, device.old_kept_bytes) == (1 * MIB, kept_bytes)
    assert "kept by 1.00 MiB still alive there" in repr(current_installation())
    del small


def test_ours_replaced_by_set_per_device_resource_is_reported() -> None:
    handle = install()
    other = rmm.mr.CudaMemoryResource()
    rmm.mr.set_per_device_resource(0, other)
    assert not handle.devices[0].current
    assert "replaced by CudaMemoryResource" in repr(handle)
    with pytest.warns(ReplacedResourceWarning, match="replaced meanwhile by CudaMemoryResource"):
        rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(0) is other


def test_ours_replaced_by_rmm_reinitialize_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    other = rmm.mr.CudaMemoryResource()
    monkeypatch.setattr(
        rmm.rmm, "_initialize", lambda **_: rmm.mr.set_per_device_resource(0, other)
    )
    undone: list[bool] = []
    wiring = Wiring("cupy", active=True, reason="", undo=lambda: undone.append(True))
    monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", lambda *_args, **_kwargs: [wiring])
    handle = install()

    with pytest.warns(ReplacedResourceWarning, match=r"rmm\.reinitialize replaces") as seen:
        rmm.reinitialize(pool_allocator=True)

    assert len(seen) == 1
    assert undone == [True]
    assert current_installation() is None
    assert handle.devices == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rmm_uvm.restore()  # nothing of ours is left to put back
        rmm.reinitialize()  # and nobody to warn any more
    assert rmm.mr.get_per_device_resource(0) is other


def test_rmm_reinitialize_of_another_device_puts_back_what_was_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rmm.rmm, "_initialize", lambda **_: None)  # our device is not among its
    before = rmm.mr.get_per_device_resource(0)
    install()
    with pytest.warns(ReplacedResourceWarning):
        rmm.reinitialize(devices=1)
    assert rmm.mr.get_per_device_resource(0) is before


def test_failed_call_leaves_no_pool_alive_in_its_traceback(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AvailabilityError("no")

    monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", refuse)
    with pytest.raises(AvailabilityError) as error:
        install(device)
    assert error.value.__traceback__ is not None  # as a notebook's sys.last_value keeps it
    assert device.statistics()["managed_bytes"] == 0


def test_warning_of_restore_as_an_error_keeps_no_pool_alive(device: Any) -> None:
    over("statistics", install(device).managed_mr)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ReplacedResourceWarning) as error:
            rmm_uvm.restore()
    assert error.value.__traceback__ is not None  # as a notebook's sys.last_value keeps it
    assert device.statistics()["managed_bytes"] == 0


def test_warnings_as_errors_leave_nothing_half_restored() -> None:
    before = rmm.mr.get_per_device_resource(1)
    install(devices=[0, 1])
    rmm.mr.set_per_device_resource(0, rmm.mr.CudaMemoryResource())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ReplacedResourceWarning):
            rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(1) is before
    assert current_installation() is None


# --- torch -------------------------------------------------------------------------------------


def test_restore_is_refused_once_torch_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_is_wired(monkeypatch)
    handle = install()
    with pytest.raises(AvailabilityError, match=r"restore is refused: torch .*new process"):
        rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(0) is handle.managed_mr


def test_second_reinitialize_is_refused_once_torch_is_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch_is_wired(monkeypatch)
    handle = install()
    with pytest.raises(AvailabilityError, match="reinitialize is refused"):
        install()
    assert current_installation() is handle


def test_rmm_reinitialize_is_refused_once_torch_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_is_wired(monkeypatch)
    handle = install()
    monkeypatch.setattr(rmm.rmm, "_initialize", lambda **_: pytest.fail("went on"))
    with pytest.raises(AvailabilityError, match=r"rmm\.reinitialize is refused"):
        rmm.reinitialize()
    assert rmm.mr.get_per_device_resource(0) is handle.managed_mr


# --- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["out_of_memory", "driver_error"])
def test_first_slab_refused_leaves_previous_resource(device: Any, users_mr: Any, code: str) -> None:
    device.fail_call("allocate_managed", code)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReplacedResourceWarning)
        with pytest.raises(MemoryError):
            install(device)
    assert rmm.mr.get_per_device_resource(0) is users_mr
    assert current_installation() is None
    assert device.statistics()["managed_bytes"] == 0


def test_free_memory_unreadable_is_an_error_before_any_change(device: Any) -> None:
    before = rmm.mr.get_per_device_resource(0)
    device.fail_call("memory", "driver_error")
    with pytest.raises(DriverError, match="free memory"):
        install(device)
    assert rmm.mr.get_per_device_resource(0) is before


def test_second_device_failing_leaves_the_first_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = [rmm.mr.get_per_device_resource(number) for number in (0, 1)]
    devices = [rmm_uvm.simulated_device("64MiB", device=number) for number in (0, 1)]
    devices[1].fail_call("allocate_managed", "out_of_memory")
    monkeypatch.setattr("rmm_uvm.pool.arguments.choose_driver", lambda number, _: devices[number])
    with pytest.raises(MemoryError):
        install(devices=[0, 1])
    assert [rmm.mr.get_per_device_resource(number) for number in (0, 1)] == before
    assert current_installation() is None
    gc.collect()
    assert devices[0].statistics()["managed_bytes"] == 0


def test_library_that_cannot_be_wired_leaves_previous_resource(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = rmm.mr.get_per_device_resource(0)

    def refuse(*_args: Any, **_kwargs: Any) -> list[Wiring]:
        raise AvailabilityError("torch has allocated CUDA memory already")

    monkeypatch.setattr(rmm_uvm.pool.install, "_wire_all", refuse)
    with pytest.raises(AvailabilityError, match="already"):
        install()
    assert rmm.mr.get_per_device_resource(0) is before
    assert current_installation() is None


def test_second_call_out_of_memory_puts_back_what_was_before_the_package(device: Any) -> None:
    before = rmm.mr.get_per_device_resource(0)
    install(device)
    device.fail_call("allocate_managed", "out_of_memory")
    with pytest.raises(MemoryError):
        install(device)
    assert rmm.mr.get_per_device_resource(0) is before
    assert current_installation() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"initial_pool_size": 0}, "greater than 0"),
        ({"initial_pool_size": -1}, "greater than 0"),
        ({"initial_pool_size": "many"}, "initial_pool_size='many'"),
        ({"initial_pool_size": float("nan")}, "initial_pool_size=nan"),
        ({"initial_pool_size": 1.5}, "fraction"),
        ({"maximum_pool_size": "1PiB"}, "device and host together hold"),
        ({"initial_pool_size": "32MiB", "maximum_pool_size": "16MiB"}, "over the maximum"),
        ({"ipc_pool_size": "65MiB"}, "of the device are free"),
        ({"prefetch": "sometimes"}, "prefetch='sometimes'"),
        ({"cudf_prefetch": "on"}, "cudf_prefetch='on'"),
        ({"cudf_prefetch": 1}, "cudf_prefetch=1"),
        ({"libraries": ("cudf",)}, "cudf"),
        ({"libraries": ("cupy", "jax")}, "libraries='jax': XLA allocates JAX's memory"),
        ({"libraries": "cupy"}, r"a list of 'cupy', 'numba', 'torch', \(\) for none"),
        ({"libraries": None}, "a list of"),
        ({"devices": []}, "no device is named"),
        ({"devices": ()}, "no device is named"),
        ({"devices": [0, 0]}, "name each device once"),
        ({"devices": -1}, "numbered from 0"),
        ({"devices": [0.5]}, "numbered from 0"),
        ({"devices": 0.5}, "numbered from 0"),
        ({"driver": "emulated"}, "driver='emulated'"),
        ({"driver": "simulated:3MiB"}, "multiple of 2 MiB"),
    ],
)
def test_unusable_argument_is_one_clear_error_and_changes_nothing(
    arguments: dict[str, Any], message: str
) -> None:
    before = rmm.mr.get_per_device_resource(0)
    with pytest.raises(ConfigurationError, match=message) as error:
        install(**arguments)
    assert len(str(error.value).splitlines()) <= 2
    assert rmm.mr.get_per_device_resource(0) is before
    assert current_installation() is None


def test_device_that_does_not_exist_is_an_error_and_changes_nothing() -> None:
    before = rmm.mr.get_per_device_resource(0)
    with pytest.raises(DriverError):
        rmm_uvm.reinitialize(devices=99, driver="cuda")
    assert rmm.mr.get_per_device_resource(0) is before


def test_one_driver_cannot_serve_two_devices(device: Any) -> None:
    with pytest.raises(ConfigurationError, match="one driver serves one device"):
        install(device, devices=[0, 1])


@pytest.mark.parametrize("devices", [3, [3], [0], -1])
def test_devices_that_are_not_the_drivers_are_refused_and_change_nothing(devices: Any) -> None:
    before = rmm.mr.get_per_device_resource(0)
    device = rmm_uvm.simulated_device("64MiB", device=1)
    with pytest.raises(ConfigurationError, match="the driver is that of device 1; leave devices"):
        install(device, devices=devices)
    assert rmm.mr.get_per_device_resource(0) is before
    assert current_installation() is None


@pytest.mark.parametrize("devices", [{}, {"devices": 0}, {"devices": 1}, {"devices": [1]}])
def test_devices_that_are_the_drivers_or_left_out_are_those_installed_on(devices: Any) -> None:
    device = rmm_uvm.simulated_device("64MiB", device=1)
    with install(device, libraries=(), **devices) as handle:
        assert [each.info.device_id for each in handle.devices] == [1]


# --- capacity ----------------------------------------------------------------------------------


def test_without_concurrent_managed_access_one_warning_names_the_capacity() -> None:
    device = rmm_uvm.simulated_device("64MiB", concurrent_managed_access=False)
    with pytest.warns(CapacityWarning, match=r"capacity is the card's 64\.00 MiB") as seen:
        handle = install(device)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert handle.devices[0].sizes.maximum_bytes == 64 * MIB
    assert "prefetch       off" in repr(handle)


def test_cap_of_the_environment_is_the_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "32MiB")
    handle = install()
    assert handle.devices[0].sizes.maximum_bytes == 32 * MIB
    with pytest.raises(MemoryError):
        handle.managed_mr.allocate(33 * MIB)


def test_cap_holds_for_two_pools_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "40MiB")
    first = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="30MiB")
    second = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="4MiB")
    assert second.upstream_mr.pool_size() == 4 * MIB
    with pytest.raises(MemoryError):
        second.allocate(12 * MIB)
    assert first.upstream_mr.pool_size() == 30 * MIB


def test_two_devices_share_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "64MiB")
    handle = rmm_uvm.reinitialize(devices=[0, 1], driver="simulated:256MiB", libraries=())
    assert [each.sizes.maximum_bytes for each in handle.devices] == [32 * MIB, 32 * MIB]


def test_garbage_in_the_first_pool_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "64MiB")
    first = install(initial_pool_size="64MiB")
    cycle: list[Any] = [rmm.DeviceBuffer(size=1000, mr=first.managed_mr)]
    cycle.append(cycle)
    del cycle
    second = install(initial_pool_size="32MiB")
    assert second.devices[0].old_live_bytes == 0


# --- several threads ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.ReplacedResourceWarning")
def test_threads_that_install_and_restore_take_turns() -> None:
    before = [rmm.mr.get_per_device_resource(device_id) for device_id in (0, 1)]
    failures: list[BaseException] = []

    def change(number: int) -> None:
        try:
            for turn in range(8):
                devices = ([0, 1], 0, 1)[(number + turn // 3) % 3]
                watched = number % 2 == 0
                if (number + turn) % 3 == 0:
                    rmm_uvm.restore()
                elif turn % 4 == 0:
                    with install(devices=devices, monitor=watched, libraries=()) as handle:
                        repr(handle)
                else:
                    repr(install(devices=devices, monitor=watched, libraries=()))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rmm_uvm.restore()
    assert failures == []
    assert [rmm.mr.get_per_device_resource(device_id) for device_id in (0, 1)] == before
    assert current_installation() is None


def test_stream_of_none_is_refused_in_rmms_words() -> None:
    mr = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="16MiB")
    for resource in (mr, mr.managed_mr, mr.upstream_mr):
        for call in (resource.allocate, lambda *args, of=resource: of.deallocate(0, *args)):
            with pytest.raises(TypeError, match="stream argument cannot be None"):
                call(1000, None)


def test_callback_that_restores_while_another_thread_does_ends() -> None:
    called, refused = threading.Event(), []

    def on_finding(_: Any) -> None:
        called.set()
        time.sleep(0.3)  # the main thread is at it by then
        try:
            rmm_uvm.restore()
        except AvailabilityError as error:
            refused.append(str(error))

    handle = install(
        maximum_pool_size="256MiB", monitor={"on_finding": on_finding, "interval_seconds": 0.01}
    )
    kept = [rmm.DeviceBuffer(size=100 * MIB, mr=handle.managed_mr)]
    assert called.wait(60)
    rmm_uvm.restore()
    assert set(refused) <= {"another thread is changing what is installed: call later"}
    assert current_installation() is None
    del kept


def test_leaving_the_context_names_its_line_and_not_instead_of_the_bodys_error() -> None:
    with pytest.warns(ReplacedResourceWarning) as seen, install() as handle:
        over("statistics", handle.managed_mr)
    assert [each.filename for each in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        handle = install()
        over("statistics", handle.managed_mr)
        error = ValueError("mine")
        handle.__exit__(ValueError, error, None)
    assert "StatisticsResourceAdaptor over rmm_uvm's pool" in error.__notes__[0]
