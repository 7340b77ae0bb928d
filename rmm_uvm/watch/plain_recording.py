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

from rmm_uvm.device_info import Availability
from rmm_uvm.errors import DataError
from rmm_uvm.watch.finding import Finding
from rmm_uvm.watch.recording import DeviceFacts, Recording, Stage
from rmm_uvm.watch.sample import SAMPLE_DTYPE

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


def restored(values: Mapping[str, Any], raw_samples: bytes) -> Recording:
    """Return the recording that `plain` gave, with its samples: rows of `SAMPLE_DTYPE` as bytes.

    Not a ``.npy`` file: reading one uses as much memory as its header claims.

    Raises
    ------
    DataError
        If it cannot be understood.
    """
    try:
        fields = dict(values)
        layout = fields.pop("layout", "none told")
        if layout != _LAYOUT:
            raise DataError(f"samples in another layout: {layout!s:.200}")
        if len(raw_samples) % SAMPLE_DTYPE.itemsize:
            raise DataError(
                f"{len(raw_samples)} bytes of samples, of {SAMPLE_DTYPE.itemsize} each: cut off"
            )
        made = {
            "devices": tuple(
                DeviceFacts(**{**each, "chain": tuple(each["chain"])}) for each in values["devices"]
            ),
            "stages": tuple(Stage(**each) for each in values["stages"]),
            "findings": tuple(Finding(**each) for each in values["findings"]),
            "sources": {name: Availability(**each) for name, each in values["sources"].items()},
            "busiest": tuple(tuple(each) for each in values["busiest"]),
        }
        samples = np.frombuffer(raw_samples, SAMPLE_DTYPE)
        return Recording(samples=samples, **{**fields, **made})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"a recording cannot be read: {error}") from error


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
