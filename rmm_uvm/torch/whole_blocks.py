# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Has torch's allocator hand out its large free blocks whole, or not at all.

Torch tells where it hands memory out, and not how much: until more is known it counts up to the
next block. Where a small tensor is the first part of a large free block, most of what counts is
free. So torch is asked not to split these: what it hands out there is as long as the block.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

import torch

__all__ = ["keep_large_blocks_whole"]

_LARGE_FRACTION = 1 / 8  # of a budget: much smaller ones would need addresses of their own
_NAME = "max_split_size_mb"
_LEAST_MIB = 21  # torch takes no less
_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def keep_large_blocks_whole(budget_bytes: int) -> Callable[[], None]:
    """Ask torch not to split free blocks of an eighth of a budget; return what ends that.

    A program's own ``max_split_size_mb`` stays. Where torch has no such call, nothing is done.

    Examples
    --------
    >>> end = keep_large_blocks_whole(8 << 30)
    >>> torch._C._accelerator_getAllocatorSettings()
    'max_split_size_mb:1024'
    >>> end()
    >>> torch._C._accelerator_getAllocatorSettings()
    ''
    """
    wanted_mib = max(int(budget_bytes * _LARGE_FRACTION) >> 20, _LEAST_MIB)
    theirs = _settings()
    if theirs is None or _NAME in theirs:
        return _nothing
    ours = ",".join(filter(None, [theirs, f"{_NAME}:{wanted_mib}"]))
    try:
        torch._C._accelerator_setAllocatorSettings(ours)
    except RuntimeError as error:  # it does not know a word of its own
        logging.getLogger("rmm_uvm").info("torch may split large blocks: %s", error)
        return _nothing

    def end() -> None:
        if _settings() in (ours, theirs):  # else somebody else's; where torch tells, ours
            torch._C._accelerator_setAllocatorSettings(theirs)

    return end


def _settings() -> str | None:
    """Return the settings of torch's allocator; None where they cannot be changed."""
    if not hasattr(torch._C, "_accelerator_setAllocatorSettings"):
        return None
    if hasattr(torch._C, "_accelerator_getAllocatorSettings"):
        return str(torch._C._accelerator_getAllocatorSettings() or "")
    return next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")


def _nothing() -> None:
    """Do nothing."""
