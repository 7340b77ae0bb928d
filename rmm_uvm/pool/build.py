# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The two pools: managed memory for the data, a small cudaMalloc pool for CUDA IPC.

Covers building them. Does not cover installing them; see `rmm_uvm.reinitialize`.
"""

from __future__ import annotations

import dataclasses
from typing import cast

import rmm

from rmm_uvm._lib.current_device import current_device
from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.limits import process_account
from rmm_uvm._lib.mr import ManagedMemoryResource, UvmResourceAdaptor, unobserved
from rmm_uvm.drivers import choose_driver
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.ipc.pool import IpcPool, collect_dropped
from rmm_uvm.machine.device_info import DeviceInfo
from rmm_uvm.machine.host_memory import HostMemory, host_memory
from rmm_uvm.pool.budget_warnings import open_neighbors_or_warn
from rmm_uvm.pool.sizing import PoolRequest, PoolSizes, plan_sizes
from rmm_uvm.residency.budget import Budget, budget_for
from rmm_uvm.residency.neighbors import HarvestLimit, Neighbors
from rmm_uvm.support.messages import shown
from rmm_uvm.support.off_switch import is_off
from rmm_uvm.support.settings import PrefetchMode, reads_settings
from rmm_uvm.support.units import format_bytes, parse_size

__all__ = ["budget_on", "build_pool", "ipc_pool", "managed_pool", "plan_for", "resource_left"]


def plan_for(
    driver: UvmDriver,
    request: PoolRequest,
    *,
    returning_bytes: int = 0,
    promised_bytes: int = 0,
    sharers: int = 1,
    host_sharers: int = 1,
) -> PoolSizes:
    """Return the sizes of the pools on a driver's device, given what is free there and here.

    Parameters
    ----------
    driver : UvmDriver
        Of the device.
    request : PoolRequest
        What was asked for.
    returning_bytes : int
        Bytes that an older pool will have given back by the time the new one is made.
    promised_bytes : int
        Host memory that pools on other devices may take.
    sharers : int
        Devices, this one included, whose new pools share host memory and cap evenly; >= 1.
    host_sharers : int
        Processes, this one included, that share host memory evenly; >= 1.

    Raises
    ------
    ConfigurationError
        See `rmm_uvm.pool.sizing.plan_sizes`.
    AvailabilityError
        If host memory cannot be told, and no maximum was asked for.
    """
    collect_dropped()  # their memory is free by now, unless others still hold it
    free_bytes, total_bytes = driver.memory()
    host = _host_memory(request, driver.info)
    if host is not None and driver.info.integrated:  # what returns to the device is the host's
        most_bytes = min(host.total_bytes, host.limit_bytes or host.total_bytes)
        left_bytes = min(host.available_bytes + returning_bytes, most_bytes)
        host = dataclasses.replace(host, available_bytes=left_bytes)
    account = process_account()
    return plan_sizes(
        request,
        free_bytes=min(free_bytes + returning_bytes, total_bytes),
        total_bytes=total_bytes,
        host=host,
        oversubscribable=bool(driver.info.concurrent_managed_access),
        integrated=driver.info.integrated,
        discards=bool(driver.info.discard.available),
        limit_bytes=account.limit_bytes,
        limit_used_bytes=max(account.used_bytes - returning_bytes, 0),
        promised_bytes=promised_bytes,
        sharers=sharers,
        host_sharers=host_sharers,
    )


def _host_memory(request: PoolRequest, info: DeviceInfo) -> HostMemory | None:
    """Return the host memory; None where it cannot be told, if a maximum in bytes was asked for."""
    node = None if info.simulated else info.numa_node  # a model's is no node of this machine
    try:
        return host_memory(device_nodes=() if node is None else (node,))
    except AvailabilityError as error:
        if request.maximum is None:
            raise AvailabilityError(f"{error}; give maximum_pool_size") from error
        return None


@reads_settings()
def managed_pool(
    device: int = 0,
    *,
    initial_pool_size: int | str | float | None = None,
    maximum_pool_size: int | str | float | None = None,
    prefetch: PrefetchMode = "auto",
    device_budget: int | str | float | Budget | None = "auto",
    eviction: str | None = None,
    neighbors: Neighbors = None,
    harvest_limit: HarvestLimit = None,
    driver: UvmDriver | str | None = None,
) -> UvmResourceAdaptor:
    """Build the managed pool of one device: adaptor over RMM's pool over managed memory.

    Parameters
    ----------
    device : int
        CUDA ordinal; ignored when `driver` is a driver.
    initial_pool_size, maximum_pool_size : int, str, float or None
        Bytes, "2GiB", or a fraction of device memory: 0.9 or "90%". By default half of the free
        device memory, and what device and host can hold; see `rmm_uvm.pool.sizing`.
    prefetch : {"auto", "always", "never"}
        See `rmm_uvm.mr.UvmResourceAdaptor`.
    device_budget : int, str, float, Budget or None
        How much managed memory is kept on the device: bytes, "12GiB", a fraction of the device, or
        a `rmm_uvm.residency.Budget` with all settings. "auto" is what ``RMM_UVM_DEVICE_BUDGET``
        says, and without it what others leave of the device, followed while they take and give
        back. It is None without concurrent managed access, and where device memory is the host's,
        also where another is given.
        None: the kernel driver evicts.
    eviction : {"repeat", "lru", "fifo", "correlation"} or None
        Which live blocks leave first; needs a budget. By default ``RMM_UVM_EVICTION``, then
        "repeat".
    neighbors : "auto", int, iterable of int, or None
        Other devices whose idle memory takes what leaves, before the host; needs a budget. By
        default ``RMM_UVM_NEIGHBORS``, and without it none; see `rmm_uvm.residency.Budget`.
    harvest_limit : int, str, mapping of int to int or str, or None
        Most bytes on each of them, or by ordinal. By default ``RMM_UVM_HARVEST_LIMIT``.
    driver : UvmDriver, str or None
        A driver, or "simulated", "simulated:16GiB" or, with the rates of a machine profile,
        "simulated:16GiB@a100-pcie4". By default the environment variable ``RMM_UVM_DRIVER``, and
        without it the GPU.

    Returns
    -------
    rmm_uvm.mr.UvmResourceAdaptor
        Not installed anywhere. Its pool grows up to the maximum and then raises MemoryError. Where
        the environment says ``RMM_UVM=off``, the resource that RMM has for the device.

    Raises
    ------
    ConfigurationError
        If a size or a mode is unusable.
    DriverError
        If there is no such device.
    MemoryError
        If the initial slab cannot be had.

    Warns
    -----
    CapacityWarning
        If a budget is given other than "auto", and the device can keep none.
    NeighborWarning
        If a device that `neighbors` names cannot be reached, or "auto" finds none.

    Examples
    --------
    >>> import rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", initial_pool_size="32MiB")
    >>> mr.upstream_mr.pool_size()
    33554432
    """
    if is_off():
        return cast(UvmResourceAdaptor, resource_left(device, driver))
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
    return UvmResourceAdaptor(pool, prefetch=prefetch)


def resource_left(device: int, driver: UvmDriver | str | None) -> rmm.mr.DeviceMemoryResource:
    """Return what takes the place of a pool where the switch is off: what RMM has already."""
    if isinstance(device, bool) or not isinstance(device, int) or device < 0:
        raise ConfigurationError(f"device is {shown(device)}: use an ordinal such as 0")
    ordinal = driver.info.device_id if isinstance(driver, UvmDriver) else device
    return unobserved(rmm.mr.get_per_device_resource(ordinal))


def build_pool(
    device: int = 0,
    initial_pool_size: int | str | float | None = None,
    maximum_pool_size: int | str | float | None = None,
    prefetch: PrefetchMode = "auto",
    driver: UvmDriver | str | None = None,
    device_budget: int | str | float | Budget | None = "auto",
    eviction: str | None = None,
    neighbors: Neighbors = None,
    harvest_limit: HarvestLimit = None,
) -> rmm.mr.PoolMemoryResource:
    """Build RMM's pool over managed memory: what the adaptor of a managed pool wraps."""
    driver = choose_driver(device, driver)
    budget = budget_on(driver, device_budget, eviction, neighbors, harvest_limit)
    open_neighbors_or_warn(driver, budget)
    request = PoolRequest(
        initial_pool_size,
        maximum_pool_size,
        budget_bytes=None if budget is None else budget.budget_bytes,
        follows=budget is not None and budget.follows,
        drops=budget is None or budget.drops,
    )
    return _pool_of(driver, plan_for(driver, request), prefetch, budget)


def budget_on(
    driver: UvmDriver,
    device_budget: int | str | float | Budget | None,
    eviction: str | None,
    neighbors: Neighbors = None,
    harvest_limit: HarvestLimit = None,
) -> Budget | None:
    """Return the budget that was asked for on a driver's device; as `budget_for`."""
    return budget_for(
        device_budget,
        eviction,
        driver.info.total_bytes,
        neighbors,
        harvest_limit,
        oversubscribable=driver.info.oversubscribable,
    )


def build_managed_pool(
    driver: UvmDriver,
    sizes: PoolSizes,
    prefetch: PrefetchMode,
    budget: Budget | None = None,
) -> UvmResourceAdaptor:
    """Build the managed pool from sizes that are decided."""
    return UvmResourceAdaptor(_pool_of(driver, sizes, prefetch, budget), prefetch=prefetch)


def _pool_of(
    driver: UvmDriver, sizes: PoolSizes, prefetch: PrefetchMode, budget: Budget | None = None
) -> rmm.mr.PoolMemoryResource:
    with current_device(driver):
        # RMM's pool counts addresses; where it may take more of them, ours counts what is live.
        counts_live = sizes.address_bytes > sizes.maximum_bytes
        upstream = ManagedMemoryResource(
            driver,
            prefetch=prefetch,
            budget=budget,
            maximum_bytes=sizes.maximum_bytes if counts_live else None,
            populated_bytes=sizes.populated_bytes,
            pool_maximum_bytes=sizes.address_bytes,
        )
        return rmm.mr.PoolMemoryResource(upstream, sizes.initial_bytes, sizes.address_bytes)


def ipc_pool(
    size: int | str | float = "256MiB",
    *,
    device: int = 0,
    driver: UvmDriver | str | None = None,
) -> IpcPool:
    """Build a fixed-size pool of cudaMalloc memory, which CUDA IPC can export.

    Managed memory has no IPC handle. This pool never grows, shrinks or gives memory back while it
    lives, so memory that was exported stays mapped at the peer. Keep it small: it is taken from
    managed capacity, and peers map it as a whole. Another process opens what its ``export`` gives
    out, by `rmm_uvm.ipc.open`.

    Parameters
    ----------
    size : int, str or float
        Bytes, "256MiB", or a fraction of device memory; > 0, and free on the device.
    device : int
        CUDA ordinal; ignored when `driver` is a driver.
    driver : UvmDriver, str or None
        As in `managed_pool`.

    Returns
    -------
    rmm_uvm.ipc.IpcPool
        A `rmm.mr.PoolMemoryResource` over `rmm.mr.CudaMemoryResource`, or over
        `rmm_uvm.mr.SimulatedCudaMemoryResource`.

    Raises
    ------
    ConfigurationError
        If the size is unusable or more than the device has free.
    DriverError
        If there is no such device.

    Examples
    --------
    >>> import rmm_uvm
    >>> rmm_uvm.ipc_pool("4MiB", driver="simulated:64MiB").pool_size()
    4194304
    """
    driver = choose_driver(device, driver)
    collect_dropped()
    free_bytes, total_bytes = driver.memory()
    size_bytes = -(-parse_size(size, total_bytes, name="ipc_pool_size") // 256) * 256
    if size_bytes > free_bytes:
        raise ConfigurationError(
            f"ipc_pool_size is {format_bytes(size_bytes)}: it is cudaMalloc memory, and "
            f"{format_bytes(free_bytes)} of the device are free: ask for less"
        )
    return IpcPool(driver, size_bytes)
