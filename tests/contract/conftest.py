# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every memory resource of this package, alone and stacked with RMM's: one line each.

A new resource adds a line to `CHAINS` and passes the whole suite.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest
import rmm
from rmm.mr import DeviceMemoryResource
from rmm.pylibrmm.memory_resource import _memory_resource

import rmm_uvm
from rmm_uvm._lib.cuda import libcuda_available
from rmm_uvm._lib.mr import ObservedResource
from rmm_uvm.drivers import SimulatedDevice, UvmDriver
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


def managed(device: UvmDriver) -> ManagedMemoryResource:
    return ManagedMemoryResource(device, account=ManagedAccount(CAP_BYTES))


def pool(device: UvmDriver) -> rmm.mr.PoolMemoryResource:
    return rmm.mr.PoolMemoryResource(managed(device), 8 * MIB, CAP_BYTES)


def adaptor(device: UvmDriver) -> UvmResourceAdaptor:
    return UvmResourceAdaptor(pool(device))


def calling(mr: DeviceMemoryResource) -> rmm.mr.CallbackMemoryResource:
    """Return RMM's resource of two Python functions: those of a resource."""
    return rmm.mr.CallbackMemoryResource(mr.allocate, mr.deallocate)


def arena(mr: DeviceMemoryResource) -> rmm.mr.ArenaMemoryResource:
    return rmm.mr.ArenaMemoryResource(mr, 32 * MIB)  # all of it at once; else half of the GPU


def logging(mr: DeviceMemoryResource) -> rmm.mr.LoggingResourceAdaptor:
    """Return RMM's adaptor, with a log that goes with it: it stays open."""
    with tempfile.TemporaryDirectory() as folder:
        return rmm.mr.LoggingResourceAdaptor(mr, f"{folder}/log.csv")


# Not here: callbacks below our adaptor, which do not say that memory is managed.
CHAINS: dict[str, Callable[[Any], DeviceMemoryResource]] = {
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
    "callback(uvm)": lambda device: calling(adaptor(device)),
    "prefetch(uvm)": lambda device: rmm.mr.PrefetchResourceAdaptor(adaptor(device)),
    "arena(uvm)": lambda device: arena(adaptor(device)),
    "uvm(arena)": lambda device: UvmResourceAdaptor(arena(managed(device))),
    "logging(uvm)": lambda device: logging(adaptor(device)),
    "uvm(logging)": lambda device: UvmResourceAdaptor(logging(pool(device))),
    "observed(pool(managed))": lambda device: ObservedResource(pool(device), 0),
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


# Have a simulated device of their own, or no other.
SIMULATED_ONLY = {"simulated_cuda", "ManagedPool"}

# RMM's arena and its logging adaptor ask CUDA for the device as they are made: they fail without.
GPU_ONLY = {"arena(uvm)", "uvm(arena)", "logging(uvm)", "uvm(logging)"}
SIMULATED = [name for name in CHAINS if name not in GPU_ONLY]

# RMM 26.10 lets Python's collector clear the functions of its callback resource before a buffer in
# the same cycle has called them, and the process crashes.
CLEARED_EARLY = {"callback(uvm)"}

# RMM's functions that put an adaptor over the resource of now leave these as they are.
ON_ALREADY = {"statistics(uvm)", "logging(uvm)"}


def on_every_device(names: Collection[str]) -> list[Any]:
    """Return parameters (chain, kind of device): simulated, and on a GPU, where it can be."""
    return [
        pytest.param((name, "simulated"), id=name) for name in names if name not in GPU_ONLY
    ] + on_a_gpu(names)


def on_a_gpu(names: Iterable[str]) -> list[Any]:
    """Return parameters (chain, kind of device): on a GPU, where it can be."""
    return [
        pytest.param((name, "gpu"), id=f"{name}-gpu", marks=pytest.mark.gpu)
        for name in names
        if name not in SIMULATED_ONLY
    ]


@dataclasses.dataclass(frozen=True)
class Chain:
    """A chain and the device under it."""

    name: str
    mr: DeviceMemoryResource
    device: UvmDriver

    def held_bytes(self) -> int:
        """Bytes that the chain holds of its device."""
        if isinstance(self.device, SimulatedDevice):
            statistics = self.device.statistics()
            return int(statistics["managed_bytes"] + statistics["device_bytes"])
        mr = self.mr
        while not isinstance(mr, ManagedMemoryResource) and hasattr(mr, "upstream_mr"):
            mr = mr.upstream_mr
        return int(mr.slab_bytes) if isinstance(mr, ManagedMemoryResource) else 0


@pytest.fixture(scope="session")
def gpu_driver(request: pytest.FixtureRequest) -> UvmDriver | None:
    """Open the GPU once: before the check for leaks in each test, and only if one is for it."""
    wanted = any(item.get_closest_marker("gpu") for item in request.session.items)
    return rmm_uvm.cuda_driver(0) if wanted and libcuda_available() else None


@pytest.fixture
def device() -> SimulatedDevice:
    return rmm_uvm.simulated_device(DEVICE_BYTES)


@pytest.fixture(params=on_every_device(CHAINS))
def chain(request: pytest.FixtureRequest, gpu_driver: UvmDriver | None) -> Chain:
    """Return each chain in turn."""
    return make_chain(*request.param, gpu_driver)


@pytest.fixture(params=on_every_device([name for name in CHAINS if name not in ON_ALREADY]))
def chain_of_now(
    request: pytest.FixtureRequest,
    gpu_driver: UvmDriver | None,
    monkeypatch: pytest.MonkeyPatch,
) -> Chain:
    """Return each chain in turn as RMM's resource of the current device."""
    made = make_chain(*request.param, gpu_driver)
    if request.param[1] == "simulated":  # CUDA knows of no current device: the first is it
        monkeypatch.setattr(_memory_resource, "getDevice", lambda: 0)
    rmm.mr.set_current_device_resource(made.mr)
    return made


@pytest.fixture(params=on_a_gpu(CHAINS))
def gpu_chain(request: pytest.FixtureRequest, gpu_driver: UvmDriver | None) -> Chain:
    """Return each chain in turn that can be on a GPU."""
    return make_chain(*request.param, gpu_driver)


@pytest.fixture(params=SIMULATED)
def simulated_chain(request: pytest.FixtureRequest) -> Chain:
    """Return each chain in turn, on a simulated device that can be asked what it holds."""
    return make_chain(request.param, "simulated")


@pytest.fixture(params=[name for name in SIMULATED if name not in CLEARED_EARLY])
def collectable_chain(request: pytest.FixtureRequest) -> Chain:
    """Return each chain that may be in a cycle of references with its buffers, simulated."""
    return make_chain(request.param, "simulated")


@pytest.fixture(params=on_every_device(CHECKING))
def checking_chain(request: pytest.FixtureRequest, gpu_driver: UvmDriver | None) -> Chain:
    """Return each chain whose outermost resource checks what it is told to free."""
    return make_chain(*request.param, gpu_driver)


def make_chain(name: str, kind: str, gpu_driver: UvmDriver | None = None) -> Chain:
    driver: UvmDriver = rmm_uvm.simulated_device(DEVICE_BYTES)
    if kind == "gpu":
        assert gpu_driver is not None
        driver = gpu_driver
    return Chain(name, CHAINS[name](driver), driver)
