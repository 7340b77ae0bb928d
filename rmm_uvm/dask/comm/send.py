# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sending the frames of one message.

See Also
--------
rmm_uvm.dask.comm.receive : the other end, and why both together cannot come to a halt.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from rmm_uvm.dask.comm.budget import Chunk, DeviceRange, Holding, way_through
from rmm_uvm.dask.comm.channel import Channel, PostedMessage, Turn, in_turn
from rmm_uvm.dask.comm.handshake import Peer
from rmm_uvm.dask.comm.plan import PlannedChunk, plan_stream
from rmm_uvm.dask.comm.pulling import SharedSlab
from rmm_uvm.dask.comm.quarantine import Mark
from rmm_uvm.dask.comm.staging import Exportable, Staging
from rmm_uvm.dask.comm.statistics import totals
from rmm_uvm.dask.comm.wire import (
    ANSWER_BYTES,
    END,
    NAMED_BYTES,
    READY,
    ChunkName,
    FrameKind,
    frames_in_opening,
    header_in_opening,
    pack_header,
    pack_offer,
    pack_opening,
    pack_prelude,
    pack_ready,
    unpack_answer,
    unpack_done,
)
from rmm_uvm.errors import DataError
from rmm_uvm.residency.memory_of import interface_of

__all__ = ["DEPTH", "choose_kind", "frame_bytes", "send_message"]

DEPTH = 4
"""Chunks of one message that are copied or under way at once."""

LEAST_PULLED_PART = 16
"""A message of less than this part of a chunk is sent: pulling takes two more messages."""


def frame_bytes(frame: Any) -> int:
    """Return the size of a frame, in bytes, as Dask counts it."""
    nbytes = getattr(frame, "nbytes", None)
    return len(frame) if nbytes is None else int(nbytes)


def choose_kind(*, exportable: bool | None, has_chunks: bool, peer: Peer) -> FrameKind:
    """Return how a device frame travels.

    Parameters
    ----------
    exportable : bool or None
        CUDA IPC can export its memory; None if nothing is known of it.
    has_chunks : bool
        This process has staging chunks.
    peer : Peer
        Where to.

    Examples
    --------
    >>> peer = Peer(ours=True, receives="staged", chunk_bytes=1 << 20)
    >>> choose_kind(exportable=False, has_chunks=True, peer=peer).name
    'STREAM'
    """
    if exportable is None or not peer.ours:
        return FrameKind.DEVICE
    if exportable:
        # The peer's memory is the problem, and only if it has chunks is there a way round.
        past_chunks = peer.receives == "direct" or peer.chunk_bytes is None
        return FrameKind.DEVICE if past_chunks else FrameKind.STREAM
    return FrameKind.STREAM if has_chunks else FrameKind.DEVICE


async def send_message(
    channel: Channel, frames: Sequence[Any], peer: Peer, staging_of: Callable[[], Staging]
) -> int:
    """Send a message.

    Parameters
    ----------
    channel : Channel
        Nothing else may be posted to it meanwhile.
    frames : sequence
        Host buffers, and objects with ``__cuda_array_interface__``.
    peer : Peer
        The other end.
    staging_of : callable
        Returns the staging; called if a frame is on a device.

    Returns
    -------
    int
        Bytes of the frames.

    Raises
    ------
    Exception
        Whatever the channel, a copy or an allocation raises, and `ConnectionError` for a channel
        that was closed and did not say so; `DataError` for an answer that cannot be, which is
        counted. What was sent is then a part of a message, and the connection of no use; chunks are
        in quarantine.
    """
    outgoing = [_Frame(frame) for frame in frames]
    if not any([frame.kind for frame in outgoing]):  # on the host, all of them
        await _send_whole(channel, outgoing, peer)
    else:
        staging = staging_of()
        try:
            await _send_device_frames(channel, outgoing, peer, staging)
        except BaseException:
            staging.totals.aborted_transfers += 1
            staging.keep(frames)  # the peer, or copies of ours, may still be reading them
            raise
    return sum([frame.nbytes for frame in outgoing])


_ON_THE_HOST = frozenset((bytes, bytearray, memoryview))  # what most frames of Dask are


class _Frame:
    """A frame, where it lies if that is on a device, and how it travels."""

    __slots__ = ("buffer", "exportable", "kind", "nbytes", "place")

    def __init__(self, buffer: Any) -> None:
        interface = None if type(buffer) in _ON_THE_HOST else interface_of(buffer)
        self.buffer = buffer
        self.nbytes = frame_bytes(buffer)
        self.place: int = 0 if interface is None else interface["data"][0]
        self.kind = FrameKind.HOST if interface is None else FrameKind.DEVICE
        self.exportable: bool | None = None


async def _send_device_frames(
    channel: Channel, frames: Sequence[_Frame], peer: Peer, staging: Staging
) -> None:
    has_chunks = staging.chunk_bytes is not None
    exportable = Exportable(staging.copies)
    for frame in frames:
        if frame.kind is FrameKind.DEVICE and frame.nbytes:
            frame.exportable = exportable(frame.place)
            frame.kind = choose_kind(exportable=frame.exportable, has_chunks=has_chunks, peer=peer)
    # As distributed-ucxx, which synchronises the default stream here: what made the frames there,
    # or on a stream that blocks with it, has run before they are read.
    if any(frame.kind is FrameKind.DEVICE or frame.exportable for frame in frames):
        await staging.settle_for_transport()
    else:
        staging.order_after_default_stream()
    stream = [frame for frame in frames if frame.kind is FrameKind.STREAM]
    if stream:
        await _send_with_stream(channel, frames, stream, peer, staging)
    else:
        await _send_whole(channel, frames, peer)
    for frame in frames:
        if frame.kind is FrameKind.DEVICE:
            _count_whole(frame, peer, staging)


async def _send_with_stream(
    channel: Channel,
    frames: Sequence[_Frame],
    stream: Sequence[_Frame],
    peer: Peer,
    staging: Staging,
) -> None:
    """Send the header, the frames that are messages, and those of the stream."""
    # A peer that receives into cudaMalloc memory gets chunks where they belong, without a copy, and
    # frames in cudaMalloc memory are sent from where they lie.
    sizes = [frame.nbytes for frame in stream]
    pays = peer.chunk_bytes is None or sum(sizes) * LEAST_PULLED_PART >= peer.chunk_bytes
    in_place = peer.receives == "direct" or any(frame.exportable for frame in stream)
    pullable = pays and not in_place
    slab = staging.slab if pullable else None
    way = channel.agreement.way(slab)
    sizes_of_chunks = (staging.chunk_bytes, None if way is FrameKind.PULL else peer.chunk_bytes)
    chunk_bytes = min(filter(None, sizes_of_chunks))
    plans = plan_stream(sizes, chunk_bytes)
    staging.remarks.message(sum(sizes), staging.sending.total_bytes)
    with staging.hold(staging.sending) as held:
        # Filled before the header, which stands for the first chunk's ready message: a copy may
        # wait long for the default stream, and the peer holds a chunk from the header on.
        first = next(plans)
        outgoing = await _prepared(held, first, stream, staging)
        if outgoing.copied is not None:
            await staging.reached(outgoing.copied)
        await _send_whole(channel, frames, peer, chunk_bytes, way, slab)
        if way is FrameKind.OFFER and slab is not None:
            pulls = await _answer(channel)
            channel.agreement.answered(slab, pulls=pulls)
            way = FrameKind.PULL if pulls else FrameKind.CHUNK
        passing: _Sent = _Sent(channel, held)
        if way is FrameKind.PULL and slab is not None:
            passing = _Pulled(channel, held, slab)
            if outgoing.chunk is not None and outgoing.chunk.pooled:
                held.spare = staging.receiving
        await _send_stream(channel, first, outgoing, plans, stream, held, staging, passing)


async def _answer(channel: Channel) -> bool:
    """Return whether the peer pulls what it was offered."""
    message = bytearray(ANSWER_BYTES)
    await channel.recv_back(message)
    with _counting():
        return unpack_answer(message)


@contextlib.contextmanager
def _counting() -> Iterator[None]:
    """Count what is refused of what a peer answers."""
    try:
        yield
    except DataError:
        totals().refused_messages += 1
        raise


async def _send_whole(
    channel: Channel,
    frames: Sequence[_Frame],
    peer: Peer,
    chunk_bytes: int = 0,
    way: FrameKind = FrameKind.CHUNK,
    slab: SharedSlab | None = None,
) -> None:
    """Send the header, an offer if there is one, and every frame that is not in the stream."""
    kinds, sizes = [frame.kind for frame in frames], [frame.nbytes for frame in frames]
    entries, header = pack_header(kinds, sizes, chunk_bytes, way)
    prelude = pack_prelude(closing=False, entries=entries)
    messages: list[Any] = [prelude, header]
    if peer.ours and header_in_opening(entries):
        count = frames_in_opening(kinds, sizes, entries)
        opening = pack_opening(prelude, header, [frame.buffer for frame in frames[:count]])
        messages, frames = [opening], frames[count:]
    if way is FrameKind.OFFER and slab is not None:
        messages.append(pack_offer(slab.offer))
    messages += [
        frame.buffer for frame in frames if frame.nbytes and frame.kind is not FrameKind.STREAM
    ]
    await in_turn(map(channel.send, messages))


class _Outgoing(NamedTuple):
    """What is sent as one chunk; if it is staged, where, and a mark behind the copies."""

    buffer: DeviceRange
    chunk: Chunk | None
    copied: Mark | None


async def _send_stream(
    channel: Channel,
    plan: PlannedChunk,
    outgoing: _Outgoing,
    plans: Iterator[PlannedChunk],
    stream: Sequence[_Frame],
    held: Holding,
    staging: Staging,
    passing: _Sent,
) -> None:
    """Pass the first chunk on and the others, the next being filled while others are under way."""
    under_way: collections.deque[_UnderWay] = collections.deque()
    turn = Turn()
    while True:
        under_way.append(passing.post(outgoing))
        staging.totals.count("sent", way_through(outgoing.chunk), plan.frame_bytes)
        if under_way[-1].name is not None:
            staging.totals.pulled_bytes += plan.frame_bytes
        if (coming := next(plans, None)) is None:
            break
        while (found := _prepare_now(held, coming, stream, staging)) is None and under_way:
            await passing.finish(under_way.popleft())
        if found is None and not channel.alive:
            # Its own chunks are not free yet, and here nobody would make them so: see `finish`.
            raise ConnectionError("the connection was closed in the middle of a message")
        # Who waits for others' chunks has none of his own that they could wait for.
        outgoing = found or _filled(await held.acquire(coming.nbytes), coming, stream, staging)
        while len(under_way) >= DEPTH:
            await passing.finish(under_way.popleft())
        if outgoing.copied is not None:
            await staging.reached(outgoing.copied)
        await turn.give_way()
        plan = coming
    while under_way:
        await passing.finish(under_way.popleft())
    await passing.end()


async def _prepared(
    held: Holding, plan: PlannedChunk, stream: Sequence[_Frame], staging: Staging
) -> _Outgoing:
    """Return where the bytes of a chunk will be sent from, once there is a chunk for them."""
    outgoing = _prepare_now(held, plan, stream, staging)
    if outgoing is None:
        outgoing = _filled(await held.acquire(plan.nbytes), plan, stream, staging)
    return outgoing


def _prepare_now(
    held: Holding, plan: PlannedChunk, stream: Sequence[_Frame], staging: Staging
) -> _Outgoing | None:
    """Return where the bytes of a chunk will be sent from; None if there is no chunk for them."""
    piece = plan.pieces[0]
    if piece.nbytes == plan.nbytes and stream[piece.frame].exportable:
        frame = stream[piece.frame]
        place = frame.place + piece.frame_offset
        return _Outgoing(DeviceRange(place, piece.nbytes, frame.buffer), None, None)
    chunk = held.acquire_now(plan.nbytes)
    return None if chunk is None else _filled(chunk, plan, stream, staging)


def _filled(
    chunk: Chunk, plan: PlannedChunk, stream: Sequence[_Frame], staging: Staging
) -> _Outgoing:
    """Begin to copy a chunk's bytes into it."""
    copied = staging.begin(
        [
            (chunk.address + offset, stream[frame].place + frame_offset, nbytes)
            for frame, frame_offset, offset, nbytes in plan.pieces
        ]
    )
    return _Outgoing(chunk.view(plan.nbytes), chunk, copied)


class _UnderWay(NamedTuple):
    """A chunk that was posted, or announced to be pulled by its name."""

    ready: PostedMessage | None
    passed: PostedMessage
    chunk: Chunk | None
    name: ChunkName | None = None
    done: bytearray = bytearray()


class _Sent:
    """How filled chunks get to the peer: as messages, each but the first behind a ready message."""

    def __init__(self, channel: Channel, held: Holding) -> None:
        self._channel = channel
        self._held = held
        self._first = True  # the header stands for its ready message

    def post(self, outgoing: _Outgoing) -> _UnderWay:
        """Let the peer have a chunk."""
        # Both posted at once: a chunk that was announced is on its way.
        ready = None if self._first else self._channel.send(self._ready())
        self._first = False
        return _UnderWay(ready, self._channel.send(outgoing.buffer), outgoing.chunk)

    def _ready(self) -> bytes:
        return READY

    async def finish(self, one: _UnderWay) -> None:
        """Wait until the peer has it, and let go of it here."""
        if one.ready is not None:
            await one.ready
        await one.passed
        # ucxx passes over the cancelling of a send when the other end closes: what is held to the
        # end goes into quarantine.
        if one.chunk is not None and self._channel.alive:
            self._held.release(one.chunk)

    async def end(self) -> None:
        """Say that the peer has all of them, if it needs to know."""


class _Pulled(_Sent):
    """They are announced, and copied by the peer; an extra chunk, which it cannot copy, is sent."""

    def __init__(self, channel: Channel, held: Holding, slab: SharedSlab) -> None:
        super().__init__(channel, held)
        self._slab = slab
        self._first = False

    def post(self, outgoing: _Outgoing) -> _UnderWay:
        chunk = outgoing.chunk
        if chunk is None or not chunk.pooled:
            return super().post(outgoing)
        name = self._channel.agreement.name(chunk.address - self._slab.base)
        ready = self._channel.send(pack_ready(name))
        done = bytearray(NAMED_BYTES)
        return _UnderWay(ready, self._channel.recv_back(done), chunk, name, done)

    def _ready(self) -> bytes:
        return pack_ready(None)

    async def finish(self, one: _UnderWay) -> None:
        if one.name is None or one.chunk is None or one.ready is None:
            await super().finish(one)
            return
        await one.ready
        await one.passed
        with _counting():
            if (done := unpack_done(one.done)) != one.name:
                raise DataError(f"{done} was read, and {one.name} was announced")
        self._held.release(one.chunk)

    async def end(self) -> None:
        # Without it the peer would not know that what it read was not of a later message: had this
        # end broken off, the chunks would have gone to another once their quarantine was over.
        await self._channel.send(END)


def _count_whole(frame: _Frame, peer: Peer, staging: Staging) -> None:
    """Count a device frame that was one message."""
    if frame.exportable is not False:
        staging.totals.count("sent", "direct", frame.nbytes)
        return
    staging.totals.count("sent", "overflow", frame.nbytes)
    if peer.ours:
        staging.remarks.no_pool(frame.nbytes)
    else:
        staging.remarks.stock_peer(frame.nbytes)
