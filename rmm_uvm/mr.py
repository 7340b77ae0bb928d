# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory resources: ordinary subclasses of `rmm.mr.DeviceMemoryResource`.

They stack with every adaptor and pool of RMM. The chain that `rmm_uvm.managed_pool` builds is
``UvmResourceAdaptor(rmm.mr.PoolMemoryResource(ManagedMemoryResource(driver)))``. `ManagedPool` is
the same chain as a class that can be named in a configuration.
"""

from __future__ import annotations

from typing import Self, cast

from rmm_uvm._lib.account import ManagedAccount
from rmm_uvm._lib.mr import (
    ManagedMemoryResource,
    SimulatedCudaMemoryResource,
    UvmResourceAdaptor,
)
from rmm_uvm._lib.residency import ManagedResidency, Prefetcher
from rmm_uvm.pool.build import build_pool, resource_left
from rmm_uvm.residency.neighbors import HarvestLimit, Neighbors
from rmm_uvm.support.off_switch import is_off
from rmm_uvm.support.settings import PrefetchMode, reads_settings

__all__ = [
    "ManagedAccount",
    "ManagedMemoryResource",
    "ManagedPool",
    "ManagedResidency",
    "Prefetcher",
    "SimulatedCudaMemoryResource",
    "UvmResourceAdaptor",
]


class ManagedPool(UvmResourceAdaptor):
    """The managed pool as a class, for programs that make resources by name.

    cudf-polars does: ``MemoryResourceConfig(qualname="rmm_uvm.mr.ManagedPool", options={...})``.
    Options are strings and numbers, so that they travel to workers.

    Parameters
    ----------
    device : int
        CUDA ordinal.
    initial_pool_size, maximum_pool_size, prefetch : optional
        As in `rmm_uvm.managed_pool`.
    device_budget, eviction, neighbors, harvest_limit : optional
        As in `rmm_uvm.managed_pool`.
    driver : str or None
        "cuda", "simulated" or "simulated:16GiB"; by default ``RMM_UVM_DRIVER``, then the GPU.

    Returns
    -------
    ManagedPool
        Where the environment says ``RMM_UVM=off``, the resource that RMM has for the device.

    Raises
    ------
    ConfigurationError, DriverError, MemoryError
        As `rmm_uvm.managed_pool`.

    Warns
    -----
    NeighborWarning
        As `rmm_uvm.managed_pool`.

    Examples
    --------
    >>> import rmm_uvm
    >>> mr = rmm_uvm.mr.ManagedPool(initial_pool_size="32MiB", driver="simulated:64MiB")
    >>> mr.upstream_mr.pool_size()
    33554432
    """

    @reads_settings()
    def __new__(
        cls,
        *,
        device: int = 0,
        initial_pool_size: int | str | float | None = None,
        maximum_pool_size: int | str | float | None = None,
        prefetch: PrefetchMode = "auto",
        device_budget: int | str | float | None = "auto",
        eviction: str | None = None,
        neighbors: Neighbors = None,
        harvest_limit: HarvestLimit = None,
        driver: str | None = None,
    ) -> Self:
        """Build the chain, and this adaptor over it."""
        if is_off():
            return cast(Self, resource_left(device, driver))
        pool = build_pool(
            device,
            initial_pool_size,
            maximum_pool_size,
            prefetch,
            driver,
            device_budget=device_budget,
            eviction=eviction,
            neighbors=neighbors,
            harvest_limit=harvest_limit,
        )
        return super().__new__(cls, pool, prefetch=prefetch)

    def __init__(self, **_: object) -> None:
        """Add nothing: `__new__` took the arguments."""
