# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of allocations as stages, for workloads in which no stages were marked."""

from __future__ import annotations

import dataclasses

import numpy as np

from rmm_uvm.planner.workload.events import Workload

__all__ = ["by_size_class", "has_stages"]

_BOUNDS = (1 << 20, 16 << 20, 128 << 20, 1 << 30)
_NAMES = (
    "under 1 MiB",
    "1 MiB to 16 MiB",
    "16 MiB to 128 MiB",
    "128 MiB to 1 GiB",
    "1 GiB and more",
)


def has_stages(workload: Workload) -> bool:
    """Return whether anything ran in a stage."""
    return len(workload.stages) > 1 and bool(workload.events["stage"].any())


def by_size_class(workload: Workload) -> Workload:
    """Return the workload with size classes in the place of stages.

    What a replay then tells of a stage is what allocating, touching and freeing ranges of that
    size brought about.
    """
    events = workload.events.copy()
    events["stage"] = np.searchsorted(np.array(_BOUNDS, "u8"), events["nbytes"], side="right")
    return dataclasses.replace(workload, events=events, stages=_NAMES)
