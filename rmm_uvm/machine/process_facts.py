# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Facts about any process from ``/proc``; what cannot be read is empty."""

from __future__ import annotations

import platform
import pwd
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = [
    "MOST_CHARACTERS",
    "about_command",
    "command_line",
    "command_of",
    "descendants",
    "is_alive",
    "name_of",
    "user_of",
]

MOST_CHARACTERS = 1000
"""Of a command line that is told to others."""

_PROC = Path("/proc")


def name_of(pid: int, proc: Path = _PROC) -> str:
    """Return the name of a process, at most 15 characters.

    Parameters
    ----------
    pid : int
        The process.
    proc : Path
        Where the process file system is.

    Examples
    --------
    >>> import os
    >>> name_of(os.getpid()) != ""
    True
    """
    return _text(proc / str(pid) / "comm").strip()


def command_of(pid: int, proc: Path = _PROC) -> str:
    """Return the command line of a process; see `command_line`."""
    # Who gives itself another title leaves zeros behind it.
    text = _text(proc / str(pid) / "cmdline").rstrip("\0")
    return command_line(text.split("\0")) if text else ""


def command_line(words: Iterable[str], most_characters: int | None = None) -> str:
    """Return words as one text that can be told apart again: quoted as a shell wants them.

    Parameters
    ----------
    words : iterable of str
        The program and its arguments.
    most_characters : int or None
        Words beyond are left out, and of the one that would exceed it, its end.

    Examples
    --------
    >>> command_line(["python3", "etl job.py"])
    "python3 'etl job.py'"
    """
    kept: list[str] = []
    left = most_characters
    for word in words:
        if left is not None:
            if left <= 0:
                break
            word = word[:left]
            left -= len(word) + 1
        kept.append(word)
    return shlex.join(kept)


def about_command(words: Sequence[str]) -> dict[str, str]:
    """Return which command runs, and on which host, for people to read.

    Parameters
    ----------
    words : sequence of str
        The program and its arguments; none: the host alone.

    Examples
    --------
    >>> about_command(["python3", "etl.py"])["program"]
    'python3 etl.py'
    """
    program = {"program": command_line(words, MOST_CHARACTERS)} if words else {}
    return {**program, "host": platform.node()}


def user_of(pid: int, proc: Path = _PROC) -> str:
    """Return the user who runs a process: the name, or the number where there is none."""
    try:
        uid = (proc / str(pid)).stat().st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended; a zombie has."""
    return _status(pid)[0] not in ("", "Z", "X")


def descendants(pid: int) -> set[int]:
    """Return a process and all below it, as far as their parents live."""
    parents = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            parents[int(entry.name)] = _status(int(entry.name))[1]
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _status(pid: int) -> tuple[str, int]:
    """Return state and parent of a process; "" and 0 if there is none."""
    # The name is in parentheses and may hold any character, parentheses too.
    fields = _text(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return (fields[0], int(fields[1])) if len(fields) > 1 else ("", 0)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
