# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Results of one replay of a workload: times, bytes, stages, a timeline.

Does not cover: what follows from several of them (`rmm_uvm.planner.plan`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "OutOfMemory",
    "PacedFigures",
    "PacedReplay",
    "ReplayResult",
    "StageResult",
    "Timeline",
]


@dataclass(frozen=True)
class OutOfMemory:
    """The point where a replay ended because neither device nor host could hold the pages.

    Attributes
    ----------
    record : int
        Index of the event in the workload's array.
    stage : str
        Name of its stage.
    nbytes : int
        Bytes that it asked for.
    """

    record: int
    stage: str
    nbytes: int


@dataclass(frozen=True)
class StageResult:
    """Traffic of one stage, all its runs added up; sizes in bytes, time in seconds."""

    name: str
    migration_seconds: float
    to_device_bytes: int
    to_host_bytes: int
    evicted_bytes: int
    peak_live_bytes: int


@dataclass(frozen=True, eq=False)
class Timeline:
    """Memory over recorded time: arrays of one length, at most 1000 points.

    Attributes
    ----------
    seconds : numpy.ndarray
        Recorded time, ascending, from 0.
    live_bytes, resident_bytes : numpy.ndarray
        Allocated bytes, and those of managed memory in device memory, at that time.
    to_device_bytes, to_host_bytes : numpy.ndarray
        Bytes moved until then.
    """

    seconds: NDArray[np.float64]
    live_bytes: NDArray[np.uint64]
    resident_bytes: NDArray[np.uint64]
    to_device_bytes: NDArray[np.uint64]
    to_host_bytes: NDArray[np.uint64]

    __hash__ = None  # type: ignore[assignment] # arrays have none

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timeline):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
        )


@dataclass(frozen=True)
class ReplayResult:
    """One replay of a workload on a simulated card of `device_bytes`.

    Attributes
    ----------
    device_bytes : int
        Memory of the card, in bytes.
    recorded_seconds : float
        Wall time of the recording.
    migration_seconds : float
        Modelled time of all work of the kernel driver: faults, prefetches, copies, evictions.
    to_device_bytes, to_host_bytes : int
        Bytes moved, evictions included.
    evicted_bytes, evicted_blocks : int
        What was pushed out of device memory, in bytes and in blocks of 2 MiB.
    dropped_bytes : int
        What was pushed out and, being dead, not copied.
    gpu_faults : int
        Faults of the GPU, duplicates included.
    peak_resident_bytes, peak_live_bytes, host_page_bytes : int
        Most bytes in device memory, allocated, and of host memory, at a time.
    stages : tuple of StageResult
        In the order of the workload's stages.
    timeline : Timeline
        Memory over recorded time.
    out_of_memory : OutOfMemory or None
        Where the replay ended early, if it did.
    to_third_tier_bytes, from_third_tier_bytes : int
        Written to a third tier behind the host, and read from it.
    """

    device_bytes: int
    recorded_seconds: float
    migration_seconds: float
    to_device_bytes: int
    to_host_bytes: int
    evicted_bytes: int
    evicted_blocks: int
    dropped_bytes: int
    gpu_faults: int
    peak_resident_bytes: int
    peak_live_bytes: int
    host_page_bytes: int
    stages: tuple[StageResult, ...]
    timeline: Timeline
    out_of_memory: OutOfMemory | None = None
    to_third_tier_bytes: int = 0
    from_third_tier_bytes: int = 0


@dataclass(frozen=True)
class PacedFigures:
    """Times and bytes of kernels, of a whole trace or of a stage.

    Attributes
    ----------
    kernels : int
        How many there were.
    seconds : float
        Modelled time: computing, and waiting for memory.
    compute_seconds : float
        What the trace says that kernels take with their memory on the device: from the begin of
        each to that of the next, so that a pause between them counts too.
    to_device_bytes, to_host_bytes : int
        Moved each way.
    dropped_bytes : int
        Left the device without a copy, since nobody needed them.
    gpu_faults : int
        Page faults of kernels, those that are reported twice included.
    to_third_tier_bytes, from_third_tier_bytes : int
        Written to a third tier behind the host, and read from it.
    """

    kernels: int = 0
    seconds: float = 0.0
    compute_seconds: float = 0.0
    to_device_bytes: int = 0
    to_host_bytes: int = 0
    dropped_bytes: int = 0
    gpu_faults: int = 0
    to_third_tier_bytes: int = 0
    from_third_tier_bytes: int = 0

    @property
    def waited_seconds(self) -> float:
        """Time in which no kernel computed: for faults, evictions, and what came too late."""
        return self.seconds - self.compute_seconds

    @property
    def slowdown(self) -> float:
        """`seconds` over `compute_seconds`; 1 where nothing computes."""
        return self.seconds / self.compute_seconds if self.compute_seconds else 1.0

    def __add__(self, other: PacedFigures) -> PacedFigures:
        """Return the sums."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _FIGURES}
        return PacedFigures(**sums)


_FIGURES = tuple(one.name for one in fields(PacedFigures))


@dataclass(frozen=True)
class PacedReplay(PacedFigures):
    """Times and bytes of a whole trace, with its stages.

    Attributes
    ----------
    peak_bytes : int
        Most bytes allocated at a time.
    stages : mapping of str to PacedFigures
        By name, in order of their begin; what is outside of all is not in it. Stages in others do
        not count for these.
    waited_by_kernel : mapping of str to float
        Seconds that kernels of each name waited, longest first.
    """

    peak_bytes: int = 0
    stages: Mapping[str, PacedFigures] = field(default_factory=dict)
    waited_by_kernel: Mapping[str, float] = field(default_factory=dict)
