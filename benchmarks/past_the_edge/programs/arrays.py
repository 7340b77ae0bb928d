# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A loop over CuPy arrays."""

from __future__ import annotations

from typing import Any

from benchmarks.past_the_edge.programs.announcing import announcing


class Arrays:
    """CuPy: a step writes an array, makes another of it, and adds both up."""

    STEPS = 3
    SIDES = ("resident", "unseen", "announced", "fault-driven", "fault-driven-prefetched")
    PIECES = 24

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        import cupy

        self._cupy, self._announce = cupy, announcing(announced)
        self._words = data_bytes // pieces // 8
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._arrays: list[Any] = []
        self._now: Any = None

    def make(self) -> None:
        u64 = self._cupy.uint64
        for number in range(self._pieces):
            array = self._cupy.arange(self._words, dtype=u64)
            array *= u64(2_654_435_761 + number)
            self._arrays.append(array)

    def operation(self, number: int) -> int:
        piece, step = divmod(number, self.STEPS)
        array, u64 = self._arrays[piece], self._cupy.uint64
        if step == 0:
            self._announce(array)
            array *= u64(3)
            array += u64(number + 1)
            return piece
        if step == 1:
            self._now = array >> u64(7)
            self._now ^= array
            return piece
        total = int(array.sum()) ^ int(self._now.max()) ^ int(self._now.sum())
        self._now = None
        return total

    def drop(self) -> None:
        self._arrays, self._now = [], None
