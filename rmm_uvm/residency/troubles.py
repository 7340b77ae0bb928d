# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a budget, in words: what is the case, and the one thing to do about it.

The monitor makes findings of it; without one, the next look at the pool warns.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

from rmm_uvm._lib.residency import Prefetcher
from rmm_uvm.errors import BudgetWarning
from rmm_uvm.residency.statistics import SCORE_WINDOW, ResidencyStatistics
from rmm_uvm.units import format_bytes

__all__ = ["Trouble", "prediction_off", "too_large", "warn_of_budget"]


class Trouble(NamedTuple):
    """One sentence each, without a full stop."""

    message: str
    remedy: str


def too_large(counts: ResidencyStatistics) -> Trouble:
    """Return the words for requests that no budget of this size can hold."""
    if counts.too_large == 1:
        asked = f"a request of {format_bytes(counts.too_large_bytes)} is"
    else:
        asked = f"{counts.too_large} requests of up to {format_bytes(counts.too_large_bytes)} are"
    return Trouble(
        f"{asked} larger than the budget of {format_bytes(counts.budget_bytes)}, and left to page "
        "faults beside it",
        f"give a device_budget of more than {format_bytes(counts.too_large_bytes)}, or work on "
        "less data at a time",
    )


def prediction_off(counts: ResidencyStatistics) -> Trouble:
    """Return the words for a predictor that stopped being believed."""
    name = counts.policy or "prediction"
    right = "" if counts.hit_rate is None else f" ({counts.hit_rate * 100:.0f} % of the last "
    score = f"{right}{min(counts.predictions, SCORE_WINDOW)} uses were foreseen)" if right else ""
    return Trouble(
        f'eviction "{name}" foresees too little{score}: it turned itself off, and "lru" decides',
        'announce uses with rmm_uvm.touch, or give eviction="lru" if the program never repeats '
        "itself",
    )


def warn_of_budget(pool: Prefetcher, *, stacklevel: int) -> None:
    """Warn of requests that are larger than a pool's budget, unless somebody was told.

    Parameters
    ----------
    pool : Prefetcher
        What keeps the budget; nothing without one.
    stacklevel : int
        As in `warnings.warn`, from here.

    Warns
    -----
    BudgetWarning
        Once for each pool.
    """
    found = pool.residency()
    if found is None or not found["too_large"] or pool.too_large_told:
        return
    pool.too_large_told = True
    trouble = too_large(ResidencyStatistics(**found))
    device_id = pool.driver.info.device_id
    warnings.warn(
        f"device {device_id}: {trouble.message}; {trouble.remedy}",
        BudgetWarning,
        stacklevel=stacklevel,
    )
