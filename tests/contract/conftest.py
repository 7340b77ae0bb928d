# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every memory resource of this package, alone and stacked with RMM's: one line each.

A new resource adds a line to `CHAINS` and passes the whole suite.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import rmm
from rmm.mr import DeviceMemoryResource

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.mr import (
    ManagedAccount,
    ManagedMemoryResource,
    ManagedPool,
    SimulatedCudaMemoryResource,
    UvmResourceAdaptor,
)

MIB = 1 << 20
DEVICE_BYTES = 64 * MIB
CAP_BYTES = 128 * MIB  # twice the device: managed chains go past its memory, and end


def managed(device: SimulatedDevice) -> ManagedMemoryResource:
    return ManagedMemoryResource(device, account=ManagedAccount(CAP_BYTES))


def pool(device: SimulatedDevice) -> rmm.mr.PoolMemoryResource:
    return rmm.mr.PoolMemoryResource(managed(device), 8 * MIB, CAP_BYTES)


def adaptor(device: SimulatedDevice) -> UvmResourceAdaptor:
    return UvmResourceAdaptor(pool(device))


CHAINS: dict[str, Callable[[SimulatedDevice], DeviceMemoryResource]] = {
    "managed": managed,
    "pool(managed)": pool,
    "uvm(managed)": lambda device: UvmResourceAdaptor(managed(device)),
    "uvm(pool(managed))": adaptor,
    "uvm-always": lambda device: UvmResourceAdaptor(pool(device), prefetch="always"),
    "uvm-never": lambda device: UvmResourceAdaptor(pool(device), prefetch="never"),
    "uvm(uvm)": lambda device: UvmResourceAdaptor(adaptor(device)),
    "statistics(uvm)": lambda device: rmm.mr.StatisticsResourceAdaptor(adaptor(device)),
    "uvm(statistics)": lambda device: UvmResourceAdaptor(
        rmm.mr.StatisticsResourceAdaptor(pool(device))
    ),
    "limiting(uvm)": lambda device: rmm.mr.LimitingResourceAdaptor(adaptor(device), CAP_BYTES),
    "uvm(limiting)": lambda device: UvmResourceAdaptor(
        rmm.mr.LimitingResourceAdaptor(pool(device), CAP_BYTES)
    ),
    "tracking(uvm)": lambda device: rmm.mr.TrackingResourceAdaptor(adaptor(device)),
    "uvm(tracking)": lambda device: UvmResourceAdaptor(
        rmm.mr.TrackingResourceAdaptor(pool(device))
    ),
    "failure_callback(uvm)": lambda device: rmm.mr.FailureCallbackResourceAdaptor(
        adaptor(device), lambda _bytes: False
    ),
    "uvm(failure_callback)": lambda device: UvmResourceAdaptor(
        rmm.mr.FailureCallbackResourceAdaptor(pool(device), lambda _bytes: False)
    ),
    "binning(uvm)": lambda device: rmm.mr.BinningMemoryResource(adaptor(device), 12, 14),
    "uvm(binning)": lambda device: UvmResourceAdaptor(
        rmm.mr.BinningMemoryResource(pool(device), 12, 14)
    ),
    "fixed_size(uvm)": lambda device: rmm.mr.FixedSizeMemoryResource(adaptor(device), 4 * MIB, 4),
    "prefetch(uvm)": lambda device: rmm.mr.PrefetchResourceAdaptor(adaptor(device)),
    "simulated_cuda": SimulatedCudaMemoryResource,
    "managed_pool()": lambda device: rmm_uvm.managed_pool(
        driver=device, initial_pool_size=8 * MIB, maximum_pool_size=CAP_BYTES
    ),
    "ipc_pool()": lambda device: rmm_uvm.ipc_pool("16MiB", driver=device),
    "ManagedPool": lambda _device: ManagedPool(
        driver="simulated:64MiB", initial_pool_size=8 * MIB, maximum_pool_size=CAP_BYTES
    ),
}

# Their own deallocate() checks pointer and size; RMM's adaptors above and its pools do not.
CHECKING = ["managed", "uvm(managed)", "uvm(pool(managed))", "uvm(uvm)", "managed_pool()"]


@dataclasses.dataclass(frozen=True)
class Chain:
    """A chain and the simulated device under it."""

    name: str
    mr: DeviceMemoryResource
    device: SimulatedDevice


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device(DEVICE_BYTES)


@pytest.fixture(params=CHAINS)
def chain(request: pytest.FixtureRequest, device: SimulatedDevice) -> Chain:
    """Return each chain in turn."""
    return Chain(request.param, CHAINS[request.param](device), device)


@pytest.fixture(params=CHECKING)
def checking_chain(request: pytest.FixtureRequest, device: SimulatedDevice) -> Chain:
    """Return each chain whose outermost resource checks what it is told to free."""
    return Chain(request.param, CHAINS[request.param](device), device)
