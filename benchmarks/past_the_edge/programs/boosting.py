# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A loop over cuDF frames, of each of which XGBoost learns.

Checksums are whole numbers, and equal from run to run. Features are sums of whole numbers, in the
order of their keys. XGBoost adds gradients on a GPU as whole numbers, whatever their order, so its
trees are the same; what they predict is rounded to whole numbers.
"""

from __future__ import annotations

import gc
from typing import Any

from benchmarks.past_the_edge.programs.announcing import announcing

CUSTOMERS = 50_000  # rows that are learned from
ROUNDS = 5
SETTINGS: dict[str, Any] = {
    **{"device": "cuda", "tree_method": "hist", "max_bin": 64, "max_depth": 4},
    **{"objective": "reg:squarederror", "base_score": 0.0, "learning_rate": 0.5},
}


class Boosting:
    """cuDF and XGBoost: a step groups one frame, learns from the groups, and predicts.

    XGBoost's wheel cannot use RMM: what it allocates is not managed, and counts as memory beside.
    It learns from few rows, so that this is some megabytes.

    Parameters
    ----------
    data_bytes : int
        Of all frames together.
    pieces : int
        Frames.
    announced : bool
        Call `rmm_uvm.touch` with a frame before its step.
    """

    COLUMNS = 4
    STEPS = 3
    SIDES = ("resident", "default")
    PIECES = 12

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        import cudf
        import xgboost

        self._cudf, self._xgboost, self._announce = cudf, xgboost, announcing(announced)
        self._rows = data_bytes // pieces // self.COLUMNS // 8
        self._pieces, self.operations = pieces, pieces * self.STEPS
        self._frames: list[Any] = []
        self._features: Any = None
        self._matrix: Any = None
        self._booster: Any = None

    def make(self) -> None:
        self._frames = [self._frame(number) for number in range(self._pieces)]

    def operation(self, number: int) -> int:
        piece, step = divmod(number, self.STEPS)
        if step == 0:
            self._announce(self._frames[piece])
            self._features = self._prepared(self._frames[piece])
            return len(self._features)
        inputs = self._features.drop(columns="label")
        if step == 1:
            self._matrix = self._booster = None
            self._matrix = self._xgboost.QuantileDMatrix(
                inputs, label=self._features["label"], max_bin=SETTINGS["max_bin"]
            )
            self._booster = self._xgboost.train(SETTINGS, self._matrix, ROUNDS)
            return int(self._booster.num_boosted_rounds())
        predicted = self._cudf.Series(self._booster.inplace_predict(inputs))
        self._features = None
        return int(predicted.round().astype("int64").sum())

    def drop(self) -> None:
        """Let go of all managed memory.

        XGBoost's last matrix and trees stay as long as this program, so that they are counted as
        memory beside.
        """
        self._frames, self._features = [], None
        gc.collect()  # XGBoost's iterator over the features refers to itself

    def _prepared(self, frame: Any) -> Any:
        """Return a row of features for each customer, in their order."""
        how = {"amount": "sum", "day": "max", "visits": "sum"}
        found = frame.groupby("customer", sort=True).agg(how).reset_index(drop=True)
        label = (found["amount"] + found["day"] * 13) % 1000 + found["visits"]
        return found.assign(label=label).astype("float32")

    def _frame(self, number: int) -> Any:
        rows, cudf = self._rows, self._cudf
        row = cudf.Series(cudf.RangeIndex(number * rows, (number + 1) * rows))
        return cudf.DataFrame(
            {
                "customer": row * 2_654_435_761 % min(CUSTOMERS, rows),
                "amount": row * 1_103_515_245 % 9_973,
                "day": row * 40_503 % 3_650,
                "visits": row * 7919 % 11,
            }
        )
