# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of cuDF with answers that are known: part of the load on a GPU."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np

_GROUPS = 1009


def frames_available() -> bool:
    """Return whether cuDF is installed."""
    return importlib.util.find_spec("cudf") is not None


def frames_wrong(rows: int, number: int) -> int:
    """Group, merge and sort frames in the memory that is installed; return answers that are wrong.

    Parameters
    ----------
    rows : int
        Of the frame.
    number : int
        Added to its values, so that memory of an earlier call is not mistaken for this one's.
    """
    import cudf

    values = np.arange(rows, dtype=np.int64) + number
    frame = cudf.DataFrame({"key": values % _GROUPS, "value": values})
    sums = frame.groupby("key", as_index=False).agg({"value": "sum"})
    merged = frame.merge(sums, on="key", suffixes=("", "_sum"))
    ordered = merged.sort_values("value")
    # What the groups' sums are, computed on the host.
    wanted = np.zeros(_GROUPS, np.int64)
    np.add.at(wanted, values % _GROUPS, values)
    found = ordered.to_pandas()
    _forget_scalars()
    return int(
        int(sums["value"].sum() != values.sum())
        + int(len(found) != rows or (found["value"].to_numpy() != values).any())
        + int((found["value_sum"].to_numpy() != wanted[values % _GROUPS]).any())
    )


def _forget_scalars() -> None:
    """Free the scalars that cuDF keeps from operations with numbers, and with them their pool."""
    kept = getattr(sys.modules.get("cudf.utils.scalar"), "pa_scalar_to_plc_scalar", None)
    if kept is not None:
        kept.cache_clear()
