# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether torch's work is all in one stream, so that the free of a tensor comes after its uses.

Torch tells of streams that it makes and of streams that wait. Once a second one is in play, a
tensor that is freed may still be used there: nothing is taken for dead any more.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

__all__ = ["watch_streams"]


def watch_streams(several: Callable[[], None]) -> Callable[[], None]:
    """Have a function called when a second stream comes into play.

    Parameters
    ----------
    several : callable
        Takes nothing; may be called more than once, from any thread.

    Returns
    -------
    callable
        Ends it.

    Notes
    -----
    Torch's telling cannot be switched off again. It costs about a microsecond an allocation.
    """
    from torch.cuda import _gpu_trace as trace

    def created(_stream: int) -> None:
        several()

    def waits(_event: int, stream: int) -> None:
        if stream != 0:
            several()

    registered = (
        (trace.StreamCreationCallbacks, created),
        (trace.EventWaitCallbacks, waits),
    )
    for registry, callback in registered:
        registry.add_callback(callback)
    torch._C._activate_gpu_trace()
    if torch.cuda.current_stream().cuda_stream != 0:
        several()

    def end() -> None:
        for registry, callback in registered:
            if callback in registry.callback_list:
                registry.callback_list.remove(callback)

    return end
