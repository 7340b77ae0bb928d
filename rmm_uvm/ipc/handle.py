# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The bytes of a handle.

Covers writing and reading them, and refusing what is none. Does not cover whether the handle may
still be opened; see `rmm_uvm.ipc.table`. The layout is a table of
``docs/understand/communication.md``.
"""

from __future__ import annotations

import math
import struct
import zlib
from typing import NamedTuple

from rmm_uvm.errors import DataError
from rmm_uvm.ipc.array import item_bytes
from rmm_uvm.support.messages import shown
from rmm_uvm.support.units import format_bytes

__all__ = ["MAGIC", "VERSION", "Handle"]

MAGIC = b"rmmuvmIP"
VERSION = 1

# Little-endian, no padding. What follows: the shape, the type, and a checksum of all before it.
_FIXED = struct.Struct("<8sHHI16s16s16sII6Q64s64s")
_BEGINNING = MAGIC + VERSION.to_bytes(2, "little")
_SIMULATED = 1
_MOST_DIMENSIONS = 32  # of CuPy and NumPy


class Handle(NamedTuple):
    """The facts that a process needs to open a buffer of another.

    Parameters
    ----------
    simulated : bool
        The device is simulated.
    machine : bytes
        16 bytes; see `rmm_uvm.ipc.machine.machine_id`.
    device : bytes
        UUID of the device, 16 bytes.
    table : bytes
        Name of the exporter's lease table, 16 random bytes.
    slot : int
        Of the lease in that table.
    generation : int
        Which of the slot's leases it is.
    expires_ns : int
        When it can be opened no longer, in the machine's monotonic clock.
    slab_bytes : int
        Length of the slab.
    offset : int
        Of the buffer in the slab, bytes.
    nbytes : int
        Length of the buffer.
    slab_handle : bytes
        CUDA's handle of the slab, 64 bytes.
    event_handle : bytes
        CUDA's handle of the event, 64 bytes.
    typestr : str
        Of the elements, as in the array interface.
    shape : tuple of int
        In elements, C order.

    Examples
    --------
    >>> handle = Handle(
    ...     simulated=True, machine=bytes(16), device=bytes(16), table=bytes(16), slot=0,
    ...     generation=1, expires_ns=0, slab_bytes=4096, offset=256, nbytes=8,
    ...     slab_handle=bytes(64), event_handle=bytes(64), typestr="<f4", shape=(2,),
    ... )
    >>> Handle.unpack(handle.pack()) == handle
    True
    """

    simulated: bool
    machine: bytes
    device: bytes
    table: bytes
    slot: int
    generation: int
    expires_ns: int
    slab_bytes: int
    offset: int
    nbytes: int
    slab_handle: bytes
    event_handle: bytes
    typestr: str
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        """Return what it names, without what opens it: logs and tracebacks show this."""
        return (
            f"<Handle of {self.nbytes} bytes at {self.offset} of a slab of {self.slab_bytes}, "
            f"slot {self.slot}, generation {self.generation}>"
        )

    def pack(self) -> bytes:
        """Return the bytes."""
        rest = struct.pack(f"<{len(self.shape)}Q", *self.shape) + self.typestr.encode("ascii")
        packed = (
            _FIXED.pack(
                MAGIC,
                VERSION,
                _SIMULATED if self.simulated else 0,
                _FIXED.size + len(rest) + 4,
                self.machine,
                self.device,
                self.table,
                self.slot,
                len(self.shape),
                self.generation,
                self.expires_ns,
                self.slab_bytes,
                self.offset,
                self.nbytes,
                0,  # reserved
                self.slab_handle,
                self.event_handle,
            )
            + rest
        )
        return packed + zlib.crc32(packed).to_bytes(4, "little")

    @classmethod
    def unpack(cls, packed: bytes) -> Handle:
        """Read a handle.

        Parameters
        ----------
        packed : bytes
            From `rmm_uvm.ipc.IpcPool.export`; anything, in fact.

        Raises
        ------
        DataError
            If it is no handle, was damaged on its way, is of another version, or names bytes
            outside its slab.
        """
        if type(packed) is not bytes:
            packed = _as_bytes(packed)
        if not packed.startswith(_BEGINNING):
            raise DataError(_no_handle(packed))
        body, checksum = packed[:-4], packed[-4:]
        if len(body) < _FIXED.size or zlib.crc32(body) != int.from_bytes(checksum, "little"):
            raise DataError(f"the handle is damaged: {len(packed)} bytes with a wrong checksum")
        return cls._checked(body)

    @classmethod
    def _checked(cls, body: bytes) -> Handle:
        """Read what has the right checksum: it may still be somebody's invention."""
        (
            _, _, flags, length, machine, device, table, slot, dimensions, generation, expires_ns,
            slab_bytes, offset, nbytes, _, slab_handle, event_handle,
        ) = _FIXED.unpack_from(body)  # fmt: skip
        end = _FIXED.size + 8 * dimensions
        if length != len(body) + 4 or dimensions > _MOST_DIMENSIONS or end > len(body):
            raise DataError(f"the handle contradicts itself: its length field says {length} bytes")
        shape = struct.unpack_from(f"<{dimensions}Q", body, _FIXED.size)
        typestr = body[end:].decode("ascii", errors="replace")
        size = item_bytes(typestr)
        if size is None or size * math.prod(shape) != nbytes or nbytes == 0:
            raise DataError(
                f"the handle contradicts itself: {nbytes} bytes of type {shown(typestr)}"
            )
        if offset + nbytes > slab_bytes:
            raise DataError(
                f"the handle is damaged: {format_bytes(nbytes)} at byte {offset} pass the end of "
                f"its slab of {format_bytes(slab_bytes)}"
            )
        return cls(
            bool(flags & _SIMULATED), machine, device, table, slot, generation, expires_ns,
            slab_bytes, offset, nbytes, slab_handle, event_handle, typestr, shape,
        )  # fmt: skip


def _as_bytes(packed: object) -> bytes:
    if isinstance(packed, bytes | bytearray | memoryview):
        return bytes(packed)
    raise DataError(f"a handle is bytes, not {type(packed).__name__}")


def _no_handle(packed: bytes) -> str:
    if not packed.startswith(MAGIC) or len(packed) < len(_BEGINNING):
        return f"these {len(packed)} bytes are no handle of rmm_uvm.ipc"
    version = int.from_bytes(packed[len(MAGIC) : len(_BEGINNING)], "little")
    return (
        f"the handle has version {version}, this rmm_uvm reads version {VERSION}: install one "
        "version everywhere"
    )
