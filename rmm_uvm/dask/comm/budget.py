# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The staging chunks of one direction: a fixed number, handed out first come, first served.

Chunks are carved from the IPC pool once and are all of one size, so nothing fragments and nothing
is allocated while data move. Does not cover how large they are; see `rmm_uvm.dask.comm.settings`.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from rmm_uvm.dask.comm.quarantine import Mark, Quarantine
from rmm_uvm.dask.comm.statistics import Way

__all__ = ["Chunk", "ChunkBudget", "DeviceRange", "Holding", "way_through"]

_IMPATIENT_SECONDS = 0.1  # what a chunk of managed memory takes on the wire, or a little more


class DeviceRange:
    """Device memory as transports take it.

    Parameters
    ----------
    address, nbytes : int
        Where, and how much.
    owner : object
        What keeps the memory alive.
    """

    __slots__ = ("__cuda_array_interface__", "nbytes", "owner")

    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self.nbytes = nbytes
        self.owner = owner
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (nbytes,),
            "strides": None,
            "typestr": "|u1",
            "version": 3,
        }


class Chunk:
    """A piece of memory through which frames pass.

    Attributes
    ----------
    address, nbytes : int
        Where, and how much.
    pooled : bool
        It belongs to the IPC pool; else it was taken because there was no other.
    overflow : bool
        It is memory that CUDA IPC cannot export.
    """

    __slots__ = ("address", "nbytes", "overflow", "owner", "pooled")

    def __init__(self, owner: Any, *, pooled: bool = True, overflow: bool = False) -> None:
        self.owner = owner
        self.address: int = owner.ptr
        self.nbytes: int = owner.nbytes
        self.pooled = pooled
        self.overflow = overflow

    def view(self, nbytes: int) -> DeviceRange:
        """Return its first `nbytes` as a transport takes them."""
        return DeviceRange(self.address, nbytes, self.owner)


def way_through(chunk: Chunk | None) -> Way:
    """Return the way of what passes through a chunk; None: through none."""
    if chunk is None:
        return "direct"
    return "overflow" if chunk.overflow else "staged"


class _Waiter:
    __slots__ = ("future", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Chunk] = self.loop.create_future()


class ChunkBudget:
    """Hands out chunks. Thread-safe: event loops of several threads may share it.

    Parameters
    ----------
    chunks : iterable of Chunk
        All there are.
    make_extra : callable
        Returns a chunk of so many bytes from elsewhere, for who has waited too long.
    wait_seconds : float
        What is too long.
    on_wait : callable
        Told the seconds of every wait.
    clock : callable
        Returns seconds that only grow.
    """

    def __init__(
        self,
        chunks: Iterable[Chunk],
        make_extra: Callable[[int], Chunk],
        *,
        wait_seconds: float,
        quarantine: Quarantine,
        on_wait: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._free = collections.deque(chunks)
        self.count = len(self._free)
        self.chunk_bytes = min((chunk.nbytes for chunk in self._free), default=0)
        self.wait_seconds = wait_seconds
        self.quarantine = quarantine
        self._make_extra = make_extra
        self._on_wait = on_wait
        self._clock = clock
        self._lock = threading.Lock()
        self._waiters: collections.deque[_Waiter] = collections.deque()

    @property
    def total_bytes(self) -> int:
        """Bytes of all its chunks, free or not."""
        return self.count * self.chunk_bytes

    @property
    def free_count(self) -> int:
        """Chunks that nobody holds and that are not in quarantine."""
        return len(self._free)

    @property
    def waiting_count(self) -> int:
        """Transfers that wait for a chunk."""
        return len(self._waiters)

    def acquire_now(self, nbytes: int) -> Chunk | None:
        """Return what `acquire` would without waiting; None if it would wait."""
        if nbytes > self.chunk_bytes:
            return self._make_extra(nbytes)
        self.quarantine.collect()
        with self._lock:
            return self._free.popleft() if self._free and not self._waiters else None

    async def acquire(self, nbytes: int, wait_seconds: float = math.inf) -> Chunk:
        """Return a chunk of at least `nbytes`, which the caller gives back with `release`.

        Waits for at most `wait_seconds`, its own or those of the budget if they are less, behind
        those who came before. Then, or if chunks are smaller than that, it is an extra chunk, so
        that nothing waits for ever.

        Raises
        ------
        MemoryError
            If there is no memory for an extra chunk either.
        """
        if nbytes > self.chunk_bytes:
            return self._make_extra(nbytes)
        self.quarantine.collect()
        with self._lock:
            if self._free and not self._waiters:
                return self._free.popleft()
            waiter = _Waiter()
            self._waiters.append(waiter)
        began = self._clock()
        try:
            chunk = await self._granted(waiter, min(wait_seconds, self.wait_seconds))
        finally:
            self._on_wait(self._clock() - began)
        return self._make_extra(nbytes) if chunk is None else chunk

    def release(self, chunk: Chunk) -> None:
        """Take a chunk back; the first who waits gets it. What is not of the pool is freed."""
        if not chunk.pooled:
            return
        with self._lock:
            if not self._waiters:
                self._free.append(chunk)
                return
            waiter = self._waiters.popleft()
        self._hand_over(waiter, chunk)

    async def _granted(self, waiter: _Waiter, wait_seconds: float) -> Chunk | None:
        """Return the chunk that `release` hands over, or None when it took too long."""
        try:
            async with asyncio.timeout(wait_seconds):
                return await waiter.future
        except TimeoutError:
            return self._withdraw(waiter)
        except BaseException:
            if (chunk := self._withdraw(waiter)) is not None:
                self.release(chunk)
            raise

    def _withdraw(self, waiter: _Waiter) -> Chunk | None:
        """Wait no more; return the chunk if one was handed over in the same moment."""
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        if waiter.future.done() and not waiter.future.cancelled():
            return waiter.future.result()
        # If a hand-over is under way, it finds the future cancelled and releases the chunk again.
        with contextlib.suppress(RuntimeError):  # its event loop is closed
            waiter.future.cancel()
        return None

    def _hand_over(self, waiter: _Waiter, chunk: Chunk) -> None:
        def deliver() -> None:
            if waiter.future.done():  # cancelled
                self.release(chunk)
            else:
                waiter.future.set_result(chunk)

        try:
            here = asyncio.get_running_loop() is waiter.loop
        except RuntimeError:
            here = False
        if here:
            deliver()
            return
        try:
            waiter.loop.call_soon_threadsafe(deliver)
        except RuntimeError:  # that loop is closed: nobody waits there
            self.release(chunk)


class Holding:
    """The chunks that one message holds; a context manager.

    Leaving it puts those that were not released into quarantine, since the peer may be using
    them. Once it has waited for a chunk in vain, it waits less for the next ones, until it is given
    one: a peer that has stopped reading may hold all of them, and a message has hundreds.

    Parameters
    ----------
    budget : ChunkBudget
        Where they come from.
    mark : callable
        Returns a mark behind all copies queued so far.

    Attributes
    ----------
    spare : ChunkBudget or None
        Whose chunks are taken too, if they are free at once. Only as long as none was taken from
        elsewhere: such a chunk waits for a chunk of the peer, and those behind it with it.
    """

    def __init__(self, budget: ChunkBudget, mark: Callable[[], Mark | None]) -> None:
        self.spare: ChunkBudget | None = None
        self._budget = budget
        self._mark = mark
        self._held: dict[Chunk, ChunkBudget] = {}
        self._wait_seconds = math.inf

    def acquire_now(self, nbytes: int) -> Chunk | None:
        """See `ChunkBudget.acquire_now`."""
        for budget in filter(None, (self._budget, self.spare)):
            chunk = budget.acquire_now(nbytes)
            if chunk is not None:
                self._held[chunk] = budget
                return chunk
        return None

    async def acquire(self, nbytes: int) -> Chunk:
        """See `ChunkBudget.acquire`."""
        chunk = await self._budget.acquire(nbytes, self._wait_seconds)
        self._wait_seconds = math.inf if chunk.pooled else _IMPATIENT_SECONDS
        if not chunk.pooled:
            self.spare = None
        self._held[chunk] = self._budget
        return chunk

    def release(self, chunk: Chunk) -> None:
        """See `ChunkBudget.release`."""
        self._held.pop(chunk).release(chunk)

    def __enter__(self) -> Holding:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._held:
            return
        mark = self._mark()
        while self._held:
            chunk, budget = self._held.popitem()
            budget.quarantine.put(functools.partial(budget.release, chunk), mark)
