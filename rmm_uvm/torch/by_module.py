# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Something for each of a program's modules, for as long as the module lives."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

import torch

__all__ = ["ByModule"]

_Value = TypeVar("_Value")


class ByModule(Generic[_Value]):
    """Values by module: by which one it is, whatever it says it is equal to. Thread-safe.

    Keeps no module alive, and nothing of one that is gone.

    Examples
    --------
    >>> import torch
    >>> values, module = ByModule(), torch.nn.Identity()
    >>> values.put(module, 3)
    >>> values.get(module), len(values)
    (3, 1)
    >>> del module
    >>> len(values)
    0
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[torch.nn.Module], _Value]] = {}

    def __len__(self) -> int:
        """Return for how many modules there is something."""
        return len(self._entries)

    def get(self, module: torch.nn.Module) -> _Value | None:
        """Return what was put last for a module; None if nothing was."""
        entry = self._entries.get(id(module))
        return entry[1] if entry is not None and entry[0]() is module else None

    def put(self, module: torch.nn.Module, value: _Value) -> None:
        """Have something for a module, in the place of what there was."""
        key, entries = id(module), self._entries

        def forget(gone: weakref.ref[torch.nn.Module]) -> None:
            entry = entries.get(key)  # by now of another module, if that was told of late
            if entry is not None and entry[0] is gone:
                entries.pop(key, None)

        entries[key] = weakref.ref(module, forget), value
