# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is fuzzed: each target takes any bytes and raises only if a reader is wrong.

A reader may refuse with the project's own error, in one or two lines. What it accepts has to hold
what it promises. Where a checksum guards the bytes, the target computes it: else no change to an
input would come past it.
"""

from __future__ import annotations

import functools
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rmm_uvm.dask.settings import settings_of
from rmm_uvm.ipc.handle import Handle
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.support.machine_files import format_machine, load_machine, parse_machine
from rmm_uvm.trace import iter_events, read, read_rmm_log
from rmm_uvm.trace.log_lines import HEADER

from . import slow_log, slow_workload
from .board_target import board
from .categories_target import categories
from .harvest_target import harvest_board
from .lease_target import lease_table
from .payload import framed
from .promises import Finding, attempted, written
from .recording_target import recording
from .settings_target import environment
from .wire_target import wire_handshake, wire_message


def trace_bytes(data: bytes) -> None:
    """Read any bytes as a trace."""
    with written(data) as path:
        _read_trace(path)


def trace(data: bytes) -> None:
    """Read a trace whose checksums are right."""
    with written(framed(data)) as path:
        _read_trace(path)


def rmm_log(data: bytes) -> None:
    """Read lines as a log of RMM's; a slow and simple reader has to understand the same lines."""
    with written(HEADER + b"\n" + data) as path:
        found = attempted(lambda: read_rmm_log(path))
    if found is None:
        raise Finding("a log with the right first line was refused")
    found.recording()
    wanted = slow_log.rows(data)
    got = list(
        zip(
            *(found.events[name].tolist() for name in ("kind", "address", "bytes", "thread")),
            strict=True,
        )
    )
    if got != wanted:
        raise Finding(f"understood {got}, not {wanted}")
    if (np.diff(found.events["time_ns"].astype(np.int64)) < 0).any():
        raise Finding("time goes back")


def workload(data: bytes) -> None:
    """Load a workload from a trace, a log or any bytes; what it is made of has to add up."""
    kind, rest = data[:1], data[1:]
    contents = {b"t": framed, b"l": lambda lines: HEADER + b"\n" + lines}.get(kind, bytes)(rest)
    with written(contents) as path:
        for device in (None, 0):
            load = functools.partial(load_workload, path, device=device)
            found, strict = attempted(load), attempted(functools.partial(load, strict=True))
            if found is None:
                if strict is not None:
                    raise Finding("only a strict reader accepts it")
            elif wrong := slow_workload.problem(found):
                raise Finding(wrong)
            elif (strict is None) != bool(found.cut_off or found.remarks):
                raise Finding(f"remarks {found.remarks}, yet a strict reader says {strict}")


def machine(data: bytes) -> None:
    """Load a machine file; what is accepted is the same after it was written and read again."""
    with written(data) as path:
        found = attempted(lambda: load_machine(path))
    if found is not None and parse_machine(format_machine(found), "again") != found:
        raise Finding(f"{found} is another machine after it was written")


def handle(data: bytes) -> None:
    """Unpack bytes as a handle, and the same with the right length and checksum."""
    body = bytearray(data)
    if len(body) >= 16:
        body[12:16] = struct.pack("<I", len(body) + 4)
    for packed in (data, bytes(body) + zlib.crc32(body).to_bytes(4, "little")):
        found = attempted(lambda packed=packed: Handle.unpack(packed))
        if found is not None and Handle.unpack(found.pack()) != found:
            raise Finding(f"{found} is another handle after it was packed")


def dask_settings(data: bytes) -> None:
    """Check a section of Dask's configuration; checked again, it is the same."""
    try:
        section = json.loads(data)
    except (ValueError, RecursionError):
        return
    found = attempted(lambda: settings_of(section))
    if found is None:
        return
    again = dict(found.values)
    if settings_of(json.loads(json.dumps(again))) != found:
        raise Finding(f"{found} is not accepted as it was given back")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "trace": trace,
    "trace-bytes": trace_bytes,
    "rmm-log": rmm_log,
    "workload": workload,
    "machine": machine,
    "handle": handle,
    "dask-settings": dask_settings,
    "environment": environment,
    "categories": categories,
    "recording": recording,
    "board": board,
    "harvest-board": harvest_board,
    "lease-table": lease_table,
    "wire-message": wire_message,
    "wire-handshake": wire_handshake,
}


def _read_trace(path: Path) -> None:
    found = attempted(lambda: read(path))
    batches: list[int] = []
    refused = attempted(lambda: batches.extend(map(len, iter_events(path))) or True) is None
    if found is None:
        if not refused:
            raise Finding("only iter_events accepts it")
        return
    found.recording()
    if (sum(batches), refused) != (len(found.events), bool(found.damaged)):
        raise Finding(f"iter_events: {sum(batches)} events, refused: {refused}; read: {found}")
