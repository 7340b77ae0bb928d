# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Chunks that the receiver copies from the sender's IPC pool itself.

Covers what a sender offers, what both ends of a connection remember of it, and which slabs of peers
are mapped here for how long. Does not cover the messages about it; see `rmm_uvm.dask.comm.send` and
`rmm_uvm.dask.comm.receive`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import weakref
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from rmm_uvm.dask.comm.budget import Chunk
from rmm_uvm.dask.comm.plan import ALIGNMENT_BYTES
from rmm_uvm.dask.comm.wire import ChunkName, FrameKind, SlabOffer
from rmm_uvm.errors import AvailabilityError, DataError, DriverError, UvmError

__all__ = ["Agreement", "Mapping", "Mappings", "SharedSlab", "find_slab", "process_id"]

_ANCESTOR = secrets.token_bytes(12)


def process_id() -> bytes:
    """Return 16 bytes that no other process has, a forked child neither."""
    return _ANCESTOR + os.getpid().to_bytes(4, "little")


class MemoryKind(Protocol):
    """The kind of memory at an address; see `rmm_uvm._lib.transfers.MemoryKind`."""

    @property
    def ipc_capable(self) -> bool:
        """CUDA IPC can export it."""

    @property
    def base(self) -> int:
        """First byte of the allocation."""

    @property
    def nbytes(self) -> int:
        """How many it has."""


class SharedMemory(Protocol):
    """Memory that processes share; see `rmm_uvm._lib.transfers.Transfers`."""

    def memory_kind(self, address: int) -> MemoryKind | None:
        """Return what memory that is, None if it is none of the driver's."""

    def ipc_memory_handle(self, base: int) -> bytes:
        """Return what another process opens an allocation with."""

    def open_ipc_memory(self, handle: bytes) -> int:
        """Map an allocation of another process; return its first byte."""

    def close_ipc_memory(self, address: int) -> None:
        """Close one opening."""


class SharedSlab(NamedTuple):
    """The slab of this process' chunks: what is offered, and its first byte here."""

    offer: SlabOffer
    base: int


def find_slab(memory: SharedMemory, chunks: Sequence[Chunk], process: bytes) -> SharedSlab | None:
    """Return the slab that all chunks lie in; None if there is none that can be shared."""
    if not chunks:
        return None
    try:
        kind = memory.memory_kind(chunks[0].address)
        if kind is None or not kind.ipc_capable:
            return None
        end = kind.base + kind.nbytes
        if not all(kind.base <= one.address <= end - one.nbytes for one in chunks):
            return None
        handle = memory.ipc_memory_handle(kind.base)
        offer = SlabOffer(_machine(), process, secrets.token_bytes(16), handle, kind.nbytes)
    except (UvmError, MemoryError):  # then chunks are sent, which works wherever there are any
        return None
    return SharedSlab(offer, kind.base)


class Mapping:
    """A slab of a peer, mapped here.

    Attributes
    ----------
    address, nbytes : int
        Where, and how much.
    uses : int
        Messages that are being pulled from it.
    connections : set of Agreement
        Whose messages will be.
    """

    def __init__(self, address: int, nbytes: int) -> None:
        self.address = address
        self.nbytes = nbytes
        self.uses = 0
        self.connections: weakref.WeakSet[Agreement] = weakref.WeakSet()

    def place_of(self, name: ChunkName, nbytes: int) -> int:
        """Return where a chunk of so many bytes begins.

        Raises
        ------
        DataError
            If the slab has none there.
        """
        if name.offset % ALIGNMENT_BYTES or name.offset + nbytes > self.nbytes:
            raise DataError(
                f"a chunk of {nbytes} bytes at {name.offset} was announced, and the slab has "
                f"{self.nbytes} bytes"
            )
        return self.address + name.offset


class Mappings:
    """All slabs of peers that are mapped with one object for copies. Thread-safe.

    A slab stays mapped, since mapping takes milliseconds, until all connections over which it was
    offered have closed, its process offers another, or the pool of this process goes.

    Parameters
    ----------
    memory : SharedMemory
        What maps them.
    """

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._mapped: dict[SlabOffer, Mapping] = {}
        self._ended = False

    def __len__(self) -> int:
        return len(self._mapped)

    def use(self, offer: SlabOffer, connection: Agreement) -> Mapping:
        """Return a slab, mapped until `release` at least.

        Raises
        ------
        AvailabilityError, ConfigurationError, DriverError, MemoryError
            If it cannot be mapped.
        """
        with self._lock:
            found = self._mapped.get(offer)
            if found is None:
                for other, mapping in self._mapped.items():
                    if other.process == offer.process:
                        mapping.connections.clear()
                self._close_idle()
                found = self._mapped[offer] = _mapped(self._memory, offer)
            found.uses += 1
            if not self._ended:
                found.connections.add(connection)
        return found

    def release(self, mapping: Mapping) -> None:
        """End a use: copies from the slab are done."""
        with self._lock:
            mapping.uses -= 1
            self._close_idle()

    def forget(self, connection: Agreement) -> None:
        """Unmap what only this connection kept, as soon as nothing is copied from it."""
        with self._lock:
            for mapping in self._mapped.values():
                mapping.connections.discard(connection)
            self._close_idle()

    def end(self) -> None:
        """Unmap everything, now and later, as soon as nothing is copied from it."""
        with self._lock:
            self._ended = True
            for mapping in self._mapped.values():
                mapping.connections.clear()
            self._close_idle()

    def _close_idle(self) -> None:
        for offer, mapping in list(self._mapped.items()):
            if not mapping.uses and not mapping.connections:
                del self._mapped[offer]
                # What goes wrong is nobody's business any more.
                with contextlib.suppress(UvmError, MemoryError):
                    self._memory.close_ipc_memory(mapping.address)


def _mapped(memory: SharedMemory, offer: SlabOffer) -> Mapping:
    if offer.machine != _machine():
        raise AvailabilityError("the slab is of another machine: CUDA IPC does not leave it")
    address = memory.open_ipc_memory(offer.handle)
    try:
        kind = memory.memory_kind(address)
    except DriverError:
        kind = None
    # What was mapped counts, and not what the peer says of it, unless CUDA does not tell.
    return Mapping(address, kind.nbytes if kind is not None and kind.nbytes else offer.nbytes)


def _machine() -> bytes:
    from rmm_uvm.ipc.machine import machine_id  # needs RMM

    return machine_id()


class Agreement:
    """The agreement of a connection's two ends, for messages in either direction.

    Attributes
    ----------
    announced : int
        Chunks that this end has announced to be pulled.
    expected : int
        Chunks that the other end has announced.
    offer : SlabOffer or None
        What this end pulls from.
    """

    def __init__(self) -> None:
        self.announced = 0
        self.expected = 0
        self.offer: SlabOffer | None = None
        self._mappings: Mappings | None = None
        self._answered: SlabOffer | None = None
        self._pulls = False

    def way(self, slab: SharedSlab | None) -> FrameKind:
        """Return how chunks of a slab travel to the peer; None: of none that could be pulled."""
        if slab is None:
            return FrameKind.CHUNK
        if slab.offer != self._answered:
            return FrameKind.OFFER
        return FrameKind.PULL if self._pulls else FrameKind.CHUNK

    def answered(self, slab: SharedSlab, *, pulls: bool) -> None:
        """Remember what the peer answered."""
        self._answered, self._pulls = slab.offer, pulls

    def name(self, offset: int) -> ChunkName:
        """Return the name of the next chunk that is announced."""
        self.announced += 1
        return ChunkName(offset, self.announced - 1)

    def consider(self, offer: SlabOffer, mappings: Mappings) -> Mapping | None:
        """Return the slab that a peer offers, in use; None if it cannot be mapped here."""
        self.end()
        try:
            found = mappings.use(offer, self)
        except (UvmError, MemoryError):
            return None
        self.offer, self._mappings = offer, mappings
        return found

    def use(self, mappings: Mappings) -> Mapping:
        """Return the slab that is pulled from, in use; mapped anew if this process' pool is new.

        Raises
        ------
        DataError
            If none was offered, or this end had said that it does not pull.
        AvailabilityError, ConfigurationError, DriverError, MemoryError
            If it cannot be mapped any more.
        """
        if self.offer is None:
            raise DataError("a message to be pulled was announced, and nothing was agreed on")
        self._mappings = mappings
        return mappings.use(self.offer, self)

    def check(self, name: ChunkName) -> None:
        """Refuse a chunk that is not the next one.

        Raises
        ------
        DataError
            If it is not.
        """
        if name.generation != self.expected:
            raise DataError(
                f"chunk {name.generation} was announced in place of chunk {self.expected}: "
                "the two ends have lost step"
            )
        self.expected += 1

    def end(self) -> None:
        """Let go of the slab that was pulled from: the connection closed, or another is offered."""
        mappings, self._mappings, self.offer = self._mappings, None, None
        if mappings is not None:
            mappings.forget(self)
