# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Coroutines that have posted before they are awaited."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rmm_uvm.dask.comm.channel import Posted, UcxChannel
from rmm_uvm.dask.comm.pulling import Agreement


class FakeEndpoint:
    """Completes requests after some turns of the event loop, as ucxx does: it polls."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.posted: list[Any] = []
        self.cancelled: list[Any] = []

    async def send(self, buffer: Any, tag: int | None = None) -> None:
        self.posted.append(buffer if tag is None else (buffer, tag))
        try:
            for _ in range(self.turns):
                await asyncio.sleep(0)
        except BaseException:
            self.cancelled.append(buffer)
            raise
        if buffer == "broken":
            raise OSError("broken")

    recv = send


class FakeComm:
    def __init__(self, turns: int = 3) -> None:
        self.ep = FakeEndpoint(turns)
        self.is_closed = False

    def closed(self) -> bool:
        return self.is_closed


def test_channel_posts_in_the_order_of_calls_before_anything_is_awaited() -> None:
    async def run() -> None:
        comm = FakeComm()
        channel = UcxChannel(comm, Agreement())
        later = [
            *(channel.send("a"), channel.recv("b"), channel.send("c")),
            *(channel.send_back("d"), channel.recv_back("e")),
        ]
        assert comm.ep.posted == ["a", "b", "c", ("d", 1), ("e", 1)]
        for each in reversed(later):
            await each

    asyncio.run(run())


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_posted_is_done_when_its_request_is(turns: int) -> None:
    async def run() -> None:
        waiting = asyncio.create_task(_await(UcxChannel(FakeComm(turns), Agreement()).send("a")))
        seen = 0
        while not waiting.done():
            await asyncio.sleep(0)
            seen += 1
        assert seen >= turns
        await waiting

    asyncio.run(run())


async def _await(posted: Posted) -> None:
    await posted


@pytest.mark.parametrize("turns", [0, 3])
def test_posted_raises_what_the_request_raises(turns: int) -> None:
    async def run() -> None:
        channel = UcxChannel(FakeComm(turns), Agreement())
        with pytest.raises(OSError, match="broken"):
            await channel.recv("broken")

    asyncio.run(run())


def test_posted_that_waits_for_a_future_is_woken_by_it() -> None:
    async def run() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def request() -> None:
            await future

        waiting = asyncio.create_task(_await(Posted(request())))
        await asyncio.sleep(0)
        assert not waiting.done()
        future.set_result(None)
        await waiting

    asyncio.run(run())


def test_posted_that_is_cancelled_or_dropped_cancels_its_request() -> None:
    async def run() -> None:
        comm = FakeComm(1000)
        channel = UcxChannel(comm, Agreement())
        waiting = asyncio.create_task(_await(channel.send("awaited")))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        dropped = channel.send("dropped")
        assert comm.ep.cancelled == ["awaited"]
        del dropped
        assert comm.ep.cancelled == ["awaited", "dropped"]

    asyncio.run(run())


def test_channel_of_a_closed_connection_is_not_alive() -> None:
    comm = FakeComm()
    channel = UcxChannel(comm, Agreement())
    assert channel.alive
    comm.is_closed = True
    assert not channel.alive
