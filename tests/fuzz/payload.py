# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces by hand, as trace-format.md has them: what the real writer would never write, too."""

from __future__ import annotations

import struct
import zlib
from typing import Self

EVENTS, SAMPLES, END = 1, 2, 3
_MAGIC = b"\x89UVMT\r\n\x1a"


class Payload:
    """Records of one chunk, one after the other; times in ticks since the record before."""

    def __init__(self) -> None:
        self.bytes = b""
        self._next_address = 0
        self._names: list[str] = []

    def context(self, index: int, *, device: int, stream: int, thread: int) -> Self:
        """Describe the context for what follows, the next new one."""
        return self._record(6, 0, index, _zigzag(device), stream, thread)

    def allocate(self, address: int, nbytes: int, *, ticks: int = 1) -> Self:
        """Allocate."""
        return self._record(0, ticks, *self._range(address, nbytes))

    def allocate_again(self, distance: int, *, ticks: int = 1) -> Self:
        """Allocate what was allocated before; nothing that follows may name an address."""
        return self._record(2, ticks, distance)

    def free(self, distance: int, *, ticks: int = 1) -> Self:
        """Free an allocation of this chunk, counted backwards."""
        return self._record(3, ticks, distance)

    def free_at(self, address: int, nbytes: int, *, ticks: int = 1) -> Self:
        """Free an allocation of an earlier chunk."""
        return self._record(4, ticks, *self._range(address, nbytes))

    def touch(self, address: int, nbytes: int, flags: int, *, ticks: int = 1) -> Self:
        """Touch; flags: 1 writes, 2 by the CPU."""
        return self._record(5, ticks, flags, *self._range(address, nbytes))

    def begin(self, name: str, thread: str, *, ticks: int = 1) -> Self:
        """Begin a stage."""
        return self._record(7, ticks, 0)._name(name)._name(thread)

    def end(self, *, ticks: int = 1) -> Self:
        """End the stage."""
        return self._record(7, ticks, 1)

    def annotate(self, text: str, *, ticks: int = 1) -> Self:
        """Remark."""
        return self._record(7, ticks, 2)._name(text)

    def kernel(self, name: str, *, ticks: int = 1) -> Self:
        """Begin a kernel, of which are the touches at this time."""
        return self._record(7, ticks, 3)._name(name)

    def _record(self, kind: int, ticks: int, *numbers: int) -> Self:
        self.bytes += b"".join(map(_number, (ticks << 3 | kind, *numbers)))
        return self

    def _name(self, name: str) -> Self:
        if name in self._names:
            self.bytes += _number(self._names.index(name))
        else:
            text = name.encode()
            self.bytes += _number(len(self._names)) + _number(len(text)) + text
            self._names.append(name)
        return self

    def _range(self, address: int, nbytes: int) -> tuple[int, int, int] | tuple[int, int]:
        difference = address - self._next_address
        self._next_address = (address + nbytes + 255) & ~255
        short = _zigzag(difference) << 1 | 1 if difference % 256 else _zigzag(difference >> 8) << 1
        return short, nbytes << 1 | 1 if nbytes % 8 else (nbytes >> 3) << 1


def raw_trace(facts: bytes, chunks: list[tuple[int, bytes]]) -> bytes:
    """Return a trace with the right checksums; chunks are kind and payload."""
    parts = [struct.pack("<8sHHII", _MAGIC, 1, 0, len(facts), zlib.crc32(facts)), facts]
    for kind, payload in chunks:
        crc = zlib.crc32(bytes([kind]) + payload)
        parts += [struct.pack("<IIB", len(payload), crc, kind), payload]
    return b"".join(parts)


def framed(data: bytes) -> bytes:
    """Return a trace of which the facts and chunks are cut out of the data.

    Two bytes of length and the facts come first; then chunks, of two bytes of length, one of kind
    and the payload. What is left is appended.
    """
    end = 2 + int.from_bytes(data[:2], "little")
    facts, rest = data[2:end], data[end:]
    chunks = []
    while len(rest) >= 3:
        end = 3 + int.from_bytes(rest[:2], "little")
        chunks.append((rest[2], rest[3:end]))
        rest = rest[end:]
    return raw_trace(facts, chunks) + rest


def unframed(facts: bytes, chunks: list[tuple[int, bytes]]) -> bytes:
    """Return the data of which `framed` makes this trace."""
    parts = [len(facts).to_bytes(2, "little"), facts]
    for kind, payload in chunks:
        parts += [len(payload).to_bytes(2, "little"), bytes([kind]), payload]
    return b"".join(parts)


def _number(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1
