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
from collections.abc import Callable
from typing import Any

import torch

from rmm_uvm.torch.telling import listen, tell

__all__ = ["watch_streams"]

_DEFAULT_STREAM = 0  # its handle, and its number


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

    events = _Events()

    def waits(event: int, stream: int) -> None:
        if events.are_of_another(event, stream):
            several()

    with contextlib.ExitStack() as ends:
        ends.callback(listen())  # ends last: callbacks of others are seen then
        ends.callback(tell(trace.StreamCreationCallbacks, created))
        ends.callback(tell(trace.EventRecordCallbacks, events.recorded))
        ends.callback(tell(trace.EventDeletionCallbacks, events.deleted))
        ends.callback(tell(trace.EventWaitCallbacks, waits))
        if _others_are_there():
            several()
        return ends.pop_all().close


class _Events:
    """Which stream each event was recorded in last. Thread-safe.

    cuDNN's recurrent networks wait for an event that they recorded in the same stream, which is no
    wait at all: who takes it for another stream takes nothing for dead any more. What was recorded
    before torch told is known if the program has no event of its own: torch's was then in the
    default stream, since others are looked for.
    """

    def __init__(self) -> None:
        self._streams: dict[int, int] = {}
        kinds = (torch.Event, torch.cuda.Event)
        self._before = None if _instances_of(kinds, gc.get_objects()) else _DEFAULT_STREAM

    def recorded(self, event: int, stream: int) -> None:
        """Take note of a record."""
        self._streams[event] = stream

    def deleted(self, event: int) -> None:
        """Forget an event: its address may be that of another one next."""
        self._streams.pop(event, None)

    def are_of_another(self, event: int, stream: int) -> bool:
        """Return whether who waits in a stream for an event waits for another stream."""
        return self._streams.get(event, self._before) != stream


def _others_are_there() -> bool:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return True  # communication has streams of its own
    streams = _instances_of((torch.Stream,), gc.get_objects())
    return any(map(_is_another, streams))


def _instances_of(kinds: tuple[type, ...], objects: list[Any]) -> list[Any]:
    # By their types, and not by what they say of themselves: proxies of all kinds would begin to
    # work. Types need not have a hash, and there are a thousand times as many objects.
    types = {id(kind): kind for kind in map(type, objects)}
    these = {number for number, kind in types.items() if issubclass(kind, kinds)}
    return [each for each in objects if id(type(each)) in these] if these else []


def _is_another(stream: torch.Stream) -> bool:
    """Whether it is not the default stream; that of another kind of device may be one, too."""
    handle: int | None = getattr(stream, "cuda_stream", None)
    return (stream.stream_id if handle is None else handle) != _DEFAULT_STREAM
