# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings as JSON and raw samples: for another process, which need not believe them.

Reading makes values only: no code runs, and no more memory is used than a multiple of the bytes,
whatever they are. Both processes run the same version
of this package as a rule; what is not understood is an error and never wrong figures. For traces
that are kept see `rmm_uvm.trace`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from rmm_uvm.errors import DataError
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.recording.values import fields_of, value_of
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.support.messages import shown

__all__ = ["plain", "restored"]

_LAYOUT = str(SAMPLE_DTYPE)


def plain(recording: Recording) -> dict[str, Any]:
    """Return all of a recording but its samples, as values that JSON can hold."""
    told = {
        field.name: _plain(getattr(recording, field.name))
        for field in dataclasses.fields(recording)
        if field.name != "samples"
    }
    return {**told, "layout": _LAYOUT}


def restored(values: Any, raw_samples: bytes) -> Recording:
    """Return the recording that `plain` gave, with its samples: rows of `SAMPLE_DTYPE` as bytes.

    Not a ``.npy`` file: reading one uses as much memory as its header claims.

    Raises
    ------
    DataError
        If it cannot be understood: a field is missing or unknown, or of another type than
        `Recording` has it; or the samples are cut off, or not in order of time.
    """
    if not isinstance(values, dict):
        raise DataError(f"{shown(values)} is not a recording")
    told = dict(values)
    layout = told.pop("layout", "none told")
    if layout != _LAYOUT:
        raise DataError(f"samples in another layout: {shown(layout)}")
    if len(raw_samples) % SAMPLE_DTYPE.itemsize:
        raise DataError(
            f"{len(raw_samples)} bytes of samples, of {SAMPLE_DTYPE.itemsize} each: cut off"
        )
    samples = np.frombuffer(raw_samples, SAMPLE_DTYPE)
    if (samples["time_ns"][1:] < samples["time_ns"][:-1]).any():
        raise DataError("samples that go back in time")
    causes, budgets = told.pop("causes", None), told.pop("budgets", {})
    fields = fields_of(Recording, told, "it", left_out=("samples",))
    if (lines := fields.get("lines")) is not None and not lines.holds_together:
        raise DataError("lines whose call paths or allocations name others that are not there")
    return Recording(
        samples=samples,
        **fields,
        causes=None if causes is None else _causes_of(causes),
        budgets={
            device_id: dataclasses.asdict(budget)
            for device_id, budget in value_of(
                Mapping[int, ResidencyStatistics], budgets, "budgets"
            ).items()
        },
    )


@dataclasses.dataclass(frozen=True)
class _Causes:
    """A table, as `Recording.causes` has it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


def _causes_of(told: Any) -> dict[str, Any]:
    """Return the table of causes; its rows have as many values as it has columns."""
    found: _Causes = value_of(_Causes, told, "causes")
    if not {"time_seconds", "device_id"} <= set(found.columns):
        raise DataError("causes without time or device")
    if any(len(row) != len(found.columns) for row in found.rows):
        raise DataError(f"a row of causes has not {len(found.columns)} values, one for each column")
    at = found.columns.index("time_seconds")
    rows = sorted(found.rows, key=lambda row: row[at])  # two threads may have looked at once
    return {"columns": list(found.columns), "rows": [list(row) for row in rows]}


def _plain(value: Any) -> Any:
    """Return lists, dictionaries and numbers of what a recording holds."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if hasattr(value, "items"):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value
