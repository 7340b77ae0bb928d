# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An in-process transport with UCX's rules, and a device whose copies are made by the host."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import ctypes
import random
import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import rmm

import rmm_uvm
from rmm_uvm._lib.transfers import Transfers
from rmm_uvm.dask.comm.handshake import Peer
from rmm_uvm.dask.comm.notices import Notices
from rmm_uvm.dask.comm.pulling import Agreement
from rmm_uvm.dask.comm.quarantine import Quarantine
from rmm_uvm.dask.comm.receive import receive_message
from rmm_uvm.dask.comm.send import send_message
from rmm_uvm.dask.comm.settings import CommSettings
from rmm_uvm.dask.comm.staging import Staging
from rmm_uvm.dask.comm.statistics import CommTotals
from rmm_uvm.errors import DriverError
from rmm_uvm.mr import ManagedMemoryResource, SimulatedCudaMemoryResource

EAGER_BYTES = 64  # UCX's are larger; small here, so that most messages are a rendezvous
KIB = 1 << 10


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def address_and_bytes(buffer: Any) -> tuple[int, int, object]:
    """Return where a buffer of either kind lies, its size, and what keeps it there."""
    interface = getattr(buffer, "__cuda_array_interface__", None)
    if interface is not None:
        return interface["data"][0], interface["shape"][0], buffer
    view = memoryview(buffer).cast("B")
    if view.readonly:
        copy = ctypes.create_string_buffer(view.tobytes(), max(view.nbytes, 1))
        return ctypes.addressof(copy), view.nbytes, copy
    pinned = (ctypes.c_char * view.nbytes).from_buffer(view)
    return ctypes.addressof(pinned), view.nbytes, pinned


class _Message(NamedTuple):
    address: int
    nbytes: int
    alive: object
    done: asyncio.Future[None]


class ClosedError(Exception):
    """The transport broke."""


class Lane:
    """A queue of messages of one end, and of the receives that wait for them."""

    def __init__(self) -> None:
        self.arrived: collections.deque[Any] = collections.deque()
        self.posted: collections.deque[Any] = collections.deque()


class InProcessChannel:
    """One end. Messages match receives in the order of posting.

    A message of more than `EAGER_BYTES` is read from the sender's buffer when it is received, and
    only then is its send done: what UCX calls a rendezvous.
    """

    def __init__(self) -> None:
        self.peer: InProcessChannel
        self.closed = False
        self.sent_count = 0
        self.break_after: int | None = None  # messages sent
        self.after_send: Callable[[int], object] = lambda count: None  # told how many were sent
        self.events: list[str] = []  # of device memory
        self.agreement = Agreement()
        self._lanes = (Lane(), Lane())  # the second is what `send_back` and `recv_back` use

    @classmethod
    def pair(cls) -> tuple[InProcessChannel, InProcessChannel]:
        one, other = cls(), cls()
        one.peer, other.peer = other, one
        return one, other

    @property
    def alive(self) -> bool:
        return not self.closed

    def send(self, buffer: Any, lane: int = 0) -> asyncio.Future[None]:
        if self.sent_count == self.break_after:
            self.abort()
        if self.closed:
            raise ClosedError("send on a closed channel")
        self.sent_count += 1
        self._note("send", buffer)
        address, nbytes, alive = address_and_bytes(buffer)
        message = _Message(address, nbytes, alive, _future())
        if nbytes <= EAGER_BYTES:
            copy = ctypes.create_string_buffer(ctypes.string_at(address, nbytes), max(nbytes, 1))
            message = message._replace(address=ctypes.addressof(copy), alive=copy)
            message.done.set_result(None)
        self.peer._lanes[lane].arrived.append(message)
        self.after_send(self.sent_count)
        self.peer._match(self.peer._lanes[lane])
        return message.done

    def recv(self, buffer: Any, *, idle: bool = False, lane: int = 0) -> asyncio.Future[None]:
        if self.closed and not self._lanes[lane].arrived:
            raise ClosedError("receive on a closed channel")
        self._note("receive", buffer)
        address, nbytes, alive = address_and_bytes(buffer)
        posted = _Message(address, nbytes, alive, _future())
        self._lanes[lane].posted.append(posted)
        self._match(self._lanes[lane])
        return posted.done

    def send_back(self, buffer: Any) -> asyncio.Future[None]:
        return self.send(buffer, lane=1)

    def recv_back(self, buffer: Any) -> asyncio.Future[None]:
        return self.recv(buffer, lane=1)

    def _note(self, event: str, buffer: Any) -> None:
        if hasattr(buffer, "__cuda_array_interface__"):
            self.events.append(event)

    def abort(self) -> None:
        """Break the connection, for both ends; what has arrived can still be received."""
        for end in (self, self.peer):
            end.closed = True
            end.agreement.end()
            for lane in end._lanes:
                for message in (*lane.arrived, *lane.posted):
                    if not message.done.done():
                        message.done.set_exception(ClosedError("the connection broke"))
                        message.done.exception()  # nobody has to ask
                lane.posted.clear()

    def _match(self, lane: Lane) -> None:
        while lane.arrived and lane.posted:
            if lane.posted[0].done.cancelled():
                return  # who cancels breaks the connection off: nothing arrives any more
            message, posted = lane.arrived.popleft(), lane.posted.popleft()
            if _is_lost(message.done):
                posted.done.set_exception(ClosedError("the connection broke"))
                continue
            assert message.nbytes <= posted.nbytes, (message.nbytes, posted.nbytes)
            ctypes.memmove(posted.address, message.address, message.nbytes)
            for side in (message, posted):
                if not side.done.done():
                    side.done.set_result(None)


def _is_lost(request: asyncio.Future[None]) -> bool:
    return request.done() and (request.cancelled() or request.exception() is not None)


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


class Kind(NamedTuple):
    ipc_capable: bool
    base: int
    nbytes: int


class FakeMark:
    def __init__(self, copies: FakeCopies) -> None:
        self._copies = copies
        self._polls = copies.polls
        self._upto = copies.queued_count

    def done(self) -> bool:
        if self._copies.broken:
            raise DriverError("the device is lost")
        self._polls -= 1
        if self._polls >= 0:
            return False
        self._copies.execute(self._upto)
        return True


class FakeCopies:
    """Copies that are made when a mark behind them is done, which takes `polls` polls.

    So bytes that are used before their copy is known to be done are the wrong ones.
    """

    def __init__(self, polls: int = 0) -> None:
        self.polls = polls
        self.broken = False
        self.copied_bytes = 0
        self.queued_count = 0
        self.fail_after: int | None = None  # calls of copy
        self.events: list[str] = []
        self.exportable: Callable[[int], bool | None] = lambda address: False
        self.slab: tuple[int, int] | None = None  # what others can map: first byte, bytes
        self.maps = True  # what others share
        self.mapped: collections.Counter[int] = collections.Counter()
        self._mapped_bytes: dict[int, int] = {}
        self._queued: collections.deque[tuple[int, int, int]] = collections.deque()

    def memory_kind(self, address: int) -> Kind | None:
        if self.slab is not None and 0 <= address - self.slab[0] < self.slab[1]:
            return Kind(True, *self.slab)
        for base, nbytes in self._mapped_bytes.items():
            if 0 <= address - base < nbytes:
                return Kind(False, base, nbytes)
        exportable = self.exportable(address)
        return None if exportable is None else Kind(exportable, address, 1)

    def ipc_memory_handle(self, base: int) -> bytes:
        if self.slab is None or base != self.slab[0]:
            raise DriverError("the memory cannot be shared")
        return b"".join(number.to_bytes(8, "little") for number in self.slab).ljust(64, b"\0")

    def open_ipc_memory(self, handle: bytes) -> int:
        if not self.maps:
            raise DriverError("no peer access")
        # Both ends are in one process.
        base, nbytes = (int.from_bytes(handle[at : at + 8], "little") for at in (0, 8))
        self.mapped[base] += 1
        self._mapped_bytes[base] = nbytes
        return base

    def close_ipc_memory(self, address: int) -> None:
        assert self.mapped[address] > 0
        self.mapped[address] -= 1
        if not self.mapped[address]:
            del self._mapped_bytes[address]

    def wait_for(self, stream: int) -> None:
        assert stream == 0
        self.events.append("wait")

    def copy(self, copies: Sequence[tuple[int, int, int]]) -> None:
        if self.fail_after is not None:
            self.fail_after -= 1
            if self.fail_after < 0:
                raise DriverError("the copy failed")
        if copies:
            self.events.append("copy")
        self._queued.extend(copies)
        self.queued_count += len(copies)

    def mark(self) -> FakeMark:
        return FakeMark(self)

    def execute(self, upto: int) -> None:
        """Make the copies that were queued first, so many since the beginning."""
        while self._queued and self.queued_count - len(self._queued) < upto:
            to, source, nbytes = self._queued.popleft()
            ctypes.memmove(to, source, nbytes)
            self.copied_bytes += nbytes
        self.events.append("done")


class Process:
    """What one process has: a device, an IPC pool, and a staging over them."""

    def __init__(
        self,
        pool_bytes: int = 64 * KIB,
        *,
        chunk_bytes: int | None = 4 * KIB,
        wait_seconds: float = 5.0,
        polls: int = 0,
        managed: bool = True,
        memory: str = "256MiB",
        shares: bool = False,
    ) -> None:
        self.device = rmm_uvm.simulated_device(memory, backing=True)
        self.clock = FakeClock()
        self.notices = Notices(self.clock)
        self.said: list[tuple[str, str]] = []
        self.notices.subscribe(lambda reason, text: self.said.append((reason, text)))
        self.totals = CommTotals()
        self.copies = FakeCopies(polls)
        self.ipc_mr = SimulatedCudaMemoryResource(self.device)
        self._managed, self._shares = managed, shares
        self._pool_bytes, self._settings = pool_bytes, CommSettings(chunk_bytes, wait_seconds)
        self._exportable: set[int] = set()
        self.process = secrets.token_bytes(16)
        upstream = ManagedMemoryResource(self.device) if managed else self.ipc_mr
        self.statistics_mr = rmm.mr.StatisticsResourceAdaptor(
            rmm.mr.PoolMemoryResource(upstream, 32 << 20, 128 << 20)
        )
        self.mr = self.statistics_mr
        self.allocations_left: int | None = None
        self.copies.exportable = lambda address: not managed or address in self._exportable
        self.stagings: list[Staging] = []
        self.reinitialize()
        self.peer = Peer(
            ours=True,
            receives="staged" if managed else "direct",
            chunk_bytes=self.staging.chunk_bytes,
        )

    def reinitialize(self) -> None:
        """Take another pool; what is under way goes on with the one before."""
        nbytes = self._pool_bytes
        pool = rmm.mr.PoolMemoryResource(self.ipc_mr, nbytes, nbytes) if nbytes else None
        if self.stagings:
            self.staging.mappings.end()
        self.staging = Staging(
            self.copies,
            pool,
            nbytes,
            self.allocate,
            self._settings,
            notices=self.notices,
            counted=self.totals,
            quarantine=Quarantine(clock=self.clock),
            clock=self.clock,
            process=self.process,
        )
        self.stagings.append(self.staging)
        for budget in (self.staging.sending, self.staging.receiving):
            self._exportable |= {chunk.address for chunk in budget._free}
        if self._shares and self.staging.sending.count:  # so that peers pull from it
            kind = Transfers(self.device).memory_kind(self.staging.sending._free[0].address)
            assert kind is not None
            self.copies.slab = (kind.base, kind.nbytes)

    def allocate(self, nbytes: int) -> rmm.DeviceBuffer:
        if self.allocations_left is not None:
            self.allocations_left -= 1
            if self.allocations_left < 0:
                raise MemoryError("no memory")
        self.copies.events.append("allocate")
        return rmm.DeviceBuffer(size=nbytes, mr=self.mr)

    def frame(self, nbytes: int, seed: int = 0) -> rmm.DeviceBuffer:
        """Return device memory filled with bytes that depend on the seed."""
        buffer = rmm.DeviceBuffer(size=nbytes, mr=self.mr)
        if nbytes:
            ctypes.memmove(buffer.ptr, random.Random(seed).randbytes(nbytes), nbytes)
        return buffer

    def assert_whole(self) -> None:
        """Check that every chunk is back, now or once the quarantine is over."""
        self.clock.now += 1000
        for staging in self.stagings:
            for _ in range(10_000):  # marks are done after some polls
                staging.quarantine.collect()
            assert len(staging.quarantine) == 0
            for budget in (staging.sending, staging.receiving):
                assert budget.free_count == budget.count
                assert budget.waiting_count == 0
                assert len({chunk.address for chunk in budget._free}) == budget.count
            for mapping in staging.mappings._mapped.values():
                assert mapping.uses == 0

    async def send(self, channel: InProcessChannel, frames: Sequence[Any], to: Process) -> int:
        with _aborting(channel):
            return await send_message(channel, frames, to.peer, lambda: self.staging)

    async def receive(self, channel: InProcessChannel) -> list[Any] | None:
        with _aborting(channel):
            return await receive_message(channel, self.peer, lambda: self.staging)


@contextlib.contextmanager
def _aborting(channel: InProcessChannel) -> Any:
    """Break a connection after a failure, as the backend does."""
    try:
        yield
    except BaseException:
        channel.abort()
        raise


async def transfer(one: Process, other: Process, frames: Sequence[Any]) -> list[Any]:
    """Send a message over a new connection and return what arrives."""
    here, there = InProcessChannel.pair()
    _, received = await asyncio.gather(one.send(here, frames, other), other.receive(there))
    assert received is not None
    return received


def contents(frame: Any) -> bytes:
    if hasattr(frame, "ptr"):
        return ctypes.string_at(frame.ptr, frame.nbytes) if frame.nbytes else b""
    return bytes(frame)
