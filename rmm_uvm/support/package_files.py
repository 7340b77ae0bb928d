# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Files that ship with this package, and what is said where they cannot be opened."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable

from rmm_uvm.errors import AvailabilityError

__all__ = ["no_more_files", "package_names", "package_text"]

# Of the process, and of the machine.
_NO_MORE = (errno.EMFILE, errno.ENFILE)
_REMEDY = "close some, or raise the limit (ulimit -n)"


def package_names(package: str, *folders: str) -> tuple[str, ...]:
    """Return the names of the files in a folder of a package, sorted.

    Raises
    ------
    AvailabilityError
        If it cannot be read.

    Examples
    --------
    >>> "h200-pcie5.toml" in package_names("rmm_uvm", "simulator", "machines")
    True
    """
    folder = resources.files(package).joinpath(*folders)
    with _said(folder):
        return tuple(sorted(file.name for file in folder.iterdir()))


def package_text(package: str, *path: str) -> str:
    """Return the text of a file of a package.

    Raises
    ------
    AvailabilityError
        If it cannot be read.
    """
    file = resources.files(package).joinpath(*path)
    with _said(file):
        return file.read_text(encoding="utf-8")


def no_more_files() -> str:
    """Return why this process can open no more files; empty if it can.

    For what a library says nothing of but that it did not work.

    Examples
    --------
    >>> no_more_files()
    ''
    """
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return _reason(error) if error.errno in _NO_MORE else ""
    return ""


def _reason(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{reason}: {_REMEDY}" if error.errno in _NO_MORE else reason


@contextmanager
def _said(file: Traversable) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AvailabilityError(f"{file}, of rmm_uvm, cannot be read: {_reason(error)}") from error
