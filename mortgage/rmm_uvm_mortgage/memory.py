# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The memories that the mortgage pipeline can run on: chains of memory resources, by name.

Each chain is built twice: for a GPU from RMM's own resources, and for a simulated device, where
cudaMalloc and managed memory are simulated and everything above them is the same real code.
Does not cover sizes that nobody asked for on a GPU: those are RMM's and `rmm_uvm.managed_pool`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rmm

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.mr import (
    ManagedAccount,
    ManagedMemoryResource,
    SimulatedCudaMemoryResource,
    UvmResourceAdaptor,
)
from rmm_uvm.pool.build import build_pool, plan_for
from rmm_uvm.pool.sizing import PoolRequest
from rmm_uvm.residency.budget import Budget, budget_for
from rmm_uvm.support.settings import PrefetchMode
from rmm_uvm.support.units import VA_BLOCK_BYTES, format_bytes, parse_size

if TYPE_CHECKING:
    from rmm_uvm.drivers import SimulatedDevice, UvmDriver


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory by name.

    Parameters
    ----------
    name : str
        As given to ``--memory``.
    gpu_chain, simulated_chain : str
        The resources from the outermost to the source, for the report.
    managed : bool
        Whether it can hold more than the device.
    pooled : bool
        Whether a pool lies between.
    """

    name: str
    gpu_chain: str
    simulated_chain: str
    managed: bool
    pooled: bool

    @property
    def keeps_budget(self) -> bool:
        """Whether managed memory of ours, and so whatever keeps a budget, is at the bottom."""
        return self.name in ("managed", "managed-nopool")

    @property
    def hands_over(self) -> bool:
        """Whether the pool is torn down before PREP: only a cudaMalloc pool is in XGBoost's way."""
        return self.pooled and not self.managed


BUDGET_WORDS = ", budget"
"""With which a report's chain goes on, where a budget is kept."""

MEMORIES = {
    memory.name: memory
    for memory in (
        Memory(
            "managed",
            "rmm-uvm adaptor (auto) > pool > rmm-uvm managed",
            "rmm-uvm adaptor (auto) > pool > rmm-uvm managed, simulated",
            managed=True,
            pooled=True,
        ),
        Memory(
            "managed-nopool",
            "rmm-uvm adaptor (auto) > rmm-uvm managed",
            "rmm-uvm adaptor (auto) > rmm-uvm managed, simulated",
            managed=True,
            pooled=False,
        ),
        Memory("cuda", "cudaMalloc", "cudaMalloc, simulated", managed=False, pooled=False),
        Memory(
            "cuda-pool",
            "pool > cudaMalloc",
            "fixed pool of all device memory > cudaMalloc, simulated",
            managed=False,
            pooled=True,
        ),
        Memory(
            "rmm-managed",
            "pool > RMM limiting adaptor > RMM managed",
            "pool > managed memory without prefetch, simulated",
            managed=True,
            pooled=True,
        ),
        Memory(
            "rmm-prefetch",
            "RMM prefetch adaptor > pool > RMM limiting adaptor > RMM managed",
            "our adaptor, always > pool > managed, simulated (RMM's own prefetch needs a GPU)",
            managed=True,
            pooled=True,
        ),
    )
}
"""Every memory, by name."""


def find_memory(name: str) -> Memory:
    """Return a memory by its name.

    Raises
    ------
    ConfigurationError
        There is none of that name.
    """
    if name not in MEMORIES:
        raise ConfigurationError(f"no memory {name!r}; there are {', '.join(MEMORIES)}")
    return MEMORIES[name]


@dataclass(slots=True)
class Chain:
    """A chain of memory resources, ready to allocate from.

    Attributes
    ----------
    memory : Memory
        What it is.
    resource : rmm.mr.DeviceMemoryResource
        Outermost resource. `tear_down_pool` replaces it.
    driver : UvmDriver
        The device, simulated or not.
    upstream : rmm.mr.StatisticsResourceAdaptor or None
        Counts what reaches cudaMalloc or cudaMallocManaged; None on a GPU, where counting would
        be part of what is measured.
    budget : Budget or None
        How much of the device managed memory may take.
    """

    memory: Memory
    resource: Any
    driver: UvmDriver
    upstream: Any = None
    budget: Budget | None = None

    @property
    def upstream_allocations(self) -> int:
        """Calls of cudaMalloc or cudaMallocManaged so far; 0 where they are not counted."""
        return 0 if self.upstream is None else int(self.upstream.allocation_counts.total_count)


def simulated_chain(
    memory: Memory,
    device: SimulatedDevice,
    pool_bytes: int | None = None,
    budget: Budget | None = None,
) -> Chain:
    """Build a chain on a simulated device.

    Parameters
    ----------
    memory : Memory
        Which.
    device : SimulatedDevice
        Fresh: the chain takes all of it.
    pool_bytes : int or None
        Size of the fixed ``cuda-pool``, or first slab of a managed pool, in bytes; None for all of
        the device, or the budget, or half of the device as RMM does.
    budget : Budget or None
        How much of the device managed memory may take; for memories that keep one.

    Raises
    ------
    MemoryError
        The device cannot hold the pool.

    Notes
    -----
    Simulated managed memory is no memory of this machine, so ``RMM_UVM_MANAGED_LIMIT`` does not
    count it, and pools may grow without bound.
    """
    budget = _budget_of(memory, budget)
    _, capacity_bytes = device.memory()
    if not memory.managed:
        source = rmm.mr.StatisticsResourceAdaptor(SimulatedCudaMemoryResource(device))
        if not memory.pooled:
            return Chain(memory, source, device, source)
        fixed_bytes = _aligned(pool_bytes or capacity_bytes)
        pool = rmm.mr.PoolMemoryResource(source, fixed_bytes, fixed_bytes)
        return Chain(memory, pool, device, source)
    modes: dict[str, PrefetchMode] = {"rmm-managed": "never", "rmm-prefetch": "always"}
    prefetch = modes.get(memory.name, "auto")
    managed = ManagedMemoryResource(
        device, prefetch=prefetch, account=ManagedAccount(), budget=budget
    )
    source = rmm.mr.StatisticsResourceAdaptor(managed)
    below: Any = source
    if memory.pooled:
        by_default = capacity_bytes // 2 if budget is None else budget.budget_bytes
        first_bytes = _aligned(pool_bytes or by_default)
        below = rmm.mr.PoolMemoryResource(source, first_bytes)
    if memory.name == "rmm-managed":
        return Chain(memory, below, device, source)
    return Chain(memory, UvmResourceAdaptor(below, prefetch=prefetch), device, source, budget)


def first_slab_bytes(asked: int | float | None, driver: UvmDriver) -> int | None:
    """Return the first slab that was asked for, bytes or a fraction of the device, in bytes."""
    if asked is None:
        return None
    return parse_size(asked, driver.info.total_bytes, "initial_pool_size")


def asked_budget(
    memory: Memory, budget_bytes: int | float | str | None, eviction: str | None, total_bytes: int
) -> Budget | None:
    """Return the budget that was asked for, here or in the environment, else "auto"; None for none.

    A comparison has memories beside each other, of which some keep none: the environment's is for
    those that do.

    Raises
    ------
    ConfigurationError
        As `rmm_uvm.managed_pool`.
    """
    if budget_bytes is None and not memory.keeps_budget:
        return None
    return budget_for("auto" if budget_bytes is None else budget_bytes, eviction, total_bytes)


def budget_words(budget: Budget | None) -> str:
    """Return what a report says of a budget behind the names of a chain; empty without one."""
    if budget is None:
        return ""
    return f"{BUDGET_WORDS} {format_bytes(budget.budget_bytes)} ({budget.policy})"


def _budget_of(memory: Memory, budget: Budget | None) -> Budget | None:
    if budget is not None and not memory.keeps_budget:
        raise ConfigurationError(f"the memory {memory.name!r} keeps no budget")
    return budget


def gpu_chain(
    memory: Memory,
    driver: UvmDriver,
    pool_bytes: int | None = None,
    budget: Budget | None = None,
) -> Chain:
    """Build a chain on a GPU; nothing is installed yet.

    Parameters
    ----------
    memory : Memory
        Which.
    driver : UvmDriver
        The GPU, which must be the current CUDA device.
    pool_bytes : int or None
        First slab of the pool, in bytes, and of ``cuda-pool`` also the most that it takes; None
        for half of the free device memory, and no limit for ``cuda-pool``.
    budget : Budget or None
        How much of the GPU managed memory may take; for memories that keep one.

    Raises
    ------
    ConfigurationError
        The size is more than device and host, or the cap ``RMM_UVM_MANAGED_LIMIT``, allow.
    MemoryError
        The first slab cannot be had.
    """
    if _budget_of(memory, budget) is not None:
        if memory.pooled:
            return Chain(memory, _pool(driver, pool_bytes, budget), driver, budget=budget)
        managed = ManagedMemoryResource(driver, budget=budget)
        return Chain(memory, UvmResourceAdaptor(managed), driver, budget=budget)
    return Chain(memory, _GPU_RESOURCES[memory.name](driver, pool_bytes), driver)


def _pool(driver: UvmDriver, pool_bytes: int | None, budget: Budget | None) -> Any:
    # Not `managed_pool`: with the off switch that is another memory than the one that was named.
    pool = build_pool(driver=driver, initial_pool_size=pool_bytes, device_budget=budget)
    return UvmResourceAdaptor(pool)


def _managed(driver: UvmDriver, pool_bytes: int | None) -> Any:
    return _pool(driver, pool_bytes, None)


def _managed_nopool(driver: UvmDriver, pool_bytes: int | None) -> Any:
    del pool_bytes
    return UvmResourceAdaptor(ManagedMemoryResource(driver))


def _cuda(driver: UvmDriver, pool_bytes: int | None) -> Any:
    del driver, pool_bytes
    return rmm.mr.CudaMemoryResource()


def _cuda_pool(driver: UvmDriver, pool_bytes: int | None) -> Any:
    del driver
    size_bytes = None if pool_bytes is None else _aligned(pool_bytes)
    return rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), size_bytes, size_bytes)


def _rmm_managed(driver: UvmDriver, pool_bytes: int | None) -> Any:
    # RMM's managed memory knows no cap: without the limit it could hang the GPU for all.
    sizes = plan_for(driver, PoolRequest(initial=pool_bytes))
    limited = rmm.mr.LimitingResourceAdaptor(rmm.mr.ManagedMemoryResource(), sizes.maximum_bytes)
    return rmm.mr.PoolMemoryResource(limited, sizes.initial_bytes, sizes.maximum_bytes)


def _rmm_prefetch(driver: UvmDriver, pool_bytes: int | None) -> Any:
    return rmm.mr.PrefetchResourceAdaptor(_rmm_managed(driver, pool_bytes))


_GPU_RESOURCES: dict[str, Callable[[UvmDriver, int | None], Any]] = {
    "managed": _managed,
    "managed-nopool": _managed_nopool,
    "cuda": _cuda,
    "cuda-pool": _cuda_pool,
    "rmm-managed": _rmm_managed,
    "rmm-prefetch": _rmm_prefetch,
}


def tear_down_pool(chain: Chain) -> None:
    """Give a ``cuda-pool`` back and go on with plain cudaMalloc, as the original did before PREP.

    The pool is freed when nobody else holds it.
    """
    if chain.upstream is not None:
        chain.resource = chain.upstream
    else:
        chain.resource = rmm.mr.CudaMemoryResource()


def _aligned(size_bytes: int) -> int:
    """Round down to whole blocks of the device, at least one."""
    return max(size_bytes // VA_BLOCK_BYTES, 1) * VA_BLOCK_BYTES
