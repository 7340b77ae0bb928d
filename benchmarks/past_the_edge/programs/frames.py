# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A loop over cuDF frames.

Numbers are whole, so that checksums are equal whatever the memory is, and whoever computes.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def frame_of(library: Any, number: int, rows: int, keys: int) -> Any:
    """Return the frame of a number, made by the library's own operations."""
    row = library.Series(library.RangeIndex(number * rows, (number + 1) * rows))
    return library.DataFrame({**numbers(row, keys), "number": row * 1})


def worked(frame: Any, dimension: Any) -> Iterator[int]:
    """Merge, group, sort and add up a frame, and hand out a number after each.

    No frame is kept longer than its step needs it.
    """
    now = frame.merge(dimension, on="key", how="inner")
    del frame
    yield len(now)
    now = now.groupby("group", as_index=False).agg(
        {"value": "sum", "number": "max", "worth": "sum"}
    )
    yield len(now)
    now = now.sort_values(["value", "group"])
    yield len(now)
    first, now = now.head(1000), now[["value", "number", "worth"]]
    sums = [int(now[name].sum()) for name in ("value", "number", "worth")]
    last = total_of(sums, int(first["group"].sum()))
    del first, now
    yield last


def total_of(sums: list[int], first: int) -> int:
    """Return the number of the last step."""
    return sums[0] + 3 * sums[1] + 5 * sums[2] + 7 * first


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
    instead : {"", "pinned", "buffered", "spilling", "behind"}
        Keep the frames on the host, and copy each in as `FramesByHand` does; or have cuDF spill.
        What else there is needs nothing of the program.
    """

    COLUMNS = 4
    STEPS = 4
    SIDES = ("resident", "default", "lru", "unseen", "fault-driven", "fault-driven-prefetched")
    PIECES = 24

    def __init__(
        self, data_bytes: int, pieces: int, *, announced: bool = False, instead: Any = ""
    ) -> None:
        import cudf

        self._host = FramesByHand(instead) if instead in ("pinned", "buffered") else None
        if instead == "spilling":
            cudf.set_option("spill", True)  # noqa: FBT003 - so it is called
        self._cudf, self._announce = cudf, announcing(announced)
        self._rows = data_bytes // pieces // self.COLUMNS // 8
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._frames: list[Any] = []
        self._dimension: Any = None
        self._steps: Iterator[int] = iter(())

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
            self._steps = worked(frame, self._dimension)
        return next(self._steps)

    def drop(self) -> None:
        self._frames, self._dimension, self._steps = [], None, iter(())
        if self._host is not None:
            self._host.drop()

    def _frame(self, number: int) -> Any:
        return frame_of(self._cudf, number, self._rows, len(self._dimension))
