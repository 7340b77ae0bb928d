# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The footprint over time, from allocations and frees alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.trace.events import EventKind

__all__ = ["footprint_samples"]

Rows = np.ndarray[Any, np.dtype[np.void]]
_LARGEST = 1 << 50  # bytes of one allocation that are believed: sums stay inside 64 bits


def footprint_samples(events: Rows, most: int = 10_000) -> Rows:
    """Return samples in which only the footprint is known.

    Parameters
    ----------
    events : ndarray, dtype `EVENT_DTYPE`
        In order of time.
    most : int
        Samples of one device at most, > 0. Where there are more events, each sample stands for
        several and has the most of them, so that no peak is lost.

    Returns
    -------
    ndarray, dtype `rmm_uvm.recording.sample.SAMPLE_DTYPE`
        In order of time.
    """
    parts = [_of_device(events, number, most) for number in np.unique(events["device_id"])]
    if not parts:
        return np.empty(0, SAMPLE_DTYPE)
    samples = np.concatenate(parts)
    return samples[samples["time_ns"].argsort(kind="stable")]


def _of_device(events: Rows, number: int, most: int) -> Rows:
    kinds = events["kind"]
    allocated = kinds == EventKind.ALLOCATE
    # A free of what was allocated before the trace takes nothing away.
    freed = (kinds == EventKind.FREE) & (events["id"] >= 0)
    chosen = events[(events["device_id"] == number) & (allocated | freed)]
    if len(chosen) == 0:
        return np.empty(0, SAMPLE_DTYPE)
    changes = np.minimum(chosen["bytes"], _LARGEST).astype(np.int64)
    changes[chosen["kind"] == EventKind.FREE] *= -1
    levels = np.maximum(np.cumsum(changes), 0)
    begins = np.linspace(0, len(chosen), min(most, len(chosen)), endpoint=False).astype(np.int64)
    samples = np.zeros(len(begins), SAMPLE_DTYPE)
    samples["footprint_bytes"] = np.maximum.reduceat(levels, begins)
    samples["time_ns"] = chosen["time_ns"][np.append(begins[1:], len(chosen)) - 1]
    samples["footprint_bytes"][-1] = levels[-1]
    samples["device_id"] = number
    samples["known"] = Known.FOOTPRINT
    return samples
