# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A merge and a sort of whole cuDF frames.

Numbers are whole, and no two rows sort alike, so that checksums are equal in any memory.
"""

from __future__ import annotations

from typing import Any

from benchmarks.past_the_edge.programs.announcing import announcing

SPREAD = (2_654_435_761, 2_246_822_519)  # primes: multiples of one, modulo the rows, are all rows
PRIME = 2_147_483_647


class MergeAndSort:
    """cuDF: a merge of two whole frames, and a sort of the whole result.

    A piece is a pair of frames. At the peak both are live, with the result and its sorted copy.

    Parameters
    ----------
    data_bytes : int
        Of live data at the peak. While a sort or a merge computes, it takes a tenth more.
    pieces : int
        Pairs, one merged after the other. With one pair nothing is done piece by piece.
    announced : bool
        Call `rmm_uvm.touch` with both frames before they are merged.
    """

    INPUT_COLUMNS = 6  # of both frames of a pair together
    RESULT_COLUMNS = 5
    STEPS = 4
    SIDES = ("resident", "default", "fault-driven")
    PIECES = 1

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        import cudf

        self._cudf, self._announce = cudf, announcing(announced)
        columns = self.INPUT_COLUMNS * pieces + 2 * self.RESULT_COLUMNS
        self._rows = data_bytes // columns // 8
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._pairs: list[tuple[Any, Any]] = []
        self._merged: Any = None
        self._sorted: Any = None

    def make(self) -> None:
        self._pairs = [(self._left(number), self._right(number)) for number in range(self._pieces)]

    def operation(self, number: int) -> int:
        piece, step = divmod(number, self.STEPS)
        left, right = self._pairs[piece]
        if step == 0:
            self._announce(left)
            self._announce(right)
            self._merged = left.merge(right, on="key", how="inner")
            return len(self._merged)
        if step == 1:
            by = ["group", "key"]
            self._sorted = self._merged.sort_values(by, ignore_index=True)
            return len(self._sorted)
        if step == 2:
            first = self._sorted.head(1000)
            return self._sums(self._sorted) + 3 * int((first["key"] * first["worth"]).sum())
        total = self._sums(self._merged) + int(left["value"].max()) + int(right["worth"].max())
        self._merged = self._sorted = None
        return total

    def drop(self) -> None:
        self._pairs, self._merged, self._sorted = [], None, None

    def _sums(self, frame: Any) -> int:
        return sum(int(frame[name].sum()) for name in ("value", "number", "worth", "group"))

    def _row(self, number: int) -> Any:
        first = number * self._rows
        return self._cudf.Series(self._cudf.RangeIndex(first, first + self._rows))

    def _left(self, number: int) -> Any:
        row = self._row(number)
        return self._cudf.DataFrame(
            {
                "key": row * SPREAD[0] % self._rows,
                "value": (row * 1_103_515_245 + 12_345) % PRIME,
                "number": row * 1,
            }
        )

    def _right(self, number: int) -> Any:
        row = self._row(number)
        return self._cudf.DataFrame(
            {
                "key": row * SPREAD[1] % self._rows,
                "worth": row * 7919 % 10_007,
                "group": row * 40_503 % 65_537,
            }
        )
