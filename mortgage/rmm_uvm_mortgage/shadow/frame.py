# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Frames and columns that live twice: values in host memory, buffers on a simulated device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import DataError
from rmm_uvm_mortgage.shadow.enactor import DeviceColumn
from rmm_uvm_mortgage.shadow.sizes import DeviceType

if TYPE_CHECKING:
    import pandas as pd

_DEVICE_TYPES: dict[str, DeviceType] = {
    "bool": "bool",
    "boolean": "bool",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "float32": "float32",
    "float64": "float64",
}


@dataclass(slots=True)
class RowLabels:
    """The labels 0, 1, 2, ... of a frame's rows.

    They take no memory until a filter needs them; from then on the column stays with them. Frames
    that were made from each other by select or rename have the same labels.
    """

    column: DeviceColumn | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ShadowColumn:
    """Values on the host, and the device column that would hold them."""

    values: pd.Series[Any]
    device: DeviceColumn


@dataclass(slots=True, eq=False)
class ShadowFrame:
    """A pandas frame, and a device column for each of its columns."""

    values: pd.DataFrame
    columns: dict[str, DeviceColumn]
    labels: RowLabels = field(default_factory=RowLabels)


def device_type(values: pd.Series[Any]) -> DeviceType:
    """Return the device type of a pandas column.

    Raises
    ------
    DataError
        The pipeline has no such columns on a device.
    """
    if values.dtype.kind == "M":
        return "timestamp"
    name = str(values.dtype).lower()
    if name not in _DEVICE_TYPES:
        raise DataError(f"column {values.name} has type {values.dtype}, which no step makes")
    return _DEVICE_TYPES[name]


def null_count(values: pd.Series[Any]) -> int:
    """Return the number of nulls of a pandas column."""
    return int(values.isna().sum())


def key_runs(keys: pd.DataFrame) -> int:
    """Return the number of runs of equal rows, in row order."""
    if keys.empty:
        return 0
    changes = None
    for name in keys.columns:
        column = keys[name].to_numpy()
        differs = column[1:] != column[:-1]
        changes = differs if changes is None else changes | differs
    assert changes is not None  # a frame that is not empty has columns
    return 1 + int(changes.sum())


def text_bytes(codes: pd.Series[Any], domain: Sequence[str]) -> int:
    """Return the bytes of the strings that category codes stand for."""
    import numpy as np

    lengths = np.array([len(value.encode()) for value in domain], dtype=np.int64)
    return int(lengths[codes.dropna().to_numpy(dtype=np.int64)].sum())
