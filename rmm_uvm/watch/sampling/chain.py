# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Looks at RMM's chain on a device, and keeps a sampler informed of it.

Covers any chain that RMM's Python side knows: ours, RMM's own resources, mixtures. Does not cover
resources that C++ code installed behind Python's back.

Programs replace their resources while they are watched. So a chain is looked at anew in every
round, and nothing here refers to it in between: a pool that is watched dies when its owners let go.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import rmm

from rmm_uvm._lib.driver import LevelSource, UvmDriver
from rmm_uvm._lib.mr import ManagedMemoryResource, ObservedResource, UvmResourceAdaptor
from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.support.process_lock import ProcessLock

__all__ = [
    "LevelSink",
    "Levels",
    "WatchedChain",
    "chain_names",
    "driver_of",
    "end_observing",
    "foreign_levels",
    "known_devices",
    "observe",
    "observed",
    "own_adaptor",
]

_set_resource = rmm.mr.set_per_device_resource  # as it is when nobody watches who calls it
_POOLS = (
    rmm.mr.ArenaMemoryResource,
    rmm.mr.BinningMemoryResource,
    rmm.mr.FixedSizeMemoryResource,
    rmm.mr.PoolMemoryResource,
)
_DEEPEST = 64  # adaptors on one another; guards against a chain that RMM could not make anyway


@dataclasses.dataclass(frozen=True)
class Levels:
    """How much a foreign chain holds.

    Parameters
    ----------
    footprint_bytes : int
        Allocated and not freed.
    managed_bytes : int
        Managed memory that its pool has taken; 0 if its source is no managed memory.
    figure : str
        What was read.
    """

    footprint_bytes: int
    managed_bytes: int
    figure: str


def known_devices() -> tuple[int, ...]:
    """Return the ordinals for which RMM's Python side has a resource, in order."""
    return tuple(sorted(rmm.get_log_filenames()))


def chain(device_id: int) -> Iterator[Any]:
    """Yield the resources of a device from the outermost to the source; none if RMM has none.

    What tells accounts is left out: it changes nothing.
    """
    return (mr for mr in _resources(device_id) if not isinstance(mr, ObservedResource))


def _resources(device_id: int) -> Iterator[Any]:
    # Asking RMM for a device that it does not know would make a resource there.
    mr = rmm.mr.get_per_device_resource(device_id) if device_id in known_devices() else None
    for _ in range(_DEEPEST):
        if mr is None:
            return
        yield mr
        mr = getattr(mr, "upstream_mr", None)


def chain_names(device_id: int) -> tuple[str, ...]:
    """Return the class names of a device's chain, the outermost first."""
    return tuple(type(mr).__name__ for mr in chain(device_id))


def own_adaptor(device_id: int) -> UvmResourceAdaptor | None:
    """Return the outermost adaptor of ours in a device's chain. Do not keep it."""
    return next((mr for mr in chain(device_id) if isinstance(mr, UvmResourceAdaptor)), None)


def driver_of(device_id: int) -> UvmDriver | None:
    """Return the driver that a device's chain runs on, if any of it is ours."""
    drivers = (getattr(mr, "driver", None) for mr in chain(device_id))
    return next((driver for driver in drivers if isinstance(driver, UvmDriver)), None)


def observed(device_id: int) -> ObservedResource | None:
    """Return what tells accounts of a device's allocations; None where nothing does.

    A pool over it would make slabs of them.
    """
    over = itertools.takewhile(lambda mr: not isinstance(mr, _POOLS), _resources(device_id))
    return next((mr for mr in over if isinstance(mr, ObservedResource)), None)


def observe(device_id: int) -> ObservedResource | None:
    """Put what tells accounts over a chain of RMM's own resources, unless it is there.

    None where the chain is ours, or its source is no managed memory.
    """
    found = observed(device_id)
    resources = list(chain(device_id))
    ours = any(isinstance(mr, UvmResourceAdaptor) for mr in resources)
    if found is not None or ours or not resources or not _is_managed(resources[-1]):
        return found
    made = ObservedResource(resources[0], device_id)
    _set_resource(device_id, made)
    return made


def end_observing(device_id: int) -> None:
    """Take that away where nobody is told any more. Under an adaptor of the program it stays."""
    found = next(_resources(device_id), None)
    if isinstance(found, ObservedResource) and not found.observed:
        _set_resource(device_id, found.upstream_mr)


def _is_managed(source: Any) -> bool:
    kinds = (ManagedMemoryResource, rmm.mr.ManagedMemoryResource)
    return isinstance(source, kinds) or type(source).__name__ == "CudaAsyncManagedMemoryResource"


def foreign_levels(device_id: int) -> Levels | None:
    """Return what a chain without an adaptor of ours holds, from the most exact figure it has.

    RMM's tracking and limiting adaptors count every allocation; so does the statistics adaptor,
    unless its counters were pushed. A bare pool tells its size only. None if nothing tells.
    """
    resources = list(chain(device_id))
    if not resources:
        return None
    pool_bytes = next(
        (mr.pool_size() for mr in resources if isinstance(mr, rmm.mr.PoolMemoryResource)), None
    )
    managed = _is_managed(resources[-1])
    found = _footprint(resources, pool_bytes)
    if found is None:
        return None
    footprint_bytes, figure = found
    taken = footprint_bytes if pool_bytes is None else pool_bytes
    return Levels(footprint_bytes, taken if managed else 0, figure)


def _footprint(resources: list[Any], pool_bytes: int | None) -> tuple[int, str] | None:
    counting = rmm.mr.TrackingResourceAdaptor | rmm.mr.LimitingResourceAdaptor
    for mr in resources:
        if isinstance(mr, counting):
            return mr.get_allocated_bytes(), f"{type(mr).__name__}.get_allocated_bytes()"
        if isinstance(mr, rmm.mr.PoolMemoryResource):
            break  # what counts below a pool counts slabs
    for mr in resources:
        if isinstance(mr, rmm.mr.StatisticsResourceAdaptor):
            return mr.allocation_counts.current_bytes, "StatisticsResourceAdaptor.allocation_counts"
        if isinstance(mr, rmm.mr.PoolMemoryResource):
            break
    if pool_bytes is not None:
        return pool_bytes, "PoolMemoryResource.pool_size()"
    return None


_AVAILABLE = Availability(available=True)


def _budget_of(pool: ManagedResidency) -> ResidencyStatistics | None:
    found = pool.residency()
    return None if found is None else ResidencyStatistics(**found)


class LevelSink(Protocol):
    """The part of a sampler that is told of levels."""

    def set_levels(self, device_id: int, source: LevelSource | None) -> None:
        """Read levels from a source from now on."""

    def set_external_footprint(
        self, device_id: int, footprint_bytes: int | None, managed_bytes: int | None = None
    ) -> None:
        """Take these levels."""


def _nothing(adaptor: UvmResourceAdaptor) -> None:
    """Do nothing about a new adaptor."""


class WatchedChain:
    """The chain of one device, as of the last `refresh`.

    Parameters
    ----------
    device_id : int
        CUDA ordinal.
    sampler : LevelSink
        Is told the levels, or where to read them.
    on_adaptor : callable
        Called with each adaptor of ours that was not there before. Must not keep it.

    Attributes
    ----------
    own, foreign : Availability
        Whether the chain is ours, and whether it is another's that tells its footprint.
    prefetch : {"auto", "always", "never"} or None
        How our resource prefetches; None without one.
    names : tuple of str
        Classes of its resources, the outermost first.

    Notes
    -----
    Thread-safe. Keeps no resource alive: of a pool of ours only its residency, which owns no
    memory.
    """

    def __init__(
        self,
        device_id: int,
        sampler: LevelSink,
        on_adaptor: Callable[[UvmResourceAdaptor], None] = _nothing,
    ) -> None:
        self.device_id = device_id
        self.own = self.foreign = Availability(available=False, reason="not looked at yet")
        self.prefetch: str | None = None
        self.names: tuple[str, ...] = ()
        self._sampler: LevelSink | None = sampler
        self._on_adaptor = on_adaptor
        self._lock = ProcessLock()
        self._known: tuple[Any, ...] = ()
        self._residency: ManagedResidency | None = None
        self._last_budget: ResidencyStatistics | None = None
        self._peak_bytes: int | None = None
        self._peak_seen_bytes = 0  # what the adaptor said last
        self._skipped: dict[str, int] = {}  # in chains that went, and at the beginning (negative)

    def refresh(self) -> bool:
        """Look at the chain, and tell the sampler. Return whether it is another chain now."""
        with self._lock():
            return self._sampler is not None and self._refresh(self._sampler)

    def _refresh(self, sampler: LevelSink) -> bool:
        self.names = chain_names(self.device_id)
        adaptor = own_adaptor(self.device_id)
        if adaptor is None:
            changed = self._known != self.names
            if changed:
                self._leave(self.names)
                sampler.set_levels(self.device_id, None)
            self._tell_foreign(sampler)
            return changed
        # An adaptor cannot be referred to weakly. Its residency stays the same object and is held
        # here, so that no other chain can be taken for this one, even at the same address.
        residency = adaptor.managed_mr.residency
        changed = residency is not self._residency or self._known != (id(adaptor), self.names)
        if changed:
            beginning = not self._known
            self._leave((id(adaptor), self.names))
            self._residency = residency
            self._peak_seen_bytes = 0
            if beginning:  # it was at work before the monitor was
                self._add_skipped(-1)
                self._peak_seen_bytes = adaptor.peak_bytes
            sampler.set_external_footprint(self.device_id, None)
            sampler.set_levels(self.device_id, adaptor.level_source())
            self._on_adaptor(adaptor)
        self._see_peak(adaptor.peak_bytes)
        self.own = _AVAILABLE
        self.foreign = Availability(available=False, reason="the chain is one of rmm_uvm")
        self.prefetch = adaptor.prefetch
        return changed

    def _tell_foreign(self, sampler: LevelSink) -> None:
        self.prefetch = None
        self.own = Availability(
            available=False, reason=f"no pool of rmm_uvm on device {self.device_id}"
        )
        levels = foreign_levels(self.device_id)
        if levels is None:
            reason = (
                f"{self.names[0]} does not tell what is allocated; "
                "rmm.mr.StatisticsResourceAdaptor around it does"
                if self.names
                else f"RMM has no memory resource on device {self.device_id}"
            )
            self.foreign = Availability(available=False, reason=reason)
            sampler.set_external_footprint(self.device_id, None)
            return
        self.foreign = _AVAILABLE
        sampler.set_external_footprint(self.device_id, levels.footprint_bytes, levels.managed_bytes)

    def _leave(self, known: tuple[Any, ...]) -> None:
        """Let go of the chain that was there."""
        if self._residency is not None:
            self._add_skipped(1)
            self._last_budget = _budget_of(self._residency)
        self._residency = None
        self._known = known

    def _see_peak(self, peak_bytes: int) -> None:
        """Take note of the most that the adaptor had handed out, if that was while it is watched.

        A peak that did not change may be of before, and one that fell was reset meanwhile.
        """
        if peak_bytes != self._peak_seen_bytes:
            self._peak_bytes = max(self._peak_bytes or 0, peak_bytes)
        self._peak_seen_bytes = peak_bytes

    def _add_skipped(self, sign: int) -> None:
        assert self._residency is not None
        for reason, count in self._residency.statistics()["skipped"].items():
            self._skipped[reason] = self._skipped.get(reason, 0) + sign * count

    @property
    def driver(self) -> UvmDriver | None:
        """The driver of our pool; None without one."""
        residency = self._residency
        return None if residency is None else residency.driver

    def forget(self) -> None:
        """Let go of everything but the figures; refreshing does nothing from now on."""
        with self._lock():
            self._look_at_peak()
            self._leave(self._known)
            self._sampler = None

    @property
    def prefetch_skipped(self) -> dict[str, int] | None:
        """Requests since the start that prefetched nothing, by reason; None without a pool."""
        with self._lock():
            total = dict(self._skipped)
            if self._residency is not None:
                for reason, count in self._residency.statistics()["skipped"].items():
                    total[reason] = total.get(reason, 0) + count
        return total or None

    @property
    def peak_bytes(self) -> int | None:
        """Most bytes allocated at a time from our pools; None where it did not rise meanwhile.

        Exact, but for a pool that was replaced: of that as of the last `refresh`.
        """
        with self._lock():
            self._look_at_peak()
            return self._peak_bytes

    def _look_at_peak(self) -> None:
        if self._residency is None:
            return
        adaptor = own_adaptor(self.device_id)
        if adaptor is not None and adaptor.managed_mr.residency is self._residency:
            self._see_peak(adaptor.peak_bytes)

    @property
    def budget(self) -> ResidencyStatistics | None:
        """How the pool's budget is kept; of the last pool once it is gone. None without one."""
        with self._lock():
            pool = self._residency
            return self._last_budget if pool is None else _budget_of(pool)

    def told_of_budget(self) -> None:
        """Take note that the program was told what the budget cannot hold."""
        with self._lock():
            if self._residency is not None:
                self._residency.too_large_told = True
