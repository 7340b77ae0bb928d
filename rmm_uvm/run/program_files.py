# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The files that a command line names to be run: no report may take the place of one of them.

Found without running anything. Does not cover what the program imports or opens by itself.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

__all__ = ["files_named", "is_among"]


def files_named(kind: str, words: Sequence[str]) -> list[Path]:
    """Return what may be a file of the program, or one that it is given.

    Parameters
    ----------
    kind : str
        What the first word is: "script", also a directory or zip file, "module", or "command".
    words : sequence of str
        The program and its arguments, which may name a file as ``--option=FILE`` too.
    """
    specs: list[ModuleSpec] = []
    if kind == "module":
        specs = list(_specs(words[0]))
    elif kind == "script":
        specs = list(_main_in([os.path.abspath(words[0])]))  # noqa: PTH100 - keeps links
    origins = [Path(spec.origin) for spec in specs if spec.has_location and spec.origin]
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


def _specs(name: str) -> Iterator[ModuleSpec]:
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
        yield from _main_in(_folders(spec))


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


def _main_in(places: Sequence[str]) -> Iterator[ModuleSpec]:
    with contextlib.suppress(ImportError, OSError):
        main = PathFinder.find_spec("__main__", list(places))
        if main is not None:
            yield main


def _folders(package: ModuleSpec) -> list[str]:
    return list(package.submodule_search_locations or ())
