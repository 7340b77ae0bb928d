# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Modules of a package that are imported when they are first used by their dotted name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType

__all__ = ["submodule", "submodules_of"]


def submodule(package: str, name: str) -> ModuleType:
    """Return a public module of a package, as ``import package.name`` finds it.

    Raises
    ------
    AttributeError
        If there is none.
    """
    from importlib.util import find_spec

    full = f"{package}.{name}"
    if name.startswith("_") or find_spec(full) is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return importlib.import_module(full)


def submodules_of(package: str) -> Callable[[str], ModuleType]:
    """Return the ``__getattr__`` of a package that has no other names than its modules'.

    Where type checkers do not see it: they know modules by themselves, and are to find misspelled
    ones.
    """
    return lambda name: submodule(package, name)
