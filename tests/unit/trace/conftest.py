# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces written by the real writer, and made by hand."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.trace import TraceWriter

BASE = 0x7F00_0000_0000


def make_samples(count: int) -> np.ndarray:
    """Return samples of two devices, rising and falling."""
    samples = np.zeros(count, SAMPLE_DTYPE)
    samples["time_ns"] = np.arange(count) * 100_000_000
    samples["device_id"] = np.arange(count) % 2
    samples["footprint_bytes"] = (np.arange(count) * 7919) % 1000 << 20
    samples["known"] = 5
    return samples


def number(value: int) -> bytes:
    """Return a number as traces code it."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def header(facts: bytes = b"{}", version: int = 1, magic: bytes = b"\x89UVMT\r\n\x1a") -> bytes:
    """Return a header."""
    return struct.pack("<8sHHII", magic, version, 0, len(facts), zlib.crc32(facts)) + facts


def chunk(kind: int, payload: bytes, length: int | None = None) -> bytes:
    """Return a chunk whose checksum is right."""
    claimed = len(payload) if length is None else length
    return struct.pack("<IIB", claimed, zlib.crc32(bytes([kind]) + payload), kind) + payload


END = chunk(3, b"\0")
CONTEXT = number(6) + number(0) + number(0) + number(7) + number(1)  # device 0, stream 7, thread 1


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes bytes to a file."""

    def write(*parts: bytes) -> Path:
        path = tmp_path / "made.uvmtrace"
        path.write_bytes(b"".join(parts))
        return path

    return write


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a whole trace with one of everything, in several chunks."""
    path = tmp_path / "small.uvmtrace"
    with TraceWriter(path, {"program": "small"}, origin_ns=0) as writer:
        writer.stage_begin("etl")
        writer.allocated(0, BASE, 1000, 7)
        writer.allocated(0, BASE + 1024, 1 << 20, 7)
        writer.flush()
        writer.touched(0, BASE + 1024, 1 << 20, True)
        writer.samples(make_samples(4))
        writer.freed(0, BASE, 1000, 7)
        writer.flush()
        writer.allocated(0, BASE, 1000, 7)
        writer.annotate("remark")
        writer.stage_end()
    return path
