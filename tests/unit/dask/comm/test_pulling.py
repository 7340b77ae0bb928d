# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Peers copy chunks from the sender's pool themselves: what is agreed on, and what is refused."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

from rmm_uvm.dask.comm import receive, send
from rmm_uvm.dask.comm.budget import Chunk
from rmm_uvm.dask.comm.pulling import Agreement, Mapping, Mappings, find_slab, process_id
from rmm_uvm.dask.comm.statistics import totals
from rmm_uvm.dask.comm.wire import (
    ANSWER_BYTES,
    NAMED_BYTES,
    OFFER_BYTES,
    OPENING_BYTES,
    ChunkName,
    FrameKind,
    SlabOffer,
    pack_answer,
    pack_done,
    pack_header,
    pack_offer,
    pack_opening,
    pack_prelude,
    pack_ready,
    unpack_answer,
    unpack_opening,
    unpack_ready,
)
from rmm_uvm.errors import AvailabilityError, DataError

from . import fakes
from .fakes import KIB, ClosedError, FakeCopies, InProcessChannel, Process, contents

CHUNK = 4 * KIB
NBYTES = 9 * CHUNK + 300


class Pair:
    """Two processes that share their pools, and a connection between them."""

    def __init__(self, **options: Any) -> None:
        options = {"shares": True, **options}
        self.one, self.other = Process(**options), Process(**options)
        self.here, self.there = InProcessChannel.pair()

    async def send(self, *sizes: int, seed: int = 1) -> None:
        """Send a message, and check what comes."""
        frames = [b"head", *(self.one.frame(size, seed + size) for size in sizes)]
        expected = [contents(frame) for frame in frames]
        async with asyncio.timeout(60):
            _, received = await asyncio.gather(
                self.one.send(self.here, frames, self.other), self.other.receive(self.there)
            )
        assert received is not None
        assert [contents(frame) for frame in received] == expected

    async def attempt(self) -> list[Any]:
        """Return what both ends came to, errors included."""
        frames = [b"head", self.one.frame(NBYTES, 1), bytearray(20_000), self.one.frame(700, 2)]
        async with asyncio.timeout(60):
            return await asyncio.gather(
                self.one.send(self.here, frames, self.other),
                self.other.receive(self.there),
                return_exceptions=True,
            )

    def close(self) -> None:
        self.here.abort()

    def assert_sound(self) -> None:
        """Check that nothing is lost, and that the next connection works."""
        for process in (self.one, self.other):
            process.assert_whole()
            assert not any(process.copies.mapped.values())
        self.here, self.there = InProcessChannel.pair()
        asyncio.run(self.send(NBYTES, 700))
        self.close()
        self.one.assert_whole()
        self.other.assert_whole()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair(polls=3)
    yield made
    made.close()
    made.assert_sound()


def test_managed_frames_are_pulled_and_the_receiver_takes_no_chunk(pair: Pair) -> None:
    async def run() -> None:
        receiving = pair.other.staging.receiving
        held = [await receiving.acquire(1) for _ in range(receiving.count)]
        for _ in range(3):
            await pair.send(NBYTES, 700)
        for chunk in held:
            receiving.release(chunk)

    asyncio.run(run())
    moved = 3 * (NBYTES + 700)
    assert pair.one.totals.sent_staged_bytes == pair.one.totals.pulled_bytes == moved
    assert pair.other.totals.received_staged_bytes == pair.other.totals.pulled_bytes == moved
    assert pair.other.totals.chunk_waits == 0
    # A copy each, and none from chunk to chunk.
    assert pair.one.copies.copied_bytes == pair.other.copies.copied_bytes == moved


@pytest.mark.parametrize("pulls", [True, False])
def test_slab_is_offered_once_for_a_connection(pair: Pair, pulls: bool) -> None:
    pair.other.copies.maps = pulls

    async def counts() -> list[int]:
        found = []
        for _ in range(3):
            before = pair.here.sent_count
            await pair.send(CHUNK)
            found.append(pair.here.sent_count - before)
        return found

    # Pulled: an opening, a ready message, an end. Sent: an opening, a chunk. And the offer.
    assert asyncio.run(counts()) == ([4, 3, 3] if pulls else [3, 2, 2])
    assert (pair.other.totals.pulled_bytes > 0) == pulls
    assert pair.there.sent_count == (4 if pulls else 1)  # an answer, and what was read


@pytest.mark.parametrize(
    ("one", "other"), [({}, {"managed": False}), ({"managed": False}, {}), ({"pool_bytes": 0}, {})]
)
@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.IpcPoolWarning")
def test_frames_that_need_no_copy_at_one_end_are_not_offered(
    pair: Pair, one: dict[str, Any], other: dict[str, Any]
) -> None:
    pair.one, pair.other = Process(shares=True, **one), Process(shares=True, **other)
    asyncio.run(pair.send(NBYTES))
    assert pair.one.totals.pulled_bytes == pair.other.totals.pulled_bytes == 0


@pytest.mark.parametrize(("nbytes", "pulled"), [(CHUNK // 16 - 1, 0), (CHUNK // 16, CHUNK // 16)])
def test_message_that_is_small_beside_a_chunk_is_sent(pair: Pair, nbytes: int, pulled: int) -> None:
    asyncio.run(pair.send(nbytes))
    assert pair.one.totals.pulled_bytes == pair.other.totals.pulled_bytes == pulled
    assert pair.other.totals.received_staged_bytes == nbytes


@pytest.mark.parametrize("nbytes", [1, NBYTES])
def test_receiver_without_a_pool_pulls(pair: Pair, nbytes: int) -> None:
    pair.other = Process(0)
    asyncio.run(pair.send(nbytes))
    assert pair.other.totals.pulled_bytes == nbytes
    assert pair.other.said == []


def test_stream_that_is_pulled_has_the_chunks_of_both_directions_and_their_size() -> None:
    pair = Pair(pool_bytes=5 * CHUNK)
    pair.other = Process(5 * 256, chunk_bytes=256)
    one = pair.one.staging

    async def run() -> None:
        await pair.send(CHUNK)  # so that it is agreed on
        assert (one.sending.count, one.receiving.count) == (2, 2)
        sending = asyncio.create_task(
            pair.one.send(pair.here, [pair.one.frame(6 * CHUNK)], pair.other)
        )
        async with asyncio.timeout(60):
            while one.sending.free_count or one.receiving.free_count:
                await asyncio.sleep(0)
        begun = memoryview(bytearray(OPENING_BYTES))
        await pair.there.recv(begun)
        assert unpack_opening(begun, 2)[0].chunk_bytes == CHUNK
        ready = [bytearray(NAMED_BYTES) for _ in range(4)]
        for each in ready:
            await pair.there.recv(each)
        found = [unpack_ready(each) for each in ready]
        assert len({each.offset for each in found if each is not None}) == 4
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        pair.close()

    asyncio.run(run())
    pair.assert_sound()


@pytest.mark.parametrize("side", ["one", "other"])
def test_pool_that_is_replaced_is_offered_or_mapped_anew(pair: Pair, side: str) -> None:
    asyncio.run(pair.send(NBYTES))
    before = pair.other.copies.mapped.copy()
    getattr(pair, side).reinitialize()
    for seed in range(3):
        asyncio.run(pair.send(NBYTES, seed=seed))
    assert pair.other.totals.pulled_bytes == 4 * NBYTES
    mapped = +pair.other.copies.mapped
    assert sum(mapped.values()) == 1
    assert (mapped == before) == (side == "other")


def test_pool_that_is_replaced_while_it_is_pulled_from_stays_until_it_was() -> None:
    pair = Pair(polls=40)

    async def run() -> None:
        sending = asyncio.create_task(pair.send(NBYTES))
        while pair.other.totals.pulled_bytes < CHUNK:
            await asyncio.sleep(0)
        pair.one.reinitialize()
        pair.other.reinitialize()
        await sending
        assert not any(pair.other.copies.mapped.values())
        await pair.send(NBYTES)

    asyncio.run(run())
    assert pair.other.totals.pulled_bytes == 2 * NBYTES
    pair.close()
    pair.assert_sound()


def test_slab_is_mapped_once_for_all_connections_and_let_go_of_with_the_last() -> None:
    pair = Pair()
    ends = [(pair.here, pair.there), InProcessChannel.pair()]
    for pair.here, pair.there in ends:
        asyncio.run(pair.send(NBYTES))
    assert sum(pair.other.copies.mapped.values()) == 1
    for end, left in zip(ends, (1, 0), strict=True):
        end[0].abort()
        assert sum(pair.other.copies.mapped.values()) == left


def test_slab_of_an_older_pool_is_let_go_of_by_connections_that_are_idle() -> None:
    pair = Pair()
    idle = pair.here, pair.there
    asyncio.run(pair.send(NBYTES))
    pair.here, pair.there = InProcessChannel.pair()
    pair.one.reinitialize()
    asyncio.run(pair.send(NBYTES))
    assert sum(pair.other.copies.mapped.values()) == 1
    pair.close()
    assert sum(pair.other.copies.mapped.values()) == 0
    idle[0].abort()


def test_slab_that_cannot_be_mapped_any_more_breaks_the_connection() -> None:
    pair = Pair()
    asyncio.run(pair.send(NBYTES))
    pair.other.reinitialize()
    pair.other.copies.maps = False
    results = asyncio.run(pair.attempt())
    assert "no peer access" in str(results[1])
    assert isinstance(results[0], ClosedError)
    pair.other.assert_whole()
    pair.one.assert_whole()
    pair.here, pair.there = InProcessChannel.pair()
    asyncio.run(pair.send(NBYTES))  # sent, over the next one
    assert pair.other.totals.pulled_bytes == NBYTES


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.IpcPoolWarning")
@pytest.mark.parametrize("first", [True, False])
def test_chunk_that_is_not_of_the_pool_is_sent_and_spares_are_not_taken_after_it(
    first: bool,
) -> None:
    pair = Pair(pool_bytes=5 * CHUNK, wait_seconds=0.01)
    sending, receiving = pair.one.staging.sending, pair.one.staging.receiving

    async def run() -> None:
        await pair.send(CHUNK)
        held = [await sending.acquire(1) for _ in range(2)]
        if not first:
            sending.release(held.pop())
            spares = [await receiving.acquire(1) for _ in range(2)]

            async def free_again() -> None:
                while not pair.one.totals.sent_overflow_bytes:
                    await asyncio.sleep(0)
                for chunk in spares:
                    receiving.release(chunk)

            # Another sender takes the chunk as soon as it was read.
            taken = asyncio.create_task(sending.acquire(1))
            freeing = asyncio.create_task(free_again())
        await pair.send(12 * CHUNK)
        if not first:
            await freeing
            held.append(await taken)
        for chunk in held:
            sending.release(chunk)

    asyncio.run(run())
    assert pair.one.totals.sent_overflow_bytes > 0
    assert pair.other.totals.received_staged_bytes == 13 * CHUNK
    pair.close()
    pair.assert_sound()


# With the opening, the offer, the other host frame, 10 ready messages and the end.
MESSAGES = 1 + 1 + 1 + 10 + 1


def test_message_in_these_tests_has_as_many_parts_as_they_take_for_granted() -> None:
    pair = Pair()
    asyncio.run(pair.attempt())
    assert (pair.here.sent_count, pair.there.sent_count) == (MESSAGES, 1 + 10)


@pytest.mark.parametrize("end", ["here", "there"])
@pytest.mark.parametrize("number", range(MESSAGES))
def test_peer_that_dies_at_any_message_leaves_both_budgets_whole(end: str, number: int) -> None:
    pair = Pair(polls=3)
    channel = getattr(pair, end)
    channel.break_after = number
    results = asyncio.run(pair.attempt())
    sent = MESSAGES if end == "here" else 11
    assert [isinstance(each, ClosedError) for each in results] == [number < sent] * 2
    pair.close()
    pair.assert_sound()


@pytest.mark.parametrize("side", ["one", "other"])
@pytest.mark.parametrize("number", range(10))
def test_copy_that_fails_at_any_chunk_breaks_the_transfer_off(side: str, number: int) -> None:
    pair = Pair()
    process: Process = getattr(pair, side)
    process.copies.fail_after = number + (side == "other")
    results = asyncio.run(pair.attempt())
    assert sorted(type(each).__name__ for each in results) == ["ClosedError", "DriverError"]
    process.copies.fail_after = None
    pair.assert_sound()


@pytest.mark.parametrize("side", ["one", "other"])
@pytest.mark.parametrize("turns", range(1, 60, 4))
def test_transfer_that_is_cancelled_at_any_time_leaves_both_budgets_whole(
    side: str, turns: int
) -> None:
    pair = Pair(polls=200)  # copies take a while

    async def run() -> None:
        tasks = {
            "one": asyncio.create_task(
                pair.one.send(pair.here, [pair.one.frame(NBYTES)], pair.other)
            ),
            "other": asyncio.create_task(pair.other.receive(pair.there)),
        }
        for _ in range(turns):
            await asyncio.sleep(0)
        tasks[side].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    asyncio.run(run())
    pair.close()
    pair.assert_sound()


def test_broken_transfer_keeps_chunks_frames_and_slab_until_the_quarantine_is_over() -> None:
    pair = Pair()
    pair.here.break_after = MESSAGES - 3
    asyncio.run(pair.attempt())
    sending, receiving = pair.one.staging.sending, pair.one.staging.receiving
    assert sending.free_count + receiving.free_count < sending.count + receiving.count
    assert sum(pair.other.copies.mapped.values()) == 1
    assert pair.other.statistics_mr.allocation_counts.current_bytes >= NBYTES
    pair.assert_sound()
    gc.collect()  # a future of asyncio and the error in it hold each other
    assert pair.other.statistics_mr.allocation_counts.current_bytes == 0


class LateEnd(InProcessChannel):
    """Has not noticed yet that the connection broke, when it says what it has read."""

    def send_back(self, buffer: Any) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done if self.closed else super().send_back(buffer)


@pytest.mark.parametrize("waits", [True, False])
def test_receiver_that_reads_after_the_sender_broke_off_hands_out_nothing(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    monkeypatch.setattr(fakes, "EAGER_BYTES", OPENING_BYTES)
    pair = Pair()
    pair.here, pair.there = LateEnd.pair()
    if not waits:

        async def end(channel: object) -> None:
            pass

        monkeypatch.setattr(receive, "_end", end)

    async def run() -> None:
        await pair.send(CHUNK)
        pair.there._lanes[0].arrived.clear()  # the end, where it is not waited for
        frame = pair.one.frame(3 * CHUNK, 1)
        sending = asyncio.create_task(pair.one.send(pair.here, [frame], pair.other))
        while len(pair.there._lanes[0].arrived) < 4:  # the opening, and three chunks
            await asyncio.sleep(0)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        # An event loop may stand still for longer than that.
        pair.one.assert_whole()
        for chunk in (*pair.one.staging.sending._free, *pair.one.staging.receiving._free):
            ctypes.memset(chunk.address, 7, chunk.nbytes)
        offer = pair.one.staging.slab
        assert offer is not None
        pair.there.agreement.offer = offer.offer
        if waits:
            with pytest.raises(ClosedError):
                await pair.other.receive(pair.there)
        else:
            received = await pair.other.receive(pair.there)
            assert received is not None
            assert contents(received[0]) != contents(frame)

    asyncio.run(run())
    pair.close()
    pair.assert_sound()


async def _announce(pair: Pair, sizes: list[int]) -> SlabOffer:
    """Offer a slab as a sender does, and have it accepted."""
    slab = pair.one.staging.slab
    assert slab is not None
    kinds = [FrameKind.STREAM] * len(sizes)
    entries, header = pack_header(kinds, sizes, CHUNK, FrameKind.OFFER)
    await pair.here.send(pack_opening(pack_prelude(closing=False, entries=entries), header, ()))
    await pair.here.send(pack_offer(slab.offer))
    answer = bytearray(ANSWER_BYTES)
    await pair.here.recv_back(answer)
    assert unpack_answer(answer)
    return slab.offer


SLAB = 64 * KIB


@pytest.mark.parametrize(
    ("messages", "match"),
    [
        ([pack_ready(ChunkName(0, 1))], "chunk 1 was announced in place of chunk 0"),
        ([pack_ready(ChunkName(SLAB - CHUNK + 256, 0))], "and the slab has 65536 bytes"),
        ([pack_ready(ChunkName(2**64 - 256, 0))], "and the slab has 65536 bytes"),
        ([pack_ready(ChunkName(100, 0))], "and the slab has 65536 bytes"),
        ([pack_ready(ChunkName(0, 0)), pack_ready(ChunkName(256, 1))], "was still being read"),
        ([pack_done(ChunkName(0, 0))], "lost step"),
        ([bytes(NAMED_BYTES)], "lost step"),
        (
            [pack_ready(ChunkName(0, 0)), pack_ready(ChunkName(CHUNK, 1)), b"x"],
            "expected the end of a stream",
        ),
    ],
)
def test_chunk_that_cannot_be_announced_is_refused_and_counted(
    messages: list[bytes], match: str
) -> None:
    pair = Pair(polls=5)
    before = totals().refused_messages

    async def run() -> None:
        receiving = asyncio.create_task(pair.other.receive(pair.there))
        await _announce(pair, [2 * CHUNK])
        for message in messages:
            await pair.here.send(message)
        with pytest.raises(DataError, match=match):
            await receiving

    asyncio.run(run())
    assert totals().refused_messages == before + 1
    pair.assert_sound()


def test_stream_that_is_pulled_without_an_agreement_is_refused() -> None:
    pair = Pair()

    async def run() -> None:
        receiving = asyncio.create_task(pair.other.receive(pair.there))
        entries, header = pack_header([FrameKind.STREAM], [CHUNK], CHUNK, FrameKind.PULL)
        await pair.here.send(pack_opening(pack_prelude(closing=False, entries=entries), header, ()))
        with pytest.raises(DataError, match="nothing was agreed on"):
            await receiving

    asyncio.run(run())
    pair.assert_sound()


@pytest.mark.parametrize(
    ("generation", "offset", "match"),
    [(0, 0, None), (1, 0, "was read, and"), (0, 256, "was read, and")],
)
def test_chunk_that_was_not_announced_and_is_said_to_be_read_is_refused_and_counted(
    generation: int, offset: int, match: str | None
) -> None:
    pair = Pair()
    before = totals().refused_messages

    async def run() -> None:
        sending = asyncio.create_task(pair.one.send(pair.here, [pair.one.frame(300)], pair.other))
        for nbytes in (OPENING_BYTES, OFFER_BYTES):
            await pair.there.recv(bytearray(nbytes))
        await pair.there.send_back(pack_answer(pulls=True))
        ready = bytearray(NAMED_BYTES)
        await pair.there.recv(ready)
        name = unpack_ready(ready)
        assert name is not None
        await pair.there.send_back(
            pack_done(ChunkName(name.offset + offset, name.generation + generation))
        )
        if match is None:
            assert await sending == 300
        else:
            with pytest.raises(DataError, match=match):
                await sending

    asyncio.run(run())
    assert totals().refused_messages == before + (match is not None)
    pair.close()
    pair.assert_sound()


def test_answer_to_an_offer_that_is_none_is_refused_and_counted() -> None:
    pair = Pair()
    before = totals().refused_messages

    async def run() -> None:
        sending = asyncio.create_task(pair.one.send(pair.here, [pair.one.frame(300)], pair.other))
        for nbytes in (OPENING_BYTES, OFFER_BYTES):
            await pair.there.recv(bytearray(nbytes))
        await pair.there.send_back(b"x")
        with pytest.raises(DataError, match="expected an answer"):
            await sending

    asyncio.run(run())
    assert totals().refused_messages == before + 1
    pair.assert_sound()


@pytest.mark.parametrize("waits", [True, False])
def test_receiver_that_says_it_has_read_too_early_would_get_other_bytes(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    pair = Pair(pool_bytes=5 * CHUNK)
    pair.other.copies.polls = 10

    async def reached(mark: object) -> None:
        pass

    async def run() -> bool:
        frame = pair.one.frame(12 * CHUNK, 1)
        _, received = await asyncio.gather(
            pair.one.send(pair.here, [frame], pair.other), pair.other.receive(pair.there)
        )
        assert received is not None
        pair.other.copies.execute(pair.other.copies.queued_count)
        return contents(received[0]) == contents(frame)

    with monkeypatch.context() as patched:
        if not waits:
            patched.setattr(pair.other.staging, "reached", reached)
        assert asyncio.run(run()) == waits
    pair.close()


@pytest.mark.parametrize("waits", [True, False])
def test_sender_that_uses_a_chunk_before_it_was_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    pair = Pair(pool_bytes=5 * CHUNK)
    pair.other.copies.polls = 10
    if not waits:

        async def finish(self: Any, one: Any) -> None:
            self._held.release(one.chunk)

        monkeypatch.setattr(send._Pulled, "finish", finish)

    async def run() -> list[Any]:
        receiving = pair.one.staging.receiving
        spares = [await receiving.acquire(1) for _ in range(2)]
        results = await pair.attempt()
        for chunk in spares:
            receiving.release(chunk)
        return results

    results = asyncio.run(run())
    refused = [each for each in results if isinstance(each, DataError)]
    assert (refused == []) == waits
    for each in refused:
        assert "was still being read" in str(each)
    pair.close()


def test_mappings_of_another_machine_are_refused() -> None:
    memory = FakeCopies()
    offer = SlabOffer(bytes(16), bytes(16), bytes(16), bytes(64), 4096)
    mappings = Mappings(memory)
    with pytest.raises(AvailabilityError, match="another machine"):
        mappings.use(offer, Agreement())
    assert Agreement().consider(offer, mappings) is None
    assert len(mappings) == 0


def test_mappings_of_a_connection_that_was_dropped_go_with_the_next_use() -> None:
    pair = Pair()
    slab = pair.one.staging.slab
    assert slab is not None
    mappings = pair.other.staging.mappings
    agreement = Agreement()
    mapping = agreement.consider(slab.offer, mappings)
    assert isinstance(mapping, Mapping)
    mappings.release(mapping)
    assert len(mappings) == 1
    del agreement
    gc.collect()
    mappings.forget(Agreement())
    assert len(mappings) == 0


def test_slab_is_none_where_it_does_not_have_all_chunks() -> None:
    one, other = Process(shares=True), Process(shares=True)
    chunks: list[Chunk] = [*one.staging.sending._free]
    assert find_slab(one.copies, chunks, b"") is not None
    assert find_slab(one.copies, [*chunks, *other.staging.sending._free], b"") is None
    assert find_slab(one.copies, [], b"") is None
    one.copies.slab = None
    assert find_slab(one.copies, chunks, b"") is None


def test_process_has_one_identity_and_a_forked_child_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = process_id()
    assert (len(here), process_id()) == (16, here)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert process_id() != here


def test_slab_that_is_mapped_after_the_pool_went_is_unmapped_with_its_message() -> None:
    pair = Pair()
    slab = pair.one.staging.slab
    assert slab is not None
    mappings, agreement = pair.other.staging.mappings, Agreement()
    mappings.end()
    mapping = agreement.consider(slab.offer, mappings)
    assert mapping is not None
    assert len(mappings) == 1
    mappings.release(mapping)
    assert len(mappings) == 0
    assert not any(pair.other.copies.mapped.values())
