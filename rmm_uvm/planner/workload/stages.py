# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""In which stage each event happened: from the marks of a trace, or by sizes of allocations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.planner.workload.events import Launch, Workload
from rmm_uvm.trace.reader import RawMark

__all__ = ["OUTSIDE", "StageNumbers", "by_size_class", "has_stages"]

OUTSIDE = "outside any stage"
"""What stage 0 is called."""

_BEGIN, _END, _KERNEL = 0, 1, 3
_MOST_STAGES = (1 << 16) - 1  # numbers have 16 bits
_OTHERS = "other stages"
_MOST_THREADS = 256  # which have stages of their own; others count as libraries' threads


class StageNumbers:
    """Follows the stages of every thread.

    An event is in the innermost stage that runs on its thread. Threads without any belong to
    libraries: their events are in the stage that began last and still runs. At the microsecond in
    which a stage begins or ends, events count as after it.

    Attributes
    ----------
    names : list of str
        By number; one for all stages of that name.
    kernels : list of Launch
        Those that the marks tell of.
    """

    def __init__(self) -> None:
        self.names = [OUTSIDE]
        self.kernels: list[Launch] = []
        self._numbers = {OUTSIDE: 0}
        self._open: dict[int, list[tuple[int, int]]] = {}  # per thread: run and number
        self._running: dict[int, int] = {}  # number by run, in the order of their begin
        self._runs = 0

    def of(
        self,
        times_ns: NDArray[np.uint64],
        threads: NDArray[np.uint32],
        marks: Sequence[RawMark],
    ) -> NDArray[np.uint16]:
        """Return the stage of each event.

        Parameters
        ----------
        times_ns, threads : ndarray
            Of the events, after those of earlier calls.
        marks : sequence
            Begins and ends of the same time; annotations are passed over.
        """
        latest = [self._latest()]
        own = {thread: [self._innermost(thread)] for thread in self._open}
        latest_times, own_times = [0], {thread: [0] for thread in self._open}
        for time_ns, thread, kind, name, _ in marks:
            if kind == _BEGIN:
                self._begin(thread, name)
            elif kind == _KERNEL:
                stage = self._innermost(thread) or self._latest()
                self.kernels.append(Launch(time_ns, stage, name))
                continue
            elif not (kind == _END and self._end(thread)):
                continue
            latest_times.append(time_ns)
            latest.append(self._latest())
            if thread in own or len(own) < _MOST_THREADS:
                own.setdefault(thread, [0]).append(self._innermost(thread))
                own_times.setdefault(thread, [0]).append(time_ns)
        found = _at(latest_times, latest, times_ns)
        for thread, numbers in own.items():
            here = np.flatnonzero(threads == thread)
            mine = _at(own_times[thread], numbers, times_ns[here])
            found[here] = np.where(mine > 0, mine, found[here])
        return found

    def _begin(self, thread: int, name: str) -> None:
        number = self._numbers.get(name)
        if number is None:
            if len(self.names) >= _MOST_STAGES:
                name = _OTHERS
            number = self._numbers.setdefault(name, len(self.names))
            if number == len(self.names):
                self.names.append(name)
        self._runs += 1
        self._open.setdefault(thread, []).append((self._runs, number))
        self._running[self._runs] = number

    def _end(self, thread: int) -> bool:
        running = self._open.get(thread)
        if running is None:
            return False
        run, _ = running.pop()
        del self._running[run]
        if not running:
            del self._open[thread]
        return True

    def _latest(self) -> int:
        return next(reversed(self._running.values()), 0)

    def _innermost(self, thread: int) -> int:
        running = self._open.get(thread)
        return running[-1][1] if running else 0


def _at(
    begins: Sequence[int], numbers: Sequence[int], times_ns: NDArray[np.uint64]
) -> NDArray[np.uint16]:
    """Return the number that was set last at each time."""
    # A made-up trace can go back in time between two chunks; the last word counts then.
    ordered = np.maximum.accumulate(np.array(begins, np.uint64))
    where = np.searchsorted(ordered, times_ns, side="right") - 1
    return np.array(numbers, np.uint16)[where]


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
