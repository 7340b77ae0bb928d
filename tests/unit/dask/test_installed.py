# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which of several installed pools the parts of a worker mean."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import rmm_uvm
import rmm_uvm.pool.install
from rmm_uvm.dask.comm.staging import current_staging
from rmm_uvm.dask.installed import workers_pool
from rmm_uvm.dask.reports import worker_recording
from rmm_uvm.dask.worker import pool, telemetry

MIB = 1 << 20


def install(device: int, ipc_mib: int, **arguments: Any) -> Any:
    return rmm_uvm.reinitialize(
        "8MiB",
        "32MiB",
        devices=device,
        driver="simulated:128MiB",
        ipc_pool_size=f"{ipc_mib}MiB",
        libraries=(),
        **arguments,
    )


def meant() -> dict[str, Any]:
    """Return what each part of a worker takes for its own: a device, or bytes of the IPC pool."""
    recorded = worker_recording.unpacked(worker_recording._recorded())
    installed, figures = pool._installed(), telemetry.Telemetry().figures()
    monitor = telemetry.watching_monitor()
    return {
        "pool": installed and installed.devices[0].info.device_id,
        "staging": current_staging().device_id,
        "monitor": monitor and monitor.devices[0].device_id,
        "figures": (figures.device_id, figures.ipc_pool_bytes),
        "recording": recorded["ipc_pool_bytes"],
    }


@pytest.mark.parametrize("monitor", [True, False])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_all_parts_of_a_worker_mean_the_pool_on_its_device(
    order: tuple[int, int], monitor: bool
) -> None:
    for device in order:
        install(device, 8 if device == 0 else 16, monitor=monitor)
    assert meant() == {
        "pool": 0,
        "staging": 0,
        "monitor": 0 if monitor else None,
        "figures": (0, 8 * MIB),
        "recording": 8 * MIB,
    }


def test_without_a_pool_on_the_workers_device_the_last_call_is_meant() -> None:
    for device in (2, 1):
        install(device, 8 * device)
    assert meant() == {
        "pool": None,  # whose settings a worker compares with those it is to install
        "staging": 1,
        "monitor": 1,
        "figures": (1, 8 * MIB),
        "recording": 8 * MIB,
    }


def test_handle_that_loses_its_devices_meanwhile_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = install(0, 8)

    class Going:
        looks = 0

        @property
        def devices(self) -> Any:
            self.looks += 1
            return handle.devices if self.looks == 1 else ()

        ipc_mr = property(lambda _: SimpleNamespace().nothing_is_left)

    going = Going()
    monkeypatch.setattr(rmm_uvm.pool.install, "installations", lambda: (going,))
    assert workers_pool() == (going, handle.devices[0])
    assert workers_pool() is None
