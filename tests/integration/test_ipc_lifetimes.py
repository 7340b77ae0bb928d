# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of leases and mapped slabs when a process ends, forks or fails half way."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import rmm

import rmm_uvm
from rmm_uvm._lib.transfers import Transfers
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DriverError
from rmm_uvm.ipc.handle import Handle
from rmm_uvm.ipc.slabs import slabs

from ..other_process import OtherProcess, other_process

EXPORT = (
    "device = rmm_uvm.simulated_device('64MiB', backing=True)\n"
    "pool = rmm_uvm.ipc_pool('4MiB', driver=device)\n"
    "buffer = rmm.DeviceBuffer(size=100, mr=pool)\n"
    "ctypes.memmove(buffer.ptr, b'frames', 6)\n"
    "handles = [pool.export(buffer).hex() for _ in range(3)]\n"
)


@pytest.fixture(autouse=True)
def _slabs_forgotten() -> Iterator[None]:
    """Unmap what exporters that have ended left; else the next opening would."""
    yield
    slabs()._forget_ended()
    assert slabs().counts() == (0, 0)


def exported_by(process: OtherProcess) -> list[bytes]:
    process.ask(EXPORT)
    return [bytes.fromhex(handle) for handle in process.ask("handles")]


def test_handle_of_an_exporter_that_was_killed_is_refused() -> None:
    with other_process() as exporter:
        handle, *_ = exported_by(exporter)
        exporter.kill()
    with pytest.raises(AvailabilityError, match="has ended"):
        rmm_uvm.ipc.open(handle)


def test_handle_of_an_exporter_that_ended_is_refused() -> None:
    with other_process() as exporter:
        handle, *_ = exported_by(exporter)
    with pytest.raises(AvailabilityError, match=r"has ended or dropped its pool"):
        rmm_uvm.ipc.open(handle)


def test_slab_of_an_exporter_that_ended_is_unmapped_when_nobody_has_it_open() -> None:
    with other_process() as exporter:
        first, second, third = exported_by(exporter)
        opened = rmm_uvm.ipc.open(first)
        rmm_uvm.ipc.open(second).close()
        assert slabs().counts() == (1, 1)
        exporter.kill()
    with pytest.raises(AvailabilityError, match="its memory is gone"):
        rmm_uvm.ipc.open(third)
    assert slabs().counts() == (1, 1)
    assert ctypes.string_at(opened.ptr, 6) == b"frames"  # still mapped
    opened.close()
    assert slabs().counts() == (0, 0)


def test_slab_is_mapped_once_for_all_handles_of_its_pool() -> None:
    with other_process() as exporter:
        handles = exported_by(exporter)
        opened = [rmm_uvm.ipc.open(handle) for handle in handles]
        assert len({each.ptr for each in opened}) == 1
        assert slabs().counts() == (1, 3)
        for each in opened:
            each.close()
        assert slabs().counts() == (1, 0)  # kept for the next handle
    with other_process() as exporter:
        handle, *_ = exported_by(exporter)
        rmm_uvm.ipc.open(handle).close()  # lets go of the one whose exporter has ended
        assert slabs().counts() == (1, 0)


def test_handle_of_a_pool_that_was_dropped_is_refused_and_its_slab_unmapped() -> None:
    with other_process() as exporter:
        first, *more = exported_by(exporter)
        opened = rmm_uvm.ipc.open(first)
        exporter.ask(
            f"[pool.revoke(handle) for handle in {more!r}]; del pool, buffer; gc.collect()"
        )
        assert slabs().counts() == (1, 1)
        opened.close()
        exporter.ask("rmm_uvm.ipc_pool('4MiB', driver='simulated:64MiB'); gc.collect()")
        with pytest.raises(AvailabilityError, match=r"has ended or dropped its pool: its memory"):
            rmm_uvm.ipc.open(more[0])
        assert slabs().counts() == (0, 0)


def test_exporter_that_was_killed_leaves_no_file_for_long() -> None:
    with other_process() as exporter:
        handle, *_ = exported_by(exporter)
        path = Path("/dev/shm") / f"rmm-uvm-ipc-{Handle.unpack(handle).table.hex()}"
        assert path.exists()
        exporter.kill()
    device = rmm_uvm.simulated_device("64MiB", backing=True)
    pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    assert pool.revoke(pool.export(rmm.DeviceBuffer(size=100, mr=pool)))
    assert not path.exists()


def test_child_of_an_exporter_does_not_make_it_live_on() -> None:
    with other_process() as exporter:
        handle, *_ = exported_by(exporter)
        # A child keeps the lease until its first step, which closes what it has inherited.
        exporter.ask("(ready := os.pipe()) and None")
        child = exporter.ask(
            "os.fork() or (os.write(ready[1], b'x'), __import__('signal').pause())"
        )
        exporter.ask("os.read(ready[0], 1) and None")
        exporter.kill()
        try:
            with pytest.raises(AvailabilityError, match="has ended"):
                rmm_uvm.ipc.open(handle)
        finally:
            os.kill(child, signal.SIGKILL)


def test_child_of_a_reader_has_nothing_open_and_does_not_keep_the_lease() -> None:
    with other_process() as exporter:
        first, second, _ = exported_by(exporter)
        opened = rmm_uvm.ipc.open(first)
        ready, wait = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            refused = False
            try:
                assert opened.ptr
            except AvailabilityError as error:
                refused = "by the parent" in str(error)
            opened.close()  # the parent's lease is none of its business
            with rmm_uvm.ipc.open(second) as own:
                same = ctypes.string_at(own.ptr, 6) == b"frames"
            os.write(ready[1], b"y" if refused and same else b"n")
            os.read(wait[0], 1)
            os._exit(0)
        try:
            assert os.read(ready[0], 1) == b"y"
            assert exporter.ask("[lease.open_now for lease in pool.leases()]") == [True, False]
            opened.close()
            assert exporter.ask("[lease.open_now for lease in pool.leases()]") == [False]
        finally:
            os.write(wait[1], b"x")
            os.waitpid(child, 0)
            for descriptor in (*ready, *wait):
                os.close(descriptor)


# Failures


@pytest.mark.parametrize("call", ["open_ipc_memory", "open_ipc_event", "make_wait"])
def test_opening_that_fails_half_way_holds_nothing_and_does_not_count(call: str) -> None:
    device = rmm_uvm.simulated_device("2MiB", backing=True)
    transfers = Transfers(device)
    with other_process() as exporter:
        first, *_ = exported_by(exporter)
        device.fail_call(call)
        with pytest.raises(DriverError, match="injected"):
            rmm_uvm.ipc.open(first, transfers=transfers)
        leases = "[(lease.opened, lease.open_now) for lease in pool.leases()]"
        assert exporter.ask(leases) == [[0, False]] * 3
        rmm_uvm.ipc.open(first, transfers=transfers).close()  # and may be tried again


def test_work_that_failed_is_told_when_the_buffer_is_closed_and_it_is_closed() -> None:
    device = rmm_uvm.simulated_device("2MiB", backing=True)
    transfers = Transfers(device)
    with other_process() as exporter:
        first, *_ = exported_by(exporter)
        opened = rmm_uvm.ipc.open(first, transfers=transfers)
        device.fail_call("synchronize")
        with pytest.raises(DriverError, match="injected"):
            opened.close()
        assert opened.closed
        assert exporter.ask("len(pool.leases())") == 2


def test_reader_that_cannot_map_says_so_and_a_gpus_handle_needs_a_gpu() -> None:
    bare = Transfers(rmm_uvm.simulated_device("2MiB"))
    with other_process() as exporter:
        first, *_ = exported_by(exporter)
        with pytest.raises(ConfigurationError, match="backing=True"):
            rmm_uvm.ipc.open(first, transfers=bare)
    slabs()._forget_ended()
