# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What RMM's chain on a device is, and how much is allocated through it.

Covers any chain that RMM's Python side knows: ours, RMM's own resources, mixtures. Does not cover
resources that C++ code installed behind Python's back.

Programs replace their resources while they are watched. So a chain is looked at anew in every
round, and nothing here refers to it in between: a pool that is watched dies when its owners let go.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import rmm

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.mr import ManagedMemoryResource, UvmResourceAdaptor

__all__ = ["Levels", "chain_names", "driver_of", "foreign_levels", "known_devices", "own_adaptor"]

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
    """Yield the resources of a device from the outermost to the source; none if RMM has none."""
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
    managed = isinstance(resources[-1], rmm.mr.ManagedMemoryResource | ManagedMemoryResource)
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
