# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Export and open between real processes, on simulated devices with real bytes."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import DataError
from rmm_uvm.ipc import IpcPool
from rmm_uvm.ipc import pool as pools
from rmm_uvm.ipc.handle import Handle

from ..other_process import OtherError, OtherProcess, other_process

MIB = 1 << 20


@pytest.fixture(scope="module")
def _shared_reader() -> Iterator[OtherProcess]:
    with other_process() as process:
        yield process


@pytest.fixture
def reader(_shared_reader: OtherProcess) -> Iterator[OtherProcess]:
    """A process that opens; the same for many tests, since starting one takes a second."""
    yield _shared_reader
    _shared_reader.ask("o = opened = None; gc.collect()")
    assert _shared_reader.ask("slabs().counts()[1]") == 0


@pytest.fixture(autouse=True)
def _leases_expired() -> Iterator[None]:
    yield
    for pool in list(pools._leasing):
        for slot, held in pool._held.items():
            pool._held[slot] = held._replace(expires_ns=0)
        pool.collect()


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("64MiB", backing=True)


def pool_of(device: SimulatedDevice, size: str = "4MiB") -> IpcPool:
    return rmm_uvm.ipc_pool(size, driver=device)


def filled(pool: IpcPool, content: bytes) -> rmm.DeviceBuffer:
    buffer = rmm.DeviceBuffer(size=len(content), mr=pool)
    ctypes.memmove(buffer.ptr, content, len(content))
    return buffer


def open_there(reader: OtherProcess, handle: bytes, name: str = "o") -> None:
    reader.ask(f"{name} = rmm_uvm.ipc.open({handle!r})")


# Contents


def test_opened_buffer_has_the_bytes_and_shares_them(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    rmm.DeviceBuffer(size=1000, mr=pool)
    buffer = filled(pool, b"frames")
    open_there(reader, pool.export(buffer))
    assert reader.ask("(o.nbytes, o.shape, o.typestr, o.closed)") == [6, [6], "|u1", False]
    assert reader.ask("ctypes.string_at(o.ptr, 6)") == b"frames".hex()
    reader.ask("ctypes.memmove(o.ptr, b'F', 1)")
    assert ctypes.string_at(buffer.ptr, 6) == b"Frames"
    reader.ask("o.close()")


def test_opened_buffer_is_an_array_of_its_type(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    buffer = filled(pool, bytes(48))

    class Matrix:
        __cuda_array_interface__ = {  # noqa: RUF012
            "shape": (3, 2),
            "typestr": "<f8",
            "data": (buffer.ptr, False),
            "version": 3,
        }

    open_there(reader, pool.export(Matrix()))
    found = reader.ask("o.__cuda_array_interface__")
    address = reader.ask("o.ptr")
    assert found == {
        "shape": [3, 2],
        "typestr": "<f8",
        "data": [address, False],
        "version": 3,
        "strides": None,
        "stream": 1,
    }
    reader.ask("o.close()")


def test_opened_buffer_can_be_copied_by_transfers(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    content = random.randbytes(100_000)
    handle = pool.export(filled(pool, content))
    reader.ask(
        "device = rmm_uvm.simulated_device('64MiB', backing=True)\n"
        "own = rmm_uvm.ipc_pool('4MiB', driver=device)\n"
        "target = rmm.DeviceBuffer(size=100_000, mr=own)\n"
        f"with rmm_uvm.ipc.open({handle!r}, transfers=own.transfers) as o:\n"
        "    own.transfers.wait_for(0)\n"
        "    own.transfers.copy([(target.ptr, o.ptr, o.nbytes)])\n"
        "    own.transfers.mark().wait()\n"
    )
    assert reader.ask("ctypes.string_at(target.ptr, 100_000)") == content.hex()
    assert pool.collect() == 100_000
    reader.ask("del target, own, device")


def test_many_handles_of_random_buffers_are_each_their_own(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    for _ in range(40):
        contents = [random.randbytes(random.randint(1, 5000)) for _ in range(random.randint(1, 8))]
        handles = [pool.export(filled(pool, content)) for content in contents]
        found = reader.ask(
            f"opened = [rmm_uvm.ipc.open(h) for h in {handles!r}]\n"
            "found = [ctypes.string_at(o.ptr, o.nbytes).hex() for o in opened]\n"
            "for o in opened: o.close()"
        )
        found = reader.ask("found")
        assert found == [content.hex() for content in contents]
        assert pool.collect() == sum(map(len, contents))
    assert reader.ask("len([s for s in slabs()._slabs.values() if s.table.exporter_alive])") == 1


# Leases


def test_memory_is_used_anew_only_after_the_reader_has_closed(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    handle = pool.export(filled(pool, b"x" * 3 * MIB))
    open_there(reader, handle)
    assert pool.leases()[0].open_now
    with pytest.raises(MemoryError):
        rmm.DeviceBuffer(size=3 * MIB, mr=pool)
    reader.ask("o.close()")
    assert rmm.DeviceBuffer(size=3 * MIB, mr=pool).size == 3 * MIB


@pytest.mark.parametrize(
    "end",
    ["o.close()", "del o; gc.collect()", "o.__exit__(None, None, None)", "o.close(); o.close()"],
)
def test_lease_ends_however_the_reader_lets_go(
    device: SimulatedDevice, reader: OtherProcess, end: str
) -> None:
    pool = pool_of(device)
    open_there(reader, pool.export(filled(pool, b"x" * 100)))
    assert pool.collect() == 0
    reader.ask(end)
    assert pool.collect() == 100


def test_lease_ends_when_its_reader_is_killed(device: SimulatedDevice) -> None:
    pool = pool_of(device)
    with other_process() as reader:
        open_there(reader, pool.export(filled(pool, b"x" * 100)))
        assert pool.collect() == 0
        reader.kill()
    assert pool.collect() == 100


def test_lease_of_two_readers_outlives_the_one_that_is_killed(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    handle = pool.export(filled(pool, b"x" * 100), readers=2)
    open_there(reader, handle)
    with other_process() as other:
        open_there(other, handle)
        other.kill()
    assert pool.collect() == 0
    assert reader.ask("ctypes.string_at(o.ptr, 1)") == b"x".hex()
    reader.ask("o.close()")
    assert pool.collect() == 100


def test_expired_handle_is_refused_and_what_is_open_stays(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    handle = pool.export(filled(pool, b"x" * 100), readers=2)
    open_there(reader, handle)
    pool._held[0] = pool._held[0]._replace(expires_ns=0)  # it expires while it is open
    assert pool.collect() == 0
    expired = Handle.unpack(handle)._replace(expires_ns=1).pack()
    with pytest.raises(OtherError, match="AvailabilityError: the lease of this handle has expired"):
        reader.ask(f"rmm_uvm.ipc.open({expired!r})")
    reader.ask("o.close()")
    assert pool.collect() == 100


def test_handle_whose_lease_has_ended_is_refused(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    handle = pool.export(filled(pool, b"old"))
    open_there(reader, handle)
    reader.ask("o.close()")
    pool.collect()
    pool.export(filled(pool, b"new"))
    with pytest.raises(OtherError, match="AvailabilityError: the lease of this handle has ended"):
        reader.ask(f"rmm_uvm.ipc.open({handle!r})")


def test_handle_is_opened_once_whoever_comes_first(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    with other_process() as other:
        other.ask("1")
        for _ in range(30):
            handle = pool.export(filled(pool, b"x"))
            code = f"rmm_uvm.ipc.open({handle!r}).close()"
            for process in (reader, other):
                process.tell(code)
            outcomes = []
            for process in (reader, other):
                try:
                    process.answer()
                    outcomes.append("opened")
                except OtherError as error:
                    outcomes.append(str(error).partition(":")[0])
            assert sorted(outcomes) == ["AvailabilityError", "opened"]


def test_closed_buffer_gives_no_address(device: SimulatedDevice, reader: OtherProcess) -> None:
    pool = pool_of(device)
    open_there(reader, pool.export(filled(pool, b"x")))
    reader.ask("o.close()")
    for use in ("o.ptr", "o.__cuda_array_interface__"):
        with pytest.raises(OtherError, match="AvailabilityError: the buffer was closed"):
            reader.ask(use)


def test_opened_buffer_cannot_be_sent_on(device: SimulatedDevice, reader: OtherProcess) -> None:
    pool = pool_of(device)
    open_there(reader, pool.export(filled(pool, b"x")))
    with pytest.raises(OtherError, match="TypeError: an opened buffer stays in its process"):
        reader.ask("__import__('pickle').dumps(o)")
    reader.ask("o.close()")


# Handles that are not for here


def altered(reader: OtherProcess, handle: bytes, **changes: Any) -> str:
    changed = Handle.unpack(handle)._replace(**changes).pack()
    with pytest.raises(OtherError) as caught:
        reader.ask(f"rmm_uvm.ipc.open({changed!r})")
    return str(caught.value)


def test_handle_of_another_machine_is_refused(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    message = altered(reader, pool.export(filled(pool, b"x")), machine=bytes(16))
    assert message.startswith("AvailabilityError: the handle is of another machine")


def test_handle_of_a_device_that_is_not_visible_is_refused(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    handle = pool.export(filled(pool, b"x"))
    message = altered(reader, handle, simulated=False, device=bytes(range(16)))
    assert message.startswith("AvailabilityError: GPU-00010203-0405-0607-0809-0a0b0c0d0e0f is not")


def test_handle_of_a_table_that_is_not_there_is_refused(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    message = altered(reader, pool.export(filled(pool, b"x")), table=os.urandom(16))
    assert message.startswith("AvailabilityError: the exporter of this handle has ended")
    assert "/dev/shm" in message


def test_handle_that_names_bytes_outside_its_slab_is_refused(
    device: SimulatedDevice, reader: OtherProcess
) -> None:
    pool = pool_of(device)
    handle = pool.export(filled(pool, b"x"))
    wanted = Handle.unpack(handle)
    message = altered(reader, handle, slab_bytes=8 * MIB, offset=4 * MIB - 1, nbytes=2, shape=(2,))
    assert message.startswith(f"DataError: the handle is damaged: 2 B at byte {4 * MIB - 1} pass")
    message = altered(reader, handle, slab_bytes=2**50, offset=2**49)
    assert message.startswith(f"DataError: the handle is damaged: 1 B at byte {2**49} pass")
    message = altered(reader, handle, slab_handle=wanted.event_handle)
    assert message.startswith("DataError: the handle names a slab that its pool does not have")
    message = altered(reader, handle, slot=2**31)
    assert message.startswith("DataError: the handle names lease")
    open_there(reader, handle)  # and the refused ones hold nothing
    reader.ask("o.close()")


def test_garbage_is_refused(reader: OtherProcess) -> None:
    with pytest.raises(OtherError, match="DataError: these 7 bytes are no handle"):
        reader.ask("rmm_uvm.ipc.open(b'garbage')")
    with pytest.raises(DataError):
        rmm_uvm.ipc.open(b"")
