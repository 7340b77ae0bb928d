# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Receiving the frames of one message, and why transfers cannot come to a halt.

The budgets are small, and any number of workers may send to one another at once. No circle of
them can wait for each other's chunks:

1. A chunk that is pulled is filled when it is announced. It waits for the receiver's copy, for
   which the receiver needs no chunk. Hence it becomes free again, be it a send chunk or a receive
   chunk of the sender.
2. Otherwise a receive chunk is acquired only when the header, or a ready message, has said that the
   chunk is on its way: the sender has filled it and posted it (the first one it posts as soon as
   the message's other frames are through) and needs no other chunk to send it.
   So who holds a receive chunk waits for a transport and a copy, and never for a chunk.
   Hence every receive chunk becomes free again.
3. They are handed out first come, first served. Hence whoever asks for one gets it. A stream that
   is pulled takes those that are free at once, and does not ask.
4. So every chunk that was posted is received, and its send chunk becomes free.
   Hence every send chunk becomes free, and whoever asks for one gets it, too.

In a stream that is pulled, an extra chunk is posted, and those behind it wait with it for a receive
chunk of the receiver. So from then on it takes no receive chunk: step 1 would fail for it.

With one budget for both directions step 2 fails: all of it may be filled chunks that wait to be
received at a peer in the same state. Without ready messages it fails too: receive chunks may be
held for data whose sender waits for a send chunk. Both are tested, in a model and with this code.

It takes for granted that a message whose header was sent is read: Dask reads each connection in
one loop. Where a peer stops reading, waiting ends after `CommSettings.wait_seconds`.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from rmm_uvm.dask.comm.budget import Chunk, DeviceRange, Holding, way_through
from rmm_uvm.dask.comm.channel import Channel, PostedMessage, Turn, in_turn
from rmm_uvm.dask.comm.handshake import Peer
from rmm_uvm.dask.comm.plan import Piece, PlannedChunk, chunk_count, plan_stream
from rmm_uvm.dask.comm.pulling import Mapping
from rmm_uvm.dask.comm.quarantine import Mark
from rmm_uvm.dask.comm.send import DEPTH
from rmm_uvm.dask.comm.staging import Exportable, Staging
from rmm_uvm.dask.comm.statistics import totals
from rmm_uvm.dask.comm.wire import (
    END,
    MOST_MESSAGE_BYTES,
    NAMED_BYTES,
    OFFER_BYTES,
    OPENING_BYTES,
    PRELUDE_BYTES,
    READY,
    ChunkName,
    FrameKind,
    Header,
    header_bytes,
    header_in_opening,
    pack_answer,
    pack_done,
    unpack_header,
    unpack_offer,
    unpack_opening,
    unpack_prelude,
    unpack_ready,
)
from rmm_uvm.errors import AvailabilityError, DataError
from rmm_uvm.machine.host_memory import host_memory

__all__ = ["receive_message"]


async def receive_message(
    channel: Channel,
    peer: Peer,
    staging_of: Callable[[], Staging],
    host_buffer: Callable[[int], Any] = bytearray,
) -> list[Any] | None:
    """Receive a message.

    Parameters
    ----------
    channel : Channel
        Nothing else may be posted to it meanwhile.
    peer : Peer
        The other end.
    staging_of : callable
        Returns the staging; called if a frame is on a device.
    host_buffer : callable
        Returns writable host memory of so many bytes.

    Returns
    -------
    list or None
        Host buffers, and `rmm.DeviceBuffer` of the current resource, complete on every stream.
        None if the sender hangs up.

    Raises
    ------
    Exception
        Whatever the channel, a copy or an allocation raises, and `DataError` for a message that
        cannot be, which is counted. The connection is then of no use; chunks are in quarantine.
    """
    try:
        return await _receive(channel, peer, staging_of, host_buffer)
    except DataError:
        totals().refused_messages += 1
        raise


async def _receive(
    channel: Channel,
    peer: Peer,
    staging_of: Callable[[], Staging],
    host_buffer: Callable[[int], Any],
) -> list[Any] | None:
    begun = memoryview(bytearray(OPENING_BYTES if peer.ours else PRELUDE_BYTES))
    await channel.recv(begun, idle=True)
    closing, entries = unpack_prelude(begun[:PRELUDE_BYTES])
    if closing:
        return None
    opened: Sequence[memoryview] = ()
    if peer.ours and header_in_opening(entries):
        header, opened = unpack_opening(begun, entries, most_host_bytes())
    else:
        packed = bytearray(header_bytes(entries))
        await channel.recv(packed)
        header = unpack_header(packed, entries, most_host_bytes())
    if any(header.kinds):
        return await _receive_device_frames(channel, header, opened, staging_of(), host_buffer)
    frames = [host_buffer(size) for size in header.sizes]
    await _receive_whole(channel, frames, header, opened)
    return frames


@functools.cache
def most_host_bytes() -> int:
    """Return the host memory that this process could have if it were alone, in bytes."""
    try:
        memory = host_memory()
    except AvailabilityError:
        return MOST_MESSAGE_BYTES
    return min(memory.total_bytes, memory.limit_bytes or memory.total_bytes)


async def _receive_device_frames(
    channel: Channel,
    header: Header,
    opened: Sequence[memoryview],
    staging: Staging,
    host_buffer: Callable[[int], Any],
) -> list[Any]:
    frames: list[Any] = []
    mapping: Mapping | None = None
    try:
        staging.refuse_without_memory()
        for kind, size in zip(header.kinds, header.sizes, strict=True):
            frames.append(staging.allocate(size) if kind else host_buffer(size))
        exportable = Exportable(staging.copies)
        targets = [
            _StreamFrame(frame, exportable)
            for frame, kind in zip(frames, header.kinds, strict=True)
            if kind is FrameKind.STREAM
        ]
        written = FrameKind.DEVICE in header.kinds or any(target.in_place for target in targets)
        if settled := written or not staging.chunks_settled:
            await staging.settle_for_transport()
        else:
            staging.enter_device()
        mapping = await _mapping(channel, header.way, staging)
        await _receive_whole(channel, frames, header, opened)
        _count_whole(frames, header, exportable, staging)
        if targets:
            sizes = [target.nbytes for target in targets]
            plans = plan_stream(sizes, header.chunk_bytes)
            count = chunk_count(sizes, header.chunk_bytes)
            with staging.hold(staging.receiving) as held:
                await _receive_stream(
                    channel, plans, count, targets, held, staging, mapping, settled=settled
                )
        if mapping is not None:
            await _end(channel)
            staging.mappings.release(mapping)
    except BaseException:
        staging.totals.aborted_transfers += 1
        staging.keep(frames)  # the peer, or copies of ours, may still be writing them
        if mapping is not None:
            staging.keep_mapped(mapping)
        raise
    return frames


async def _mapping(channel: Channel, way: FrameKind, staging: Staging) -> Mapping | None:
    """Return the slab that the stream is pulled from, in use; None if it is sent, or is none."""
    if way is FrameKind.PULL:
        return channel.agreement.use(staging.mappings)
    if way is FrameKind.CHUNK:
        return None
    offer = bytearray(OFFER_BYTES)
    await channel.recv(offer)
    mapping = channel.agreement.consider(unpack_offer(offer), staging.mappings)
    try:
        await channel.send_back(pack_answer(pulls=mapping is not None))
    except BaseException:
        if mapping is not None:
            staging.mappings.release(mapping)
        raise
    return mapping


async def _end(channel: Channel) -> None:
    """Wait until the sender has said that every chunk was its own until it was read."""
    message = bytearray(len(END))
    await channel.recv(message)
    if message != END:
        raise DataError(
            "expected the end of a stream, got another message: the two ends have lost step"
        )


async def _receive_whole(
    channel: Channel, frames: Sequence[Any], header: Header, opened: Sequence[memoryview]
) -> None:
    """Fill the first frames, which came with the header; receive those that are messages."""
    for frame, found in zip(frames, opened, strict=False):
        frame[:] = found
    if (count := len(opened)) == len(frames):
        return
    each = zip(frames[count:], header.kinds[count:], header.sizes[count:], strict=True)
    await in_turn(
        channel.recv(frame) for frame, kind, size in each if size and kind is not FrameKind.STREAM
    )


class _StreamFrame:
    """A frame of the stream: where it begins, and whether a transport may write there itself."""

    __slots__ = ("address", "frame", "in_place", "nbytes")

    def __init__(self, frame: Any, exportable: Exportable) -> None:
        self.frame = frame
        self.address: int = frame.ptr
        self.nbytes: int = frame.nbytes
        self.in_place = self.nbytes > 0 and bool(exportable(self.address))


async def _receive_stream(
    channel: Channel,
    plans: Iterable[PlannedChunk],
    count: int,
    targets: Sequence[_StreamFrame],
    held: Holding,
    staging: Staging,
    mapping: Mapping | None,
    *,
    settled: bool,
) -> None:
    """Receive all chunks, some under way while others are copied to where they belong.

    With a mapping, copy them from there.
    """
    arriving: collections.deque[_Arriving] = collections.deque()
    leaving: collections.deque[_Leaving] = collections.deque()
    answers: collections.deque[PostedMessage] = collections.deque()
    turn = Turn()
    # The header stands for the first chunk's, if it is sent.
    announced = count if mapping is not None else count - 1
    ready = _Ready(channel, pulls=mapping is not None) if announced > 0 else None
    if ready is not None and mapping is not None:
        ready.post()

    async def leave() -> None:
        one = leaving.popleft()
        await staging.reached(one.copied)
        if one.chunk is not None:
            held.release(one.chunk)
        if one.name is not None:
            while len(answers) >= DEPTH:
                await answers.popleft()
            answers.append(channel.send_back(pack_done(one.name)))

    for number, plan in enumerate(plans):
        name: ChunkName | None = None
        if ready is not None and (number or mapping is not None):
            # Nothing is held while it may be long: see step 1 of the proof.
            while not ready.done() and (arriving or leaving):
                if arriving:
                    await _arrive(arriving.popleft(), leaving, targets, staging)
                else:
                    await leave()
            name = await ready.received()
        chunk: Chunk | None = None
        if name is None:
            first = plan.pieces[0]
            if first.nbytes == plan.nbytes and targets[first.frame].in_place:
                place = _place(first, targets)
            else:
                while (chunk := held.acquire_now(plan.nbytes)) is None and (arriving or leaving):
                    if leaving:
                        await leave()
                    else:
                        await _arrive(arriving.popleft(), leaving, targets, staging)
                if chunk is None:  # who waits for others' chunks has none that they could wait for
                    chunk = await held.acquire(plan.nbytes)
                if not chunk.pooled:
                    await staging.settle_for_transport()
                place = chunk.view(plan.nbytes)
            arriving.append(_Arriving(channel.recv(place), plan, chunk))
        if not number and not settled:
            # Copies follow what was queued for the frames' memory a moment ago.
            staging.order_after_default_stream()
        if name is not None and mapping is not None:
            leaving.append(_pull(name, plan, mapping, channel, leaving, targets, staging))
        if number + 1 < count and ready is not None:
            ready.post()  # behind the chunk, as it was sent
        while len(arriving) >= DEPTH:
            await _arrive(arriving.popleft(), leaving, targets, staging)
        while len(leaving) >= DEPTH:
            await leave()
        await turn.give_way()
    while arriving:
        await _arrive(arriving.popleft(), leaving, targets, staging)
    while leaving:
        await leave()
    while answers:
        await answers.popleft()


def _pull(
    name: ChunkName,
    plan: PlannedChunk,
    mapping: Mapping,
    channel: Channel,
    leaving: Iterable[_Leaving],
    targets: Sequence[_StreamFrame],
    staging: Staging,
) -> _Leaving:
    """Begin to copy a chunk from where the peer has it."""
    channel.agreement.check(name)
    address = mapping.place_of(name, plan.nbytes)
    for other in leaving:
        if other.name is not None and (
            other.name.offset < name.offset + plan.nbytes
            and name.offset < other.name.offset + other.nbytes
        ):
            raise DataError(f"{name} was announced while {other.name} was still being read")
    staging.totals.count("received", "staged", plan.frame_bytes)
    staging.totals.pulled_bytes += plan.frame_bytes
    return _Leaving(_copied_out(address, plan, targets, staging), None, name, plan.nbytes)


class _Arriving(NamedTuple):
    """A chunk whose receive is posted; None: straight to where its bytes belong."""

    received: PostedMessage
    plan: PlannedChunk
    chunk: Chunk | None


class _Leaving(NamedTuple):
    """A chunk that is being copied to where its bytes belong: one of ours, or one of the peer."""

    copied: Mark
    chunk: Chunk | None
    name: ChunkName | None = None
    nbytes: int = 0


async def _arrive(
    one: _Arriving,
    leaving: collections.deque[_Leaving],
    targets: Sequence[_StreamFrame],
    staging: Staging,
) -> None:
    await one.received
    staging.totals.count("received", way_through(one.chunk), one.plan.frame_bytes)
    if one.chunk is None:
        return
    leaving.append(_Leaving(_copied_out(one.chunk.address, one.plan, targets, staging), one.chunk))


def _copied_out(
    address: int, plan: PlannedChunk, targets: Sequence[_StreamFrame], staging: Staging
) -> Mark:
    """Begin to copy a chunk's bytes to where they belong."""
    return staging.begin(
        [
            (targets[frame].address + frame_offset, address + offset, nbytes)
            for frame, frame_offset, offset, nbytes in plan.pieces
        ]
    )


class _Ready:
    """The message that says that the next chunk is on its way."""

    def __init__(self, channel: Channel, *, pulls: bool) -> None:
        self._channel = channel
        self._pulls = pulls
        self._message: bytearray
        self._posted: PostedMessage

    def post(self) -> None:
        """Post its receive, behind that of the chunk before."""
        self._message = bytearray(NAMED_BYTES if self._pulls else len(READY))
        self._posted = self._channel.recv(self._message)

    def done(self) -> bool:
        """Return whether it has come."""
        return self._posted.done()

    async def received(self) -> ChunkName | None:
        """Wait for it; return the name of a chunk to pull, None for one that comes."""
        await self._posted
        if self._pulls:
            return unpack_ready(self._message)
        if self._message != READY:
            raise DataError("expected a ready message, got another: the two ends have lost step")
        return None


def _place(piece: Piece, targets: Sequence[_StreamFrame]) -> DeviceRange:
    target = targets[piece.frame]
    return DeviceRange(target.address + piece.frame_offset, piece.nbytes, target.frame)


def _count_whole(
    frames: Sequence[Any], header: Header, exportable: Exportable, staging: Staging
) -> None:
    for frame, kind, size in zip(frames, header.kinds, header.sizes, strict=True):
        if kind is not FrameKind.DEVICE or not size:
            continue
        if exportable(frame.ptr):
            staging.totals.count("received", "direct", size)
        else:
            staging.totals.count("received", "overflow", size)
            staging.remarks.received_unstaged(size)
