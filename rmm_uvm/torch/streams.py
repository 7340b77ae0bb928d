# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether torch's work is all in one stream, so that the free of a tensor comes after its uses.

Once a second stream is in play, a tensor that is freed may still be used there: nothing is taken
for dead any more. Torch tells of streams that it makes and of streams that wait for others, but not
from its start: streams that are there already are looked for.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator

import torch

from rmm_uvm.torch.gpu_trace import listen
from rmm_uvm.torch.telling import tell

__all__ = ["OwnStream", "uncounted", "watch_streams"]

_waiting = threading.local()  # .uncounted


class OwnStream(torch.cuda.ExternalStream):
    """A stream of ours: who frees what it uses has waited for it before."""


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Have waits of this thread within a ``with`` block pass for none: they are for our streams."""
    _waiting.uncounted = True
    try:
        yield
    finally:
        _waiting.uncounted = False


def watch_streams(several: Callable[[], None]) -> Callable[[], None]:
    """Have a function called when a second stream comes into play, or is in play already.

    Parameters
    ----------
    several : callable
        Takes nothing; may be called more than once, from any thread.

    Returns
    -------
    callable
        Ends it.
    """
    from torch.cuda import _gpu_trace as trace

    def created(_stream: int) -> None:
        several()

    def waits(_event: int, _stream: int) -> None:
        if not getattr(_waiting, "uncounted", False):
            several()  # who waits for an event waits for another stream

    with contextlib.ExitStack() as ends:
        ends.callback(listen())  # ends last: callbacks of others are seen then
        ends.callback(tell(trace.StreamCreationCallbacks, created))
        ends.callback(tell(trace.EventWaitCallbacks, waits))
        if _others_are_there():
            several()
        return ends.pop_all().close


def _others_are_there() -> bool:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return True  # communication has streams of its own
    everything = gc.get_objects()
    # Their types, and not what they say of themselves: proxies of all kinds would begin to work.
    # There are a thousand times as many objects as types.
    kinds = {id(kind): kind for kind in map(type, everything)}  # types need not have a hash
    streams = {
        number
        for number, kind in kinds.items()
        if issubclass(kind, torch.Stream) and not issubclass(kind, OwnStream)
    }
    return bool(streams) and any(
        id(type(each)) in streams and _is_another(each) for each in everything
    )


def _is_another(stream: torch.Stream) -> bool:
    """Whether it is not the default stream; that of another kind of device may be one, too."""
    handle: int | None = getattr(stream, "cuda_stream", None)
    return (stream.stream_id if handle is None else handle) != 0
