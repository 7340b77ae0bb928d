# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Building the pools of one device, and making them RMM's resource there."""

from __future__ import annotations

import rmm

from rmm_uvm._lib.current_device import current_device, ensure_context
from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.pool.build import build_managed_pool, ipc_pool
from rmm_uvm.pool.device_installation import DeviceInstallation
from rmm_uvm.pool.sizing import PoolSizes
from rmm_uvm.residency.budget import Budget
from rmm_uvm.support.settings import PrefetchMode

__all__ = ["install_one"]


def install_one(
    driver: UvmDriver,
    sizes: PoolSizes,
    prefetch: PrefetchMode,
    budget: Budget | None,
    previous: rmm.mr.DeviceMemoryResource,
    old_bytes: tuple[int, int],
    log_file_name: str | None,
    *,
    logging: bool,
) -> DeviceInstallation:
    """Build and install the pools of one device.

    Parameters
    ----------
    driver : UvmDriver
        Of the device.
    sizes : PoolSizes
        Of its pools.
    prefetch : {"auto", "always", "never"}
        When allocations are prefetched.
    budget : Budget or None
        Most of the device that managed memory may take; None for no budget.
    previous : rmm.mr.DeviceMemoryResource
        What to put back one day.
    old_bytes : tuple of int
        What is still alive in an earlier pool of ours, and what that pool keeps for it.
    log_file_name : str or None
        Where RMM's logging adaptor writes.
    logging : bool
        Whether there is one.

    Raises
    ------
    MemoryError
        If an initial slab cannot be had. Nothing is installed then.
    """
    info = driver.info
    ipc = ipc_pool(sizes.ipc_bytes, driver=driver) if sizes.ipc_bytes else None
    managed: UvmResourceAdaptor = build_managed_pool(driver, sizes, prefetch, budget)
    outer: rmm.mr.DeviceMemoryResource = managed
    if logging:
        with current_device(driver):  # its ordinal becomes part of the file's name
            outer = _logging_adaptor(managed, log_file_name)
    rmm.mr.set_per_device_resource(info.device_id, outer)
    ensure_context(info)
    return DeviceInstallation(
        info=info,
        sizes=sizes,
        managed_mr=managed,
        ipc_mr=ipc,
        installed_mr=outer,
        previous_mr=previous,
        counters=driver.counters_available(),
        old_live_bytes=old_bytes[0],
        old_kept_bytes=old_bytes[1],
    )


def _logging_adaptor(
    managed: UvmResourceAdaptor, log_file_name: str | None
) -> rmm.mr.DeviceMemoryResource:
    try:
        return rmm.mr.LoggingResourceAdaptor(managed, log_file_name)
    except Exception as error:
        # RMM asks CUDA for the current device, and has an error of its own module for it.
        if type(error).__name__ != "CUDARuntimeError":
            raise
        raise AvailabilityError(
            f"logging=True: RMM's logging adaptor needs a GPU, and there is none ({error}); "
            "leave it out, and record with monitor={'trace': FILE}"
        ) from None
