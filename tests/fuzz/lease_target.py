# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Lease tables: whatever stands in the file, a lease opens once for each time that it says."""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np

import rmm_uvm.ipc.table
from rmm_uvm._lib.leases import LeaseFile, lease_file_bytes
from rmm_uvm.errors import AvailabilityError, DataError
from rmm_uvm.ipc.table import SLOTS, RemoteTable

from .promises import FOLDER, Finding, attempted

HEADER = struct.Struct("<8sHHI")
RECORD = struct.Struct("<HQII")
STEP = struct.Struct("<BHQ")
_RECORDS = np.dtype([("generation", "<u8"), ("opened", "<u4"), ("allowed", "<u4")])
_FIRST = 64  # bytes before the first record
_MOST_STEPS = 60
_NAME = b"rmm-uvm's fuzzer"  # of 16 bytes, as handles carry one


def lease_table(data: bytes) -> None:
    """Open leases of a table that another process made.

    The first byte says how: "f" the rest is the file; "l" an exporter lives, "d" it is dead, and
    the rest is a header, one byte for a number of records, each with its slot, and then steps.
    """
    kind, rest = data[:1], data[1:]
    contents, end = rest, len(rest)
    if kind in (b"l", b"d"):
        contents, end = _contents(rest)
    with contextlib.ExitStack() as closing:
        # Not in the folder of all: what has no exporter there, anybody's pool removes.
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(dir=FOLDER)))
        closing.enter_context(mock.patch.object(rmm_uvm.ipc.table, "_FOLDER", folder))
        path = folder / f"rmm-uvm-ipc-{_NAME.hex()}"
        path.write_bytes(contents)
        path.chmod(0o600)
        if kind == b"l":
            exporter = LeaseFile(os.open(path, os.O_RDWR), SLOTS)
            closing.callback(exporter.close)
            exporter.try_be_exporter()
        table = attempted(lambda: RemoteTable(_NAME), (DataError, AvailabilityError))
        told = contents[: HEADER.size].ljust(HEADER.size, b"\0")
        right = len(contents) == lease_file_bytes(SLOTS)
        right = right and HEADER.unpack(told)[:2] == (b"rmmuvmLT", 1)
        if (table is not None) != right:
            raise Finding(f"a table of {len(contents)} bytes, header {told!r}: {table}")
        if table is not None:
            closing.callback(table.close)
            _open_leases(table, path, rest[end:], alive=kind == b"l")


def _contents(data: bytes) -> tuple[bytes, int]:
    """Return a file of the right length, and where the data go on."""
    count = data[HEADER.size] if len(data) > HEADER.size else 0
    end = HEADER.size + 1 + count * RECORD.size
    file = bytearray(lease_file_bytes(SLOTS))
    file[: HEADER.size] = data[: HEADER.size].ljust(HEADER.size, b"\0")
    records = data[HEADER.size + 1 : end]
    for place in range(0, len(records) - RECORD.size + 1, RECORD.size):
        slot, *values = RECORD.unpack_from(records, place)
        struct.pack_into("<QII", file, _FIRST + 16 * (slot % SLOTS), *values)
    return bytes(file), end


def _open_leases(table: RemoteTable, path: Path, steps: bytes, *, alive: bool) -> None:
    """Open and close leases, and know beforehand which can be opened."""
    records = np.memmap(path, _RECORDS, "r", _FIRST, SLOTS)
    held: dict[int, int] = {}
    if table.exporter_alive != alive:
        raise Finding(f"the exporter lives: {alive}, and the table says the opposite")
    for place in range(0, min(len(steps), _MOST_STEPS * STEP.size) - STEP.size + 1, STEP.size):
        what, slot, generation = STEP.unpack_from(steps, place)
        if what % 4 >= 2 and slot < SLOTS:
            if held.get(slot):
                (table.release if what % 4 == 2 else table.cancel)(slot)
                held[slot] -= 1
            continue
        before = records[slot].item() if slot < SLOTS else (0, 0, 0)
        opens = alive and before[0] == generation and before[1] < before[2]
        opened = attempted(
            lambda slot=slot, generation=generation: table.acquire(slot, generation) or True,
            (DataError, AvailabilityError),
        )
        if bool(opened) != opens:
            raise Finding(f"lease {slot} of generation {generation}: {before}, opened: {opened}")
        if opened:
            held[slot] = held.get(slot, 0) + 1
            if records[slot].item() != (before[0], before[1] + 1, before[2]):
                raise Finding(f"an opening that is not counted: {before}, {records[slot]}")
    if table.in_use != any(held.values()):
        raise Finding(f"open are {held}, and the table is in use: {table.in_use}")
