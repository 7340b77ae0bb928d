# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The outer layer of a trace file: header and chunks, of which nothing is believed.

docs/understand/trace-format.md describes the format. Covers files that are cut off, damaged or made
up: every length has a limit, and nothing is allocated for more bytes than the file has.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rmm_uvm.errors import DataError
from rmm_uvm.trace.compressed import Bytes, unpacked

__all__ = ["LARGEST_PAYLOAD_BYTES", "ChunkKind", "Chunks", "open_regular"]

MAGIC = b"\x89UVMT\r\n\x1a"
VERSION = 1
LARGEST_FACTS_BYTES = 1 << 20
LARGEST_PAYLOAD_BYTES = 1 << 20
_HEADER = struct.Struct("<8sHHII")  # magic, version, reserved, length and CRC-32 of the facts
_CHUNK = struct.Struct("<IIB")  # length of the payload, CRC-32 of kind and payload, kind


class ChunkKind(enum.IntEnum):
    """The kind of a chunk; others are skipped, for later versions may have them."""

    EVENTS = 1
    SAMPLES = 2
    END = 3


@contextlib.contextmanager
def open_regular(path: str | os.PathLike[str], what: str) -> Iterator[Bytes]:
    """Open a file for reading, if it is one; what gzip compressed is unpacked.

    Raises
    ------
    DataError
        If it cannot be opened or read, or is a folder, pipe or device.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise DataError(f"{what} {path!r} cannot be read: the name of a file is needed")
    try:
        # A pipe would block until somebody writes to it.
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise DataError(f"{what} {os.fspath(path)} is not a file")
        with os.fdopen(number, "rb") as file:
            yield unpacked(file)
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{what} {os.fspath(path)} cannot be read: {reason}") from None


class Chunks:
    """The chunks of an open trace, in order; ends at the first that is not whole.

    Parameters
    ----------
    file : Bytes
        At its begin.
    path : str or path-like
        For messages.

    Attributes
    ----------
    facts : mapping
        Of the header.
    truncated : bool
        After iterating: the trace has no end; its program runs, or was killed.
    damaged : str
        After iterating: what is wrong and where, empty if nothing.
    dropped : int
        After iterating: events that the writer could not record.

    Raises
    ------
    DataError
        If the header is not that of a trace of this version.
    """

    def __init__(self, file: Bytes, path: str | os.PathLike[str]) -> None:
        self._file = file
        self._path = Path(path)
        self.facts = self._read_header()
        self.truncated = True
        self.damaged = ""
        self.dropped = 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield kind and payload."""
        self._begin = self._file.tell()
        yield from self._until_the_end()
        if self._file.wrong and not self.damaged:
            self.damage(self._file.wrong)

    def _until_the_end(self) -> Iterator[tuple[int, bytes]]:
        while True:
            self._begin = self._file.tell()
            head = self._file.read(_CHUNK.size)
            if len(head) < _CHUNK.size:
                return
            length, checksum, kind = _CHUNK.unpack(head)
            if length > LARGEST_PAYLOAD_BYTES:
                return self.damage(f"a chunk says that it has {length} bytes")
            payload = self._file.read(length)
            if len(payload) < length:
                return
            if zlib.crc32(payload, zlib.crc32(head[-1:])) != checksum:
                return self.damage("a chunk does not match its checksum")
            if kind == ChunkKind.END:
                return self._finish(payload)
            yield kind, payload

    def damage(self, reason: str) -> None:
        """Note what is wrong with the chunk that was read last."""
        self.damaged = f"{reason} (at byte {self._begin})"

    def _finish(self, payload: bytes) -> None:
        self.truncated = False
        self.dropped = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(payload[:9]))
        if self._file.read(1):
            self._begin = self._file.tell() - 1
            self.damage("bytes follow the end")

    def _read_header(self) -> Mapping[str, Any]:
        head = self._file.read(_HEADER.size)
        if self._file.wrong and len(head) < _HEADER.size:
            raise DataError(f"the trace {self._path} cannot be read: {self._file.wrong}")
        if not head:
            raise DataError(f"the trace {self._path} is empty")
        if not head.startswith(MAGIC[: len(head)]):
            raise DataError(f"{self._path} is not a trace of rmm_uvm")
        if len(head) < _HEADER.size:
            raise DataError(f"the trace {self._path} is cut off in its header")
        _, version, _, length, checksum = _HEADER.unpack(head)
        if version != VERSION:
            raise DataError(
                f"the trace {self._path} is of version {version}, and this rmm_uvm reads version "
                f"{VERSION}: use the release that wrote it"
            )
        if length > LARGEST_FACTS_BYTES:
            raise DataError(f"the header of the trace {self._path} is damaged: {length} bytes long")
        text = self._file.read(length)
        if len(text) < length:
            raise DataError(f"the trace {self._path} is cut off in its header")
        if zlib.crc32(text) != checksum:
            raise DataError(f"the header of the trace {self._path} does not match its checksum")
        try:
            facts = json.loads(text)
        except (ValueError, RecursionError):
            facts = None
        if not isinstance(facts, dict):
            raise DataError(f"the header of the trace {self._path} is not a JSON object")
        return facts
