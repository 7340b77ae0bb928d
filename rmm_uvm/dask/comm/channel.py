# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""An ordered pair of message queues between two processes, and the one that UCX offers.

A message matches the receive that was posted in its place, so what counts is the order in which
sends and receives are *posted*. Hence both are plain methods that post at once and return
something to await, and not coroutines, which would post when the event loop gets to them.
"""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Protocol

from rmm_uvm.dask.comm.pulling import Agreement

__all__ = [
    "EAGER_SECONDS",
    "TURN_SECONDS",
    "Channel",
    "Posted",
    "PostedMessage",
    "Turn",
    "UcxChannel",
    "in_turn",
]

TURN_SECONDS = 1e-3
"""For how long a transfer may keep the event loop: a fifth of what Dask takes for an empty task."""


class Turn:
    """Tells a transfer after each step whether its turn is over."""

    __slots__ = ("_began",)

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def give_way(self) -> None:
        """Let others run, if it has been long."""
        if time.perf_counter() - self._began > TURN_SECONDS:
            await asyncio.sleep(0)
            self._began = time.perf_counter()


EAGER_SECONDS = 200e-6
"""How long a message is looked for before other work of the event loop gets its turn: about what
32 MiB take over NVLink, with the messages around them (benchmarks/results/message_size.json)."""


class PostedMessage(Protocol):
    """A message that was posted."""

    def done(self) -> bool:
        """Return, without waiting, whether it is through; raise what became of it instead."""

    def __await__(self) -> Generator[Any, None, object]:
        """Wait until it is through."""


_MOST_POSTED = 64  # of one message; each is a request of UCX


async def in_turn(posted: Iterable[PostedMessage]) -> None:
    """Wait for messages, each of which is posted as it is asked for: some are under way at once."""
    under_way: collections.deque[PostedMessage] = collections.deque()
    turn = Turn()
    for one in posted:
        under_way.append(one)
        if len(under_way) >= _MOST_POSTED:
            await under_way.popleft()
            await turn.give_way()
    while under_way:
        await under_way.popleft()


class Channel(Protocol):
    """The part of a transport that the protocol needs.

    Buffers are host memory (the buffer protocol) or device memory
    (``__cuda_array_interface__``). They have to live until the awaitable is done.
    """

    @property
    def alive(self) -> bool:
        """Neither end has closed it, and it has not broken."""

    @property
    def agreement(self) -> Agreement:
        """The agreement of its two ends."""

    def send(self, buffer: Any) -> PostedMessage:
        """Post the send of a message; done when the buffer may be used again."""

    def recv(self, buffer: Any, *, idle: bool = False) -> PostedMessage:
        """Post the receive of the next message; done when it is in the buffer.

        `idle`: nothing says that it is on its way, so it is not worth looking for.
        """

    def send_back(self, buffer: Any) -> PostedMessage:
        """Post the send of a message to who sends a message here, in a queue beside the other."""

    def recv_back(self, buffer: Any) -> PostedMessage:
        """Post the receive of what the peer sends back, while it receives a message from here."""


_BACK = 1  # the tag of that queue, beside those of the connection


class Posted:
    """A coroutine that has run up to its first wait, so that what it posts is posted.

    Awaiting it runs the rest. Dropping it instead cancels the request.

    Parameters
    ----------
    coroutine : coroutine
        Of ucxx.
    progress : callable or None
        Lets the transport make progress. With it, awaiting looks for a moment itself whether the
        request is done before it gives way: ucxx looks once in a round of the event loop, and in
        a worker of Dask, with many connections that are looked at as well, a round takes as long
        as megabytes take over NVLink.

    Raises
    ------
    Exception
        Whatever the coroutine raises before it waits.
    """

    __slots__ = ("_coroutine", "_finished", "_first", "_progress")

    def __init__(
        self, coroutine: Coroutine[Any, None, Any], progress: Callable[[], object] | None = None
    ) -> None:
        self._coroutine = coroutine
        self._progress = progress
        self._first: Any = None
        self._finished = False
        try:
            self._first = coroutine.send(None)
        except StopIteration:
            self._finished = True

    def __await__(self) -> Generator[Any, None, None]:
        if self._finished or self._soon():
            return
        try:
            # The event loop has not seen yet what the coroutine waits for.
            yield self._first
        except BaseException:
            self._coroutine.close()
            raise
        yield from self._coroutine.__await__()

    def done(self) -> bool:
        """See `PostedMessage`."""
        # None is a bare "look again", and not a future that the event loop has to see.
        if not self._finished and self._first is None:
            if self._progress is not None:
                self._progress()
            try:
                self._first = self._coroutine.send(None)
            except StopIteration:
                self._finished = True
        return self._finished

    def _soon(self) -> bool:
        """Return whether it was done within a moment."""
        if self._progress is None:
            return False
        until = time.perf_counter() + EAGER_SECONDS
        while not self.done():
            if self._first is not None or time.perf_counter() >= until:
                return False
        return True


class UcxChannel:
    """The tagged messages of a connection of distributed-ucxx.

    Parameters
    ----------
    comm : distributed_ucxx.ucxx.UCXX
        Its endpoint matches messages and receives in the order of posting. It is asked for every
        time, since an endpoint that was closed meanwhile is none to post to.
    agreement : Agreement
        Of the connection.
    progress : callable or None
        See `Posted`.
    """

    __slots__ = ("_comm", "_progress", "agreement")

    def __init__(
        self, comm: Any, agreement: Agreement, progress: Callable[[], object] | None = None
    ) -> None:
        self.agreement = agreement
        self._comm = comm
        self._progress = progress

    @property
    def alive(self) -> bool:
        """See `Channel`."""
        return not self._comm.closed()

    def send(self, buffer: Any) -> Posted:
        """See `Channel`."""
        return Posted(self._comm.ep.send(buffer), self._progress)

    def recv(self, buffer: Any, *, idle: bool = False) -> Posted:
        """See `Channel`."""
        return Posted(self._comm.ep.recv(buffer), None if idle else self._progress)

    def send_back(self, buffer: Any) -> Posted:
        """See `Channel`."""
        return Posted(self._comm.ep.send(buffer, tag=_BACK), self._progress)

    def recv_back(self, buffer: Any) -> Posted:
        """See `Channel`."""
        return Posted(self._comm.ep.recv(buffer, tag=_BACK), self._progress)
