# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The frame that `shuffle.py` shuffles, and the check of what arrives; run on workers.

Every row says what it must be: `value` follows from `key`, and all keys occur equally often. So a
partition can be judged by itself, but for the sums of all.
"""

from __future__ import annotations

from typing import NamedTuple

import cudf
import cupy

MULTIPLIER = 2654435761  # a prime above any number of keys, so all of them occur equally often


class Arrived(NamedTuple):
    """What is in one partition after the shuffle."""

    rows: int
    distinct_keys: int
    row_sum: int
    wrong_values: int


def make_frame(partition: int, rows: int, keys: int) -> cudf.DataFrame:
    """Return one partition before the shuffle: 32 bytes a row, the keys in a scattered order."""
    row = cupy.arange(partition * rows, (partition + 1) * rows, dtype=cupy.int64)
    key = row * MULTIPLIER % keys
    return cudf.DataFrame(
        {"key": key, "value": key * key + 1, "row": row, "half": row.astype(cupy.float64) / 2}
    )


def check_frame(frame: cudf.DataFrame) -> Arrived:
    """Return what arrived in one partition, as numbers of Python's."""
    key, row = frame["key"], frame["row"]
    wrong = (frame["value"] != key * key + 1) | (frame["half"] != row.astype("float64") / 2)
    return Arrived(len(frame), int(key.nunique()), int(row.sum()), int(wrong.sum()))
