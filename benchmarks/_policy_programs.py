# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that repeat themselves, and a recorded one, for comparing eviction policies."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path

from _policy_card import MIB, WAYS, Card
from _residency_programs import etl_loop, training_loop

from rmm_uvm.planner.events import ALLOCATE, FREE, WRITES, Workload
from rmm_uvm.planner.workload import load_workload

TRACE = Path(__file__).parents[1] / "tests" / "data" / "mortgage-h200.trace.gz"
ITERATIONS = 4
ROUNDS = 8


@functools.cache
def trace() -> Workload:
    """Return the mortgage pipeline as it ran on an H200; 1.4 GiB at most, 8156 allocations.

    It does not say what was touched: each allocation counts as written when it is made and as read
    just before it is freed.
    """
    return load_workload(TRACE)


def mortgage(memory: Card, iterations: int = ITERATIONS) -> None:
    """Do the recorded pipeline again and again."""
    events = trace().events
    columns = (events[name].tolist() for name in ("kind", "flags", "address", "nbytes"))
    recorded = list(zip(*columns, strict=True))
    for _ in range(iterations):
        now: dict[int, int] = {}
        for kind, flags, address, nbytes in recorded:
            if kind == ALLOCATE:
                now[address] = memory.allocate(nbytes)
            elif kind == FREE:
                memory.free(now.pop(address))
            else:
                memory.use(now[address], nbytes, write=bool(flags & WRITES))


def hash_join(memory: Card, rounds: int = ROUNDS) -> None:
    """Build a table, probe it at random places with a large side, gather the result."""
    chosen = random.Random(1)
    build = memory.make(64 * MIB)
    for _ in range(rounds):
        table = memory.make(48 * MIB)
        memory.read(build)
        memory.write(table)
        probe = memory.make(96 * MIB)
        for part in range(12):
            memory.read(probe, part * 8 * MIB, 8 * MIB)
            for _ in range(10):
                memory.read(table, chosen.randrange(48 * 16) * MIB // 16, MIB // 16)
        joined = memory.make(80 * MIB)
        memory.read(build)
        memory.free(table)
        memory.free(probe)
        memory.read(joined)
        memory.free(joined)
    memory.free(build)


def fir(memory: Card, rounds: int = ROUNDS) -> None:
    """Filter a signal window by window: inputs go as outputs come, then the outputs are read."""
    for _ in range(rounds):
        inputs = [memory.make(8 * MIB) for _ in range(24)]
        outputs = []
        for window in inputs:
            outputs.append(memory.make(8 * MIB))
            memory.read(window)
            memory.write(outputs[-1])
            memory.free(window)
        for window in outputs:
            memory.read(window)
            memory.free(window)


PROGRAMS: dict[str, Callable[[Card], None]] = {
    "mortgage": mortgage,
    "etl": lambda memory: etl_loop(memory, 2, ROUNDS),
    "training": lambda memory: training_loop(memory, 2, ROUNDS),
    "hash join": hash_join,
    "fir": fir,
}
RECORDED = ("mortgage",)


@functools.cache
def peak_bytes(name: str) -> int:
    """Return the most bytes that a program has allocated at a time."""
    if name in RECORDED:
        return trace().peak_live_bytes
    roomy = Card(4096 * MIB, WAYS[0], 2048 * MIB)
    PROGRAMS[name](roomy)
    return roomy.mr.peak_bytes


def pool_bytes(name: str) -> int:
    """Return the size of the first slab: what was recorded, or a quarter more than the peak."""
    if name in RECORDED:
        return sum(slab.nbytes for slab in trace().slabs)
    return -(-peak_bytes(name) * 5 // 4 // (2 * MIB)) * 2 * MIB
