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


def refuse_graphs() -> Callable[[], None]:
    """Have the capture of a CUDA graph fail in one line; return what ends that."""
    theirs = torch.cuda.CUDAGraph.capture_begin

    def ours(_self: Any, *_args: Any, **_kwargs: Any) -> None:
        raise AvailabilityError(
            "no CUDA graph can be captured while torch is on managed memory: capture outside of "
            "rmm_uvm.torch.managed(), or compile without mode='reduce-overhead'"
        )

    torch.cuda.CUDAGraph.capture_begin = ours

    def end() -> None:
        if torch.cuda.CUDAGraph.capture_begin is ours:
            torch.cuda.CUDAGraph.capture_begin = theirs

    return end
