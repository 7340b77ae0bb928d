# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that repeat themselves, and a recorded one, for comparing eviction policies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from benchmarks.residency.join_and_filter import fir, hash_join
from benchmarks.residency.policy_card import MIB, WAYS, Card
from benchmarks.residency.programs import etl_loop, training_loop
from rmm_uvm.planner.workload.events import ALLOCATE, FREE, WRITES, Workload
from rmm_uvm.planner.workload.loading import load_workload

TRACE = Path(__file__).parents[2] / "tests" / "data" / "mortgage-h200.trace.gz"
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


PROGRAMS: dict[str, Callable[[Card], None]] = {
    "mortgage": mortgage,
    "etl": lambda memory: etl_loop(memory, 2, ROUNDS),
    "training": lambda memory: training_loop(memory, 2, ROUNDS),
    "hash join": lambda memory: hash_join(
        memory, ROUNDS, unit_bytes=16 * MIB, lookups=10, lookup_bytes=MIB // 16
    ),
    "fir": lambda memory: fir(memory, ROUNDS, windows=24, window_bytes=8 * MIB),
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
