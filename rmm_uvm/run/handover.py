# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Handing a recording from a watched child process to the command that started it.

Both run the same version of this package as a rule; a file that is not understood is an error and
never wrong figures. For traces that are kept see `rmm_uvm.trace`.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from rmm_uvm.device_info import Availability
from rmm_uvm.errors import DataError
from rmm_uvm.watch.finding import Finding
from rmm_uvm.watch.recording import DeviceFacts, Recording, Stage
from rmm_uvm.watch.sample import SAMPLE_DTYPE

__all__ = ["load", "save"]

_SAMPLES, _FACTS = "samples.npy", "recording.json"


def save(recording: Recording, folder: Path) -> None:
    """Write a recording to a folder; the JSON file comes last, so that it says all is there."""
    np.save(folder / _SAMPLES, recording.samples, allow_pickle=False)
    plain = {
        field.name: _plain(getattr(recording, field.name))
        for field in dataclasses.fields(recording)
        if field.name != "samples"
    }
    partial = folder / f"{_FACTS}.partial"
    partial.write_text(json.dumps(plain))
    partial.replace(folder / _FACTS)


def load(folder: Path) -> Recording | None:
    """Return the recording that a child left in a folder; None if it left none.

    Raises
    ------
    DataError
        If it cannot be understood.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     load(Path(name)) is None
    True
    """
    try:
        plain: dict[str, Any] = json.loads((folder / _FACTS).read_text())
        samples = np.load(folder / _SAMPLES, allow_pickle=False)
        if samples.dtype != SAMPLE_DTYPE:
            raise DataError(f"samples in another layout: {samples.dtype}")
        plain["devices"] = tuple(
            DeviceFacts(**{**each, "chain": tuple(each["chain"])}) for each in plain["devices"]
        )
        plain["stages"] = tuple(Stage(**each) for each in plain["stages"])
        plain["findings"] = tuple(Finding(**each) for each in plain["findings"])
        plain["sources"] = {name: Availability(**each) for name, each in plain["sources"].items()}
        plain["busiest"] = tuple(tuple(each) for each in plain["busiest"])
        return Recording(samples=samples, **plain)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"what the program recorded cannot be read: {error}") from error


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
