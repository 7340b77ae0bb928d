# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Five programs in little, for checking a plan where they run: on a GPU, or simulated.

Each is written against `Arrays` of `_residency_programs`, whose reads may be of a part.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from _residency_programs import MIB, etl_loop, training_loop


def hash_join(memory: Any, scale: int, iterations: int) -> None:
    """Build a table, probe it at random places with a large side, gather the result."""
    chosen = random.Random(1)
    build = memory.make(48 * MIB * scale)
    for _ in range(iterations):
        table = memory.make(36 * MIB * scale)
        memory.read(build)
        memory.write(table)
        probe = memory.make(72 * MIB * scale)
        for part in range(12):
            memory.read(probe, part * 6 * MIB * scale, 6 * MIB * scale)
            for _ in range(4):
                memory.read(table, chosen.randrange(36) * MIB * scale, MIB * scale)
        joined = memory.make(60 * MIB * scale)
        memory.read(build)
        memory.free(table)
        memory.free(probe)
        memory.read(joined)
        memory.free(joined)
    memory.free(build)


def fir(memory: Any, scale: int, iterations: int) -> None:
    """Filter a signal window by window: inputs go as outputs come, then the outputs are read."""
    for _ in range(iterations):
        inputs = [memory.make(12 * MIB * scale) for _ in range(16)]
        outputs = []
        for window in inputs:
            outputs.append(memory.make(12 * MIB * scale))
            memory.read(window)
            memory.write(outputs[-1])
            memory.free(window)
        for window in outputs:
            memory.read(window)
            memory.free(window)


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
