# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Writing a result to a file that a user named: whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rmm_uvm.errors import DataError


@contextmanager
def written_whole(path: Path, what: str) -> Iterator[Path]:
    """Give a path to write to, which becomes `path` at the end.

    After an error or an interrupt nothing is left of it, and a file that was there is as before.
    What is no regular file, such as ``/dev/stdout``, is written directly.

    Parameters
    ----------
    path : Path
        The result; replaced.
    what : str
        What it is, for the message.

    Raises
    ------
    DataError
        It cannot be written, for example since the disk is full.
    """
    direct = path.is_symlink() or (path.exists() and not path.is_file())
    partial = path if direct else path.with_name(f".partial-{path.name}")
    try:
        yield partial
        if not direct:
            partial.replace(path)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise DataError(f"{what} cannot be written to {path}: {reason}") from error
    finally:
        if not direct:
            partial.unlink(missing_ok=True)
