# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Handing a recording from a watched child process to the command that started it.

Both run the same version of this package as a rule; a file that is not understood is an error and
never wrong figures. For traces that are kept see `rmm_uvm.trace`.
"""

from __future__ import annotations

import json
from pathlib import Path

from rmm_uvm.errors import DataError
from rmm_uvm.recording.as_json import plain, restored
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.support.output import whole_file

__all__ = ["load", "save"]

_SAMPLES, _FACTS = "samples.raw", "recording.json"


def save(recording: Recording, folder: Path) -> None:
    """Write a recording to a folder; the JSON file comes last, so that it says all is there."""
    with whole_file(folder / _SAMPLES, private=True) as target:
        target.write_bytes(recording.samples.tobytes())
    with whole_file(folder / _FACTS, private=True) as target:
        target.write_text(json.dumps(plain(recording)))


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
        values = json.loads((folder / _FACTS).read_text())
        return restored(values, (folder / _SAMPLES).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, DataError) as error:
        raise DataError(f"what the program recorded cannot be read: {error}") from error
