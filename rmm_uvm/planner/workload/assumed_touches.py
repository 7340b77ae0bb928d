# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Touches for recordings that say nothing of them, as those of GPUs do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.planner.workload.events import ALLOCATE, FREE, TOUCH, WRITES

__all__ = ["with_touches"]


def with_touches(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Return allocations and frees with a touch each: twice as many events.

    Every allocation is written when it is made, and read just before it is freed; nothing is
    touched in between. Few programs do less than that, since memory is allocated to be filled and
    used; those that use it often move more.

    Examples
    --------
    >>> from rmm_uvm.planner.workload.events import REPLAY_DTYPE
    >>> rows = np.zeros(2, REPLAY_DTYPE)
    >>> rows["kind"] = [ALLOCATE, FREE]
    >>> with_touches(rows)["kind"].tolist()
    [0, 2, 2, 1]
    """
    touched = np.repeat(rows, 2)
    kinds, flags = touched["kind"], touched["flags"]
    # Views of every second event; where they are written to, the other one stays what it was.
    kinds[1::2][rows["kind"] == ALLOCATE] = TOUCH
    flags[1::2][rows["kind"] == ALLOCATE] = WRITES
    kinds[0::2][rows["kind"] == FREE] = TOUCH
    return touched
