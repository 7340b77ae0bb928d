# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Warnings about a budget: neighbours that take nothing, and requests larger than the budget.

Neighbours are told before the pool is made. Requests are told at the next look at the pool, where
no monitor runs.
"""

from __future__ import annotations

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.neighbors import open_neighbors, warn_of_lacking
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import BudgetWarning
from rmm_uvm.residency.budget import Budget
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.residency.troubles import too_large
from rmm_uvm.support.user_line import warn_user

__all__ = ["open_neighbors_or_warn", "warn_of_budget"]


def warn_of_budget(pool: ManagedResidency) -> None:
    """Warn of requests that are larger than a pool's budget, unless somebody was told.

    Parameters
    ----------
    pool : ManagedResidency
        What keeps the budget; nothing without one.

    Warns
    -----
    BudgetWarning
        Once for each pool.
    """
    found = pool.residency()
    if found is None or not found["too_large"] or pool.too_large_told:
        return
    pool.too_large_told = True
    info = pool.driver.info
    trouble = too_large(ResidencyStatistics(**found), info.total_bytes)
    warn_user(
        f"device {info.device_id}: {trouble.message}; {trouble.remedy}",
        BudgetWarning,
    )


def open_neighbors_or_warn(driver: UvmDriver, budget: Budget | None) -> None:
    """Open the devices whose idle memory a budget asks for, and warn of those that take nothing.

    Parameters
    ----------
    driver : UvmDriver
        Of the device that keeps the budget.
    budget : Budget or None
        What it asks for; nothing without one.

    Raises
    ------
    ConfigurationError
        If one that was named is the device itself or does not exist, or has less than its limit.

    Warns
    -----
    NeighborWarning
        If one that was named cannot be reached, or "auto" finds none.
    """
    if budget is None:
        return
    opened, refused = open_neighbors(driver, budget)
    ordinals = (device_id for device_id, _ in opened)
    warn_of_lacking(driver, budget, ordinals, refused)
