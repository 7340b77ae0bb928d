# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whole messages over the in-process transport arrive as they were, whatever they consist of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import rmm
from hypothesis import given, settings
from hypothesis import strategies as st

from rmm_uvm.dask.comm import channel
from rmm_uvm.dask.comm.handshake import STOCK_PEER, Peer
from rmm_uvm.dask.comm.receive import receive_message
from rmm_uvm.dask.comm.send import send_message
from rmm_uvm.dask.comm.wire import OPENING_BYTES, pack_prelude

from .fakes import KIB, InProcessChannel, Process, contents, transfer

CHUNK = 4 * KIB
OURS = Peer(ours=True)
EDGES = [0, 1, 255, 256, 257, CHUNK - 1, CHUNK, CHUNK + 1, 9 * CHUNK + 5]


@pytest.fixture(scope="module")
def managed() -> tuple[Process, Process]:
    return Process(chunk_bytes=CHUNK), Process(chunk_bytes=CHUNK, polls=2)


@pytest.fixture(scope="module")
def plain() -> Process:
    """A process whose frames lie in cudaMalloc memory."""
    return Process(chunk_bytes=CHUNK, managed=False)


any_frames = st.lists(
    st.tuples(st.booleans(), st.one_of(st.sampled_from(EDGES), st.integers(0, 10 * CHUNK))),
    min_size=1,
    max_size=8,
)


def _made(process: Process, frames: list[tuple[bool, int]]) -> list[Any]:
    return [
        process.frame(size, seed) if on_device else bytearray(contents(process.frame(size, seed)))
        for seed, (on_device, size) in enumerate(frames)
    ]


@settings(max_examples=60)
@given(any_frames)
def test_message_of_any_frames_arrives_as_it_was(
    managed: tuple[Process, Process], plain: Process, frames: list[tuple[bool, int]]
) -> None:
    processes = (*managed, plain)
    for one in processes:
        for other in processes:
            sent = _made(one, frames)
            received = asyncio.run(transfer(one, other, sent))
            assert [contents(frame) for frame in received] == [contents(frame) for frame in sent]
            for (on_device, _), frame in zip(frames, received, strict=True):
                assert isinstance(frame, rmm.DeviceBuffer) == on_device
    for process in processes:
        assert process.totals.aborted_transfers == 0
        process.assert_whole()


@pytest.mark.parametrize("chunk_bytes", [256, CHUNK, 64 * KIB])
def test_chunks_are_as_small_as_those_of_the_end_with_the_smaller_ones(chunk_bytes: int) -> None:
    one = Process(256 * KIB, chunk_bytes=CHUNK)
    other = Process(1024 * KIB, chunk_bytes=chunk_bytes)
    for here, there in ((one, other), (other, one)):
        frames = [here.frame(50_000, 1)]
        (received,) = asyncio.run(transfer(here, there, frames))
        assert contents(received) == contents(frames[0])
    assert one.totals.sent_overflow_bytes == other.totals.sent_overflow_bytes == 0
    one.assert_whole()
    other.assert_whole()


def test_messages_on_one_connection_stay_in_order(managed: tuple[Process, Process]) -> None:
    one, other = managed

    async def run() -> None:
        here, there = InProcessChannel.pair()
        sent = [[bytes([n]), one.frame(n * 3000, n)] for n in range(6)]

        async def send() -> None:
            for frames in sent:
                await one.send(here, frames, other)

        async def receive() -> None:
            for frames in sent:
                received = await other.receive(there)
                assert received is not None
                assert [contents(f) for f in received] == [contents(f) for f in frames]

        await asyncio.gather(send(), receive())

    asyncio.run(run())


def test_large_messages_in_both_directions_at_once_arrive(
    managed: tuple[Process, Process],
) -> None:
    one, other = managed

    async def run() -> None:
        here, there = InProcessChannel.pair()
        back, forth = InProcessChannel.pair()
        frames, others = [one.frame(1 << 20, 1)], [other.frame(1 << 20, 2)]
        _, received, _, returned = await asyncio.gather(
            one.send(here, frames, other),
            other.receive(there),
            other.send(forth, others, one),
            one.receive(back),
        )
        assert contents(received[0]) == contents(frames[0])
        assert contents(returned[0]) == contents(others[0])

    asyncio.run(run())
    one.assert_whole()
    other.assert_whole()


def test_both_directions_of_one_connection_can_be_used_at_once(
    managed: tuple[Process, Process],
) -> None:
    one, other = managed

    async def run() -> None:
        here, there = InProcessChannel.pair()
        frames, others = [one.frame(300_000, 1)], [other.frame(300_000, 2)]
        _, received, _, returned = await asyncio.gather(
            one.send(here, frames, other),
            other.receive(there),
            other.send(there, others, one),
            one.receive(here),
        )
        assert contents(received[0]) == contents(frames[0])
        assert contents(returned[0]) == contents(others[0])

    asyncio.run(run())


def test_message_that_hangs_up_is_none(managed: tuple[Process, Process]) -> None:
    async def run() -> None:
        here, there = InProcessChannel.pair()
        _, received = await asyncio.gather(
            here.send(pack_prelude(closing=True, entries=0)), managed[1].receive(there)
        )
        assert received is None

    asyncio.run(run())


@pytest.mark.parametrize(
    ("peer", "frames", "messages"),
    [
        (STOCK_PEER, [b"x", b"", b"y" * 100_000], 4),
        (STOCK_PEER, [b"x"] * 3, 5),
        (OURS, [b"x"] * 3, 1),
        (OURS, [b"x", b"", b"y" * 100_000, b"z"], 3),
        (OURS, [b"x" * (OPENING_BYTES - 16 - 16 - 1)], 1),
        (OURS, [b"x" * (OPENING_BYTES - 16 - 16)], 2),
        (OURS, [b""] * 452, 1),  # a header of 456 + 452 * 8 bytes
        (OURS, [b"x", *[b""] * 452], 3),
    ],
)
def test_message_with_host_frames_only_needs_no_staging_and_few_messages(
    peer: Peer, frames: list[bytes], messages: int
) -> None:
    def no_staging() -> Any:
        raise AssertionError("asked for a staging")

    async def run() -> None:
        here, there = InProcessChannel.pair()
        count, received = await asyncio.gather(
            send_message(here, frames, peer, no_staging), receive_message(there, peer, no_staging)
        )
        assert (count, here.sent_count) == (sum(map(len, frames)), messages)
        assert received is not None
        assert [bytes(frame) for frame in received] == frames

    asyncio.run(run())


def test_message_of_many_frames_gives_way_to_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "TURN_SECONDS", -1.0)  # every turn is over

    async def run() -> None:
        moved = asyncio.ensure_future(transfer(Process(), Process(), [b"x"] * 500))
        count = 0
        while not moved.done():
            await asyncio.sleep(0)
            count += 1
        await moved
        assert count > 400

    asyncio.run(run())
