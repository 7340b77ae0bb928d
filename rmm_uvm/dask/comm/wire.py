# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How every transfer begins, and the small messages by which a peer pulls chunks.

Prelude and header are distributed-ucxx's own, byte for byte, as long as no frame travels in the
stream: its "is this frame on a device" is our kind 0 or 1. All other kinds, openings, and what is
said of pulling are only ever sent to a peer whose handshake said that it understands them.

This is the only reader of them. It accepts what the functions to pack them can make, byte for
byte, and refuses everything else before memory is taken for what it claims.
"""

from __future__ import annotations

import enum
import pickle
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rmm_uvm.dask.comm.plan import ALIGNMENT_BYTES
from rmm_uvm.errors import DataError
from rmm_uvm.support.units import format_bytes

__all__ = [
    "ANSWER_BYTES",
    "END",
    "MOST_ENTRIES",
    "MOST_MESSAGE_BYTES",
    "NAMED_BYTES",
    "OFFER_BYTES",
    "OPENING_BYTES",
    "PRELUDE_BYTES",
    "READY",
    "WIRE_VERSION",
    "ChunkName",
    "FrameKind",
    "Header",
    "SlabOffer",
    "frames_in_opening",
    "header_bytes",
    "header_in_opening",
    "pack_answer",
    "pack_done",
    "pack_header",
    "pack_offer",
    "pack_opening",
    "pack_prelude",
    "pack_ready",
    "unpack_answer",
    "unpack_done",
    "unpack_header",
    "unpack_offer",
    "unpack_opening",
    "unpack_prelude",
    "unpack_ready",
]

WIRE_VERSION = 2
"""The version of the format in this module. Peers of another one are refused in the handshake."""

READY = b"\xa7"
"""Says that the next chunk is on its way; its value is checked, so that lost step is noticed."""

END = b"\xad"
"""Behind a stream that was pulled: the sender held each chunk until it heard that it was read."""

MOST_ENTRIES = 1 << 22
"""Of a header, which then has 36 MiB. Dask sends a few frames for each object of a message."""

MOST_MESSAGE_BYTES = 1 << 47
"""Of all frames of a message: what a process on x86-64 or Arm can address at all."""

OPENING_BYTES = 4096
"""The most that an opening has. UCX sends as much at once, and so few bytes cost what none do; the
messages by which Dask's tasks are run have some hundreds."""

_END = b"\xa8"  # of an opening: UCX does not tell that it received less than was asked for
_END_AND_NOTHING = _END.ljust(OPENING_BYTES, b"\0")

# Native sizes and alignment: what distributed-ucxx packs.
_PRELUDE = struct.Struct("?Q")
PRELUDE_BYTES = _PRELUDE.size
_PRELUDE_AS_IT_LIES = struct.Struct("B7sQ")  # with what is between, which packing leaves 0
_NOTHING_BETWEEN = bytes(7)

_OFFER = struct.Struct("<16s16s16s64sQ")
OFFER_BYTES = _OFFER.size
_NAMED = struct.Struct("<BQQ")
NAMED_BYTES = _NAMED.size
"""Of a ready message in a stream that is pulled, and of the one that says that a chunk was read."""
_PULLED, _SENT, _DONE = 0xA7, 0xA9, 0xAA
_ANSWERS = {False: b"\xab", True: b"\xac"}
ANSWER_BYTES = 1


class FrameKind(enum.IntEnum):
    """How a frame travels.

    `HOST` and `DEVICE` frames are one message each, received into memory of that kind. `STREAM`
    frames are device frames that travel in chunks. The others are no frames: one of them is in the
    last place of a header with a stream, and has the size of its chunks. `CHUNK`: each is a
    message. `PULL`: the peer copies them. `OFFER`: an offer follows, whose answer decides it.
    """

    HOST = 0
    DEVICE = 1
    STREAM = 2
    CHUNK = 3
    OFFER = 4
    PULL = 5


_KINDS = tuple(FrameKind)  # by its number: calling the class takes ten times as long


class Header(NamedTuple):
    """The contents of a header.

    Attributes
    ----------
    kinds : tuple of FrameKind
        Of the frames, in order; `HOST`, `DEVICE` or `STREAM`.
    sizes : tuple of int
        Of the frames, in bytes.
    chunk_bytes : int
        Of the stream; 0 if no frame travels in it.
    way : FrameKind
        Of its chunks: `CHUNK`, `OFFER` or `PULL`.
    """

    kinds: tuple[FrameKind, ...]
    sizes: tuple[int, ...]
    chunk_bytes: int = 0
    way: FrameKind = FrameKind.CHUNK


class SlabOffer(NamedTuple):
    """The facts with which a peer maps a slab, to copy chunks from it.

    Attributes
    ----------
    machine : bytes
        16 bytes; see `rmm_uvm.ipc.machine.machine_id`.
    process : bytes
        Whose slab it is: 16 bytes that no other process has.
    slab : bytes
        Which of its slabs: 16 bytes that no other slab has.
    handle : bytes
        CUDA's handle of the slab, 64 bytes.
    nbytes : int
        Length of the slab.
    """

    machine: bytes
    process: bytes
    slab: bytes
    handle: bytes
    nbytes: int

    def __repr__(self) -> str:
        """Return what it names, without what opens it: logs and tracebacks show this."""
        return f"<SlabOffer of a slab of {self.nbytes} bytes>"


class ChunkName(NamedTuple):
    """A chunk that is there to be pulled.

    Attributes
    ----------
    offset : int
        Of its first byte in the slab that was offered.
    generation : int
        How many were announced on this connection, this way, before it.
    """

    offset: int
    generation: int

    def __str__(self) -> str:
        """Return it as messages say it."""
        return f"chunk {self.generation} at {self.offset}"


def pack_prelude(*, closing: bool, entries: int) -> bytes:
    """Return the first message: whether the sender hangs up, and how many entries follow."""
    return _PRELUDE.pack(closing, entries)


def unpack_prelude(message: bytes | bytearray | memoryview) -> tuple[bool, int]:
    """Return what `pack_prelude` was given.

    Raises
    ------
    DataError
        If it cannot be one of this format, or the header would be longer than any.
    """
    if len(message) != PRELUDE_BYTES:
        raise DataError(f"expected a prelude of {PRELUDE_BYTES} bytes, got {len(message)} bytes")
    closing, between, entries = _PRELUDE_AS_IT_LIES.unpack(message)
    if closing > 1 or between != _NOTHING_BETWEEN:
        raise DataError(f"expected a prelude of ucxuvm, got {bytes(message).hex()}")
    if not closing:
        _refuse_entries(entries)
    elif entries:
        raise DataError(f"expected no frames from a peer that hangs up, got {entries}")
    return closing == 1, entries


def header_bytes(entries: int) -> int:
    """Return the size of a header, in bytes."""
    return entries + -entries % 8 + 8 * entries


def pack_header(
    kinds: Sequence[FrameKind],
    sizes: Sequence[int],
    chunk_bytes: int = 0,
    way: FrameKind = FrameKind.CHUNK,
) -> tuple[int, bytes]:
    """Return the number of entries, for the prelude, and the header itself.

    Raises
    ------
    DataError
        If there are more than a header may have.
    """
    if chunk_bytes:
        kinds, sizes = [*kinds, way], [*sizes, chunk_bytes]
    _refuse_entries(len(kinds))
    return len(kinds), struct.pack(_header_format(len(kinds)), *kinds, *sizes)


def unpack_header(
    message: bytes | bytearray | memoryview,
    entries: int,
    most_host_bytes: int = MOST_MESSAGE_BYTES,
) -> Header:
    """Return what a header says.

    Parameters
    ----------
    message : bytes-like
        The header.
    entries : int
        How many it has, as the prelude said.
    most_host_bytes : int
        What its host frames may have together: the memory of this machine.

    Raises
    ------
    DataError
        If it cannot be one of this format, or its frames are larger than any can be: the two ends
        have lost step, or the other end is none of ours.
    """
    if len(message) != header_bytes(entries):
        raise DataError(
            f"expected a header of {header_bytes(entries)} bytes for {entries} entries, got "
            f"{len(message)} bytes"
        )
    values = struct.unpack(_header_format(entries), message)
    try:
        kinds = tuple([_KINDS[value] for value in values[:entries]])
    except IndexError:
        raise DataError(
            f"the header has frames of kind {max(values[:entries])}, which ucxuvm does not know"
        ) from None
    if any(message[entries : entries + -entries % 8]):
        raise DataError("the header has something between its kinds and its sizes")
    sizes = values[entries:]
    if (total_bytes := sum(sizes)) > MOST_MESSAGE_BYTES:
        raise DataError(f"the message has {format_bytes(total_bytes)}: no process can hold so much")
    chunk_bytes, way = 0, FrameKind.CHUNK
    if kinds and kinds[-1] >= FrameKind.CHUNK:
        way, kinds, sizes, chunk_bytes = kinds[-1], kinds[:-1], sizes[:-1], sizes[-1]
        if chunk_bytes == 0 or chunk_bytes % ALIGNMENT_BYTES:
            raise DataError(
                f"the header has chunks of {chunk_bytes} bytes: expected a positive multiple of "
                f"{ALIGNMENT_BYTES}"
            )
    host_bytes = total_bytes
    if any(kinds):
        each = zip(kinds, sizes, strict=True)
        host_bytes = sum(size for kind, size in each if kind is FrameKind.HOST)
    if host_bytes > most_host_bytes:
        raise DataError(
            f"the message has {format_bytes(host_bytes)} for the host, which has "
            f"{format_bytes(most_host_bytes)}: ask for fewer results at a time"
        )
    several = max(kinds, default=FrameKind.HOST) >= FrameKind.CHUNK
    if several or (FrameKind.STREAM in kinds) != bool(chunk_bytes):
        raise DataError("the header has no size of chunks for its stream, or more than one")
    return Header(kinds, sizes, chunk_bytes, way)


def header_in_opening(entries: int) -> bool:
    """Return whether a header of so many entries is a part of the opening."""
    return _room(entries) >= 0


def frames_in_opening(kinds: Sequence[FrameKind], sizes: Sequence[int], entries: int) -> int:
    """Return how many frames, from the first, are a part of the opening: host frames that fit.

    Parameters
    ----------
    kinds, sizes : sequence
        Of the frames, as in `Header`.
    entries : int
        Of the header, which is a part of the opening too.

    Examples
    --------
    >>> host, stream = FrameKind.HOST, FrameKind.STREAM
    >>> frames_in_opening([host, host, stream, host], [500, 0, 7, 5], entries=5)
    2
    """
    left, count = _room(entries), 0
    for kind, size in zip(kinds, sizes, strict=True):
        left -= size
        if kind or left < 0:
            break
        count += 1
    return count


def pack_opening(prelude: bytes, header: bytes, frames: Iterable[Any]) -> bytes:
    """Return the first message to a peer that is ours, where the header fits into it.

    Parameters
    ----------
    prelude, header : bytes
        From `pack_prelude` and `pack_header`.
    frames : iterable of bytes-like
        As many as `frames_in_opening` says.
    """
    return b"".join((prelude, header, *map(_in_a_row, frames), _END))


def unpack_opening(
    message: memoryview, entries: int, most_host_bytes: int = MOST_MESSAGE_BYTES
) -> tuple[Header, list[memoryview]]:
    """Return the header, and the frames that are in the message; they are parts of it.

    Parameters
    ----------
    message : memoryview
        `OPENING_BYTES`, of which those behind the end are 0. Its prelude was unpacked.
    entries, most_host_bytes : int
        As those of `unpack_header`.

    Raises
    ------
    DataError
        As `unpack_header`; or where its end is not where it has to be.
    """
    end = PRELUDE_BYTES + header_bytes(entries)
    header = unpack_header(message[PRELUDE_BYTES:end], entries, most_host_bytes)
    opened = []
    for size in header.sizes[: frames_in_opening(header.kinds, header.sizes, entries)]:
        opened.append(message[end : end + size])
        end += size
    if bytes(message[end:]) != _END_AND_NOTHING[: OPENING_BYTES - end]:
        raise DataError(
            f"the opening does not end after {end} bytes: it was cut off, or is something else"
        )
    return header, opened


def _in_a_row(frame: Any) -> Any:
    """Return the bytes of a frame as they lie, also where its array has the columns first."""
    has_columns_first = type(frame) is memoryview and not frame.c_contiguous
    return pickle.PickleBuffer(frame).raw() if has_columns_first else frame


def pack_offer(offer: SlabOffer) -> bytes:
    """Return the message that offers a slab."""
    return _OFFER.pack(*offer)


def unpack_offer(message: bytes | bytearray | memoryview) -> SlabOffer:
    """Return what `pack_offer` was given.

    Raises
    ------
    DataError
        If no slab can be so large.
    """
    offer = SlabOffer(*_OFFER.unpack(message))
    if not 0 < offer.nbytes <= MOST_MESSAGE_BYTES:
        raise DataError(f"a slab of {offer.nbytes} bytes was offered: no slab has that size")
    return offer


def pack_answer(*, pulls: bool) -> bytes:
    """Return the answer to an offer: whether the chunks will be pulled."""
    return _ANSWERS[pulls]


def unpack_answer(message: bytes | bytearray | memoryview) -> bool:
    """Return what `pack_answer` was given.

    Raises
    ------
    DataError
        If it is none.
    """
    for pulls, answer in _ANSWERS.items():
        if message == answer:
            return pulls
    raise DataError(f"expected an answer to an offer, got {bytes(message).hex()}")


def pack_ready(name: ChunkName | None) -> bytes:
    """Return the message that announces a chunk to who pulls; None: it comes as a message."""
    return _NAMED.pack(_SENT, 0, 0) if name is None else _NAMED.pack(_PULLED, *name)


def unpack_ready(message: bytes | bytearray | memoryview) -> ChunkName | None:
    """Return what `pack_ready` was given.

    Raises
    ------
    DataError
        If it is no such message.
    """
    said, *numbers = _NAMED.unpack(message)
    if said == _PULLED:
        return ChunkName(*numbers)
    if said != _SENT or any(numbers):
        raise DataError("expected a ready message, got another: the two ends have lost step")
    return None


def pack_done(name: ChunkName) -> bytes:
    """Return the message that says that a chunk was read, and may be used again."""
    return _NAMED.pack(_DONE, *name)


def unpack_done(message: bytes | bytearray | memoryview) -> ChunkName:
    """Return what `pack_done` was given.

    Raises
    ------
    DataError
        If it is no such message.
    """
    said, *numbers = _NAMED.unpack(message)
    if said != _DONE:
        raise DataError("expected a done message, got another: the two ends have lost step")
    return ChunkName(*numbers)


def _room(entries: int) -> int:
    """Return the bytes that an opening has for frames; < 0 if a header has no room in it."""
    return OPENING_BYTES - PRELUDE_BYTES - header_bytes(entries) - len(_END)


def _refuse_entries(entries: int) -> None:
    if entries == 0:
        raise DataError("the message has no frames: every message of Dask has at least one")
    if entries > MOST_ENTRIES:
        raise DataError(
            f"the message has {entries} frames, and at most {MOST_ENTRIES} travel at once: "
            "ask for fewer results at a time"
        )


def _header_format(entries: int) -> str:
    return f"{entries}B{entries}Q"
