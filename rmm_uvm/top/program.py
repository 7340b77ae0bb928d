# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the name of a process: that of its program, where the kernel names the interpreter."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

__all__ = ["program_name"]

_RUNNERS = ("python", "rmm-uvm")  # our launcher publishes what it runs
_WITH_VALUE = "cmWX"  # options of python; the first two end them
_LONG_WITH_VALUE = "--check-hash-based-pycs"


def program_name(name: str, command: str) -> str:
    """Return the name of a process; of Python, its script or module.

    Parameters
    ----------
    name : str
        As the kernel has it.
    command : str
        Command line, quoted as a shell's: see `rmm_uvm.machine.process_facts.command_line`.

    Examples
    --------
    >>> program_name("python3", "/usr/bin/python3 -W ignore '/home/me/etl job.py' --fast")
    'etl job.py'
    >>> program_name("python3", "python3 -m distributed.nanny")
    '-m distributed.nanny'
    >>> program_name("nvcc", "nvcc a.cu")
    'nvcc'
    """
    if not name.startswith(_RUNNERS):
        return name
    return _of_python(_words(command)[1:]) or name


def _of_python(words: Sequence[str]) -> str:
    """Return what Python runs; empty where that has no name."""
    rest = iter(words)
    for word in rest:
        if word == "-":  # standard input
            return ""
        if word == "--":
            return _last_part(next(rest, ""))
        if not word.startswith("-"):
            return _last_part(word)
        if word == _LONG_WITH_VALUE:
            next(rest, "")
        if word.startswith("--"):
            continue
        # Letters may stand together, and a value behind its letter or as the next word: -uWignore.
        place = next((at for at, letter in enumerate(word) if letter in _WITH_VALUE), None)
        if place is None:
            continue
        value = word[place + 1 :] or next(rest, "")
        if word[place] == "c":
            return ""
        if word[place] == "m":
            return f"-m {value}"
    return ""


def _last_part(path: str) -> str:
    return path.rpartition("/")[2] or path


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quote without its end: of a program that is not ours
        return command.split()
