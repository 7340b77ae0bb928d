# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Five programs in little, for checking a plan where they run: on a GPU, or simulated.

Each is written against `Arrays` of `residency/programs.py`, whose reads may be of a part.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from benchmarks.residency import join_and_filter
from benchmarks.residency.programs import MIB, etl_loop, training_loop


def hash_join(memory: Any, scale: int, iterations: int) -> None:
    """Look up 4 pieces of the table for each part of the large side."""
    mib = MIB * scale
    join_and_filter.hash_join(memory, iterations, unit_bytes=12 * mib, lookups=4, lookup_bytes=mib)


def fir(memory: Any, scale: int, iterations: int) -> None:
    """Filter 16 windows."""
    join_and_filter.fir(memory, iterations, windows=16, window_bytes=12 * MIB * scale)


def groupby(memory: Any, scale: int, iterations: int) -> None:
    """Stream keys and values against groups that are hit at random, most of them a few of all."""
    chosen = random.Random(2)
    groups = [memory.make(6 * MIB * scale) for _ in range(24)]
    for _ in range(iterations):
        for _ in range(6):
            keys, values = (memory.make(16 * MIB * scale) for _ in range(2))
            memory.read(keys)
            for _ in range(8):
                memory.write(groups[min(int(chosen.expovariate(1 / 6)), 23)])
            memory.read(values)
            memory.free(keys)
            memory.free(values)
    for handle in groups:
        memory.read(handle)
        memory.free(handle)


PROGRAMS: dict[str, Callable[[Any, int, int], None]] = {
    "etl": etl_loop,
    "training": training_loop,
    "hash join": hash_join,
    "fir": fir,
    "groupby": groupby,
}
