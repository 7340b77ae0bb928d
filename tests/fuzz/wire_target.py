# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a peer of `ucxuvm` sends: messages, and what it says of itself in the handshake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

from rmm_uvm.dask.comm import receive
from rmm_uvm.dask.comm.handshake import HANDSHAKE_KEY, STOCK_PEER, Peer, meet
from rmm_uvm.dask.comm.plan import ALIGNMENT_BYTES
from rmm_uvm.dask.comm.wire import (
    ANSWER_BYTES,
    NAMED_BYTES,
    OFFER_BYTES,
    OPENING_BYTES,
    PRELUDE_BYTES,
    WIRE_VERSION,
    FrameKind,
    frames_in_opening,
    header_in_opening,
    pack_answer,
    pack_done,
    pack_header,
    pack_offer,
    pack_opening,
    pack_prelude,
    pack_ready,
    unpack_answer,
    unpack_done,
    unpack_offer,
    unpack_ready,
)
from rmm_uvm.errors import AvailabilityError, DataError

from .promises import Finding, attempted

_HOST_BYTES = 1 << 16  # of a machine that is small, so that what takes more is seen
_OWN = {"wire": WIRE_VERSION, "version": "1"}


def wire_message(data: bytes) -> None:
    """Receive a message; what is accepted is what our own sender would have sent.

    Memory is taken for what can be there alone: for a header, and for frames that the host holds.
    """
    _check_pulling(data)
    for peer in (STOCK_PEER, Peer(ours=True)):
        channel = _Bytes(data)
        with mock.patch.object(receive, "most_host_bytes", return_value=_HOST_BYTES):
            frames = attempted(partial(_receive, channel, peer), (DataError, AvailabilityError))
        if channel.asked_bytes > len(data) + _HOST_BYTES + (37 << 20):
            raise Finding(f"{channel.asked_bytes} bytes were taken for {len(data)}")
        if frames is None or frames is channel:
            continue
        sent = _sent(frames, peer)
        if not data.ljust(OPENING_BYTES, b"\0").startswith(sent):
            raise Finding(f"{sent!r} was understood")


_PULLING: tuple[tuple[int, Callable[[bytes], Any], Callable[[Any], bytes]], ...] = (
    (OFFER_BYTES, unpack_offer, pack_offer),
    (NAMED_BYTES, unpack_ready, pack_ready),
    (NAMED_BYTES, unpack_done, pack_done),
    (ANSWER_BYTES, unpack_answer, lambda pulls: pack_answer(pulls=pulls)),
)


def _check_pulling(data: bytes) -> None:
    """Read what is said of pulling; what is accepted is what our own ends would have said."""
    for size, unpack, pack in _PULLING:
        message = data[:size]
        if len(message) < size:  # UCX gives what was asked for
            continue
        found = attempted(partial(_read, unpack, message))
        if found is not None and pack(found[0]) != message:
            raise Finding(f"{message!r} was understood as {found}")


def _read(unpack: Callable[[bytes], Any], message: bytes) -> tuple[Any]:
    return (unpack(message),)  # what was read may be None


def _sent(frames: list[Any], peer: Peer) -> bytes:
    """Return the bytes of all messages that our sender makes of host frames."""
    kinds, sizes = [FrameKind.HOST] * len(frames), list(map(len, frames))
    entries, header = pack_header(kinds, sizes)
    prelude = pack_prelude(closing=False, entries=entries)
    if not peer.ours or not header_in_opening(entries):
        begun = prelude.ljust(OPENING_BYTES if peer.ours else 0, b"\0") + header
        return b"".join((begun, *frames))
    count = frames_in_opening(kinds, sizes, entries)
    opening = pack_opening(prelude, header, frames[:count]).ljust(OPENING_BYTES, b"\0")
    return b"".join((opening, *frames[count:]))


def wire_handshake(data: bytes) -> None:
    """Meet a peer that says something of itself."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return
    peer = attempted(lambda: meet({HANDSHAKE_KEY: _OWN}, {HANDSHAKE_KEY: said}))
    if peer is None or said is None:
        return
    told = {name: said.get(name) for name in ("wire", "receives", "chunk_bytes")}
    if peer != Peer(True, told["receives"], told["chunk_bytes"]) or told["wire"] != WIRE_VERSION:
        raise Finding(f"{said} was met as {peer}")
    if peer.receives not in ("host", "direct", "staged"):
        raise Finding(f"nobody receives so: {peer}")
    size = peer.chunk_bytes
    if size is not None and (type(size) is not int or size < 1 or size % ALIGNMENT_BYTES):
        raise Finding(f"no size of chunks: {peer}")


def _receive(channel: _Bytes, peer: Peer) -> Any:
    """Return host frames, or the channel where a peer hung up or went away in a message."""
    try:
        return asyncio.run(receive.receive_message(channel, peer, _no_device)) or channel
    except ConnectionError:
        return channel


def _no_device() -> Any:
    raise AvailabilityError("a device frame, and there is no device")


class _Bytes:
    """A transport that has some bytes to give, and then breaks."""

    alive = True

    def __init__(self, data: bytes) -> None:
        self._left = memoryview(data)
        self.asked_bytes = 0

    def recv(self, buffer: Any, *, idle: bool = False) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asked_bytes += len(buffer)
        if idle and PRELUDE_BYTES <= len(self._left) < len(buffer):
            buffer[len(self._left) :] = bytes(len(buffer) - len(self._left))  # as UCX: shorter
            buffer = buffer[: len(self._left)]
        if len(self._left) < len(buffer):
            raise ConnectionError("the peer went away")
        buffer[:] = self._left[: len(buffer)]
        self._left = self._left[len(buffer) :]
        done.set_result(None)
        return done

    def send(self, buffer: Any) -> asyncio.Future[None]:
        raise Finding(f"{bytes(buffer)!r} was sent by a reader")
