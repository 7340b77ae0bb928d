# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Exporting, as far as one process sees it; readers are in tests/integration."""

from __future__ import annotations

import gc
import os
import pickle
import threading
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError, DriverError
from rmm_uvm.ipc import IpcPool
from rmm_uvm.ipc import pool as pools
from rmm_uvm.ipc.handle import Handle
from rmm_uvm.ipc.table import RemoteTable
from rmm_uvm.mr import ManagedAccount, ManagedMemoryResource, SimulatedCudaMemoryResource

MIB = 1 << 20


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("64MiB", backing=True)


class View:
    """Part of a buffer, as an array of another type."""

    def __init__(self, buffer: rmm.DeviceBuffer, offset: int, shape: tuple[int, ...]) -> None:
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f8",
            "data": (buffer.ptr + offset, False),
            "version": 3,
            "stream": 7,
        }


def opened_and_closed(handle: bytes) -> None:
    """Count one opening, as a reader in another process would; the memory is not mapped."""
    wanted = Handle.unpack(handle)
    table = RemoteTable(wanted.table)
    table.acquire(wanted.slot, wanted.generation)
    table.release(wanted.slot)
    table.close()


def test_pool_is_rmms_with_driver_transfers_and_size(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    assert isinstance(pool, IpcPool)
    assert isinstance(pool, rmm.mr.PoolMemoryResource)
    assert pool.driver is device
    assert pool.transfers.driver is device
    assert pool.size_bytes == pool.pool_size() == 4 * MIB


def test_pool_shows_size_device_and_leases(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    assert repr(pool) == "<IpcPool of 4.00 MiB on device 0, 0 leased>"
    pool.export(rmm.DeviceBuffer(size=1000, mr=pool))
    assert repr(pool).endswith("1 leased>")


def test_handle_names_place_type_and_shape(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    first = rmm.DeviceBuffer(size=1000, mr=pool)
    second = rmm.DeviceBuffer(size=4096, mr=pool)
    handle = Handle.unpack(pickle.loads(pickle.dumps(pool.export(View(second, 16, (3, 2))))))
    assert handle.slab_bytes == 4 * MIB
    assert handle.offset == second.ptr - first.ptr + 16
    assert (handle.nbytes, handle.typestr, handle.shape) == (48, "<f8", (3, 2))
    assert handle.simulated


def test_lease_keeps_the_buffer_until_it_was_opened_and_closed(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=3 * MIB, mr=pool)
    handle = pool.export(buffer)
    del buffer
    (lease,) = pool.leases()
    assert (lease.nbytes, lease.readers, lease.opened, lease.open_now) == (3 * MIB, 1, 0, False)
    assert 0 < lease.seconds_left <= 60
    with pytest.raises(MemoryError):
        pool.allocate(3 * MIB)
    opened_and_closed(handle)
    assert pool.collect() == 3 * MIB
    assert pool.leases() == ()
    pool.deallocate(pool.allocate(3 * MIB), 3 * MIB)


def test_lease_stays_while_it_is_open(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    wanted = Handle.unpack(pool.export(rmm.DeviceBuffer(size=1000, mr=pool)))
    reader = RemoteTable(wanted.table)
    reader.acquire(wanted.slot, wanted.generation)
    (lease,) = pool.leases()
    assert lease.open_now
    assert lease.opened == 1
    reader.close()
    assert pool.collect() == 1000


def test_lease_of_two_readers_waits_for_both(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    handle = pool.export(rmm.DeviceBuffer(size=1000, mr=pool), readers=2)
    opened_and_closed(handle)
    assert pool.collect() == 0
    opened_and_closed(handle)
    assert pool.collect() == 1000


def test_handle_that_nobody_opened_expires(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    handle = pool.export(buffer, lease_seconds=1e-9)
    assert pool.collect() == 1000
    with pytest.raises(AvailabilityError, match="expired: open handles sooner"):
        rmm_uvm.ipc.open(handle)


def test_slot_serves_one_lease_after_another_with_one_event(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    handles = [Handle.unpack(pool.export(buffer, lease_seconds=1e-9)) for _ in range(3)]
    assert {handle.slot for handle in handles} == {0}
    assert len({handle.event_handle for handle in handles}) == 1
    assert [handle.generation for handle in handles] == [0, 1, 2]
    other = Handle.unpack(pool.export(buffer))
    another = Handle.unpack(pool.export(buffer))
    assert other.slot != another.slot
    assert other.event_handle != another.event_handle


def test_allocation_that_would_fail_collects_first(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    handle = pool.export(rmm.DeviceBuffer(size=3 * MIB, mr=pool))
    opened_and_closed(handle)
    assert rmm.DeviceBuffer(size=3 * MIB, mr=pool).size == 3 * MIB  # not by way of Python


def test_allocation_in_the_middle_of_an_export_fails_and_does_not_hang(
    device: SimulatedDevice,
) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    with pool._lock, pytest.raises(MemoryError):  # as if garbage collection allocated here
        pool.allocate(5 * MIB)


def test_events_are_recorded_in_the_stream_that_is_meant(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    streams = []

    class Event:
        handle = bytes(64)

        def record(self, stream: int) -> None:
            streams.append(stream)

    pool._events = {slot: Event() for slot in range(4)}  # type: ignore[misc]
    pool.export(buffer)
    pool.export(View(buffer, 0, (1,)))
    pool.export(View(buffer, 0, (1,)), stream=0)
    pool.export(buffer, stream=9)
    assert streams == [0, 7, 0, 9]


def test_handle_that_is_revoked_opens_nothing(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    handle = pool.export(rmm.DeviceBuffer(size=3 * MIB, mr=pool), lease_seconds=3600)
    assert pool.revoke(handle)
    assert pool.leases() == ()
    pool.deallocate(pool.allocate(3 * MIB), 3 * MIB)
    with pytest.raises(AvailabilityError, match="lease of this handle has ended"):
        opened_and_closed(handle)
    assert pool.revoke(handle)  # it has ended all the same
    later = pool.export(rmm.DeviceBuffer(size=1000, mr=pool))
    assert pool.revoke(handle)  # and ends no other of its slot
    opened_and_closed(later)


def test_handle_that_is_open_is_not_revoked(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    handle = pool.export(rmm.DeviceBuffer(size=1000, mr=pool))
    wanted = Handle.unpack(handle)
    reader = RemoteTable(wanted.table)
    reader.acquire(wanted.slot, wanted.generation)
    assert not pool.revoke(handle)
    reader.close()
    assert pool.revoke(handle)


def test_handle_of_another_pool_is_not_revoked(device: SimulatedDevice) -> None:
    pool, other = (rmm_uvm.ipc_pool("4MiB", driver=device) for _ in range(2))
    handle = pool.export(rmm.DeviceBuffer(size=1000, mr=pool))
    with pytest.raises(ConfigurationError, match="of another pool"):
        other.revoke(handle)
    with pytest.raises(DataError, match="no handle"):
        pool.revoke(b"handle")
    assert len(pool.leases()) == 1


# Refusals


def test_export_of_managed_memory_is_refused(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    managed = ManagedMemoryResource(device, account=ManagedAccount())
    with pytest.raises(ConfigurationError, match="managed memory, which has no IPC handle: copy"):
        pool.export(rmm.DeviceBuffer(size=1000, mr=managed))


def test_export_of_foreign_memory_is_refused(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    foreign = rmm.DeviceBuffer(size=1000, mr=SimulatedCudaMemoryResource(device))
    with pytest.raises(ConfigurationError, match=r"another allocation, of 1\.00 KiB: copy"):
        pool.export(foreign)
    other = rmm_uvm.ipc_pool("4MiB", driver=rmm_uvm.simulated_device("64MiB", backing=True))
    with pytest.raises(ConfigurationError, match="no device memory of this process"):
        pool.export(rmm.DeviceBuffer(size=1000, mr=other))


def test_export_past_the_slab_is_refused(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=4 * MIB, mr=pool)
    assert pool.export(View(buffer, 4 * MIB - 8, (1,)))
    for offset in (4 * MIB - 7, -8):
        with pytest.raises(ConfigurationError, match="copy it into a buffer of the IPC pool"):
            pool.export(View(buffer, offset, (1,)))


def test_export_without_real_bytes_is_refused() -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver="simulated:64MiB")
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    with pytest.raises(ConfigurationError, match="backing=True"):
        pool.export(buffer)
    assert pool.leases() == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lease_seconds": 0}, "lease_seconds=0: use seconds, > 0"),
        ({"lease_seconds": -1}, "lease_seconds"),
        ({"lease_seconds": float("nan")}, "lease_seconds"),
        ({"lease_seconds": float("inf")}, "lease_seconds"),
        ({"lease_seconds": "soon"}, "lease_seconds"),
        ({"lease_seconds": "60"}, "lease_seconds"),
        ({"lease_seconds": b"1"}, "lease_seconds"),
        ({"lease_seconds": True}, "lease_seconds"),
        ({"lease_seconds": 10**400}, "lease_seconds"),
        ({"readers": 0}, "readers=0: use how often"),
        ({"readers": True}, "readers"),
        ({"readers": 1.5}, "readers"),
        ({"readers": 2**32}, "readers"),
    ],
)
def test_argument_out_of_bounds_is_refused(
    device: SimulatedDevice, arguments: dict[str, Any], message: str
) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    with pytest.raises(ConfigurationError, match=message):
        pool.export(buffer, **arguments)
    assert pool.leases() == ()


@pytest.mark.parametrize("call", ["make_ipc_event", "record"])
def test_export_that_fails_leases_nothing_and_loses_no_slot(
    device: SimulatedDevice, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "SLOTS", 1)
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    device.fail_call(call)
    with pytest.raises(DriverError, match="injected"):
        pool.export(buffer)
    assert pool.leases() == ()
    assert pool.export(buffer)


def test_more_leases_than_a_table_has_are_refused(
    device: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "SLOTS", 2)
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    handles = [pool.export(buffer), pool.export(buffer)]
    with pytest.raises(AvailabilityError, match="2 buffers of this IPC pool are leased"):
        pool.export(buffer)
    opened_and_closed(handles[0])
    assert pool.export(buffer)


def test_device_that_cannot_share_is_told(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    assert pool._slab is not None
    pool._slab = pool._slab._replace(ipc_capable=False)
    with pytest.raises(AvailabilityError, match="device 0 cannot share memory by CUDA IPC"):
        pool.export(buffer)


def test_own_handle_is_refused(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    handle = pool.export(rmm.DeviceBuffer(size=1000, mr=pool))
    with pytest.raises(ConfigurationError, match=r"of this process.*: use the buffer"):
        rmm_uvm.ipc.open(handle)
    assert pool.leases()[0].opened == 0


# Lifetime


def test_pool_without_leases_goes_with_its_last_reference(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    pool.export(rmm.DeviceBuffer(size=1000, mr=pool), lease_seconds=1e-9)
    assert pool.collect() == 1000
    del pool
    assert device.statistics()["device_bytes"] == 0


def test_pool_that_is_dropped_with_a_lease_keeps_its_slab_until_it_ends(
    device: SimulatedDevice,
) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    handle = pool.export(rmm.DeviceBuffer(size=1000, mr=pool))
    del pool
    gc.collect()
    assert device.statistics()["device_bytes"] == 4 * MIB
    opened_and_closed(handle)
    rmm_uvm.ipc_pool("4MiB", driver="simulated:64MiB")  # collects what others left
    gc.collect()
    assert device.statistics()["device_bytes"] == 0


def test_export_ends_the_leases_of_a_dropped_pool(device: SimulatedDevice) -> None:
    other = rmm_uvm.ipc_pool("4MiB", driver=device)
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    opened_and_closed(pool.export(rmm.DeviceBuffer(size=1000, mr=pool)))
    del pool
    gc.collect()
    assert device.statistics()["device_bytes"] == 8 * MIB
    opened_and_closed(other.export(rmm.DeviceBuffer(size=1000, mr=other)))
    gc.collect()
    assert device.statistics()["device_bytes"] == 4 * MIB


def test_memory_of_a_dropped_pool_is_there_for_the_next_one(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("40MiB", driver=device)
    handle = pool.export(rmm.DeviceBuffer(size=1000, mr=pool))
    del pool
    with pytest.raises(ConfigurationError, match=r"24\.00 MiB of the device are free"):
        rmm_uvm.ipc_pool("40MiB", driver=device)
    opened_and_closed(handle)
    assert rmm_uvm.ipc_pool("40MiB", driver=device).size_bytes == 40 * MIB


def test_forked_child_exports_nothing_and_leaves_the_parents_leases(
    device: SimulatedDevice,
) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    buffer = rmm.DeviceBuffer(size=1000, mr=pool)
    handle = pool.export(buffer, lease_seconds=3600)
    child = os.fork()
    if child == 0:
        try:
            pool.export(buffer)
        except AvailabilityError as error:
            refused = "of the parent process" in str(error)
        os._exit(0 if refused and pool.collect() == 0 and pool.leases() == () else 1)
    assert os.waitpid(child, 0)[1] == 0
    opened_and_closed(handle)
    assert pool.collect() == 1000


def test_threads_export_and_collect_at_once(device: SimulatedDevice) -> None:
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                buffer = rmm.DeviceBuffer(size=64 << 10, mr=pool)
                handle = pool.export(buffer)
                del buffer
                opened_and_closed(handle)
                pool.collect()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    pool.collect()
    assert pool.leases() == ()
    pool.deallocate(pool.allocate(4 * MIB), 4 * MIB)  # in one piece again
