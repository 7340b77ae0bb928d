# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Device transfers as Python sees them, on a simulated device with real bytes."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm._lib.marks import IpcEvent, Mark
from rmm_uvm._lib.transfers import MemoryKind, Transfers
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import ConfigurationError, DataError, DriverError
from rmm_uvm.mr import ManagedAccount, ManagedMemoryResource, SimulatedCudaMemoryResource

MIB = 1 << 20


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device("16MiB", backing=True)


@pytest.fixture
def shared(device: SimulatedDevice) -> int:
    """The address of a MiB of cudaMalloc memory; freed with the device."""
    return int(SimulatedCudaMemoryResource(device).allocate(MIB))


def test_memory_kind_tells_managed_from_cuda_malloc_memory(
    device: SimulatedDevice, shared: int
) -> None:
    managed_mr = ManagedMemoryResource(device, account=ManagedAccount())
    managed = managed_mr.allocate(MIB)
    transfers = Transfers(device)
    assert transfers.memory_kind(shared + 5) == MemoryKind(False, True, shared, MIB, 0)
    assert transfers.memory_kind(managed) == MemoryKind(True, False, managed, MIB, 0)
    managed_mr.deallocate(managed, MIB)
    assert transfers.memory_kind(managed) is None


def test_copy_brings_bytes_and_its_mark_is_reached(device: SimulatedDevice, shared: int) -> None:
    transfers = Transfers(device)
    ctypes.memmove(shared, b"frame", 5)
    transfers.wait_for(0)
    transfers.copy([(shared + 100, shared, 3), (shared + 203, shared + 3, 2)])
    mark = transfers.mark()
    mark.wait()
    mark.make_wait(0)
    assert mark.done()
    assert ctypes.string_at(shared + 100, 4) == b"fra\0"
    assert ctypes.string_at(shared + 203, 2) == b"me"


def test_copy_after_staging_was_taken_brings_all_bytes_and_it_is_given_back(
    device: SimulatedDevice, shared: int
) -> None:
    transfers = Transfers(device)
    free_bytes, _ = device.memory()
    transfers.take_staging(1024)
    assert device.memory()[0] < free_bytes
    ctypes.memmove(shared, bytes(range(250)) * 20, 5000)
    transfers.copy([(shared + 8192, shared, 5000)])
    assert ctypes.string_at(shared + 8192, 5001) == bytes(range(250)) * 20 + b"\0"
    del transfers
    assert device.memory()[0] == free_bytes


def test_staging_that_cannot_be_had_says_why_and_copies_go_on(
    device: SimulatedDevice, shared: int
) -> None:
    transfers = Transfers(device)
    with pytest.raises(MemoryError, match="taking 1073741824 bytes for copies to go through"):
        transfers.take_staging(1 << 30)
    with pytest.raises(DriverError, match="512 bytes or more"):
        transfers.take_staging(511)
    ctypes.memmove(shared, b"frame", 5)
    transfers.copy([(shared + 100, shared, 5)])
    assert ctypes.string_at(shared + 100, 5) == b"frame"
    transfers.take_staging(512)
    with pytest.raises(DriverError, match="it is done once"):
        transfers.take_staging(512)


@pytest.mark.parametrize("copy", [(4096, 8192, 1), (0, 0, 1)])
def test_copy_of_unknown_memory_says_what_is_needed(
    device: SimulatedDevice, copy: tuple[int, int, int]
) -> None:
    with pytest.raises(DriverError, match=r"copying 1 bytes.*still allocated"):
        Transfers(device).copy([copy])


@pytest.mark.parametrize("copies", [[(1, 2)], [1], [(-1, 0, 0)], [("a", 0, 0)]])
def test_copy_of_what_is_no_copy_is_refused(device: SimulatedDevice, copies: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        Transfers(device).copy(copies)


def test_failure_after_a_copy_was_issued_shows_in_its_mark(device: SimulatedDevice) -> None:
    mark = Transfers(device).mark()
    device.fail_call("done")
    with pytest.raises(DriverError, match="failed on the device"):
        mark.done()
    device.fail_call("wait")
    with pytest.raises(DriverError, match="failed on the device"):
        mark.wait()
    assert mark.done()


@pytest.mark.parametrize(
    ("call", "use"),
    [
        ("find_memory", lambda transfers: transfers.memory_kind(1)),
        ("wait_for", lambda transfers: transfers.wait_for(0)),
        ("copy", lambda transfers: transfers.copy([])),
        ("take_staging", lambda transfers: transfers.take_staging(512)),
        ("mark", lambda transfers: transfers.mark()),
        ("ipc_memory_handle", lambda transfers: transfers.ipc_memory_handle(1)),
        ("open_ipc_memory", lambda transfers: transfers.open_ipc_memory(bytes(64))),
        ("close_ipc_memory", lambda transfers: transfers.close_ipc_memory(1)),
        ("make_ipc_event", lambda transfers: transfers.make_ipc_event()),
        ("open_ipc_event", lambda transfers: transfers.open_ipc_event(bytes(64))),
    ],
)
def test_call_that_fails_raises_its_own_kind(
    device: SimulatedDevice, call: str, use: Callable[[Transfers], object]
) -> None:
    transfers = Transfers(device)
    device.fail_call(call, "driver_error")
    with pytest.raises(DriverError, match=f"injected {call} answered driver error"):
        use(transfers)
    device.fail_call(call, "out_of_memory")
    with pytest.raises(MemoryError, match="out of memory"):
        use(transfers)


def test_captured_stream_is_refused_in_words(device: SimulatedDevice) -> None:
    device.set_capture_state(7, "capturing")
    with pytest.raises(DriverError, match="captured into a graph"):
        Transfers(device).wait_for(7)


def test_device_without_backing_cannot_copy_or_share() -> None:
    device = rmm_uvm.simulated_device("16MiB")
    transfers = Transfers(device)
    pointer = SimulatedCudaMemoryResource(device).allocate(MIB)
    assert transfers.memory_kind(pointer) is not None
    for call in (lambda: transfers.copy([]), lambda: transfers.ipc_memory_handle(pointer)):
        with pytest.raises(ConfigurationError, match="backing=True"):
            call()


def test_ipc_handles_are_64_bytes_and_not_for_their_own_process(
    device: SimulatedDevice, shared: int
) -> None:
    transfers = Transfers(device)
    handle = transfers.ipc_memory_handle(shared)
    event = transfers.make_ipc_event()
    assert len(handle) == len(event.handle) == 64
    event.record(0)
    event.make_wait(0)
    with pytest.raises(DriverError, match="another one"):
        transfers.open_ipc_memory(handle)
    with pytest.raises(DriverError, match="another one"):
        transfers.open_ipc_event(event.handle)
    with pytest.raises(DataError, match="64 bytes, not 3"):
        transfers.open_ipc_memory(b"abc")
    with pytest.raises(DriverError, match="closed before"):
        transfers.close_ipc_memory(shared)


def test_managed_memory_has_no_ipc_handle(device: SimulatedDevice) -> None:
    mr = ManagedMemoryResource(device, account=ManagedAccount())
    pointer = mr.allocate(MIB)
    with pytest.raises(DriverError, match="managed memory has none"):
        Transfers(device).ipc_memory_handle(pointer)
    mr.deallocate(pointer, MIB)


def test_threads_copy_at_once_and_lose_nothing(device: SimulatedDevice, shared: int) -> None:
    transfers = Transfers(device)
    part = MIB // 8

    def fill(number: int) -> None:
        base = shared + number * part
        ctypes.memset(base, number + 1, part // 2)
        for _ in range(50):
            transfers.copy([(base + part // 2, base, part // 2)])
            transfers.mark().wait()

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        found = ctypes.string_at(shared + number * part, part)
        assert found == bytes([number + 1]) * part


def test_transfers_need_a_driver_of_ours() -> None:
    with pytest.raises(ConfigurationError, match=r"rmm_uvm\.drivers, not str"):
        Transfers("simulated")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Mark, IpcEvent])
def test_marks_and_events_are_not_made_by_hand(kind: type) -> None:
    with pytest.raises(TypeError, match=r"made by Transfers\."):
        kind()


def test_mark_keeps_its_maker_alive(device: SimulatedDevice) -> None:
    assert Transfers(device).mark().done()
