# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings as JSON and an array: for another process, which has to believe nothing to read them.

Reading makes values only: no code runs, whatever the bytes are. Both processes run the same version
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


def plain(recording: Recording) -> dict[str, Any]:
    """Return all of a recording but its samples, as values that JSON can hold."""
    return {
        field.name: _plain(getattr(recording, field.name))
        for field in dataclasses.fields(recording)
        if field.name != "samples"
    }


def restored(values: Mapping[str, Any], samples: np.ndarray[Any, Any]) -> Recording:
    """Return the recording that `plain` gave, with its samples.

    Raises
    ------
    DataError
        If it cannot be understood.
    """
    if samples.dtype != SAMPLE_DTYPE:
        raise DataError(f"samples in another layout: {samples.dtype}")
    try:
        made = {
            "devices": tuple(
                DeviceFacts(**{**each, "chain": tuple(each["chain"])}) for each in values["devices"]
            ),
            "stages": tuple(Stage(**each) for each in values["stages"]),
            "findings": tuple(Finding(**each) for each in values["findings"]),
            "sources": {name: Availability(**each) for name, each in values["sources"].items()},
            "busiest": tuple(tuple(each) for each in values["busiest"]),
        }
        return Recording(samples=samples, **{**values, **made})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
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
