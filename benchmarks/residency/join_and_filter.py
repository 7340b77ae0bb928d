# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A hash join and a filter, of any size: programs whose parts are read at a time."""

from __future__ import annotations

import random
from typing import Any


def hash_join(
    memory: Any, rounds: int, *, unit_bytes: int, lookups: int, lookup_bytes: int
) -> None:
    """Build a table, probe it at random places with a large side, gather the result.

    Parameters
    ----------
    memory : object
        As `Arrays` of `programs.py`, with reads of a part: ``read(handle, first_byte,
        nbytes)``.
    rounds : int
        How often.
    unit_bytes : int
        A third of the table, even; all else is made of it. Three are a multiple of `lookup_bytes`.
    lookups : int
        Random reads of the table for each twelfth of the large side.
    lookup_bytes : int
        Of each such read.
    """
    chosen = random.Random(1)
    table_bytes, part_bytes = 3 * unit_bytes, unit_bytes // 2
    build = memory.make(4 * unit_bytes)
    for _ in range(rounds):
        table = memory.make(table_bytes)
        memory.read(build)
        memory.write(table)
        probe = memory.make(12 * part_bytes)
        for part in range(12):
            memory.read(probe, part * part_bytes, part_bytes)
            for _ in range(lookups):
                place = chosen.randrange(table_bytes // lookup_bytes)
                memory.read(table, place * lookup_bytes, lookup_bytes)
        joined = memory.make(5 * unit_bytes)
        memory.read(build)
        memory.free(table)
        memory.free(probe)
        memory.read(joined)
        memory.free(joined)
    memory.free(build)


def fir(memory: Any, rounds: int, *, windows: int, window_bytes: int) -> None:
    """Filter a signal window by window: inputs go as outputs come, then the outputs are read."""
    for _ in range(rounds):
        inputs = [memory.make(window_bytes) for _ in range(windows)]
        outputs = []
        for window in inputs:
            outputs.append(memory.make(window_bytes))
            memory.read(window)
            memory.write(outputs[-1])
            memory.free(window)
        for window in outputs:
            memory.read(window)
            memory.free(window)
