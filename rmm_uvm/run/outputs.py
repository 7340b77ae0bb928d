# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The files that a run leaves: checked before the program starts, written after it.

No report may take the place of a file that the command line names to be run. Those are found
without running anything. Does not cover what the program imports or opens by itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from rmm_uvm.errors import ConfigurationError, DataError, UvmError
from rmm_uvm.run.program import main_in
from rmm_uvm.run.request import RunRequest
from rmm_uvm.support.optional_packages import check_html
from rmm_uvm.support.output import check_trace, check_writable

__all__ = [
    "check",
    "drop_empty_trace",
    "drop_scratch",
    "files_named",
    "is_among",
    "with_scratch",
    "write",
]


def files_named(kind: str, words: Sequence[str]) -> list[Path]:
    """Return what may be a file of the program, or one that it is given.

    Parameters
    ----------
    kind : str
        What the first word is: "script", also a directory or zip file, "module", or "command".
    words : sequence of str
        The program and its arguments, which may name a file as ``--option=FILE`` too.
    """
    specs: list[ModuleSpec | None] = []
    if kind == "module":
        specs = list(_specs(words[0]))
    elif kind == "script":
        specs = [main_in([os.path.abspath(words[0])])]  # noqa: PTH100 - keeps links
    origins = [Path(one.origin) for one in specs if one and one.has_location and one.origin]
    arguments = words[kind == "module" :]
    values = [word[at + 1 :] for word in arguments for at, each in enumerate(word) if each == "="]
    return [*origins, *map(Path, [*arguments, *values])]


def is_among(path: str, files: Sequence[Path]) -> bool:
    """Return whether a path leads to one of the files, by whatever name."""
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # not there, or not a path at all
            if file.is_file() and file.samefile(path):
                return True
    return False


def _specs(name: str) -> Iterator[ModuleSpec | None]:
    """Look for a module from its outermost package inwards; importing one would run it."""
    first, *inner = name.split(".")
    spec = _outermost(first)
    for part in inner:
        if spec is None:
            return
        yield spec
        spec = _inside(spec, part)
    if spec is not None:
        yield spec
        yield main_in(_folders(spec))


def _outermost(name: str) -> ModuleSpec | None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        here = None if sys.flags.safe_path else PathFinder.find_spec(name, [str(Path.cwd())])
        return here or importlib.util.find_spec(name)
    return None


def _inside(package: ModuleSpec, part: str) -> ModuleSpec | None:
    # Without the package's name: folders of a package without __init__ are asked of its parent in
    # sys.modules, where none is.
    with contextlib.suppress(ImportError, OSError):
        return PathFinder.find_spec(part, _folders(package))
    return None


def _folders(package: ModuleSpec) -> list[str]:
    return list(package.submodule_search_locations or ())


def check(request: RunRequest, to_run: Sequence[Path] = ()) -> None:
    """Raise if a file could not be written; leaves nothing behind.

    A run may take hours: that its report cannot be kept must be known before.

    Parameters
    ----------
    request : RunRequest
        What names the files.
    to_run : sequence of Path
        Files of the program and those that it is given, which must stay as they are.

    Raises
    ------
    ConfigurationError
        If a file cannot be written, is named twice or is one of `to_run`, or the trace is there
        already, or is a device or a pipe.
    AvailabilityError
        If the HTML report needs a package that is not installed.
    """
    seen: dict[str, str] = {}
    for option, path in _files(request):
        real = os.path.realpath(path)
        if real in seen and Path(real).is_file() | (not Path(real).exists()):
            raise ConfigurationError(f"{option} and {seen[real]} name the same file: {path}")
        seen[real] = option
        if is_among(path, to_run):
            raise ConfigurationError(
                f"{option} {path} is the program or an argument of it: name another file"
            )
        if option == "--trace":
            check_trace(option, Path(path))
        else:
            check_writable(option, Path(path))
    if request.html is not None:
        check_html()


def write(request: RunRequest, report: Any) -> list[str]:
    """Write the reports; return one line for each that could not be written."""
    problems = []
    for path, save in ((request.html, "save_html"), (request.json, "save_json")):
        if path is None:
            continue
        try:
            getattr(report, save)(path)
        except UvmError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{path} cannot be written: {error.strerror or error}")
    return problems


def with_scratch(request: RunRequest) -> RunRequest:
    """Return the request with a new folder for a trace that nobody keeps, if it needs one."""
    if not request.advise or request.trace is not None:
        return request
    return dataclasses.replace(request, scratch=tempfile.mkdtemp(prefix="rmm-uvm-run-"))


def drop_scratch(request: RunRequest) -> None:
    """Remove that folder; nothing if there is none, or none any more."""
    if request.scratch is not None:
        shutil.rmtree(request.scratch, ignore_errors=True)


def drop_empty_trace(request: RunRequest) -> list[str]:
    """Remove a finished trace in which nothing was allocated; return a line that says so.

    Without a pool of ours no allocation is seen, and the trace stays for its samples.
    """
    if request.trace is None or not request.pool:
        return []
    from rmm_uvm.trace.reader import open_parts

    path = Path(request.trace)
    try:
        with open_parts(path) as parts:
            if any(len(part.events) or len(part.marks) for part in parts) or parts.damaged:
                return []
        path.unlink()
    except (DataError, OSError):
        return []  # it could not be written, which is told elsewhere
    return [f"no trace was left at {path}: the program allocated nothing from the pool"]


def _files(request: RunRequest) -> Iterator[tuple[str, str]]:
    for option, path in (
        ("--html", request.html),
        ("--json", request.json),
        ("--trace", request.trace),
    ):
        if path is not None:
            yield option, path
