# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The pool whose buffers other processes can open.

Covers exporting, and keeping buffers alive while they are leased. Does not cover the file that
tells who has what open; see `rmm_uvm.ipc.table`.
"""

from __future__ import annotations

import os
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import rmm

from rmm_uvm._lib.current_device import current_device
from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.marks import IpcEvent
from rmm_uvm._lib.mr import SimulatedCudaMemoryResource, bounded
from rmm_uvm._lib.transfers import MemoryKind, Transfers
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.ipc.array import ArrayView, view_of
from rmm_uvm.ipc.handle import Handle
from rmm_uvm.ipc.lease import Lease, checked_readers, expiry_ns
from rmm_uvm.ipc.machine import machine_id
from rmm_uvm.ipc.owned_lock import OwnedLock
from rmm_uvm.ipc.table import SLOTS, LeaseTable
from rmm_uvm.residency.streams import stream_handle
from rmm_uvm.support.units import format_bytes

__all__ = ["IpcPool", "Lease", "collect_dropped"]


class _Held(NamedTuple):
    """A leased buffer, kept until nobody may open it any more."""

    buffer: Any
    nbytes: int
    readers: int
    expires_ns: int


# Pools with leases: the buffers of a lease keep their pool, and the pool keeps them, so that
# nothing else would keep the two from being collected while others read them.
_leasing: set[IpcPool] = set()


class IpcPool(rmm.mr.PoolMemoryResource):  # type: ignore[misc]  # RMM has no types
    """RMM's pool over one slab of cudaMalloc memory, whose buffers other processes can open.

    Made by `rmm_uvm.ipc_pool`. The slab is taken once, and is neither grown nor given back while
    the pool lives or a lease does: a pool that is dropped with leases goes when they have ended and
    this process next makes, exports from or collects any IPC pool.

    Parameters
    ----------
    driver : UvmDriver
        Of the device.
    size_bytes : int
        Of the slab; a multiple of 256.

    Attributes
    ----------
    driver : UvmDriver
        Of the device.
    transfers : Transfers
        Copies to, from and within the device; the low-level side of IPC.
    size_bytes : int
        Of the slab.

    Notes
    -----
    Thread-safe. In a forked child it exports nothing.

    Examples
    --------
    >>> import rmm, rmm_uvm
    >>> device = rmm_uvm.simulated_device("64MiB", backing=True)
    >>> pool = rmm_uvm.ipc_pool("4MiB", driver=device)
    >>> handle = pool.export(rmm.DeviceBuffer(size=1000, mr=pool), lease_seconds=10)
    >>> type(handle), len(handle) < 300
    (<class 'bytes'>, True)
    >>> pool.leases()[0].nbytes
    1000
    >>> pool.collect()  # nobody has opened it yet, and nothing has expired
    0
    >>> pool.revoke(handle)
    True
    """

    def __new__(cls, driver: UvmDriver, size_bytes: int) -> Self:
        """Take the slab."""
        collect_dropped()
        with current_device(driver):
            upstream = (
                SimulatedCudaMemoryResource(driver)
                if isinstance(driver, SimulatedDevice)
                else rmm.mr.CudaMemoryResource()
            )
            made: Self = super().__new__(cls, upstream, size_bytes, size_bytes)
        return made

    def __init__(self, driver: UvmDriver, size_bytes: int) -> None:
        self.driver = driver
        self.size_bytes = size_bytes
        self.transfers = Transfers(driver)
        self._process = os.getpid()
        self._lock = OwnedLock()
        self._slab = self._find_slab()
        self._slab_handle = b""
        self._table: LeaseTable | None = None
        self._free_slots = list(reversed(range(SLOTS)))
        self._events: dict[int, IpcEvent] = {}  # by slot, for all its leases in turn
        self._held: dict[int, _Held] = {}
        self._bounded = bounded(self, size_bytes, _room_maker(weakref.ref(self)))

    def __repr__(self) -> str:
        device_id, leased = self.driver.info.device_id, len(self._held)
        return (
            f"<IpcPool of {format_bytes(self.size_bytes)} on device {device_id}, {leased} leased>"
        )

    def _find_slab(self) -> MemoryKind | None:
        with current_device(self.driver):
            address = self.allocate(256)  # all lies in one slab: what one byte tells, all do
            kind = self.transfers.memory_kind(address)
            self.deallocate(address, 256)
        return kind

    def export(
        self,
        buffer: Any,
        *,
        stream: Any = None,
        lease_seconds: float = 60.0,
        readers: int = 1,
    ) -> bytes:
        """Give out a handle with which other processes open a buffer, without a copy.

        The buffer is kept alive by its lease: until `readers` openings were closed; until the
        handle has expired, if it was not opened; or until the processes that had it open have
        ended.

        Parameters
        ----------
        buffer : object
            Memory of this pool: an `rmm.DeviceBuffer`, or anything with
            ``__cuda_array_interface__``, C-contiguous and not empty.
        stream : object, optional
            A CUDA stream, or its handle, whose work so far the readers wait for; by default the
            stream that the buffer names, and the legacy default stream if it names none.
        lease_seconds : float
            How long the handle can be opened, > 0. What is open stays so.
        readers : int
            How often it can be opened, >= 1.

        Returns
        -------
        bytes
            About 260 of them. Whoever has them, and runs as this user on this machine, can open the
            buffer, and CUDA maps the whole slab to do so.

        Raises
        ------
        ConfigurationError
            If the buffer is no contiguous memory of this pool, such as managed memory; an argument
            is out of bounds; or the device is simulated without ``backing=True``.
        DataError
            If `stream` is no stream.
        AvailabilityError
            If the device cannot share memory, `rmm_uvm.ipc.table.SLOTS` buffers are leased, there
            is no room in ``/dev/shm``, or this is a forked child.
        DriverError
            If CUDA refuses, such as on a stream that is being captured.
        """
        if os.getpid() != self._process:
            raise AvailabilityError("this IPC pool is of the parent process: make one here")
        expires_ns = expiry_ns(lease_seconds)
        readers = checked_readers(readers)
        handle = stream_handle(stream)
        view = view_of(buffer)
        slab, offset = self._place_of(view)
        collect_dropped()
        self.collect()
        with self._lock:
            if not self._slab_handle:
                self._slab_handle = self.transfers.ipc_memory_handle(slab.base)
            if self._table is None:
                self._table = LeaseTable()
            slot = self._take_slot()
            try:
                event = self._recorded(slot, view.stream if stream is None else handle)
                generation = self._table.file.begin(slot, readers)
                packed = Handle(
                    simulated=self.driver.info.simulated,
                    machine=machine_id(),
                    device=uuid.UUID(self.driver.info.uuid.removeprefix("GPU-")).bytes,
                    table=self._table.name,
                    slot=slot,
                    generation=generation,
                    expires_ns=expires_ns,
                    slab_bytes=slab.nbytes,
                    offset=offset,
                    nbytes=view.nbytes,
                    slab_handle=self._slab_handle,
                    event_handle=event.handle,
                    typestr=view.typestr,
                    shape=view.shape,
                ).pack()
            except BaseException:
                self._free_slots.append(slot)
                raise
            self._held[slot] = _Held(buffer, view.nbytes, readers, expires_ns)
            _leasing.add(self)
        return packed

    def _place_of(self, view: ArrayView) -> tuple[MemoryKind, int]:
        """Return the slab, and where in it an array begins; refuse what is not in it."""
        slab = self._slab
        if slab is None or not slab.ipc_capable:
            raise AvailabilityError(
                f"device {self.driver.info.device_id} cannot share memory by CUDA IPC: "
                '"rmm-uvm doctor" says more'
            )
        offset = view.address - slab.base
        if 0 <= offset <= slab.nbytes - view.nbytes:
            return slab, offset
        kind = self.transfers.memory_kind(view.address)
        if kind is None:
            found = "is no device memory of this process"
        elif kind.managed:
            found = "is managed memory, which has no IPC handle"
        else:
            found = f"belongs to another allocation, of {format_bytes(kind.nbytes)}"
        raise ConfigurationError(
            f"the buffer at {view.address:#x} {found}: copy it into a buffer of the IPC pool, "
            "such as rmm.DeviceBuffer(size=..., mr=pool)"
        )

    def _take_slot(self) -> int:
        if not self._free_slots:
            raise AvailabilityError(
                f"{SLOTS} buffers of this IPC pool are leased, as many as can be: readers must "
                "close what they open, or lease_seconds be shorter"
            )
        return self._free_slots.pop()

    def _recorded(self, slot: int, stream: int) -> IpcEvent:
        """Return the slot's event, standing for the work in `stream` so far."""
        event = self._events.get(slot)
        if event is None:
            event = self._events[slot] = self.transfers.make_ipc_event()
        event.record(stream)
        return event

    def collect(self) -> int:
        """End the leases that nobody needs any more, and let go of their buffers.

        Done by itself at every export, and when an allocation from the pool would fail.

        Returns
        -------
        int
            Bytes of those buffers. They are free unless somebody else here holds them too.
        """
        # In a child the leases are the parent's. In a thread that has the lock this was called by
        # garbage collection, and will be called again.
        if os.getpid() != self._process or self._lock.held_here:
            return 0
        with self._lock:
            ended = self._end_leases()
        return self._drop(ended)

    def _drop(self, ended: list[_Held]) -> int:
        """Let go of buffers, on their device and without the lock; return their bytes."""
        nbytes = sum(held.nbytes for held in ended)
        if ended:
            with current_device(self.driver):
                ended.clear()
        return nbytes

    def _end_leases(self) -> list[_Held]:
        """End leases; `_drop` lets go of their buffers."""
        table = self._table
        if table is None:
            return []
        now_ns = time.monotonic_ns()
        ended = []
        for slot, held in list(self._held.items()):
            _, opened, _ = table.file.read(slot)
            due = opened >= held.readers or now_ns > held.expires_ns
            if due and table.file.try_end(slot):
                ended.append(self._forget(slot))
        return ended

    def revoke(self, handle: bytes) -> bool:
        """End a lease before its time: nobody can open the handle any more.

        For a handle that did not reach its reader, so that the memory need not wait until the
        handle expires.

        Parameters
        ----------
        handle : bytes
            From `export` of this pool.

        Returns
        -------
        bool
            Whether the lease has ended, now or before. False while a reader has it open.

        Raises
        ------
        ConfigurationError
            If the handle is of another pool.
        DataError
            If it is no handle.
        """
        wanted = Handle.unpack(handle)
        with self._lock:
            table = self._table
            if table is None or table.name != wanted.table:
                raise ConfigurationError("the handle is of another pool: revoke it there")
            if wanted.slot not in self._held:
                return True
            if table.file.read(wanted.slot)[0] != wanted.generation:
                return True
            if not table.file.try_end(wanted.slot):
                return False
            ended = [self._forget(wanted.slot)]
        self._drop(ended)
        return True

    def _forget(self, slot: int) -> _Held:
        """Take a lease that has ended off the books; return what it held."""
        held = self._held.pop(slot)
        self._free_slots.append(slot)
        if not self._held:
            _leasing.discard(self)
        return held

    def leases(self) -> tuple[Lease, ...]:
        """Return what is leased now, oldest first; what has ended is collected first."""
        self.collect()
        if os.getpid() != self._process:
            return ()
        now_ns = time.monotonic_ns()
        with self._lock:
            table = self._table
            if table is None:
                return ()
            return tuple(
                Lease(
                    nbytes=held.nbytes,
                    readers=held.readers,
                    opened=table.file.read(slot)[1],
                    open_now=table.file.is_open(slot),
                    seconds_left=(held.expires_ns - now_ns) / 1e9,
                )
                for slot, held in self._held.items()
            )


def collect_dropped() -> None:
    """Collect every pool with leases: nobody else does it for those that were dropped."""
    for pool in list(_leasing):
        pool.collect()


def _room_maker(pool: weakref.ref[IpcPool]) -> Callable[[int], bool]:
    """Return what gives memory back when an allocation fails; it keeps no pool alive."""

    def make_room(_nbytes: int) -> bool:
        alive = pool()
        try:
            return alive is not None and alive.collect() > 0
        except Exception:  # that the allocation fails is what its caller has to know
            return False

    return make_room
