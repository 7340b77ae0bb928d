# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sending the frames of one message.

See Also
--------
rmm_uvm.comm.receive : the other end, and why both together cannot come to a halt.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rmm_uvm.comm.budget import Chunk, Holding
from rmm_uvm.comm.channel import Channel, Request
from rmm_uvm.comm.handshake import Peer
from rmm_uvm.comm.plan import PlannedChunk, plan_stream
from rmm_uvm.comm.quarantine import Mark
from rmm_uvm.comm.staging import Staging
from rmm_uvm.comm.turn import Turn
from rmm_uvm.comm.wire import READY, FrameKind, pack_header, pack_prelude

__all__ = ["DEPTH", "choose_kind", "frame_bytes", "send_message"]

DEPTH = 4
"""Chunks of one message that are copied or under way at once."""

_POSTED_FRAMES = 64  # of one message; each is a request of UCX


def frame_bytes(frame: Any) -> int:
    """Return the size of a frame, in bytes, as Dask counts it."""
    try:
        return int(frame.nbytes)
    except AttributeError:
        return len(frame)


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
    >>> peer = Peer(ours=True, receives="staged")
    >>> choose_kind(exportable=False, has_chunks=True, peer=peer).name
    'STREAM'
    """
    if exportable is None or not peer.ours or not has_chunks:
        return FrameKind.DEVICE
    if exportable and peer.receives == "direct":
        return FrameKind.DEVICE
    return FrameKind.STREAM


async def send_message(
    channel: Channel, frames: Sequence[Any], peer: Peer, staging: Staging | None
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
    staging : Staging or None
        May be None if no frame is on a device.

    Returns
    -------
    int
        Bytes of the frames.

    Raises
    ------
    Exception
        Whatever the channel, a copy or an allocation raises. What was sent is then a part of a
        message, and the connection of no use; chunks are in quarantine.
    """
    outgoing = [_Frame(frame) for frame in frames]
    if staging is None or all(frame.address is None for frame in outgoing):
        await _send_whole(channel, outgoing, 0)
    else:
        try:
            await _send_device_frames(channel, outgoing, peer, staging)
        except BaseException:
            staging.totals.aborted_transfers += 1
            staging.keep(frames)  # the peer, or copies of ours, may still be reading them
            raise
    return sum(frame.nbytes for frame in outgoing)


class _Frame:
    """A frame and how it travels."""

    __slots__ = ("address", "buffer", "exportable", "kind", "nbytes")

    def __init__(self, buffer: Any) -> None:
        interface = getattr(buffer, "__cuda_array_interface__", None)
        self.buffer = buffer
        self.nbytes = frame_bytes(buffer)
        self.address: int | None = None if interface is None else interface["data"][0]
        self.kind = FrameKind.HOST if interface is None else FrameKind.DEVICE
        self.exportable: bool | None = None


async def _send_device_frames(
    channel: Channel, frames: Sequence[_Frame], peer: Peer, staging: Staging
) -> None:
    has_chunks = staging.chunk_bytes is not None
    for frame in frames:
        if frame.address is not None and frame.nbytes:
            known = staging.copies.memory_kind(frame.address)
            frame.exportable = None if known is None else known.ipc_capable
            frame.kind = choose_kind(exportable=frame.exportable, has_chunks=has_chunks, peer=peer)
    # As distributed-ucxx, which synchronises the default stream here: what made the frames there,
    # or on a stream that blocks with it, has run before they are read.
    staging.order_after_default_stream()
    if any(frame.kind is FrameKind.DEVICE for frame in frames):
        await staging.settle()  # the transport reads there, and knows nothing of streams
    stream = [frame for frame in frames if frame.kind is FrameKind.STREAM]
    if stream:
        chunk_bytes = min(staging.chunk_bytes or 0, peer.chunk_bytes or 2**63)
        plans = plan_stream([frame.nbytes for frame in stream], chunk_bytes)
        places = [frame.address or 0 for frame in stream]
        staging.remarks.message(sum(plan.nbytes for plan in plans), staging.sending.total_bytes)
        with staging.hold(staging.sending) as held:
            # Before the header, which stands for the first chunk's ready message.
            first = await held.acquire(plans[0].nbytes)
            await staging.reached(_fill(first, plans[0], places, staging))
            await _send_whole(channel, frames, chunk_bytes)
            await _send_stream(channel, plans, places, first, held, staging)
    else:
        await _send_whole(channel, frames, 0)
    for frame in frames:
        if frame.kind is FrameKind.DEVICE:
            _count_whole(frame, peer, staging)


async def _send_whole(channel: Channel, frames: Sequence[_Frame], chunk_bytes: int) -> None:
    """Send the header, and every frame that is a message of its own."""
    entries, header = pack_header(
        [frame.kind for frame in frames], [frame.nbytes for frame in frames], chunk_bytes
    )

    def messages() -> Iterator[Any]:
        yield pack_prelude(closing=False, entries=entries)
        yield header
        for frame in frames:
            if frame.nbytes and frame.kind is not FrameKind.STREAM:
                yield frame.buffer

    posted: collections.deque[Request] = collections.deque()
    for message in messages():
        posted.append(channel.send(message))
        if len(posted) >= _POSTED_FRAMES:
            await posted.popleft()
    while posted:
        await posted.popleft()


async def _send_stream(
    channel: Channel,
    plans: Sequence[PlannedChunk],
    places: Sequence[int],
    first: Chunk,
    held: Holding,
    staging: Staging,
) -> None:
    """Send all chunks, the next being filled while others are under way."""
    under_way: collections.deque[_UnderWay] = collections.deque()
    chunk, turn = first, Turn()
    for number, plan in enumerate(plans):
        # Both posted at once: a chunk that was announced is on its way.
        ready = channel.send(READY) if number else None
        under_way.append(_UnderWay(ready, channel.send(chunk.view(plan.nbytes)), chunk))
        staging.count_sent(plan, chunk)
        if number + 1 < len(plans):
            coming = plans[number + 1]
            while (free := held.acquire_now(coming.nbytes)) is None and under_way:
                await _finish(under_way.popleft(), channel, held)
            # Who waits for others' chunks has none of his own that they could wait for.
            chunk = await held.acquire(coming.nbytes) if free is None else free
            filled = _fill(chunk, coming, places, staging)
            while len(under_way) >= DEPTH:
                await _finish(under_way.popleft(), channel, held)
            await staging.reached(filled)
            await turn.give_way()
    while under_way:
        await _finish(under_way.popleft(), channel, held)


class _UnderWay(NamedTuple):
    """A chunk that was posted, and the ready message before it."""

    ready: Request | None
    sent: Request
    chunk: Chunk


async def _finish(one: _UnderWay, channel: Channel, held: Holding) -> None:
    if one.ready is not None:
        await one.ready
    await one.sent
    # ucxx passes over the cancelling of a send when the other end closes: what is held to the end
    # goes into quarantine.
    if channel.alive:
        held.release(one.chunk)


def _fill(chunk: Chunk, plan: PlannedChunk, places: Sequence[int], staging: Staging) -> Mark:
    """Begin to copy a chunk's frames into it."""
    return staging.begin(
        [
            (chunk.address + offset, places[frame] + frame_offset, nbytes)
            for frame, frame_offset, offset, nbytes in plan.pieces
        ]
    )


def _count_whole(frame: _Frame, peer: Peer, staging: Staging) -> None:
    """Count a device frame that was one message."""
    if frame.exportable is not False:
        staging.totals.sent_direct_bytes += frame.nbytes
        return
    staging.totals.sent_overflow_bytes += frame.nbytes
    if peer.ours:
        staging.remarks.no_pool(frame.nbytes)
    else:
        staging.remarks.stock_peer(frame.nbytes)
