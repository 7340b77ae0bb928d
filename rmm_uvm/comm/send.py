# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sending the frames of one message.

See Also
--------
rmm_uvm.comm.receive : the other end, and why both together cannot come to a halt.
"""

from __future__ import annotations

import collections
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from rmm_uvm.comm.budget import Chunk, Holding
from rmm_uvm.comm.channel import Channel
from rmm_uvm.comm.handshake import Peer
from rmm_uvm.comm.plan import PlannedChunk, plan_stream
from rmm_uvm.comm.staging import Staging
from rmm_uvm.comm.window import Window
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
    sizes = [frame_bytes(frame) for frame in frames]
    addresses = [_device_address(frame) for frame in frames]
    kinds = [FrameKind.HOST if address is None else FrameKind.DEVICE for address in addresses]
    if staging is None or FrameKind.DEVICE not in kinds:
        await _send_whole(channel, frames, kinds, sizes, 0)
        return sum(sizes)
    try:
        await _send_device_frames(channel, frames, kinds, sizes, addresses, peer, staging)
    except BaseException:
        staging.totals.aborted_transfers += 1
        staging.keep(frames)  # the peer, or copies of ours, may still be reading them
        raise
    return sum(sizes)


async def _send_device_frames(
    channel: Channel,
    frames: Sequence[Any],
    kinds: list[FrameKind],
    sizes: Sequence[int],
    addresses: Sequence[int | None],
    peer: Peer,
    staging: Staging,
) -> None:
    has_chunks = staging.chunk_bytes is not None
    for index, (size, address) in enumerate(zip(sizes, addresses, strict=True)):
        if address is None or not size:
            continue
        known = staging.copies.memory_kind(address)
        exportable = None if known is None else known.ipc_capable
        kinds[index] = choose_kind(exportable=exportable, has_chunks=has_chunks, peer=peer)
        if kinds[index] is FrameKind.DEVICE:
            _count_whole(staging, size, peer, exportable=exportable)
    # As distributed-ucxx, which synchronises the default stream here: what made the frames there,
    # or on a stream that blocks with it, has run before they are read.
    staging.order_after_default_stream()
    stream = [index for index, kind in enumerate(kinds) if kind is FrameKind.STREAM]
    if any(kind is FrameKind.DEVICE and sizes[i] for i, kind in enumerate(kinds)):
        await staging.settle()
    if not stream:
        await _send_whole(channel, frames, kinds, sizes, 0)
        return
    chunk_bytes = min(staging.chunk_bytes or 0, peer.chunk_bytes or 2**63)
    plans = plan_stream([sizes[index] for index in stream], chunk_bytes)
    staging.note_size(sum(plan.nbytes for plan in plans))
    places = [addresses[index] or 0 for index in stream]
    with staging.hold(staging.sending) as held:
        # Before the header, which stands for the first chunk's ready message.
        first = await _filled(held, plans[0], places, staging)
        await _send_whole(channel, frames, kinds, sizes, chunk_bytes)
        await _send_stream(channel, plans, places, first, held, staging)


async def _send_whole(
    channel: Channel,
    frames: Sequence[Any],
    kinds: Sequence[FrameKind],
    sizes: Sequence[int],
    chunk_bytes: int,
) -> None:
    """Send the header, and every frame that is a message of its own."""
    entries, header = pack_header(kinds, sizes, chunk_bytes)

    def messages() -> Iterator[Any]:
        yield pack_prelude(closing=False, entries=entries)
        yield header
        for frame, kind, size in zip(frames, kinds, sizes, strict=True):
            if size and kind is not FrameKind.STREAM:
                yield frame

    posted: collections.deque[Awaitable[None]] = collections.deque()
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
    async with Window(DEPTH) as window:
        for number, plan in enumerate(plans):
            chunk = await _filled(held, plan, places, staging) if number else first
            # Both posted at once: a chunk that was announced is on its way.
            ready = channel.send(READY) if number else None
            sent = channel.send(chunk.view(plan.nbytes))
            await window.add(_finish(ready, sent, chunk, held))
            nbytes = sum(piece.nbytes for piece in plan.pieces)
            if chunk.overflow:
                staging.totals.sent_overflow_bytes += nbytes
            else:
                staging.totals.sent_staged_bytes += nbytes


async def _filled(
    held: Holding, plan: PlannedChunk, places: Sequence[int], staging: Staging
) -> Chunk:
    """Return a chunk with its frames' bytes in it."""
    chunk = await held.acquire(plan.nbytes)
    await staging.copy(
        [
            (chunk.address + offset, places[frame] + frame_offset, nbytes)
            for frame, frame_offset, offset, nbytes in plan.pieces
        ]
    )
    return chunk


async def _finish(
    ready: Awaitable[None] | None, sent: Awaitable[None], chunk: Chunk, held: Holding
) -> None:
    if ready is not None:
        await ready
    await sent
    held.release(chunk)


def _count_whole(staging: Staging, size: int, peer: Peer, *, exportable: bool | None) -> None:
    """Count a device frame that is one message."""
    if exportable is not False:
        staging.totals.sent_direct_bytes += size
        return
    staging.totals.sent_overflow_bytes += size
    if peer.ours:
        staging.note_no_pool(size)
    else:
        staging.note_stock_peer(size)


def _device_address(frame: Any) -> int | None:
    interface = getattr(frame, "__cuda_array_interface__", None)
    return None if interface is None else int(interface["data"][0])
