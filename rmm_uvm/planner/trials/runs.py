# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Replays of one workload, each done once: what they see, and the times that follow.

The only part of the planner with a side effect: it calls the replayer, which takes its time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.planner.outcome import Variant
from rmm_uvm.planner.request import DEFAULTS, Options, Policy
from rmm_uvm.planner.trials.capacities import fitting_bytes
from rmm_uvm.planner.workload.events import BY_THE_CPU, TOUCH, Progress, Workload
from rmm_uvm.planner.workload.result import ReplayResult
from rmm_uvm.support.settings import PrefetchMode
from rmm_uvm.support.units import format_bytes, whole_blocks

__all__ = [
    "PlanProgress",
    "Replay",
    "Runs",
    "ShowProgress",
    "recorded_on_simulated",
    "touch_seconds",
    "touched_bytes",
]


class PlanProgress(NamedTuple):
    """How far a plan is.

    Attributes
    ----------
    what : str
        What runs now.
    done, total : int
        Events of the replay or trial that runs; of a file that is read, bytes. How many replays
        and trials there will be is not known before.
    replays : int
        Replays begun so far.
    trials : int
        Trials with the pool begun so far, where one runs; 0 in a replay.
    """

    what: str
    done: int
    total: int
    replays: int
    trials: int = 0


ShowProgress: TypeAlias = Callable[[PlanProgress], None]


class Replay(Protocol):
    """Replays a workload: `rmm_uvm.planner.trials.replaying.replay`, or a test's function."""

    def __call__(
        self,
        workload: Workload,
        machine: Any,
        *,
        device_bytes: int,
        prefetch: PrefetchMode,
        driver: Any,
        policy: Policy,
        host_bytes: int | None,
        progress: Progress | None,
    ) -> ReplayResult:
        """Return what was seen on a card of `device_bytes`."""


class Runs:
    """Replays of one workload on one machine; none is done twice.

    Parameters
    ----------
    workload : Workload
        What to replay.
    machine : Machine
        On which.
    replay : Replay
        What replays it.
    driver_settings : callable
        Makes the driver's settings of a threshold, percent.
    host_bytes : int or None
        Host memory of one process; None for as much as it wants.
    fitting_seconds : float or None
        Time of the workload with room for everything; None to find it from the recording.
    progress : callable, optional
        Told how far it is.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(
        self,
        workload: Workload,
        machine: Any,
        replay: Replay,
        driver_settings: Callable[[int], Any],
        host_bytes: int | None = None,
        fitting_seconds: float | None = None,
        progress: ShowProgress | None = None,
    ) -> None:
        self.workload = workload
        self._machine = machine
        self._replay = replay
        self._driver_settings = driver_settings
        self._host_bytes = host_bytes
        self._progress = progress
        self._done: dict[tuple[int, Options], ReplayResult] = {}
        self.count = 0
        """Replays begun."""
        slab_bytes = sum(slab.nbytes for slab in workload.slabs)
        self.fitting_device_bytes = fitting_bytes(max(slab_bytes, workload.peak_live_bytes))
        # Room in host memory as well: what this is compared with must not run out.
        self.fitting = self._replayed(self.fitting_device_bytes, DEFAULTS, None)
        if host_bytes is None:
            self._done[self.fitting_device_bytes, DEFAULTS] = self.fitting
        self.given_seconds = fitting_seconds
        self.beside_seconds = self._find_beside_seconds()
        """Time that the workload takes beside the kernel driver's work."""

    @property
    def curve(self) -> tuple[tuple[int, float | None], ...]:
        """Capacities, bytes, and slowdowns of all replays with the defaults, in ascending order."""
        return tuple((size, self.variant(size).slowdown) for size in self.capacities(DEFAULTS))

    def capacities(self, options: Options) -> tuple[int, ...]:
        """Return the capacities, bytes, that were replayed with some options, ascending."""
        return tuple(size for size, one in sorted(self._done) if one == options)

    @property
    def fitting_seconds(self) -> float:
        """Predicted time with room for everything."""
        return self.beside_seconds + self.fitting.migration_seconds

    def variant(self, device_bytes: int, options: Options = DEFAULTS) -> Variant:
        """Return how the workload would run with so much managed capacity, bytes."""
        result = self._result(min(device_bytes, self.fitting_device_bytes), options)
        result = dataclasses.replace(result, device_bytes=device_bytes)
        if result.out_of_memory is not None:
            return Variant(options, result, None, None)
        seconds = self.beside_seconds + result.migration_seconds
        fitting_seconds = self.fitting_seconds
        slowdown = seconds / fitting_seconds if fitting_seconds > 0 else 1.0
        return Variant(options, result, seconds, slowdown)

    def _find_beside_seconds(self) -> float:
        """Return the time that the workload takes beside the kernel driver's work."""
        if self.given_seconds is not None:
            return max(self.given_seconds - self.fitting.migration_seconds, 0.0)
        if self.workload.kernels:  # nothing but kernels takes time there
            return self.workload.seconds
        if self.recorded_on_simulated_device:
            # Its time is that of Python on a host. Kernels take as long as reading and writing
            # what they touch, at least.
            return touched_bytes(self.workload) / float(self._machine.memory_bytes_per_ns) / 1e9
        then = self.fitting
        if self.recorded_oversubscribed:  # it migrated while it was recorded
            there = self._result(whole_blocks(self.workload.device_bytes or 0), DEFAULTS)
            then = there if there.out_of_memory is None else self.fitting
        return max(self.workload.seconds - then.migration_seconds, 0.0)

    @property
    def recorded_on_simulated_device(self) -> bool:
        """Whether the recording itself comes from a simulated device."""
        return recorded_on_simulated(self.workload)

    @property
    def recorded_oversubscribed(self) -> bool:
        """Whether the workload had too little device memory while it was recorded."""
        device_bytes = self.workload.device_bytes
        return device_bytes is not None and self.workload.peak_live_bytes > device_bytes

    def _result(self, device_bytes: int, options: Options) -> ReplayResult:
        key = (device_bytes, options)
        if key not in self._done:
            self._done[key] = self._replayed(device_bytes, options, self._host_bytes)
        return self._done[key]

    def _replayed(
        self, device_bytes: int, options: Options, host_bytes: int | None
    ) -> ReplayResult:
        self.count += 1
        return self._replay(
            self.workload,
            self._machine,
            device_bytes=device_bytes,
            prefetch=options.prefetch,
            driver=self._driver_settings(options.driver_prefetch_threshold),
            policy=options.policy,
            host_bytes=host_bytes,
            progress=self._shown(device_bytes, options),
        )

    def _shown(self, device_bytes: int, options: Options) -> Progress | None:
        progress = self._progress
        if progress is None:
            return None
        what = f"{format_bytes(device_bytes)}, prefetch {options.prefetch}"
        number = self.count
        return lambda done, total: progress(PlanProgress(what, done, total, number))


def recorded_on_simulated(workload: Workload) -> bool:
    """Return whether a recording comes from a simulated device: its times are Python's."""
    return workload.device_name.lower().startswith("simulated")


def touch_seconds(workload: Workload, seconds: float) -> NDArray[np.float64]:
    """Return how long kernels compute after each event, if all of them do for so many seconds.

    After a touch, as long as was recorded to the next event; by bytes where the recording has no
    such times. Nothing after other events, nor after touches by the CPU.
    """
    events = workload.events
    weights = np.zeros(len(events))
    touched = _by_kernels(workload)
    if not recorded_on_simulated(workload):
        weights[:-1] = np.diff(events["time_ns"].astype(np.float64)).clip(0)
        weights[~touched] = 0
    if not weights.any():
        weights[touched] = events["nbytes"][touched]
    whole = weights.sum()
    return weights * (seconds / whole) if whole > 0 else weights


def _by_kernels(workload: Workload) -> NDArray[np.bool_]:
    events = workload.events
    found: NDArray[np.bool_] = (events["kind"] == TOUCH) & (events["flags"] & BY_THE_CPU == 0)
    return found


def touched_bytes(workload: Workload) -> int:
    """Return how much kernels touch, each touch counted."""
    return int(workload.events["nbytes"][_by_kernels(workload)].sum())
