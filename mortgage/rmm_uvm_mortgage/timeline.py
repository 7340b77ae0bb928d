# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Levels of device memory over the course of a run, with the stages marked.

On a simulated device a sample is taken at every allocation and every access of a kernel, so the
horizontal axis is the order of operations and not time. On a GPU a thread samples in real time.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmm_uvm.drivers import SimulatedDevice
    from rmm_uvm_mortgage.shadow.stages import FootprintSource

_MOST_SAMPLES = 4000


@dataclass(frozen=True, slots=True)
class Sample:
    """Levels at one point of a run.

    Parameters
    ----------
    position : float
        Number of the operation on a simulated device, seconds since the start on a GPU.
    footprint_bytes : int
        Live bytes that the pipeline holds in RMM's resource.
    resident_bytes : int
        Device memory behind managed pages; on a GPU, which does not tell, all memory in use.
    cuda_bytes : int
        cudaMalloc memory outside managed memory: a cudaMalloc pool, XGBoost. 0 on a GPU.
    """

    position: float
    footprint_bytes: int
    resident_bytes: int
    cuda_bytes: int


@dataclass(frozen=True, slots=True)
class StageSpan:
    """The begin and the end of a stage on the axis of positions."""

    name: str
    begin: float
    end: float


@dataclass(slots=True)
class RunTimeline:
    """Samples of a run, and its stages; a `StageObserver`.

    Parameters
    ----------
    read_levels : callable
        Returns footprint, resident and cudaMalloc bytes now.
    clock : callable or None
        Returns seconds; None counts samples instead.
    """

    read_levels: Callable[[], tuple[int, int, int]]
    clock: Callable[[], float] | None = None
    samples: list[Sample] = field(default_factory=list)
    spans: list[StageSpan] = field(default_factory=list)
    _count: int = 0
    _begin: float = 0.0
    _start_seconds: float | None = None

    def sample(self) -> None:
        """Take a sample."""
        position = float(self._count)
        if self.clock is not None:
            now = self.clock()
            self._start_seconds = now if self._start_seconds is None else self._start_seconds
            position = now - self._start_seconds
        self._count += 1
        self.samples.append(Sample(position, *self.read_levels()))

    def begin(self, name: str) -> None:
        """Note where a stage begins."""
        del name
        self.sample()
        self._begin = self.samples[-1].position

    def end(self, name: str) -> None:
        """Note where a stage ends."""
        self.sample()
        self.spans.append(StageSpan(name, self._begin, self.samples[-1].position))

    def thinned(self, most: int = _MOST_SAMPLES) -> list[Sample]:
        """Return at most about `most` samples, shared out evenly among the stages.

        Of neighbours the one with the highest levels is kept, so peaks stay, and a stage of a few
        samples keeps them all.
        """
        positions = [sample.position for sample in self.samples]
        edges = [bisect_left(positions, span.begin) for span in self.spans]
        pieces = [self.samples[i:j] for i, j in pairwise([0, *edges, len(self.samples)])]
        share = max(most // len(pieces), 1)
        return [sample for piece in pieces for sample in _highest(piece, share)]

    def to_json(self) -> dict[str, Any]:
        """Return plain values; samples as rows of position and levels in bytes."""
        return {
            "position": "operations" if self.clock is None else "seconds",
            "columns": ["position", "footprint_bytes", "resident_bytes", "cuda_bytes"],
            "samples": [
                [s.position, s.footprint_bytes, s.resident_bytes, s.cuda_bytes]
                for s in self.thinned()
            ],
            "stages": [[s.name, s.begin, s.end] for s in self.spans],
        }


def _highest(samples: Sequence[Sample], most: int) -> list[Sample]:
    """Return the highest sample of each of at most `most` groups of neighbours."""
    step = max(-(-len(samples) // most), 1)
    groups = (samples[i : i + step] for i in range(0, len(samples), step))
    return [max(group, key=lambda s: s.footprint_bytes + s.cuda_bytes) for group in groups]


class SampledDevice:
    """Passes kernels' accesses on to a simulated device, and has every one of them sampled.

    Parameters
    ----------
    device : SimulatedDevice
        The device.
    changed : callable
        Takes the sample.
    migrates : bool
        Whether the memory touched is managed; cudaMalloc memory never moves.
    """

    def __init__(
        self, device: SimulatedDevice, changed: Callable[[], None], *, migrates: bool
    ) -> None:
        self._device = device
        self._changed = changed
        self._migrates = migrates

    def touch(self, address: int, nbytes: int, write: bool = False) -> None:  # noqa: FBT001, FBT002
        """Let a kernel access a range."""
        if self._migrates:
            self._device.touch(address, nbytes, write=write)
        self._changed()


class SampledResource:
    """Passes allocations on to a memory resource, and has a sample taken before every one.

    Parameters
    ----------
    resource : rmm.mr.DeviceMemoryResource
        Allocates and frees.
    changed : callable
        Takes the sample.
    """

    def __init__(self, resource: Any, changed: Callable[[], None]) -> None:
        self._resource = resource
        self._changed = changed

    def allocate(self, nbytes: int) -> int:
        """Allocate bytes; raises MemoryError as the resource does."""
        self._changed()
        return int(self._resource.allocate(nbytes))

    def deallocate(self, address: int, nbytes: int) -> None:
        """Free an allocation."""
        self._resource.deallocate(address, nbytes)


def simulated_levels(device: SimulatedDevice, footprint: FootprintSource) -> tuple[int, int, int]:
    """Return footprint, resident managed bytes and cudaMalloc bytes of a simulated device."""
    now = device.statistics()
    return footprint.now_bytes, now["resident_bytes"], now["device_bytes"]


class LevelSampler:
    """Samples a timeline from a thread of its own, as a context manager.

    Parameters
    ----------
    timeline : RunTimeline
        With a clock; its `read_levels` must be thread-safe.
    interval_seconds : float
        Pause between samples, > 0.
    """

    def __init__(self, timeline: RunTimeline, interval_seconds: float = 0.02) -> None:
        self._timeline = timeline
        self._interval_seconds = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rmm-uvm-sampler", daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(self._interval_seconds):
            self._timeline.sample()

    def __enter__(self) -> LevelSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def wall_clock() -> float:
    """Return seconds of a monotonic clock."""
    return time.perf_counter()
