# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs: refused while torch's memory is managed.

A graph is captured into a memory pool of its own, and while all threads use ours torch would mix
the two; and what a graph replays announces no use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rmm_uvm.errors import AvailabilityError

__all__ = ["refuse_graphs"]


_installed = 0
_theirs: Any = None


def refuse_graphs() -> Callable[[], None]:
    """Have the capture of a CUDA graph fail in one line; return what ends that.

    Several may refuse at once, and end in any order.
    """
    global _installed, _theirs
    if _installed == 0:
        _theirs = torch.cuda.CUDAGraph.capture_begin, torch.cuda.graph.__enter__
        torch.cuda.CUDAGraph.capture_begin = _refuse
        torch.cuda.graph.__enter__ = _refuse  # before it goes into a stream of its own
    _installed += 1
    ended = False

    def end() -> None:
        global _installed
        nonlocal ended
        if ended:
            return
        ended = True
        _installed -= 1
        if _installed == 0:
            torch.cuda.CUDAGraph.capture_begin, torch.cuda.graph.__enter__ = _theirs

    return end


def _refuse(_self: Any, *_args: Any, **_kwargs: Any) -> None:
    raise AvailabilityError(
        "no CUDA graph can be captured while torch is on managed memory: torch has one pool at a "
        "time for all threads, and a graph needs its own. Capture before "
        "rmm_uvm.torch.install() or after close(), or compile without mode='reduce-overhead'"
    )
