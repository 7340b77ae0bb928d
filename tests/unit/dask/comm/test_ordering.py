# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What waits for what: kernels on the default stream, copies, and transports, which know neither.

That bytes are not used before their copies are done shows in the contents: see `FakeCopies`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from .fakes import KIB, InProcessChannel, Process, contents

NBYTES = 10 * 4 * KIB + 300


def _run(one: Process, other: Process, frames: list[Any]) -> tuple[list[str], list[str]]:
    """Transfer a message; return what happened on the device and in the transport, by process."""
    here, there = InProcessChannel.pair()
    for process, channel in ((one, here), (other, there)):
        process.copies.events.clear()
        channel.events = process.copies.events

    async def run() -> list[Any] | None:
        _, received = await asyncio.gather(one.send(here, frames, other), other.receive(there))
        return received

    received = asyncio.run(run())
    assert received is not None
    assert [contents(frame) for frame in received] == [contents(frame) for frame in frames]
    return one.copies.events, other.copies.events


def _warm(*processes: Process) -> None:
    for process in processes:
        process.staging.chunks_settled = True


@pytest.mark.parametrize("polls", [0, 3])
def test_staged_sender_waits_for_the_default_stream_copies_and_then_sends(
    polls: int,
) -> None:
    one, other = Process(polls=polls), Process()
    sent, _ = _run(one, other, [one.frame(NBYTES, 1)])
    assert sent[:4] == ["wait", "copy", "done", "send"]


def test_receiver_hears_of_a_message_once_its_first_chunk_is_filled() -> None:
    one, other = Process(polls=3), Process()
    here, there = InProcessChannel.pair()
    seen: list[list[str]] = []
    here.after_send = lambda _count: seen.append(list(one.copies.events))

    async def run() -> None:
        frame = one.frame(4 * KIB, 1)
        await asyncio.gather(one.send(here, [frame], other), other.receive(there))

    asyncio.run(run())
    assert seen == [["wait", "copy", "done"]] * 2  # the opening, and the chunk


def test_senders_whose_kernels_run_long_keep_no_chunks_from_others() -> None:
    other, idle = Process(), Process()
    busy = [Process(polls=10**9) for _ in range(2 * other.staging.receiving.count)]

    async def run() -> None:
        async def transfer(process: Process) -> None:
            here, there = InProcessChannel.pair()
            await asyncio.gather(
                process.send(here, [process.frame(4 * KIB, 1)], other), other.receive(there)
            )

        waiting = [asyncio.ensure_future(transfer(process)) for process in busy]
        await asyncio.sleep(0.01)
        await asyncio.wait_for(transfer(idle), 10)
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)

    asyncio.run(run())
    assert not other.staging.totals.chunk_waits


@pytest.mark.parametrize("polls", [0, 3])
def test_staged_receiver_copies_after_what_was_queued_for_the_memory_of_its_frames(
    polls: int,
) -> None:
    one, other = Process(), Process(polls=polls)
    _warm(other)
    _, received = _run(one, other, [one.frame(NBYTES, 1)])
    assert received[:3] == ["allocate", "receive", "wait"]
    assert received.count("wait") == 1
    assert received.index("copy") > received.index("wait")
    assert received[-1] == "done"


def test_first_receiver_waits_for_what_was_queued_for_the_memory_of_its_chunks() -> None:
    one, other = Process(), Process(polls=3)
    _, received = _run(one, other, [one.frame(NBYTES, 1)])
    assert received[:4] == ["allocate", "wait", "done", "receive"]
    assert received.count("wait") == 1
    _, received = _run(one, other, [one.frame(NBYTES, 1)])
    assert received[:3] == ["allocate", "receive", "wait"]


def test_direct_sender_waits_for_the_default_stream() -> None:
    one, other = Process(managed=False, polls=3), Process(managed=False)
    sent, _ = _run(one, other, [one.frame(NBYTES, 1)])
    assert sent == ["wait", "done", "send"]


def test_direct_receiver_waits_for_what_was_queued_for_the_memory_of_its_frames() -> None:
    one, other = Process(managed=False), Process(managed=False, polls=3)
    _warm(other)
    _, received = _run(one, other, [one.frame(NBYTES, 1)])
    assert received == ["allocate", "wait", "done", "receive"]


def test_sender_in_place_waits_for_the_default_stream() -> None:
    one, other = Process(managed=False, polls=3), Process()
    sent, _ = _run(one, other, [one.frame(NBYTES, 1)])
    assert sent[:3] == ["wait", "done", "send"]
    assert "copy" not in sent


def test_receiver_in_place_waits_for_what_was_queued_for_the_memory_of_its_frames() -> None:
    one, other = Process(), Process(managed=False, polls=3)
    _warm(other)
    _, received = _run(one, other, [one.frame(NBYTES, 1)])
    assert received[:4] == ["allocate", "wait", "done", "receive"]


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.IpcPoolWarning")
def test_receiver_into_an_extra_chunk_waits_for_what_was_queued_for_its_memory() -> None:
    one, other = Process(), Process(0, polls=3)
    _warm(other)
    _, received = _run(one, other, [one.frame(4 * KIB, 1)])
    # The frame, and then the chunk.
    assert received[0] == "allocate"
    chunk = received[1:]
    assert chunk[0] == "allocate"
    assert chunk.index("wait") < chunk.index("done") < chunk.index("receive")


def test_chunk_is_announced_once_it_is_filled() -> None:
    one, other = Process(polls=3, shares=True), Process()
    here, there = InProcessChannel.pair()
    seen: list[list[str]] = []
    here.after_send = lambda _count: seen.append(list(one.copies.events))

    async def run() -> None:
        frame = one.frame(4 * KIB, 1)
        await asyncio.gather(one.send(here, [frame], other), other.receive(there))

    asyncio.run(run())
    # At the opening, the offer, the ready message and the end.
    assert seen == [["wait", "copy", "done"]] * 4


@pytest.mark.parametrize("polls", [0, 3])
def test_receiver_that_pulls_copies_after_what_was_queued_for_its_frames(
    polls: int,
) -> None:
    one, other = Process(shares=True), Process(polls=polls)
    _warm(other)
    _, received = _run(one, other, [one.frame(NBYTES, 1)])
    assert received[:3] == ["allocate", "wait", "copy"]
    assert received.count("wait") == 1
    assert received[-1] == "done"
    assert "receive" not in received
