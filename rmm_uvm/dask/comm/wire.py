# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The first two host messages of every transfer: the prelude and the header.

They are distributed-ucxx's own, byte for byte, as long as no frame travels in the stream: its
"is this frame on a device" is our kind 0 or 1. `FrameKind.STREAM` and `FrameKind.CHUNK` are only
ever sent to a peer whose handshake said that it understands them.

This is the only reader of both. It accepts what `pack_prelude` and `pack_header` can make, byte for
byte, and refuses everything else before memory is taken for what it claims.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from typing import NamedTuple

from rmm_uvm.dask.comm.plan import ALIGNMENT_BYTES
from rmm_uvm.errors import DataError

__all__ = [
    "MOST_ENTRIES",
    "MOST_MESSAGE_BYTES",
    "PRELUDE_BYTES",
    "READY",
    "WIRE_VERSION",
    "FrameKind",
    "Header",
    "header_bytes",
    "pack_header",
    "pack_prelude",
    "unpack_header",
    "unpack_prelude",
]

WIRE_VERSION = 1
"""Of the format in this module; peers of another one are refused in the handshake."""

READY = b"\xa7"
"""Says that the next chunk is on its way; its value is checked, so that lost step is noticed."""

MOST_ENTRIES = 1 << 22
"""Of a header, which then has 36 MiB. Dask sends a few frames for each object of a message."""

MOST_MESSAGE_BYTES = 1 << 47
"""Of all frames of a message: what a process on x86-64 or Arm can address at all."""

# Native sizes and alignment: what distributed-ucxx packs.
_PRELUDE = struct.Struct("?Q")
PRELUDE_BYTES = _PRELUDE.size


class FrameKind(enum.IntEnum):
    """How a frame travels.

    `HOST` and `DEVICE` frames are one message each, received into memory of that kind. `STREAM`
    frames are device frames that travel in chunks. `CHUNK` is no frame: in the last place of a
    header it tells the size of the stream's chunks.
    """

    HOST = 0
    DEVICE = 1
    STREAM = 2
    CHUNK = 3


class Header(NamedTuple):
    """What a header says.

    Attributes
    ----------
    kinds : tuple of FrameKind
        Of the frames, in order; never `CHUNK`.
    sizes : tuple of int
        Of the frames, in bytes.
    chunk_bytes : int
        Of the stream; 0 if no frame travels in it.
    """

    kinds: tuple[FrameKind, ...]
    sizes: tuple[int, ...]
    chunk_bytes: int = 0


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
        raise DataError(f"a prelude of {len(message)} bytes: it has {PRELUDE_BYTES}")
    closing, entries = _PRELUDE.unpack(message)
    if pack_prelude(closing=closing, entries=entries) != message:
        raise DataError(f"no prelude of ucxuvm: {bytes(message).hex()}")
    if not closing:
        _refuse_entries(entries)
    elif entries:
        raise DataError(f"{entries} frames of a peer that hangs up")
    return closing, entries


def header_bytes(entries: int) -> int:
    """Return the size of a header, in bytes."""
    return struct.calcsize(_header_format(entries))


def pack_header(
    kinds: Sequence[FrameKind], sizes: Sequence[int], chunk_bytes: int = 0
) -> tuple[int, bytes]:
    """Return the number of entries, for the prelude, and the header itself.

    Raises
    ------
    DataError
        If there are more than a header may have.
    """
    if chunk_bytes:
        kinds, sizes = [*kinds, FrameKind.CHUNK], [*sizes, chunk_bytes]
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
            f"a header of {len(message)} bytes: one of {entries} entries has "
            f"{header_bytes(entries)}"
        )
    values = struct.unpack(_header_format(entries), message)
    try:
        kinds = tuple(map(FrameKind, values[:entries]))
    except ValueError as error:
        raise DataError(
            f"a header with a kind that wire version 1 does not have: {error}"
        ) from None
    if any(message[entries : entries + -entries % 8]):
        raise DataError("a header with something between its kinds and its sizes")
    sizes = values[entries:]
    if (total_bytes := sum(sizes)) > MOST_MESSAGE_BYTES:
        raise DataError(f"a message of {total_bytes} bytes: no process can hold so many")
    chunk_bytes = 0
    if kinds and kinds[-1] is FrameKind.CHUNK:
        kinds, sizes, chunk_bytes = kinds[:-1], sizes[:-1], sizes[-1]
        if chunk_bytes == 0 or chunk_bytes % ALIGNMENT_BYTES:
            raise DataError(f"a header with chunks of {chunk_bytes} bytes")
    host_bytes = sum(
        size for kind, size in zip(kinds, sizes, strict=True) if kind is FrameKind.HOST
    )
    if host_bytes > most_host_bytes:
        raise DataError(
            f"a message with {host_bytes} bytes for the host, which has {most_host_bytes}: "
            "ask for fewer results at a time"
        )
    if FrameKind.CHUNK in kinds or (FrameKind.STREAM in kinds) != bool(chunk_bytes):
        raise DataError("a header whose stream has no size, or more than one")
    return Header(kinds, sizes, chunk_bytes)


def _refuse_entries(entries: int) -> None:
    if entries == 0:
        raise DataError("a message without frames: every message of Dask has one at least")
    if entries > MOST_ENTRIES:
        raise DataError(
            f"a message of {entries} frames: at most {MOST_ENTRIES} travel at once; "
            "ask for fewer results at a time"
        )


def _header_format(entries: int) -> str:
    return f"{entries}B{entries}Q"
