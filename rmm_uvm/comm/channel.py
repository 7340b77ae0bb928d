# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An ordered pair of message queues between two processes, and the one that UCX offers.

A message matches the receive that was posted in its place, so what counts is the order in which
sends and receives are *posted*. Hence both are plain methods that post at once and return
something to await, and not coroutines, which would post when the event loop gets to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, Protocol

__all__ = ["Channel", "Posted", "UcxChannel"]


class Channel(Protocol):
    """What the protocol needs of a transport.

    Buffers are host memory (the buffer protocol) or device memory
    (``__cuda_array_interface__``). They have to live until the awaitable is done.
    """

    @property
    def alive(self) -> bool:
        """Neither end has closed it, and it has not broken."""

    def send(self, buffer: Any) -> Awaitable[None]:
        """Post the send of a message; done when the buffer may be used again."""

    def recv(self, buffer: Any) -> Awaitable[None]:
        """Post the receive of the next message; done when it is in the buffer."""


class Posted:
    """A coroutine that has run up to its first wait, so that what it posts is posted.

    Awaiting it runs the rest. Dropping it instead cancels the request.

    Raises
    ------
    Exception
        Whatever the coroutine raises before it waits.
    """

    __slots__ = ("_coroutine", "_finished", "_first")

    def __init__(self, coroutine: Coroutine[Any, None, Any]) -> None:
        self._coroutine = coroutine
        self._first: Any = None
        self._finished = False
        try:
            self._first = coroutine.send(None)
        except StopIteration:
            self._finished = True

    def __await__(self) -> Generator[Any, None, None]:
        if not self._finished:
            try:
                # The event loop has not seen yet what the coroutine waits for.
                yield self._first
            except BaseException:
                self._coroutine.close()
                raise
            yield from self._coroutine.__await__()


class UcxChannel:
    """The tagged messages of a connection of distributed-ucxx.

    Parameters
    ----------
    comm : distributed_ucxx.ucxx.UCXX
        Its endpoint matches messages and receives in the order of posting. It is asked for every
        time, since an endpoint that was closed meanwhile is none to post to.
    """

    __slots__ = ("_comm",)

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    @property
    def alive(self) -> bool:
        """See `Channel`."""
        return not self._comm.closed()

    def send(self, buffer: Any) -> Posted:
        """See `Channel`."""
        return Posted(self._comm.ep.send(buffer))

    def recv(self, buffer: Any) -> Posted:
        """See `Channel`."""
        return Posted(self._comm.ep.recv(buffer))
