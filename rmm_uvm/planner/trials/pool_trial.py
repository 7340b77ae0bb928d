# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A workload through RMM's real pool on a simulated card: what pool sizes make of it.

A replay keeps the addresses of the recording, and so says nothing of other pool sizes. Here the
pool gives addresses anew, and everything else is as in a program: the chain of
`rmm_uvm.managed_pool`. Slower than a replay, so only for recordings that are not too long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rmm

from rmm_uvm._lib.account import ManagedAccount
from rmm_uvm._lib.current_device import current_device
from rmm_uvm._lib.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.planner.advice.announced import Moved
from rmm_uvm.planner.advice.line_hints import LineHint
from rmm_uvm.planner.outcome import AnnouncedWay
from rmm_uvm.planner.request import DEFAULTS, Options
from rmm_uvm.planner.trials.replaying import NoRoomError, replaying_here
from rmm_uvm.planner.trials.runs import PlanProgress, ShowProgress, touch_seconds
from rmm_uvm.planner.workload.events import (
    ALLOCATE,
    BY_THE_CPU,
    FREE,
    TOUCH,
    WRITES,
    Progress,
    Workload,
)
from rmm_uvm.planner.workload.live_ranges import LiveAllocations
from rmm_uvm.residency.budget import Budget
from rmm_uvm.simulator.card import simulated_card
from rmm_uvm.support.settings import PrefetchMode
from rmm_uvm.support.units import format_bytes

__all__ = ["MOST_ANNOUNCED_EVENTS", "MOST_EVENTS", "PoolSettings", "PoolTrial", "pool_seconds"]

MOST_EVENTS = 200_000
"""Events of a recording that is tried in every way; about a second each time."""

MOST_ANNOUNCED_EVENTS = 1_000_000
"""Events of a recording that announces its uses; with more than the other only the default modes
and policy are tried."""

_ALIGNED = 256  # to which a pool rounds sizes
_CHUNK_EVENTS = 8192  # between two looks at the progress bar


class PoolSettings(NamedTuple):
    """Sizes of a pool, bytes, its prefetch mode, its budget, and whether uses are announced.

    With `paced` kernels compute for `compute_seconds` in all, on a device that has them take no
    time of their own, and the program may give one more hint.
    """

    initial_bytes: int
    maximum_bytes: int
    prefetch: PrefetchMode
    budget: Budget | None = None
    announced: bool = False
    paced: bool = False
    compute_seconds: float = 0.0
    hint: LineHint | None = None


def pool_seconds(
    workload: Workload,
    device: SimulatedDevice,
    settings: PoolSettings,
    progress: Progress | None = None,
) -> float | None:
    """Return the modelled time but for computing; None if the workload runs out of memory.

    Parameters
    ----------
    workload : Workload
        Its events; its addresses only say which allocation is meant.
    device : SimulatedDevice
        A fresh one.
    settings : PoolSettings
        Of the pool.
    progress : callable, optional
        Called with the events that are done and all events, every few thousand events.

    Notes
    -----
    Counts neither against ``RMM_UVM_MANAGED_LIMIT`` nor against this machine's memory: behind
    simulated addresses there is none.

    Raises
    ------
    NoRoomError
        If this process has no addresses for the pool: that is no answer of the card.
    """
    # RMM logs every refusal on the error stream; here they are an answer.
    level = rmm.get_logging_level()
    rmm.set_logging_level(rmm.level_enum.off)
    try:
        account = ManagedAccount()
        with current_device(device), replaying_here(workload):  # the card refuses no slab
            upstream = ManagedMemoryResource(
                device,
                prefetch=settings.prefetch,
                account=account,
                budget=settings.budget,
            )
            pool = rmm.mr.PoolMemoryResource(
                upstream, settings.initial_bytes, settings.maximum_bytes
            )
        mr = UvmResourceAdaptor(pool, prefetch=settings.prefetch)
        pace = None
        if settings.paced:
            pace = _Pace(
                mr.managed_mr.residency,
                touch_seconds(workload, settings.compute_seconds).tolist(),
                announces=settings.announced,
                budget=settings.budget is not None,
                hint=settings.hint,
            )

        def allocate(nbytes: int) -> int:
            try:
                return int(mr.allocate(nbytes))
            except MemoryError:
                # The simulated card refuses no slab: this process has no addresses for one.
                if account.used_bytes + -(-nbytes // _ALIGNED) * _ALIGNED > settings.maximum_bytes:
                    raise
                with replaying_here(workload):
                    raise

        _run(workload, device, mr, allocate, progress, pace)
    except NoRoomError:  # of this process, and not of the card
        raise
    except MemoryError:
        return None
    finally:
        rmm.set_logging_level(level)
    seconds = float(device.statistics()["modelled_ns"]) / 1e9
    return seconds if pace is None else max(seconds - sum(pace.compute_seconds), 0.0)


class _Pace(NamedTuple):
    """For how long kernels compute after each event, and whom uses and hints may be told to."""

    residency: ManagedResidency
    compute_seconds: list[float]
    announces: bool
    budget: bool
    hint: LineHint | None


def _run(
    workload: Workload,
    device: SimulatedDevice,
    mr: Any,
    allocate: Callable[[int], int],
    progress: Progress | None,
    pace: _Pace | None,
) -> None:
    """Make the workload's allocations, touches and frees; free what is left.

    Where uses by kernels are announced, then all but the first right after an allocation: that says
    as much. With a pace, what a budget's thread has to do is handed to its streams, and goes on
    beside what the kernel computes.
    """
    events = workload.events
    columns = (events[name].tolist() for name in ("kind", "flags", "address", "nbytes"))
    live: dict[int, tuple[int, int]] = {}  # by recorded address: address and bytes now
    fresh: int | None = None
    ranges = LiveAllocations()  # as recorded: touches may be inside an allocation, or of several
    hint = None if pace is None else pace.hint
    hinted: set[int] = set()  # recorded addresses of what the hint is about
    used: int | None = None  # the one of them that was used last, and is to leave
    allocations = 0
    try:
        for number, (kind, flags, address, nbytes) in enumerate(zip(*columns, strict=True)):
            if progress is not None and number % _CHUNK_EVENTS == 0:
                progress(number, len(events))
            if pace is not None and used is not None and (kind, address) != (TOUCH, used):
                if (kind, address) != (FREE, used):
                    pace.residency.evict(*live[used])
                used = None
            if kind == ALLOCATE:
                allocations += 1
                if hint is not None and allocations in hint.allocations:
                    hinted.add(address)
                live[address] = (allocate(nbytes), nbytes)
                ranges.add(address, nbytes)
                fresh = address
                continue
            if kind == FREE:
                mr.deallocate(*live.pop(address))
                ranges.remove(address)
                if address in hinted:
                    hinted.remove(address)
                    if hint is not None and hint.hint == "trim" and not hinted:
                        mr.trim()
                continue
            for begin, size in ranges.overlapping(address, nbytes):
                now, first = live[begin][0], max(address - begin, 0)
                touched = min(address + nbytes - begin, size) - first
                told = hint.hint if hint is not None and begin in hinted else ""
                if pace is not None and not flags & BY_THE_CPU:
                    if (pace.announces or told == "touch") and fresh != begin:
                        pace.residency.touch(now + first, touched, now)
                    fresh = None
                    used = begin if told == "evict" else None
                touch = device.cpu_touch if flags & BY_THE_CPU else device.touch
                touch(now + first, touched, bool(flags & WRITES))
            if pace is not None and not flags & BY_THE_CPU:
                if pace.budget:
                    pace.residency.run_pending()  # what a thread would do meanwhile
                device.compute(pace.compute_seconds[number])
    finally:
        for now, size in live.values():
            mr.deallocate(now, size)


class PoolTrial:
    """Tries pool settings for one workload, each once; see `rmm_uvm.planner.advice.settling.Trial`.

    Parameters
    ----------
    workload : Workload
        What to run.
    machine : Machine
        Of the simulated card.
    driver_settings : callable
        Makes the driver's settings of a threshold, percent.
    progress : callable, optional
        Told how far it is.
    """

    def __init__(
        self,
        workload: Workload,
        machine: Any,
        driver_settings: Callable[[int], Any],
        progress: ShowProgress | None = None,
    ) -> None:
        self._progress = progress
        self._count = 0
        self._workload = workload
        self._machine = machine
        self._driver_settings = driver_settings

    @property
    def able(self) -> bool:
        """Whether the workload is short enough."""
        return len(self._workload.events) <= MOST_EVENTS

    @property
    def able_announced(self) -> bool:
        """Whether it is short enough to be tried with uses announced, at least by default."""
        return len(self._workload.events) <= MOST_ANNOUNCED_EVENTS

    def __call__(
        self, capacity_bytes: int, host_bytes: int | None, sizes: tuple[int, int], options: Options
    ) -> float | None:
        """Return the modelled seconds of driver work; None for running out of memory."""
        device = simulated_card(
            self._machine,
            self._driver_settings(options.driver_prefetch_threshold),
            capacity_bytes,
            host_bytes,
        )
        settings = PoolSettings(*sizes, options.prefetch)
        return pool_seconds(self._workload, device, settings, self._shown(capacity_bytes, settings))

    def announced(
        self,
        capacity_bytes: int,
        host_bytes: int | None,
        way: AnnouncedWay,
        compute_seconds: float,
        *,
        announces: bool = True,
        hint: LineHint | None = None,
    ) -> Moved | None:
        """Return what a way takes, with one more hint if any; None for running out of memory.

        Without `announces` what is away comes by page faults, in an order of time as with it.
        """
        budget = None
        if way.eviction is not None:
            # No thread: what it does would depend on this machine's. Its work is on streams.
            budget = Budget(way.budget_bytes or 0, policy=way.eviction, background=False)
        settings = PoolSettings(
            *(way.initial_bytes, way.maximum_bytes, way.prefetch, budget),
            announced=announces,
            paced=True,
            compute_seconds=compute_seconds,
            hint=hint,
        )
        device = simulated_card(
            self._machine,
            self._driver_settings(DEFAULTS.driver_prefetch_threshold),
            capacity_bytes,
            host_bytes,
            kernels_take_time=False,
            beside=True,
        )
        shown = self._shown(capacity_bytes, settings)
        seconds = pool_seconds(self._workload, device, settings, shown)
        if seconds is None:
            return None
        counts = device.statistics()
        return Moved(seconds, counts["host_to_device_bytes"], counts["device_to_host_bytes"])

    def _shown(self, capacity_bytes: int, settings: PoolSettings) -> Progress | None:
        progress = self._progress
        if progress is None:
            return None
        self._count += 1
        number = self._count
        what = f"{format_bytes(capacity_bytes)}, prefetch {settings.prefetch}"
        return lambda done, total: progress(PlanProgress(what, done, total, 0, number))
