# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The slabs of other processes that this one has open.

Mapping a slab takes milliseconds, so it stays mapped until its exporter has gone, and every further
handle of the same pool costs microseconds. Covers that cache: one for each process, and a forked
child begins with none. Does not cover the object that users hold; see `rmm_uvm.ipc.opened`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque

from rmm_uvm._lib.cuda import CudaDriver
from rmm_uvm._lib.marks import IpcEvent
from rmm_uvm._lib.transfers import Transfers
from rmm_uvm.drivers import simulated_device
from rmm_uvm.errors import AvailabilityError, ConfigurationError, DataError, DriverError
from rmm_uvm.ipc.handle import Handle
from rmm_uvm.ipc.machine import current_device_id, machine_id, visible
from rmm_uvm.ipc.owned_lock import OwnedLock
from rmm_uvm.ipc.table import RemoteTable, is_own
from rmm_uvm.support.package_files import no_more_files
from rmm_uvm.support.units import format_bytes

__all__ = ["OpenSlab", "SlabCache", "slabs"]

_SIMULATED = -1  # where a device's ordinal stands


class OpenSlab:
    """One slab of another process, mapped here."""

    def __init__(self, table: RemoteTable, transfers: Transfers, handle: Handle) -> None:
        self.table = table
        self.transfers = transfers
        self.slab_handle = handle.slab_handle
        self.openings = 0
        self._events: dict[bytes, IpcEvent] = {}
        self.address = transfers.open_ipc_memory(handle.slab_handle)
        try:
            kind = transfers.memory_kind(self.address)
        except BaseException:
            self.close()
            raise
        # What was mapped counts, and not what the handle says of it, unless CUDA does not tell.
        self.nbytes = kind.nbytes if kind is not None and kind.nbytes else handle.slab_bytes

    def check(self, handle: Handle) -> None:
        """Refuse a handle of this table that is not of this slab.

        Raises
        ------
        DataError
            If it is not.
        """
        if handle.slab_handle != self.slab_handle:
            raise DataError("the handle names a slab that its pool does not have")
        if handle.offset + handle.nbytes > self.nbytes:
            raise DataError(
                f"the handle is damaged: {format_bytes(handle.nbytes)} at byte {handle.offset} "
                f"pass the end of its slab of {format_bytes(self.nbytes)}"
            )

    def wait(self, handle: Handle, stream: int) -> None:
        """Let a stream wait for what the exporter's stream had to do at the export."""
        event = self._events.get(handle.event_handle)
        if event is None:
            event = self.transfers.open_ipc_event(handle.event_handle)
            self._events[handle.event_handle] = event
        event.make_wait(stream)

    def close(self) -> None:
        """Unmap it. What goes wrong is nobody's business any more: the exporter is gone."""
        self._events.clear()
        with contextlib.suppress(DriverError, MemoryError):
            self.transfers.close_ipc_memory(self.address)


class SlabCache:
    """All slabs that this process has open. Thread-safe.

    Closing may be asked for by garbage collection, in the middle of anything: what cannot be done
    at once is left to the thread that has the lock.
    """

    def __init__(self) -> None:
        self._lock = OwnedLock()
        self._tables: dict[bytes, RemoteTable] = {}
        self._slabs: dict[tuple[bytes, int], OpenSlab] = {}  # by table, and who maps it
        self._own_transfers: dict[int, Transfers] = {}
        self._ended: deque[tuple[OpenSlab, int]] = deque()

    def open(self, handle: Handle, stream: int, transfers: Transfers | None) -> OpenSlab:
        """Open a buffer; `end` gives it back.

        Raises
        ------
        AvailabilityError, ConfigurationError, DataError, DriverError
            See `rmm_uvm.ipc.open`.
        """
        if time.monotonic_ns() > handle.expires_ns:
            raise AvailabilityError(
                "the lease of this handle has expired: open handles sooner, or export with more "
                "lease_seconds"
            )
        try:
            with self._lock:
                return self._open(handle, stream, transfers)
        finally:
            self._finish_all()

    def _open(self, handle: Handle, stream: int, transfers: Transfers | None) -> OpenSlab:
        table = self._tables.get(handle.table) or self._open_table(handle)
        try:
            table.acquire(handle.slot, handle.generation)
        except AvailabilityError:
            self._forget_ended()
            raise
        try:
            slab = self._slab_of(table, handle, transfers)
            slab.check(handle)
            slab.wait(handle, stream)
        except BaseException:
            table.cancel(handle.slot)
            raise
        slab.openings += 1
        return slab

    def _open_table(self, handle: Handle) -> RemoteTable:
        if handle.machine != machine_id():
            raise AvailabilityError(
                "the handle is of another machine, or of this one before its last start: "
                "CUDA IPC does not leave the machine"
            )
        if is_own(handle.table):
            raise ConfigurationError(
                "the handle is of this process, which cannot open its own memory: use the buffer"
            )
        if not handle.simulated and not (seen := visible(handle.device)):
            raise AvailabilityError(seen.reason)
        table = self._tables[handle.table] = RemoteTable(handle.table)
        return table

    def _slab_of(self, table: RemoteTable, handle: Handle, transfers: Transfers | None) -> OpenSlab:
        if transfers is None:
            transfers = self._default_transfers(
                _SIMULATED if handle.simulated else current_device_id()
            )
        key = (handle.table, id(transfers))
        slab = self._slabs.get(key)
        if slab is None:
            if transfers.driver.info.simulated != handle.simulated:
                raise ConfigurationError(
                    "a handle of a simulated device can be opened on a simulated device only, and "
                    "one of a GPU on a GPU"
                )
            self._forget_ended()  # what they keep may be what is missing
            slab = self._slabs[key] = _map(table, transfers, handle)
        return slab

    def _default_transfers(self, device_id: int) -> Transfers:
        """Return what maps slabs for a device, made at the first need."""
        found = self._own_transfers.get(device_id)
        if found is None:
            driver = (
                simulated_device(2 << 20, backing=True)
                if device_id == _SIMULATED
                else CudaDriver(device_id, counters=False)
            )
            found = self._own_transfers[device_id] = Transfers(driver)
        return found

    def end(self, slab: OpenSlab, slot: int, *, collected: bool) -> None:
        """Give one opening back.

        Parameters
        ----------
        slab : OpenSlab
            From `open`.
        slot : int
            Of the handle.
        collected : bool
            Garbage collection asks: wait for nobody.
        """
        self._ended.append((slab, slot))
        if not collected and not self._lock.held_here:
            with self._lock:
                self._finish()
        self._finish_all()

    def _finish_all(self) -> None:
        """Give back what has ended, unless somebody has the lock, who then does it."""
        while self._ended and self._lock.try_acquire():
            try:
                self._finish()
            finally:
                self._lock.release()

    def _finish(self) -> None:
        while self._ended:
            slab, slot = self._ended.popleft()
            slab.openings -= 1
            slab.table.release(slot)
            if not slab.openings and not slab.table.exporter_alive:
                self._forget_ended()

    def _forget_ended(self) -> None:
        """Unmap the slabs whose exporter has gone and that nobody has open: they keep memory."""
        for key, slab in list(self._slabs.items()):
            if not slab.openings and not slab.table.exporter_alive:
                del self._slabs[key]
                slab.close()
        used = {name for name, _ in self._slabs}
        for name, table in list(self._tables.items()):
            if name not in used and not table.in_use and not table.exporter_alive:
                del self._tables[name]
                table.close()

    def counts(self) -> tuple[int, int]:
        """Return the slabs that are mapped, and the openings of all of them."""
        with self._lock:
            found = len(self._slabs), sum(slab.openings for slab in self._slabs.values())
        self._finish_all()
        return found


def _map(table: RemoteTable, transfers: Transfers, handle: Handle) -> OpenSlab:
    try:
        return OpenSlab(table, transfers, handle)
    except MemoryError as error:
        raise MemoryError(
            f"the exporter's slab of {format_bytes(handle.slab_bytes)} cannot be mapped: {error}; "
            "close other slabs, or raise the limit of this process's addresses (ulimit -v)"
        ) from error
    except DriverError as error:
        if not table.exporter_alive:
            raise AvailabilityError(
                f"the exporter of this handle, process {table.process}, has ended: its memory is "
                "gone"
            ) from None
        if reason := no_more_files():  # a driver says no more than that it did not work
            raise AvailabilityError(
                f"the exporter's slab of {format_bytes(handle.slab_bytes)} cannot be mapped: "
                f"that takes a file, and {reason}"
            ) from error
        error.add_note(f"of a slab of {format_bytes(handle.slab_bytes)} in process {table.process}")
        raise


_cache: tuple[int, SlabCache] = (0, SlabCache())  # process, and what it has open


def slabs() -> SlabCache:
    """Return the cache of this process; the parent's, in a forked child, is left alone."""
    global _cache
    process = os.getpid()
    if _cache[0] != process:
        _cache = (process, SlabCache())
    return _cache[1]
