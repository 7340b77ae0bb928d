# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels of a workload on a simulated card, one after the other; see `replay_paced`."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from rmm_uvm.planner.trials.replaying import NoRoomError
from rmm_uvm.planner.trials.shadow_device import ShadowDevice
from rmm_uvm.planner.trials.uses import Use
from rmm_uvm.planner.workload.events import ALLOCATE, BY_THE_CPU, FREE, TOUCH, WRITES, Workload
from rmm_uvm.planner.workload.live_ranges import LiveAllocations
from rmm_uvm.planner.workload.result import PacedFigures, PacedReplay
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import format_bytes

__all__ = ["PacedTrial"]


class PacedTrial:
    """A workload's events and kernels, in their order, on a card.

    Parameters
    ----------
    workload : Workload
        With kernels.
    card : ShadowDevice
        A fresh one.
    host_bytes : int, optional
        The host memory that it has, for errors.
    """

    def __init__(
        self, workload: Workload, card: ShadowDevice, host_bytes: int | None = None
    ) -> None:
        self._workload = workload
        self._card = card
        self._host_bytes = host_bytes
        self._stage = 0
        self._before = card.statistics()
        self._figures = [PacedFigures() for _ in workload.stages]
        self._waited: defaultdict[str, float] = defaultdict(float)
        self._there: dict[int, int] = {}  # addresses now, by recorded ones
        self._ranges = LiveAllocations()  # as recorded
        self._fresh: set[int] = set()  # allocated since the last kernel
        self._end_ns = round(workload.seconds * 1e9)
        self._next = 0  # kernel
        self._uses: list[Use] = []  # of it

    def result(self) -> PacedReplay:
        """Run everything, and return what it took.

        Raises
        ------
        NoRoomError
            If what is used has no room on the card and behind it.
        """
        events, kernels = self._workload.events, self._workload.kernels
        names = ("kind", "flags", "stage", "address", "nbytes", "time_ns")
        columns = (events[name].tolist() for name in names)
        for kind, flags, stage, address, nbytes, time_ns in zip(*columns, strict=True):
            self._launch_before(time_ns)
            if kind == TOUCH and not flags & BY_THE_CPU:
                if self._next < len(kernels) and kernels[self._next].time_ns == time_ns:
                    self._use(address, nbytes, writes=bool(flags & WRITES))
                continue
            if self._uses:
                self._launch()
            self._enter(stage)
            if kind == ALLOCATE:
                self._there[address] = self._card.allocate(nbytes)
                self._ranges.add(address, nbytes)
                self._fresh.add(address)
            elif kind == FREE:
                self._card.free(self._there.pop(address))
                self._ranges.remove(address)
                self._fresh.discard(address)
            else:
                for begin, first, size in self._parts(address, nbytes):
                    now = self._there[begin] + first
                    with self._in_room("what the CPU uses"):
                        self._card.cpu_touch(now, size, write=bool(flags & WRITES))
        self._launch_before(self._end_ns + 1)
        self._count()
        stages = dict(zip(self._workload.stages, self._figures, strict=True))
        outside = stages.pop(self._workload.stages[0])
        waited = sorted(self._waited.items(), key=lambda one: -one[1])
        return PacedReplay(
            **dataclasses.asdict(sum(stages.values(), outside)),
            peak_bytes=self._workload.peak_live_bytes,
            stages=stages,
            waited_by_kernel=dict(waited),
        )

    def _parts(self, address: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """Yield what a touch is of: recorded address, first byte and bytes of each allocation."""
        for begin, size in self._ranges.overlapping(address, nbytes):
            first = max(address - begin, 0)
            yield begin, first, min(address + nbytes - begin, size) - first

    def _use(self, address: int, nbytes: int, *, writes: bool) -> None:
        for begin, first, size in self._parts(address, nbytes):
            fresh = begin in self._fresh
            self._uses.append(Use(self._there[begin], first, size, writes=writes, fresh=fresh))

    def _launch_before(self, time_ns: int) -> None:
        kernels = self._workload.kernels
        while self._next < len(kernels) and kernels[self._next].time_ns < time_ns:
            self._launch()

    def _launch(self) -> None:
        """Run the next kernel, until the one after it begins."""
        kernels = self._workload.kernels
        begin_ns, stage, name = kernels[self._next]
        self._next += 1
        end_ns = kernels[self._next].time_ns if self._next < len(kernels) else self._end_ns
        self._enter(stage)
        before = self._card.statistics()
        compute_seconds = max(end_ns - begin_ns, 0) / 1e9
        with self._in_room(f"kernel {self._next}, {shown(name)},"):
            self._card.kernel(self._uses, compute_seconds)
        waited = self._card.statistics().seconds - before.seconds - compute_seconds
        self._waited[name] += round(waited, 9)  # the model's are nanoseconds; the rest is rounding
        self._uses.clear()
        self._fresh.clear()

    @contextmanager
    def _in_room(self, what: str) -> Iterator[None]:
        """Say what found no room; without a limit of the host it is this process that has none."""
        try:
            yield
        except MemoryError as error:
            if self._host_bytes is None:
                raise
            raise NoRoomError(
                f"{self._workload.source}: {what} needs more than the card and "
                f"{format_bytes(self._host_bytes)} of host memory hold; give more host_memory, or "
                "a machine with a larger third tier"
            ) from error

    def _enter(self, stage: int) -> None:
        if stage != self._stage:
            self._count()
            self._stage = stage

    def _count(self) -> None:
        """Count what was done until now for the stage that it was done in."""
        now = self._card.statistics()
        since = now.since(self._before)
        self._figures[self._stage] += PacedFigures(
            kernels=since.kernels,
            seconds=since.seconds,
            compute_seconds=since.compute_seconds,
            to_device_bytes=since.to_device_bytes,
            to_host_bytes=since.to_host_bytes,
            dropped_bytes=since.dropped_bytes,
            gpu_faults=since.gpu_faults,
            to_third_tier_bytes=since.to_third_tier_bytes,
            from_third_tier_bytes=since.from_third_tier_bytes,
        )
        self._before = now
