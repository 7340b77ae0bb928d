# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How many workers share the memory of this host, or of its container.

Whatever leaves a device needs host memory, and workers of one host take it from the same machine
or the same container's limit: each may count on a share only. Dask divides as well: the memory
limit that it gives a worker by itself is the host's memory over the number of workers.
"""

from __future__ import annotations

import dataclasses

from rmm_uvm.support.units import format_bytes

__all__ = ["HostShare", "workers_on_host"]


@dataclasses.dataclass(frozen=True)
class HostShare:
    """How many workers share the host's memory, and how that is known.

    Parameters
    ----------
    workers : int
        Their number, >= 1.
    guess : str
        What tells it, and what to do if that is wrong; empty where nothing is shared, or where the
        number was asked for.
    """

    workers: int
    guess: str = ""


def workers_on_host(
    *,
    asked: int | None,
    memory_limit_bytes: int | None,
    host_bytes: int,
    visible_devices: int | None,
) -> HostShare:
    """Return how many workers share the host's memory.

    Parameters
    ----------
    asked : int or None
        ``workers-per-host`` of the settings, which comes before everything else.
    memory_limit_bytes : int or None
        The worker's memory limit; None if Dask was told not to limit it.
    host_bytes : int
        The memory of which Dask's limits are a part: the machine's, or the container's limit.
    visible_devices : int or None
        Entries of CUDA_VISIBLE_DEVICES; None if it is not set. dask-cuda gives all its workers of a
        host the same list, turned, so there are no more workers than entries. That also keeps a
        limit that a user chose (``--memory-limit 10GB``) from looking like a hundredth of the host.

    Examples
    --------
    >>> workers_on_host(
    ...     asked=None, memory_limit_bytes=16, host_bytes=64, visible_devices=None
    ... ).workers
    4
    """
    if asked is not None:
        return HostShare(asked)
    devices = f"CUDA_VISIBLE_DEVICES, which has {visible_devices} entries"
    if not memory_limit_bytes:
        return _share(visible_devices or 1, devices)
    by_limit = max(round(host_bytes / memory_limit_bytes), 1)
    if visible_devices and visible_devices < by_limit:
        return _share(visible_devices, devices)
    part = f"{format_bytes(memory_limit_bytes)} of {format_bytes(host_bytes)}"
    return _share(by_limit, f"the worker's memory limit, {part}")


def _share(workers: int, source: str) -> HostShare:
    if workers <= 1:
        return HostShare(1)
    return HostShare(
        workers,
        f"{workers} workers are a guess from {source}: if it is wrong, set workers-per-host",
    )
