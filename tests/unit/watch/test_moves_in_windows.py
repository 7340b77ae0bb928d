# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which line page faults are of where a device tells it in short windows alone, as a GPU does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib.lines import LineAccount, MoveWindows
from rmm_uvm._lib.mr import ObservedResource
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.mr import ManagedMemoryResource
from rmm_uvm.recording.as_json import plain, restored
from rmm_uvm.recording.line_traffic import LineSum, LineTraffic
from rmm_uvm.report import Report
from rmm_uvm.watch.monitor import Monitor

from .monitors import MIB, Make

HERE = __file__
PATIENCE_SECONDS = 30.0
ASKED = "prefetches and hints count as asked for, whether or not it moved; "


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("64MiB", tells_moves=False)


@pytest.fixture
def before(device: SimulatedDevice) -> Iterator[rmm.mr.DeviceMemoryResource]:
    """Install managed memory of the device, in a chain of RMM's own."""
    previous = rmm.mr.get_per_device_resource(0)
    made = ManagedMemoryResource(driver=device)
    rmm.mr.set_per_device_resource(0, made)
    yield made
    rmm.mr.set_per_device_resource(0, previous)


def of_rmm(device: SimulatedDevice) -> rmm.mr.DeviceMemoryResource:
    made = rmm.mr.PoolMemoryResource(ManagedMemoryResource(driver=device), 32 * MIB, 64 * MIB)
    rmm.mr.set_per_device_resource(0, made)
    return rmm.mr.get_per_device_resource(0)


def of_ours(device: SimulatedDevice) -> rmm.mr.DeviceMemoryResource:
    made = rmm_uvm.managed_pool(
        driver=device, initial_pool_size="32MiB", device_budget=None, prefetch="never"
    )
    rmm.mr.set_per_device_resource(0, made)
    return made


Pool = Callable[[SimulatedDevice], rmm.mr.DeviceMemoryResource]
pools = pytest.mark.parametrize("pool", [of_ours, of_rmm])


def guilty(nbytes: int) -> rmm.DeviceBuffer:
    return rmm.DeviceBuffer(size=nbytes, mr=rmm.mr.get_per_device_resource(0))


def innocent(nbytes: int) -> rmm.DeviceBuffer:
    return rmm.DeviceBuffer(size=nbytes, mr=rmm.mr.get_per_device_resource(0))


def lines_of(monitor: Monitor) -> LineTraffic:
    found = monitor.recording().lines
    assert found is not None
    return found


def by_function(lines: LineTraffic) -> dict[str, LineSum]:
    return {
        one.line.function.rpartition(".")[2]: one
        for one in lines.by_line()
        if one.line is not None and one.line.file == HERE
    }


def run(monitor: Monitor, device: SimulatedDevice, *, faults: bool, nbytes: int = 8 * MIB) -> None:
    """Use two buffers, of which one comes back again and again, until windows have told that."""
    buffers = [guilty(nbytes), innocent(nbytes)]
    for buffer in buffers:
        device.touch(buffer.ptr, nbytes, write=True)
    until = time.monotonic() + PATIENCE_SECONDS
    for number in range(10**9):
        if faults:
            device.cpu_touch(buffers[0].ptr, nbytes)
        for buffer in buffers:
            device.touch(buffer.ptr, nbytes)
        lines = lines_of(monitor)
        faulted_bytes = sum(each.moved.faulted_bytes for each in lines.by_line())
        if number >= 20 and (not faults or not lines.windows or faulted_bytes >= 20 * nbytes):
            return
        assert time.monotonic() < until, lines.windows


@pools
def test_faulted_bytes_are_of_the_line_whose_memory_came_back(
    make: Make, device: SimulatedDevice, pool: Pool
) -> None:
    pool(device)
    with make(lines=True) as m:
        run(m, device, faults=True)
        total = m.snapshot()
    lines = lines_of(m)
    found = by_function(lines)
    assert "innocent" not in found or not found["innocent"].moved.copied_bytes
    # An estimate of what came until the last window, which the counters have to the byte.
    faulted_bytes = found["guilty"].moved.faulted_bytes
    assert 8 * MIB <= faulted_bytes <= total.host_to_device_bytes
    assert found["guilty"].moved.read_back_bytes <= total.device_to_host_bytes
    assert lines.windows is not None
    assert lines.windows.windows >= 1
    assert faulted_bytes <= lines.windows.faulted_bytes <= total.host_to_device_bytes
    assert lines.windows.lost_moves == 0
    assert lines.how == (
        f"{ASKED}faulted and evicted are estimated from windows: {lines.windows.told}"
    )
    told = Report(m.recording()).text(100)
    first = told.partition("look here first\n")[2]
    assert first.startswith("1. test_moves_in_windows.py:")
    assert " in guilty: " in first.splitlines()[0]
    assert "its memory comes back " in first


@pools
def test_a_twin_that_does_not_fault_has_no_faulted_bytes(
    make: Make, device: SimulatedDevice, pool: Pool
) -> None:
    pool(device)
    with make(lines=True) as m:
        run(m, device, faults=False)
    lines = lines_of(m)
    assert not any(each.moved.copied_bytes for each in lines.by_line())
    assert sum(each.allocations for each in by_function(lines).values()) == 2
    assert lines.windows is not None
    assert lines.windows.faulted_bytes == 0
    assert lines.how == f"{ASKED}nothing came by page faults"
    assert "look here first" not in Report(m.recording()).text(100)


@pools
def test_without_windows_the_same_program_has_no_faulted_bytes_and_is_told_why(
    make: Make, device: SimulatedDevice, pool: Pool
) -> None:
    # What the first test sees comes from windows, and from nothing else.
    pool(device)
    device.fail_call("open_moves", "driver_error")
    with make(lines=True) as m:
        run(m, device, faults=True)
    lines = lines_of(m)
    assert m.snapshot().host_to_device_bytes > 100 * MIB
    assert not any(each.moved.copied_bytes for each in lines.by_line())
    assert lines.windows is None
    assert lines.how == (
        f"{ASKED}what the kernel driver evicts and page faults are not known without a budget: "
        "injected open_moves answered driver error"
    )


def test_a_window_that_is_refused_is_the_last_one(make: Make, device: SimulatedDevice) -> None:
    of_ours(device)
    with make(lines=True) as m:
        device.fail_call("begin", "not_supported")
        buffer = guilty(MIB)
        until = time.monotonic() + PATIENCE_SECONDS
        while "injected begin" not in lines_of(m).how and time.monotonic() < until:
            device.cpu_touch(buffer.ptr, MIB)
            device.touch(buffer.ptr, MIB)
    lines = lines_of(m)
    assert lines.how.endswith("; then injected begin answered not supported")
    assert lines.windows is not None
    assert lines.windows.windows == 0


def test_a_budget_needs_no_windows(make: Make, device: SimulatedDevice) -> None:
    budget = rmm_uvm.managed_pool(driver=device, initial_pool_size="8MiB", device_budget="16MiB")
    rmm.mr.set_per_device_resource(0, budget)
    with make(lines=True) as m:
        assert lines_of(m).windows is None
        assert lines_of(m).how.startswith("what the budget moved is known")
        of_ours(device)  # in its place, while it is watched
        run(m, device, faults=True)
        seen = lines_of(m).windows
        rmm.mr.set_per_device_resource(0, budget)
        held = guilty(4 * MIB)
        for _ in range(20):
            device.cpu_touch(held.ptr, held.size)
            device.touch(held.ptr, held.size)
            time.sleep(0.02)
        after = lines_of(m).windows
    assert seen is not None
    assert after is not None
    assert seen.windows >= 1
    assert after.windows <= seen.windows + 1  # one that was open


@pools
def test_a_recording_keeps_what_windows_saw(
    make: Make, device: SimulatedDevice, pool: Pool
) -> None:
    from rmm_uvm.report.as_dict import as_dict

    pool(device)
    with make(lines=True) as m:
        run(m, device, faults=True)
    recording = m.recording()
    lines = recording.lines
    assert lines is not None
    assert lines.windows is not None
    assert as_dict(recording)["lines"]["windows"]["windows"] == lines.windows.windows
    assert restored(plain(recording), recording.samples.tobytes()).lines == lines
    assert "estimated from windows" in Report(recording).html()


def test_pools_of_rmm_that_come_while_it_runs_have_lines(
    make: Make, device: SimulatedDevice, before: rmm.mr.DeviceMemoryResource
) -> None:
    with make(lines=True) as m:
        guilty(MIB)
        of_rmm(device)
        innocent(MIB)
        found = by_function(lines_of(m))
        assert isinstance(rmm.mr.get_per_device_resource(0), ObservedResource)
        assert rmm.mr.get_per_device_resource(0).pool_size() == 32 * MIB  # of what is below
    assert found["guilty"].allocations == found["innocent"].allocations == 1
    assert type(rmm.mr.get_per_device_resource(0)) is rmm.mr.PoolMemoryResource


def test_a_pool_over_what_is_observed_is_told_of_by_its_allocations(
    make: Make, before: rmm.mr.DeviceMemoryResource
) -> None:
    with make(lines=True) as m:
        under = rmm.mr.get_per_device_resource(0)
        rmm.mr.set_per_device_resource(0, rmm.mr.PoolMemoryResource(under, 8 * MIB, 8 * MIB))
        held = [guilty(MIB) for _ in range(3)]
        found = by_function(lines_of(m))
        assert found["guilty"].live_bytes == 3 * MIB
        del held
        assert by_function(lines_of(m))["guilty"].live_bytes == 0


def test_adaptors_over_what_is_observed_stay_what_a_program_finds(
    make: Make, before: rmm.mr.DeviceMemoryResource
) -> None:
    with make(lines=True) as m:
        under = rmm.mr.get_per_device_resource(0)
        rmm.mr.set_per_device_resource(0, rmm.mr.StatisticsResourceAdaptor(under))
        held = guilty(MIB)
        assert rmm.mr.get_per_device_resource(0).allocation_counts.current_bytes == MIB
        assert by_function(lines_of(m))["guilty"].live_bytes == MIB
        del held
    assert isinstance(rmm.mr.get_per_device_resource(0), rmm.mr.StatisticsResourceAdaptor)
    with make(lines=True) as m:  # what was left below is used again
        guilty(MIB)
        assert isinstance(rmm.mr.get_per_device_resource(0), rmm.mr.StatisticsResourceAdaptor)
        assert by_function(lines_of(m))["guilty"].allocations == 1


def test_memory_outlives_the_account_that_it_was_made_under(
    make: Make, device: SimulatedDevice, before: rmm.mr.DeviceMemoryResource
) -> None:
    with make(lines=True):
        held = guilty(MIB)
    assert rmm.mr.get_per_device_resource(0) is before
    assert device.statistics()["managed_bytes"] >= MIB
    del held
    assert device.statistics()["managed_bytes"] == 0


def test_restore_puts_back_what_the_program_had(
    make: Make, device: SimulatedDevice, before: rmm.mr.DeviceMemoryResource
) -> None:
    monitor = make(lines=True).start()
    with pytest.warns(rmm_uvm.ReplacedResourceWarning, match="replaces ManagedMemoryResource"):
        rmm_uvm.reinitialize("8MiB", driver=device, libraries=(), monitor=False)
    monitor.stop()
    rmm_uvm.restore()
    assert rmm.mr.get_per_device_resource(0) is before


def test_functions_of_rmm_are_its_own_again_after_the_last_monitor(
    make: Make, before: rmm.mr.DeviceMemoryResource
) -> None:
    names = ("set_per_device_resource", "set_current_device_resource")
    originals = [getattr(rmm.mr, name) for name in names] + [rmm.reinitialize]
    with make(lines=True), make(lines=True):
        assert rmm.mr.set_per_device_resource is not originals[0]
    assert [getattr(rmm.mr, name) for name in names] + [rmm.reinitialize] == originals


def test_a_forked_child_replaces_nothing_and_does_not_hang(
    make: Make, device: SimulatedDevice, before: rmm.mr.DeviceMemoryResource
) -> None:
    with make(lines=True) as m:
        buffer = guilty(MIB)
        for _ in range(10):
            device.cpu_touch(buffer.ptr, MIB)
            device.touch(buffer.ptr, MIB)
            child = os.fork()
            if child == 0:
                status = 3
                try:
                    rmm.mr.set_per_device_resource(0, before)
                    guilty(MIB)
                    found = by_function(lines_of(m))["guilty"]
                    m.stop()
                    now = rmm.mr.get_per_device_resource(0)
                    status = (found.allocations != 1) + 2 * (now is not before)
                finally:
                    os._exit(status)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0


def test_windows_of_a_driver_without_them_say_why() -> None:
    account = LineAccount()
    for device, reason in (
        (rmm_uvm.simulated_device("2MiB", counters=False), "counters"),
        (
            rmm_uvm.simulated_device("2MiB", concurrent_managed_access=False),
            "concurrent managed access",
        ),
    ):
        with pytest.raises(AvailabilityError, match=reason):
            MoveWindows(device, account)
    device = rmm_uvm.simulated_device("2MiB")
    windows = MoveWindows(device, account)
    windows.stop()
    windows.start()
    windows.stop()
    assert windows.refused == ""
    assert windows.totals()[0] == 0
