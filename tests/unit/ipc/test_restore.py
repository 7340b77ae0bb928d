# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Installing an IPC pool, and taking it down while others hold memory of it."""

from __future__ import annotations

import gc
import warnings

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import CapacityWarning
from rmm_uvm.ipc import IpcPool

MIB = 1 << 20


@pytest.mark.parametrize(("count", "buffers"), [(1, "a buffer"), (2, "2 buffers")])
def test_restore_with_leases_says_that_the_ipc_pool_stays(count: int, buffers: str) -> None:
    device = rmm_uvm.simulated_device("64MiB", backing=True)
    uvm = rmm_uvm.reinitialize(
        "8MiB", "8MiB", ipc_pool_size="4MiB", driver=device, libraries=(), monitor=False
    )
    pool = uvm.ipc_mr
    assert isinstance(pool, IpcPool)
    handles = [pool.export(rmm.DeviceBuffer(size=1000, mr=pool)) for _ in range(count)]
    with pytest.warns(CapacityWarning, match=f"device 0 keeps its 4.00 MiB until.* {buffers}"):
        rmm_uvm.restore()
    gc.collect()
    assert device.statistics()["device_bytes"] == 4 * MIB
    for handle in handles:
        assert pool.revoke(handle)
    del pool, uvm
    gc.collect()
    assert device.statistics()["device_bytes"] == 0


def test_restore_without_leases_says_nothing_and_frees_the_ipc_pool() -> None:
    device = rmm_uvm.simulated_device("64MiB", backing=True)
    uvm = rmm_uvm.reinitialize(
        "8MiB", "8MiB", ipc_pool_size="4MiB", driver=device, libraries=(), monitor=False
    )
    pool = uvm.ipc_mr
    assert pool is not None
    pool.export(rmm.DeviceBuffer(size=1000, mr=pool), lease_seconds=1e-9)
    del pool
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rmm_uvm.restore()
    gc.collect()
    assert device.statistics()["device_bytes"] == 0
