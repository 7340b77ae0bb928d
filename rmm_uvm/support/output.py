# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Where results go: files that a user named, whole or not at all, and terminals of any width."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rmm_uvm.errors import ConfigurationError, DataError

__all__ = ["check_trace", "check_writable", "columns_of", "is_special", "written_whole"]

_FEWEST_COLUMNS = 40


def columns_of(stream: Any, most: int) -> int:
    """Return how wide text for a stream may be: `most`, or what a narrower terminal has.

    Parameters
    ----------
    stream : file-like
        Where it will be written; `most` for what is no terminal.
    most : int
        Columns that text has by default.

    Examples
    --------
    >>> import io
    >>> columns_of(io.StringIO(), 80)
    80
    """
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return most
    # 0 is what a terminal says that does not know.
    return min(most, max(columns, _FEWEST_COLUMNS)) if columns else most


def is_special(path: Path) -> bool:
    """Return whether something is there that is no regular file: a device, a pipe, a folder.

    Examples
    --------
    >>> is_special(Path("/dev/null")), is_special(Path("/no/such/file"))
    (True, False)
    """
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):  # nothing is there, or nothing can be
        return False


def check_writable(named: str, path: Path) -> None:
    """Open a file for writing, without changing it.

    Parameters
    ----------
    named : str
        What named the file, for the message: an option, or an argument.
    path : Path
        The file.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    try:
        existed = path.exists()
        # Not asked of access(): only opening tells of full quotas, read-only mounts and root.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        os.close(descriptor)
        if not existed:
            path.resolve().unlink()  # and not a link that led to no file yet
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"{named} {path} cannot be written: {reason}") from error


def check_trace(named: str, path: Path) -> None:
    """Check that a trace can be written to a file, before anything is begun that it is to record.

    An empty file may be there: nothing is lost with it. Parameters are as in `check_writable`.

    Raises
    ------
    ConfigurationError
        If the file has contents, cannot be written, or is a device, a pipe, or a link to nothing.
    """
    if (is_special(path) and not path.is_dir()) or (path.is_symlink() and not path.exists()):
        raise ConfigurationError(f"{named} {path} is no regular file, as a trace is: name one")
    check_writable(named, path)
    if path.exists() and path.stat().st_size:
        raise ConfigurationError(f"{named} {path} exists: name another file, or remove it")


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
            with suppress(OSError):  # a file system that is read-only says so of what is not there
                partial.unlink()
