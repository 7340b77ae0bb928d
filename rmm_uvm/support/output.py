# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Writes results to files that a user named, whole or not at all, and to terminals."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rmm_uvm.errors import ConfigurationError, DataError

__all__ = [
    "check_trace",
    "check_writable",
    "columns_of",
    "is_special",
    "whole_file",
    "written_whole",
]

_FEWEST_COLUMNS = 40
_MOST_LINKS = 40  # as the kernel has it
_OF_STREAMS = ("/dev", "/proc")
_OF_ALL = "/dev/shm"  # where anybody may make links
_DESCRIPTORS = Path("/proc/self/fd")
_PARTIAL = ".partial-"


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
    """Return whether something is there that is not a regular file: a device, a pipe, a folder.

    Examples
    --------
    >>> is_special(Path("/dev/null")), is_special(Path("/no/such/file"))
    (True, False)
    """
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):  # nothing is there, or nothing can be
        return False


def _destination(path: Path) -> Path | None:
    """Return the file that a path leads to; None for what is to be written where it is.

    That is a device or a pipe, and what links below ``/dev`` and ``/proc`` lead to: a stream that
    the process has open. Any other link of another user is refused: they choose where it leads.

    Raises
    ------
    OSError
        If nothing can be there, or a link on the way is another user's.
    """
    for _ in range(_MOST_LINKS):
        try:
            status = path.lstat()
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(status.st_mode):
            return path if stat.S_ISREG(status.st_mode) else None
        if any(map(path.is_relative_to, _OF_STREAMS)) and not path.is_relative_to(_OF_ALL):
            return None
        if status.st_uid not in (0, os.geteuid()):
            raise OSError(f"{path} is a link of another user; name the file itself")
        if is_special(path):
            return None
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def check_writable(named: str, path: Path, *, in_place: bool = False) -> None:
    """Try whether a file could be written by `written_whole`, without changing it.

    Parameters
    ----------
    named : str
        What named the file, for the message: an option, or an argument.
    path : Path
        The file.
    in_place : bool
        It will be opened where it is, and not be replaced.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    # Not asked of access(): only opening tells of full quotas, read-only mounts and root.
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        target = _destination(path)
        try:
            os.close(os.open(path if target is None else target, flags))
        except FileNotFoundError:
            if target is None:
                raise
            # A file that is made here is removed again, and none that another program makes.
            os.close(os.open(target, flags | os.O_CREAT | os.O_EXCL, 0o600))
            target.unlink()
        if target is not None and not in_place:
            _refuse_if_not_replaceable(target)
            tempfile.TemporaryFile(dir=target.parent).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"{named} {path} cannot be written: {reason}") from error


def _refuse_if_not_replaceable(target: Path) -> None:
    """Refuse what can be written, but not be renamed over."""
    folder, user = target.parent.stat(), os.geteuid()
    if not target.exists():
        return
    keeps = folder.st_mode & stat.S_ISVTX and user not in (0, folder.st_uid)
    if keeps and target.stat().st_uid != user:
        raise OSError("it is another user's, and so is its sticky folder; name another file")


def check_trace(named: str, path: Path) -> None:
    """Check that a trace can be written to a file, before anything is begun that it is to record.

    An empty file may be there: nothing is lost with it. Parameters are as in `check_writable`.

    Raises
    ------
    ConfigurationError
        If the file has contents, cannot be written, or is a device, a pipe, or a link to nothing.
    """
    if path.is_symlink() or (is_special(path) and not path.is_dir()):
        raise ConfigurationError(f"{named} {path} is not a regular file, as a trace is: name one")
    check_writable(named, path, in_place=True)
    if path.exists() and path.stat().st_size:
        raise ConfigurationError(f"{named} {path} exists: name another file, or remove it")
    if path.exists() and path.stat().st_uid != os.geteuid():
        raise ConfigurationError(f"{named} {path} belongs to another user: name another file")


def _copy(partial: Path, target: Path) -> None:
    """Copy to a file that is mounted by itself, as containers do: it cannot be replaced."""
    with partial.open("rb") as finished, target.open("wb") as into:
        shutil.copyfileobj(finished, into)
    partial.unlink()


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Give a path to write to; what was written there becomes `path` at the end.

    After an error or an interrupt nothing is left of it, and a file that was there is as before.
    Several writers, also of several processes, do not see each other's: the last one stays. A
    device or a pipe, such as ``/dev/stdout``, is written directly.

    Parameters
    ----------
    path : Path
        The result; replaced. Where it is a link, the file that it leads to is.
    private : bool
        Whether nobody but this user may read it. By default that is as the umask has it.

    Raises
    ------
    OSError
        It cannot be written, for example since the disk is full, or it is another user's link.

    Notes
    -----
    The file is made in the folder of the result, under a name that nobody can foresee, and the
    path that is given leads to it by its descriptor, where there is ``/proc``. So nothing that
    others put into the folder is written to. `tempfile` always makes files private, and the umask
    cannot be read without changing it for all threads: here the kernel applies it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "report.json") as target:
    ...         target.write_text("whole")
    ...     [path.name for path in Path(folder).iterdir()]
    5
    ['report.json']
    """
    target = _destination(path)
    if target is None:
        yield path
        return
    partial = target.with_name(f"{_PARTIAL}{secrets.token_hex(16)}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(partial, flags, 0o600 if private else 0o666)
    try:
        yield _DESCRIPTORS / str(descriptor) if _DESCRIPTORS.is_dir() else partial
        try:
            partial.replace(target)
        except OSError as error:
            if error.errno != errno.EBUSY or private:
                raise
            _copy(partial, target)
    except BaseException:
        with suppress(OSError):  # the error that there is says more
            partial.unlink()
        raise
    finally:
        os.close(descriptor)


@contextmanager
def written_whole(path: Path, what: str, *, private: bool = False) -> Iterator[Path]:
    """Give a path to write to, as `whole_file`, for a file that a user named.

    Parameters
    ----------
    path, private
        As of `whole_file`.
    what : str
        What it is, for the message.

    Raises
    ------
    DataError
        It cannot be written.
    """
    try:
        with whole_file(path, private=private) as target:
            yield target
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise DataError(f"{what} cannot be written to {path}: {reason}") from error
