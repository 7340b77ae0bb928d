# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A recording that comes through a pipe: kept in a file while it is used, for readers seek."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from rmm_uvm.errors import ConfigurationError, DataError
from rmm_uvm.run.tidying import temporary_folder

__all__ = ["NAME", "piped"]

NAME = "standard input"
"""What messages and plans call it."""


@contextlib.contextmanager
def piped() -> Iterator[Path]:
    """Copy standard input to a temporary file, and take that away at the end.

    Raises
    ------
    ConfigurationError
        If it is a terminal, or closed.
    DataError
        If the disk cannot hold it; also in place of one whose message names the file.
    """
    if sys.stdin is None or sys.stdin.closed:
        raise ConfigurationError("TRACE - reads standard input, which is closed: name a file")
    if sys.stdin.isatty():
        raise ConfigurationError(
            "TRACE - reads a recording from standard input, which is a terminal: pipe one, or name "
            "a file"
        )
    with temporary_folder("rmm-uvm-plan-") as folder:
        path = folder / "recording"
        try:
            with path.open("wb") as kept:
                shutil.copyfileobj(sys.stdin.buffer, kept, 1 << 20)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise DataError(f"{NAME} cannot be kept in {folder}: {reason}") from error
        try:
            yield path
        except DataError as error:
            raise DataError(str(error).replace(str(path), NAME)) from error
