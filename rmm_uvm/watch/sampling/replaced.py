# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Noticing at once that a program has replaced RMM's resources.

Covers RMM's functions by the names that programs call them by. Who took a function before, or
replaces a resource in C++, is noticed in the next round of a monitor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rmm

from rmm_uvm.support.process_lock import ProcessLock

__all__ = ["end_telling", "tell"]

_PLACES = (
    (rmm.mr, "set_per_device_resource"),
    (rmm.mr, "set_current_device_resource"),
    (rmm, "reinitialize"),
)
# Module state, since RMM's resources are the process'.
_lock = ProcessLock()
_told: list[Callable[[], None]] = []
_before: dict[str, tuple[Any, Any]] = {}  # RMM's function, and the one in its place


def tell(whom: Callable[[], None]) -> None:
    """Call a function after each call that replaces resources. Thread-safe."""
    with _lock():
        if not _told:
            for module, name in _PLACES:
                original = getattr(module, name)
                _before[name] = original, _telling(original)
                setattr(module, name, _before[name][1])
        _told.append(whom)


def end_telling(whom: Callable[[], None]) -> None:
    """End that; nothing if it is not told. Thread-safe."""
    with _lock():
        if whom not in _told:
            return
        _told.remove(whom)
        if not _told:
            for module, name in _PLACES:
                original, ours = _before.pop(name)
                if getattr(module, name) is ours:  # and nobody put another one over it
                    setattr(module, name, original)


def _telling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def replace(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        for whom in tuple(_told):
            whom()
        return result

    return replace
