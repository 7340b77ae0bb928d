# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A loop over cuDF frames.

Numbers are whole, so that checksums are equal whatever the memory is, and whoever computes.
"""

from __future__ import annotations

from typing import Any

from benchmarks.past_the_edge.programs.announcing import announcing
from benchmarks.past_the_edge.programs.by_hand import FramesByHand

KEYS = 1_000_000
PRIME = 2_147_483_647


def dimension(library: Any, rows: int) -> Any:
    """Return what frames of so many rows are merged with."""
    keys = library.Series(library.RangeIndex(min(KEYS, rows)))
    return library.DataFrame({"key": keys * 1, "worth": keys * 7919 % 10_007})


def numbers(row: Any, keys: int) -> dict[str, Any]:
    """Return the columns of numbers of a frame, of which `row` counts the rows."""
    return {
        "key": row * 2_654_435_761 % keys,
        "group": row * 40_503 % keys,
        "value": (row * 1_103_515_245 + 12_345) % PRIME,
    }


class Frames:
    """cuDF: a step merges, groups, sorts and adds up one frame.

    Parameters
    ----------
    data_bytes : int
        Of all frames together.
    pieces : int
        Frames.
    announced : bool
        Call `rmm_uvm.touch` with a frame before its step.
    by_hand : {"", "pinned", "buffered"}
        Keep the frames on the host, and copy each in as `FramesByHand` does.
    """

    COLUMNS = 4
    STEPS = 4
    SIDES = ("resident", "default", "lru", "unseen", "fault-driven", "fault-driven-prefetched")
    PIECES = 24

    def __init__(
        self, data_bytes: int, pieces: int, *, announced: bool = False, by_hand: Any = ""
    ) -> None:
        import cudf

        self._host = FramesByHand(by_hand) if by_hand else None
        self._cudf, self._announce = cudf, announcing(announced)
        self._rows = data_bytes // pieces // self.COLUMNS // 8
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._frames: list[Any] = []
        self._dimension: Any = None
        self._now: Any = None

    def make(self) -> None:
        self._dimension = dimension(self._cudf, self._rows)
        if self._host is None:
            self._frames = [self._frame(number) for number in range(self._pieces)]
            return
        for number in range(self._pieces):
            self._host.keep(self._frame(number))

    def operation(self, number: int) -> int:
        piece, step = divmod(number, self.STEPS)
        if step == 0:
            frame = self._frames[piece] if self._host is None else self._host.bring(piece)
            self._announce(frame)
            self._now = frame.merge(self._dimension, on="key", how="inner")
        elif step == 1:
            how = {"value": "sum", "number": "max", "worth": "sum"}
            self._now = self._now.groupby("group", as_index=False).agg(how)
        elif step == 2:
            self._now = self._now.sort_values(["value", "group"])
        else:
            first, self._now = self._now.head(1000), self._now[["value", "number", "worth"]]
            sums = [int(self._now[name].sum()) for name in ("value", "number", "worth")]
            self._now = None
            return sums[0] + 3 * sums[1] + 5 * sums[2] + 7 * int(first["group"].sum())
        return len(self._now)

    def drop(self) -> None:
        self._frames, self._dimension, self._now = [], None, None
        if self._host is not None:
            self._host.drop()

    def _frame(self, number: int) -> Any:
        rows, cudf = self._rows, self._cudf
        row = cudf.Series(cudf.RangeIndex(number * rows, (number + 1) * rows))
        return cudf.DataFrame({**numbers(row, len(self._dimension)), "number": row * 1})
