# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs past the edge: what they allocate, announce, compute and free, on a GPU or simulated.

Each is written against `Arrays`: allocations with a pattern that is checked when they are read, so
that a lost byte ends the benchmark.
"""

from __future__ import annotations

from typing import Protocol

MIB = 1 << 20


class Arrays(Protocol):
    """Memory that a program computes with."""

    def make(self, nbytes: int) -> int:
        """Allocate and write."""

    def read(self, handle: int) -> None:
        """Announce, then read all of it, `passes` times over."""

    def write(self, handle: int) -> None:
        """Announce, then read and write all of it."""

    def free(self, handle: int) -> None:
        """Free."""


def etl_loop(memory: Arrays, scale: int, iterations: int) -> None:
    """Join each part with tables that stay, clean, aggregate; parts come and go."""
    tables = [memory.make(24 * MIB * scale) for _ in range(2)]
    kept = []
    for number in range(iterations):
        raw = memory.make(64 * MIB * scale)
        memory.read(tables[0])
        clean = memory.make(56 * MIB * scale)
        memory.read(raw)
        memory.write(clean)
        memory.free(raw)
        memory.read(tables[1])
        joined = memory.make(72 * MIB * scale)
        memory.read(clean)
        memory.write(joined)
        memory.free(clean)
        work = memory.make(32 * MIB * scale)
        memory.read(joined)
        memory.write(work)
        memory.free(joined)
        memory.free(work)
        kept.append(memory.make((2 + number % 3) * MIB))
        if len(kept) > 4:
            memory.free(kept.pop(0))
    for handle in (*tables, *kept):
        memory.free(handle)


def training_loop(memory: Arrays, scale: int, iterations: int) -> None:
    """Go over the same data in each round, with work space that comes and goes."""
    data = [memory.make(24 * MIB * scale) for _ in range(6)]
    state = memory.make(12 * MIB * scale)
    for _ in range(iterations):
        work = memory.make(8 * MIB * scale)
        for part in data:
            memory.read(part)
            memory.write(work)
        memory.write(state)
        memory.free(work)
    for handle in (*data, state):
        memory.free(handle)


TRAINING_PEAK_MIB = 6 * 24 + 12 + 8  # times scale
