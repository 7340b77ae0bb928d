# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A workload through RMM's real pool on a simulated card: what pool sizes make of it.

A replay keeps the addresses of the recording, and so says nothing of other pool sizes. Here the
pool gives addresses anew, and everything else is as in a program: the chain of
`rmm_uvm.managed_pool`. Slower than a replay, so only for recordings that are not too long.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from typing import Any, NamedTuple

import rmm

from rmm_uvm._current_device import current_device
from rmm_uvm._lib.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm._lib.residency import ManagedAccount
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.planner.events import ALLOCATE, BY_THE_CPU, FREE, WRITES, Progress, Workload
from rmm_uvm.planner.request import Options, Prefetch
from rmm_uvm.planner.runs import PlanProgress, ShowProgress
from rmm_uvm.planner.simulated_card import simulated_card
from rmm_uvm.units import format_bytes

__all__ = ["MOST_EVENTS", "PoolSettings", "PoolTrial", "pool_seconds"]

MOST_EVENTS = 200_000
"""Events of a recording that is tried; about half a second each time."""

_CHUNK_EVENTS = 8192  # between two looks at the progress bar


class PoolSettings(NamedTuple):
    """Sizes of a pool, bytes, and its prefetch mode."""

    initial_bytes: int
    maximum_bytes: int
    prefetch: Prefetch


def pool_seconds(
    workload: Workload,
    device: SimulatedDevice,
    settings: PoolSettings,
    progress: Progress | None = None,
) -> float | None:
    """Return the modelled time of all driver work; None if the workload runs out of memory.

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
    """
    # RMM logs every refusal on the error stream; here they are an answer.
    level = rmm.get_logging_level()
    rmm.set_logging_level(rmm.level_enum.off)
    try:
        with current_device(device):
            upstream = ManagedMemoryResource(
                device, prefetch=settings.prefetch, account=ManagedAccount()
            )
            pool = rmm.mr.PoolMemoryResource(
                upstream, settings.initial_bytes, settings.maximum_bytes
            )
        _run(workload, device, UvmResourceAdaptor(pool, prefetch=settings.prefetch), progress)
    except MemoryError:
        return None
    finally:
        rmm.set_logging_level(level)
    return float(device.statistics()["modelled_ns"]) / 1e9


def _run(workload: Workload, device: SimulatedDevice, mr: Any, progress: Progress | None) -> None:
    """Make the workload's allocations, touches and frees; free what is left."""
    events = workload.events
    columns = (events[name].tolist() for name in ("kind", "flags", "address", "nbytes"))
    live: dict[int, tuple[int, int]] = {}  # by recorded address: address and bytes now
    begins: list[int] = []  # recorded addresses in order: touches may be inside an allocation
    try:
        for number, (kind, flags, address, nbytes) in enumerate(zip(*columns, strict=True)):
            if progress is not None and number % _CHUNK_EVENTS == 0:
                progress(number, len(events))
            if kind == ALLOCATE:
                live[address] = (mr.allocate(nbytes), nbytes)
                insort(begins, address)
                continue
            place = bisect_right(begins, address) - 1
            if kind == FREE:
                mr.deallocate(*live.pop(address))
                del begins[place]
                continue
            now, size = live[begins[place]]
            first = address - begins[place]
            touch = device.cpu_touch if flags & BY_THE_CPU else device.touch
            touch(now + first, min(nbytes, size - first), bool(flags & WRITES))
    finally:
        for now, size in live.values():
            mr.deallocate(now, size)


class PoolTrial:
    """Tries pool settings for one workload, each once; see `rmm_uvm.planner.settling.Trial`.

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

    def _shown(self, capacity_bytes: int, settings: PoolSettings) -> Progress | None:
        progress = self._progress
        if progress is None:
            return None
        self._count += 1
        number = self._count
        what = f"{format_bytes(capacity_bytes)}, prefetch {settings.prefetch}"
        return lambda done, total: progress(PlanProgress(what, done, total, 0, number))
