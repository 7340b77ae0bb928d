# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Lets Dask's own memory limit see the data that left the device.

Dask pauses a worker, and spills what it can, by the resident memory of its process. Host pages of
managed memory are in that figure once the CPU has them mapped: a prefetch to the host maps them
(measured, benchmarks/results/dask_pause.json), and so does touching them. An eviction does not
(nvidia-uvm's ``uvm_va_block_evict_chunks`` makes pages resident on the host and maps nothing): a
worker could fill the host with evicted data and go on taking tasks until the kernel ends it. So the
worker's figure is told with those that are not mapped.

How much lives on the host follows from the monitor's newest sample, as the least of three figures:

- the footprint: dead memory on the host is left out, since the pool uses it again;
- what the pool has taken and does not reside on the device: what was discarded is not on the host;
- what left the device less what came back: what was never written is nowhere.

Where the monitor does not know one of them, nothing is added. What of it is mapped is what the
process' file-backed memory, to which the kernel counts device mappings, has grown by since nothing
was on the host; libraries loaded meanwhile make that too much, and what is added too little.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import UvmError

if TYPE_CHECKING:
    from rmm_uvm.watch.snapshot import Snapshot

__all__ = ["WithEvicted", "attach", "detach", "evicted_bytes", "on_host_bytes"]

_READER = "get_process_memory"


def attach(worker: Any) -> None:
    """Add what left the device to the memory that a worker sees of its process; again: nothing.

    Parameters
    ----------
    worker : distributed.Worker
        Its system monitor gets a reader of its own, in place of the one of its class, which Dask
        says is there to be replaced. Scheduler and dashboard see the figure too.

    Notes
    -----
    To be called in the thread of the worker's event loop.
    """
    monitor = worker.monitor
    if isinstance(vars(monitor).get(_READER), WithEvicted):
        return
    setattr(monitor, _READER, WithEvicted(getattr(monitor, _READER)))


def detach(worker: Any) -> None:
    """Give the worker its own figure back; nothing if it has it."""
    reader = vars(worker.monitor).get(_READER)
    if isinstance(reader, WithEvicted):
        delattr(worker.monitor, _READER)


class WithEvicted:
    """Reads the process' memory, and adds what left the device and is not in there.

    Parameters
    ----------
    own : callable
        Returns the resident memory of the process, bytes.
    """

    def __init__(self, own: Callable[[], int]) -> None:
        self._own = own
        self._file_bytes = file_backed_bytes()

    def __call__(self) -> int:
        """Return the bytes to tell."""
        evicted = evicted_bytes()
        mapped = file_backed_bytes() - self._file_bytes
        if evicted == 0:  # libraries come and go; what of the pool is mapped is nothing now
            self._file_bytes += mapped
            return self._own()
        return self._own() + max(evicted - max(mapped, 0), 0)


def file_backed_bytes() -> int:
    """Return the resident memory of this process that belongs to files or devices; ~5 us."""
    pages = int(Path("/proc/self/statm").read_text().split()[2])
    return pages * os.sysconf("SC_PAGE_SIZE")


def evicted_bytes() -> int:
    """Return the bytes of the installed pools that live on the host; an estimate, >= 0.

    0 where nothing is installed, and for what is not known. Thread-safe; takes about 30 us.
    """
    from rmm_uvm.pool.install import installations

    return sum(
        _evicted_bytes_of(installation.monitor, device.info.device_id)
        for installation in installations()
        for device in installation.devices
    )


def _evicted_bytes_of(monitor: Any, device_id: int) -> int:
    try:
        return on_host_bytes(monitor.snapshot(device_id, fresh=False)) if monitor else 0
    except UvmError:  # no sample yet, or the monitor was just stopped
        return 0


def on_host_bytes(snapshot: Snapshot) -> int:
    """Return the bytes of a device's pool that live on the host; an estimate, >= 0.

    Examples
    --------
    >>> from rmm_uvm.watch.snapshot import Snapshot
    >>> known = Snapshot(
    ...     0,
    ...     0,
    ...     host_to_device_bytes=1,
    ...     device_to_host_bytes=9,
    ...     footprint_bytes=20,
    ...     managed_bytes=30,
    ...     resident_bytes=16,
    ... )
    >>> on_host_bytes(known), on_host_bytes(Snapshot(0, 0, footprint_bytes=20))
    (8, 0)
    """
    if snapshot.footprint_bytes is None:
        return 0
    if snapshot.managed_bytes is None or snapshot.resident_bytes is None:
        return 0
    if snapshot.device_to_host_bytes is None or snapshot.host_to_device_bytes is None:
        return 0
    away_bytes = snapshot.managed_bytes - snapshot.resident_bytes
    left_bytes = snapshot.device_to_host_bytes - snapshot.host_to_device_bytes
    return max(min(snapshot.footprint_bytes, away_bytes, left_bytes), 0)
