# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a file that gzip may have compressed, up to where it is cut off or damaged.

The standard library's reader loses what it had unpacked when it meets the damage; this one hands it
out and says afterwards what was wrong.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import BinaryIO

__all__ = ["Bytes", "GzipBytes", "unpacked"]

_MAGIC = b"\x1f\x8b\x08"
_BLOCK_BYTES = 1 << 18
_GZIP = 16 + zlib.MAX_WBITS


class Bytes:
    """A file as it is.

    Attributes
    ----------
    wrong : str
        What ended the reading early; of a plain file nothing does.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.wrong = ""
        self.file_bytes = os.fstat(file.fileno()).st_size

    def read(self, nbytes: int) -> bytes:
        """Return the next bytes; fewer only at the end."""
        return self._file.read(nbytes)

    def tell(self) -> int:
        """Return how many bytes have been handed out."""
        return self._file.tell()

    @property
    def file_position(self) -> int:
        """How far the file itself has been read, in bytes of `file_bytes`."""
        return self._file.tell()


class GzipBytes(Bytes):
    """The contents of a file that gzip compressed, of one member or several.

    Unpacks no more than is asked for and a quarter of a MiB, however well the file is compressed.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._unpacker = zlib.decompressobj(_GZIP)
        self._packed = self._ready = b""
        self._next = 0  # in what is ready
        self._handed_out = 0

    def read(self, nbytes: int) -> bytes:
        """Return the next bytes; fewer only at the end, or where the file is damaged."""
        parts, missing = [], nbytes
        while missing > 0 and (self._next < len(self._ready) or self._unpack()):
            parts.append(self._ready[self._next : self._next + missing])
            self._next += len(parts[-1])
            missing -= len(parts[-1])
        self._handed_out += nbytes - missing
        return b"".join(parts)

    def tell(self) -> int:
        """Return how many bytes have been handed out."""
        return self._handed_out

    def _unpack(self) -> bool:
        """Unpack something more; return whether there was anything."""
        self._ready, self._next = b"", 0
        while not self._ready:
            if self.wrong or not self._begin_member():
                return False
            if not self._packed:
                self._packed = self._file.read(_BLOCK_BYTES)
            if not self._packed:
                self.wrong = "the compressed file is cut off"
                return False
            before = self._unpacker.copy()
            try:
                self._ready = self._unpacker.decompress(self._packed, _BLOCK_BYTES)
            except zlib.error as error:
                self.wrong = f"the compressed file is damaged ({error})"
                self._ready = _until_damage(before, self._packed)
                return bool(self._ready)
            self._packed = self._unpacker.unconsumed_tail or self._unpacker.unused_data
        return True

    def _begin_member(self) -> bool:
        """Go on to the next member after the end of one; return whether there is one."""
        if not self._unpacker.eof:
            return True
        self._packed = (self._packed or self._file.read(_BLOCK_BYTES)).lstrip(b"\0")  # padding
        if not self._packed:
            return False
        if not self._packed.startswith(_MAGIC[: len(self._packed)]):
            self.wrong = "bytes follow the compressed data"
            return False
        self._unpacker = zlib.decompressobj(_GZIP)
        return True


def _until_damage(unpacker: zlib._Decompress, packed: bytes) -> bytes:
    """Return what zlib drops when it meets the damage: fed byte by byte, it hands that out first.

    The damage lies where at most one block was unpacked, so that this is a block at most.
    """
    parts = []
    with contextlib.suppress(zlib.error):
        for at in range(len(packed)):
            parts.append(unpacker.decompress(packed[at : at + 1]))
    return b"".join(parts)


def unpacked(file: BinaryIO) -> Bytes:
    """Return the contents of an open file, unpacked if gzip made it.

    Parameters
    ----------
    file : binary file
        At its begin; regular.
    """
    packed = file.read(len(_MAGIC)) == _MAGIC
    file.seek(0)
    return GzipBytes(file) if packed else Bytes(file)
