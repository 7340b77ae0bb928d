# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The staging of a process follows what is installed in it."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import dask
import pytest
import rmm

import rmm_uvm
from rmm_uvm.dask.comm import staging as staging_module
from rmm_uvm.dask.comm.staging import (
    Exportable,
    Staging,
    current_staging,
    staging_for_frames,
)
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DriverError

from .fakes import FakeCopies, Kind

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _nothing_made() -> Iterator[None]:
    staging_module._forget()
    yield
    staging_module._forget()


def _install(ipc_pool_size: str | None = "16MiB", **keywords: object) -> rmm_uvm.SimulatedDevice:
    device = rmm_uvm.simulated_device("256MiB", **keywords)
    rmm_uvm.reinitialize(
        "32MiB", driver=device, ipc_pool_size=ipc_pool_size, libraries=(), monitor=False
    )
    return device


def test_driver_is_asked_once_for_neighbours_in_an_allocation() -> None:
    asked: list[int] = []

    class Slabs(FakeCopies):
        def memory_kind(self, address: int) -> Kind | None:
            asked.append(address)
            slab = address // 1000
            return Kind(slab == 1, slab * 1000, 1000) if slab < 3 else None

    exportable = Exportable(Slabs())
    addresses = (1000, 1999, 1500, 2000, 2999, 999, 3000, 3001, 1000)
    assert [exportable(each) for each in addresses] == [
        *(True, True, True, False, False, False, None, None, True)
    ]
    assert asked == [1000, 2000, 999, 3000, 3001, 1000]


def test_staging_without_an_installation_is_none() -> None:
    assert current_staging() is None


def test_staging_of_an_installation_is_carved_from_its_ipc_pool() -> None:
    device = _install()
    staging = current_staging()
    assert staging is not None
    assert current_staging() is staging
    assert staging.pool_bytes == 16 * MIB
    assert staging.sending.count == staging.receiving.count == 2
    assert staging.chunk_bytes == 7 * MIB // 2
    exportable = Exportable(staging.copies)
    for chunk in (*staging.sending._free, *staging.receiving._free):
        assert exportable(chunk.address)
    frame = staging.allocate(1000)
    assert exportable(frame.ptr) is False
    assert device.info.simulated


def test_staging_of_an_installation_without_an_ipc_pool_has_no_chunks() -> None:
    _install(None)
    staging = current_staging()
    assert staging is not None
    assert staging.chunk_bytes is None
    assert (staging.pool_bytes, staging.sending.count) == (0, 0)


def test_staging_is_made_anew_when_something_else_is_installed() -> None:
    _install()
    first = current_staging()
    _install("32MiB")
    second = current_staging()
    assert first is not second
    assert second is not None
    assert second.pool_bytes == 32 * MIB


def test_staging_is_let_go_of_with_restore_and_its_pool_with_it() -> None:
    device = rmm_uvm.simulated_device("256MiB")
    free_bytes, _ = device.memory()
    rmm_uvm.reinitialize("32MiB", driver=device, ipc_pool_size="16MiB", libraries=(), monitor=False)
    assert current_staging() is not None
    rmm_uvm.restore()
    gc.collect()
    assert device.memory()[0] == free_bytes
    assert current_staging() is None


def test_staging_stays_on_the_workers_device_when_another_gets_a_pool() -> None:
    _install(device=2)
    assert current_staging().device_id == 2  # nothing is installed on the worker's
    _install()
    staging = current_staging()
    _install("32MiB", device=1)
    assert current_staging() is staging
    assert staging.device_id == 0


def test_staging_lets_go_of_a_device_that_another_call_takes() -> None:
    rmm_uvm.reinitialize(
        "32MiB",
        devices=[0, 1],
        driver="simulated:256MiB",
        ipc_pool_size="16MiB",
        libraries=(),
        monitor=False,
    )
    staging = weakref.ref(current_staging())
    _install(None)
    gc.collect()
    assert staging() is None
    assert current_staging().pool_bytes == 0  # of the call that has the worker's device


def test_chunk_in_use_outlives_restore_and_goes_with_its_user() -> None:
    async def run() -> None:
        device = rmm_uvm.simulated_device("256MiB")
        free_bytes, _ = device.memory()
        rmm_uvm.reinitialize(
            "32MiB", driver=device, ipc_pool_size="16MiB", libraries=(), monitor=False
        )
        staging = current_staging()
        assert staging is not None
        chunk = await staging.sending.acquire(1)
        rmm_uvm.restore()
        assert device.memory()[0] <= free_bytes - 16 * MIB
        staging.sending.release(chunk)
        del staging, chunk
        gc.collect()
        assert device.memory()[0] == free_bytes

    asyncio.run(run())


def test_staging_follows_the_configured_chunk_size_and_wait() -> None:
    with dask.config.set({"rmm-uvm.comm": {"chunk-size": "2MiB", "wait-seconds": 3}}):
        _install()
        staging = current_staging()
    assert staging is not None
    assert staging.chunk_bytes == 2 * MIB
    assert staging.receiving.wait_seconds == 3.0


def test_staging_with_chunks_that_do_not_fit_the_pool_is_refused() -> None:
    _install()
    with (
        dask.config.set({"rmm-uvm.comm.chunk-size": "8MiB"}),
        pytest.raises(ConfigurationError, match=r"an IPC pool of 16\.00 MiB"),
    ):
        current_staging()


def test_frames_in_a_process_without_a_gpu_are_refused_in_one_line() -> None:
    with pytest.raises(AvailabilityError, match="device frames cannot be handled here: ") as error:
        staging_for_frames()
    assert "\n" not in str(error.value)


def test_frames_where_nothing_is_installed_go_without_a_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated:64MiB")
    staging = staging_for_frames()
    assert staging.chunk_bytes is None
    assert staging_for_frames() is staging
    assert current_staging() is None  # nothing is installed


def test_frames_of_an_installation_use_its_staging() -> None:
    _install()
    assert staging_for_frames() is current_staging()


def test_device_without_backing_is_refused_and_one_with_it_is_not() -> None:
    _install(backing=True)
    staging_for_frames().refuse_without_memory()
    _install()
    with pytest.raises(ConfigurationError, match="backing=True"):
        staging_for_frames().refuse_without_memory()


def test_copy_on_a_device_with_backing_moves_the_bytes() -> None:
    _install(backing=True)
    staging = staging_for_frames()
    one, other = staging.allocate(1000), staging.allocate(1000)
    ctypes.memset(one.ptr, 7, 1000)
    asyncio.run(staging.reached(staging.begin([(other.ptr, one.ptr, 600)])))
    assert ctypes.string_at(other.ptr, 1000) == b"\7" * 600 + bytes(400)


@pytest.mark.parametrize("polls", [0, 1, 50, 300])
def test_settling_waits_for_the_copies_and_lets_others_run(polls: int) -> None:
    async def run() -> None:
        copies = FakeCopies(polls)
        staging = Staging(copies, None, 0, lambda nbytes: None)
        waiting = asyncio.create_task(staging.settle())
        turns = 0
        while not waiting.done():
            await asyncio.sleep(0)
            turns += 1
        await waiting
        assert turns > 0

    asyncio.run(run())


def test_settling_of_failed_copies_raises() -> None:
    copies = FakeCopies()
    copies.broken = True
    staging = Staging(copies, None, 0, lambda nbytes: None)
    with pytest.raises(DriverError, match="lost"):
        asyncio.run(staging.settle())


def test_comm_package_is_imported_without_rmm_and_ucx() -> None:
    program = (
        "import sys\n"
        "for name in ('rmm', 'ucxx', 'distributed_ucxx', 'cuda'): sys.modules[name] = None\n"
        "import rmm_uvm.dask.comm.handshake, rmm_uvm.dask.comm.send, rmm_uvm.dask.comm.receive\n"
        "import rmm_uvm.dask.comm.notices, rmm_uvm.dask.comm.statistics\n"
        "from rmm_uvm.dask.comm.staging import current_staging\n"
        "print(current_staging(), rmm_uvm.dask.comm.handshake.introduce()['receives'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("None host\n", "")


def test_resource_of_received_frames_is_the_one_that_is_installed() -> None:
    _install(backing=True)
    mr = rmm.mr.get_per_device_resource(0)
    frame = staging_for_frames().allocate(1000)
    assert mr.get_allocated_bytes() == 1000
    del frame
    assert mr.get_allocated_bytes() == 0
