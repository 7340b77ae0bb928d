# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The working set of a workload: the most distinct bytes that it touches in one window of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.planner.workload.events import BY_THE_CPU, TOUCH, Workload

__all__ = ["WorkingSet", "working_set"]

_WINDOWS = 20
_LONGEST_SECONDS = 10.0
# A window's number and a place in the slabs, which hold far less than all addresses, share 64 bits.
_ADDRESS_BITS = 48
_MOST_WINDOWS = 1 << 15


class WorkingSet(NamedTuple):
    """The most bytes touched in a window, and how long the windows are."""

    nbytes: int
    window_seconds: float


def working_set(workload: Workload, window_seconds: float | None = None) -> WorkingSet:
    """Return the working set of a workload, touched by the GPU.

    Parameters
    ----------
    workload : Workload
        What was recorded, with the touches that were assumed where none were.
    window_seconds : float, optional
        Length of the windows, which lie side by side, > 0; by default a twentieth of the
        recording, 10 s at most. Never so short that there are more than 32768 of them.

    Returns
    -------
    WorkingSet
        Bytes that are touched several times in a window count once.
    """
    if window_seconds is None:
        window_seconds = min(workload.seconds / _WINDOWS, _LONGEST_SECONDS)
    window_seconds = max(window_seconds, workload.seconds / _MOST_WINDOWS, 1e-9)
    events = workload.events
    touched = (events["kind"] == TOUCH) & (events["flags"] & BY_THE_CPU == 0)
    events = events[touched & (events["nbytes"] > 0)]
    if not len(events):
        return WorkingSet(0, window_seconds)
    window = (events["time_ns"] / (window_seconds * 1e9)).astype(np.uint64)
    window = np.minimum(window, np.uint64(_MOST_WINDOWS)) << np.uint64(_ADDRESS_BITS)
    begin = window + _side_by_side(workload, events["address"])
    order = np.argsort(begin, kind="stable")
    begin, end, window = begin[order], (begin + events["nbytes"])[order], window[order]
    # Ranges of one window, side by side on one line: what reaches past all before it is new.
    reached = np.maximum.accumulate(end)
    before = np.concatenate(([np.uint64(0)], reached[:-1]))
    new = end - np.minimum(np.maximum(begin, before), end)
    starts = np.flatnonzero(np.concatenate(([True], window[1:] != window[:-1])))
    return WorkingSet(int(np.add.reduceat(new, starts).max()), window_seconds)


def _side_by_side(workload: Workload, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return addresses as if the slabs lay one after the other from 0: they may be far apart."""
    begins = np.array([slab.address for slab in workload.slabs], np.uint64)
    ends = np.cumsum(np.array([slab.nbytes for slab in workload.slabs], np.uint64))
    slab = np.searchsorted(begins, addresses, side="right") - 1
    before = np.concatenate((np.zeros(1, np.uint64), ends[:-1]))
    moved: NDArray[np.uint64] = addresses - begins[slab] + before[slab]
    return moved
