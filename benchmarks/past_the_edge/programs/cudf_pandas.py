# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A loop over frames of pandas, which cudf.pandas runs on the GPU.

Numbers are whole, so that checksums are equal whatever the memory is, and whoever computes.
"""

from __future__ import annotations

import gc
import os
from typing import Any

from benchmarks.past_the_edge.programs.announcing import announcing
from benchmarks.past_the_edge.programs.frames import dimension, numbers

REMARKS = (
    *("Delivered", "Delivered LATE", "On the way", "Returned", "Returned LATE", "Lost"),
    *("Paid in full", "Paid in PARTS", "Not paid", "Gift", "Express", "Picked up"),
    *("Wrong address", "Nobody at home", "Damaged on the way", "Refused"),
)


class CudfPandas:
    """cudf.pandas: a step merges, adds columns, filters, counts, groups and sorts one frame.

    Parameters
    ----------
    data_bytes : int
        Of all frames together.
    pieces : int
        Frames.
    announced : bool
        Call `rmm_uvm.touch` with a frame before its step.
    """

    ROW_BYTES = 3 * 8 + 4 + sum(map(len, REMARKS)) / len(REMARKS)  # an offset, and the characters
    STEPS = 5
    SIDES = ("resident", "default")
    PIECES = 24

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        self._pandas, self._announce = accelerated_pandas(), announcing(announced)
        self._rows = int(data_bytes // pieces / self.ROW_BYTES)
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._frames: list[Any] = []
        self._dimension: Any = None
        self._now: Any = None

    def make(self) -> None:
        self._dimension = dimension(self._pandas, self._rows)
        self._frames = [self._frame(number) for number in range(self._pieces)]

    def operation(self, number: int) -> int:
        piece, step = divmod(number, self.STEPS)
        now = self._now
        if step == 0:
            self._announce(self._frames[piece])
            self._now = self._frames[piece].merge(self._dimension, on="key", how="inner")
        elif step == 1:
            remark = now["remark"]
            self._now = now.assign(
                total=now["value"] + now["worth"] * 3,
                length=remark.str.len(),
                remark=remark.str.lower(),
            )
        elif step == 2:
            self._now = now[now["remark"].str.contains("late", regex=False) | (now["length"] < 11)]
            counts = self._now["remark"].value_counts()
            return len(self._now) + int((counts * counts).sum())
        elif step == 3:
            how = {"total": "sum", "length": "max", "worth": "sum"}
            self._now = now.groupby("group", as_index=False).agg(how)
        else:
            ordered = now.sort_values(["total", "group"], ascending=False)
            sums = [int(ordered[name].sum()) for name in ("total", "length", "worth")]
            self._now = None
            return sums[0] + 3 * sums[1] + 5 * sums[2] + 7 * int(ordered["group"].head(1000).sum())
        return len(self._now)

    def drop(self) -> None:
        self._frames, self._dimension, self._now = [], None, None
        gc.collect()  # a proxy and what it wraps may refer to each other

    def _frame(self, number: int) -> Any:
        rows, pandas = self._rows, self._pandas
        row = pandas.Series(pandas.RangeIndex(number * rows, (number + 1) * rows))
        remarks = pandas.Series(list(REMARKS)).take(row * 31 % len(REMARKS))
        texts = {"remark": remarks.reset_index(drop=True)}
        return pandas.DataFrame({**numbers(row, len(self._dimension)), **texts})


def accelerated_pandas() -> Any:
    """Return pandas as cudf.pandas has it: in RMM's current memory, and never on the CPU."""
    import cudf.pandas

    if not cudf.pandas.LOADED:
        # By default `install` makes a pool of managed memory; with "cuda" it changes nothing.
        os.environ["CUDF_PANDAS_RMM_MODE"] = "cuda"
        os.environ["CUDF_PANDAS_FAIL_ON_FALLBACK"] = "1"
        cudf.pandas.install()
    import pandas

    return pandas
