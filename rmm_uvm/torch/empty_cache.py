# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""`torch.cuda.empty_cache` while torch's memory is managed: it gives free segments back as ever.

Torch passes over a pool that is in use, and over its own memory meanwhile: its function is called
while none is. Whoever took it by name before (``from torch.cuda import empty_cache``) has torch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import torch
import torch.accelerator.memory

__all__ = ["serve_empty_cache"]

Renewed = Callable[[], AbstractContextManager[None]]

_served: list[Renewed] = []
_undo: list[Callable[[], None]] = []


def serve_empty_cache(renewed: Renewed) -> Callable[[], None]:
    """Have torch's functions of this name called within a context; return what ends that.

    Several may be served at once, and end in any order. Wrappers of others, made before or after,
    stay in place.

    Parameters
    ----------
    renewed : callable
        Returns the context.
    """
    if not _served:
        for module in (torch.cuda, torch.cuda.memory):
            _undo.append(_wrap(module))
        for module in (torch.accelerator, torch.accelerator.memory):
            if hasattr(module, "empty_cache"):
                _undo.append(_wrap(module))
    _served.append(renewed)

    def end() -> None:
        if renewed not in _served:
            return
        _served.remove(renewed)
        while _undo and not _served:
            _undo.pop()()

    return end


def _wrap(module: Any) -> Callable[[], None]:
    theirs = module.empty_cache

    @functools.wraps(theirs)
    def empty_cache(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as stack:
            for renewed in tuple(_served):
                stack.enter_context(renewed())
            return theirs(*args, **kwargs)

    module.empty_cache = empty_cache

    def unwrap() -> None:
        if module.empty_cache is empty_cache:  # else somebody's after ours, which comes to it
            module.empty_cache = theirs

    return unwrap
