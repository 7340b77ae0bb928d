# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The managed pools that are meant where none is named: those that `reinitialize` installed.

Covers finding them, and asking one how its budget is kept.
"""

from __future__ import annotations

import rmm

from rmm_uvm._lib.mr import UvmResourceAdaptor
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.pool.budget_warnings import warn_of_budget
from rmm_uvm.pool.device_installation import resources_down
from rmm_uvm.pool.install import installed_devices
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.support.off_switch import is_off

__all__ = ["managed_pools", "residency_statistics"]


def managed_pools(mr: rmm.mr.DeviceMemoryResource | None = None) -> tuple[UvmResourceAdaptor, ...]:
    """Return the managed pools that are meant.

    Parameters
    ----------
    mr : rmm.mr.DeviceMemoryResource, optional
        A managed pool, or an adaptor of RMM over one; by default all that are installed, those of
        the last call of `rmm_uvm.reinitialize` first.

    Returns
    -------
    tuple of UvmResourceAdaptor
        Empty where ``RMM_UVM=off`` kept pools from being made.

    Raises
    ------
    AvailabilityError
        If none is installed.
    ConfigurationError
        If `mr` is no managed pool of ours.
    """
    if mr is None:
        installed = installed_devices()
        if not installed and is_off():
            return ()
        if not installed:
            raise AvailabilityError(
                "no managed pool is installed: call rmm_uvm.reinitialize first, or give mr="
            )
        return tuple(device.managed_mr for device in installed)
    for each in resources_down(mr):
        if isinstance(each, UvmResourceAdaptor):
            return (each,)
    if is_off():  # it is the resource that a call for a pool gave
        return ()
    raise ConfigurationError(
        f"mr={type(mr).__name__} is not a managed pool of rmm_uvm: give one that "
        "rmm_uvm.managed_pool or rmm_uvm.reinitialize made"
    )


def residency_statistics(
    mr: rmm.mr.DeviceMemoryResource | None = None, *, device: int | None = None
) -> ResidencyStatistics:
    """Return what was done to keep a budget, and where things stand now.

    Parameters
    ----------
    mr : rmm.mr.DeviceMemoryResource, optional
        A managed pool; by default the installed one.
    device : int, optional
        CUDA ordinal, where several are installed; by default the first of the last call of
        `rmm_uvm.reinitialize`.

    Returns
    -------
    rmm_uvm.residency.ResidencyStatistics
        A copy. Prints as text.

    Raises
    ------
    AvailabilityError
        If no pool is installed, there is none on that device, or it has no budget.
    ConfigurationError
        If `mr` is no managed pool of ours.

    Warns
    -----
    BudgetWarning
        If a request was larger than the budget; once, and not where a monitor said so.

    Notes
    -----
    Thread-safe.

    Examples
    --------
    >>> import rmm_uvm
    >>> mr = rmm_uvm.managed_pool(driver="simulated:64MiB", device_budget="32MiB")
    >>> pointer = mr.allocate(4 << 20)
    >>> rmm_uvm.residency_statistics(mr).resident_bytes
    4194304
    >>> mr.deallocate(pointer, 4 << 20)
    """
    pools = managed_pools(mr)
    if not pools:
        return ResidencyStatistics.of_none()
    if device is not None:
        pools = tuple(pool for pool in pools if pool.driver.info.device_id == device)
        if not pools:
            raise AvailabilityError(
                f"no managed pool is installed on device {device}: call "
                f"rmm_uvm.reinitialize(devices=[{device}]) first"
            )
    pool = pools[0].managed_mr.residency
    counts = pool.residency()
    if counts is None:
        raise AvailabilityError(
            "this pool has no budget, and the kernel driver decides what stays: give device_budget "
            "to rmm_uvm.reinitialize or rmm_uvm.managed_pool"
        )
    warn_of_budget(pool)
    return ResidencyStatistics(**counts)
