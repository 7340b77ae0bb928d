# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever breaks a transfer, both ends say so, nothing hangs, and every chunk comes back."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
import rmm

from rmm_uvm.dask.comm import channel
from rmm_uvm.dask.comm.send import DEPTH
from rmm_uvm.dask.comm.wire import FrameKind, pack_header, pack_opening, pack_prelude
from rmm_uvm.errors import ConfigurationError, DataError, DriverError

from .fakes import KIB, ClosedError, InProcessChannel, Process, contents, transfer

CHUNK = 4 * KIB
NBYTES = 9 * CHUNK + 300


class Pair:
    """Two processes, and a message between them that is made to fail."""

    def __init__(self, **options: Any) -> None:
        self.one, self.other = Process(**options), Process(**options)
        self.here, self.there = InProcessChannel.pair()

    def frames(self) -> list[Any]:
        return [b"head", self.one.frame(NBYTES, 1), bytearray(20_000), self.one.frame(700, 2)]

    async def attempt(self) -> list[Any]:
        """Return what both ends came to, errors included."""
        async with asyncio.timeout(60):
            return await asyncio.gather(
                self.one.send(self.here, self.frames(), self.other),
                self.other.receive(self.there),
                return_exceptions=True,
            )

    def run(self) -> list[Any]:
        return asyncio.run(self.attempt())

    def assert_sound(self) -> None:
        """Check that nothing is lost, and that the next message gets through."""
        self.one.assert_whole()
        self.other.assert_whole()
        frames = self.frames()
        received = asyncio.run(transfer(self.one, self.other, frames))
        assert [contents(f) for f in received] == [contents(f) for f in frames]
        self.one.assert_whole()
        self.other.assert_whole()


# The opening with the small host frame, the other one, 10 chunks, 9 ready messages.
MESSAGES = 1 + 1 + 10 + 9


def test_message_in_these_tests_has_as_many_parts_as_they_take_for_granted() -> None:
    pair = Pair()
    pair.run()
    assert pair.here.sent_count == MESSAGES


@pytest.mark.parametrize("number", range(MESSAGES))
def test_peer_that_dies_at_any_message_leaves_both_budgets_whole(number: int) -> None:
    pair = Pair()
    pair.here.break_after = number
    sent, received = pair.run()
    assert isinstance(sent, ClosedError)
    assert isinstance(received, ClosedError)
    assert pair.one.totals.aborted_transfers == 1
    # The receiver knows of device frames once it has the header.
    assert pair.other.totals.aborted_transfers == (number >= 2)
    pair.assert_sound()


@pytest.mark.parametrize("number", range(1, MESSAGES + 1, 3))
def test_receiver_that_goes_away_at_any_message_leaves_the_sender_whole(number: int) -> None:
    pair = Pair()

    # In the turn in which it was sent: ends that are quick send several messages in one.
    pair.here.after_send = lambda count: pair.there.abort() if count == number else None
    results = pair.run()
    assert any(isinstance(result, ClosedError) for result in results)
    pair.assert_sound()


class DeafChannel(InProcessChannel):
    """Goes away once it has taken so many chunks, which the sender has not noticed yet."""

    taking = 0

    def recv(self, buffer: Any, *, idle: bool = False) -> asyncio.Future[None]:
        done = super().recv(buffer, idle=idle)
        self.taking -= hasattr(buffer, "__cuda_array_interface__")
        if self.taking == 0 and self.alive:
            assert done.done()
            self.abort()
        return done


@pytest.mark.parametrize("goes_away", [True, False])
def test_receiver_that_goes_away_with_all_chunks_lets_no_sender_wait_for_them(
    goes_away: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "TURN_SECONDS", 1e6)  # both are posted before the other end runs
    # Two chunks each way, and nobody else who would give one back.
    pair = Pair(pool_bytes=5 * CHUNK, wait_seconds=1e6)
    pair.here, pair.there = DeafChannel.pair()
    pair.there.taking = 2 if goes_away else 1000  # type: ignore[attr-defined]

    async def run() -> tuple[Any, Any]:
        budget = pair.one.staging.sending
        assert budget.count == 2
        sending = asyncio.create_task(
            pair.one.send(pair.here, [pair.one.frame(4 * CHUNK)], pair.other)
        )
        receiving = asyncio.create_task(pair.other.receive(pair.there))
        await asyncio.wait([sending], timeout=30)  # a chunk it would wait for for ever
        assert (sending.done(), budget.waiting_count) == (True, 0)
        return await asyncio.gather(sending, receiving, return_exceptions=True)

    sent, received = asyncio.run(run())
    if goes_away:
        assert isinstance(sent, ConnectionError)
        assert "in the middle of a message" in str(sent)
        assert isinstance(received, ClosedError)
        assert pair.one.totals.chunk_waits == 0
    else:
        assert sent == 4 * CHUNK
    pair.assert_sound()


@pytest.mark.parametrize("side", ["one", "other"])
@pytest.mark.parametrize("number", range(10))
def test_copy_that_fails_at_any_chunk_breaks_the_transfer_off(side: str, number: int) -> None:
    pair = Pair()
    process: Process = getattr(pair, side)
    # The receiver asks once more, before anything: whether there is memory to copy to.
    process.copies.fail_after = number + (side == "other")
    results = pair.run()
    failed, ended = results if side == "one" else reversed(results)
    assert isinstance(failed, DriverError)
    # The sender may be done while the last chunks are copied out.
    late = side == "other" and number >= 10 - DEPTH
    assert isinstance(ended, ClosedError) or (late and isinstance(ended, int))
    process.copies.fail_after = None
    pair.assert_sound()


@pytest.mark.parametrize("side", ["one", "other"])
def test_device_that_is_lost_breaks_the_transfer_off(side: str) -> None:
    pair = Pair()
    getattr(pair, side).copies.broken = True
    results = pair.run()
    assert {type(result) for result in results} == {DriverError, ClosedError}
    getattr(pair, side).copies.broken = False
    pair.assert_sound()


@pytest.mark.parametrize("number", range(2))
def test_receiver_without_memory_for_a_frame_breaks_the_transfer_off(number: int) -> None:
    pair = Pair()
    pair.other.allocations_left = number
    sent, received = pair.run()
    assert isinstance(received, MemoryError)
    assert isinstance(sent, ClosedError)
    pair.other.allocations_left = None
    assert pair.one.totals.aborted_transfers == pair.other.totals.aborted_transfers == 1
    pair.assert_sound()


def test_sender_without_memory_for_an_extra_chunk_breaks_the_transfer_off() -> None:
    pair = Pair(wait_seconds=0.001)
    budget = pair.one.staging.sending

    async def run() -> list[Any]:
        held = [await budget.acquire(1) for _ in range(budget.count)]
        pair.one.allocations_left = 0
        results = await pair.attempt()
        for chunk in held:
            budget.release(chunk)
        return results

    sent, received = asyncio.run(run())
    assert isinstance(sent, MemoryError)
    assert isinstance(received, ClosedError)
    pair.one.allocations_left = None
    pair.assert_sound()


@pytest.mark.parametrize("side", ["one", "other"])
@pytest.mark.parametrize("turns", range(1, 60, 4))
def test_transfer_that_is_cancelled_at_any_time_leaves_both_budgets_whole(
    side: str, turns: int
) -> None:
    pair = Pair(polls=200)  # copies take a while

    async def run() -> list[Any]:
        tasks = {
            "one": asyncio.create_task(pair.one.send(pair.here, pair.frames(), pair.other)),
            "other": asyncio.create_task(pair.other.receive(pair.there)),
        }
        for _ in range(turns):
            await asyncio.sleep(0)
        tasks[side].cancel()
        cancelled = tasks.pop(side)
        return await asyncio.gather(cancelled, *tasks.values(), return_exceptions=True)

    cancelled, ended = asyncio.run(run())
    # Both may have been done by then, or the other one, while this one still tidied up.
    assert isinstance(cancelled, asyncio.CancelledError | int | list)
    assert isinstance(ended, ClosedError | int | list)
    pair.assert_sound()


def test_chunks_of_a_broken_transfer_are_used_again_after_the_quarantine_alone() -> None:
    pair = Pair()
    pair.here.break_after = MESSAGES - 2
    pair.run()
    budget = pair.one.staging.sending
    in_use = budget.count - budget.free_count
    assert in_use > 0

    async def take_all() -> set[int]:
        chunks = [await budget.acquire(1) for _ in range(budget.free_count)]
        for chunk in chunks:
            budget.release(chunk)
        return {chunk.address for chunk in chunks}

    assert len(asyncio.run(take_all())) == budget.count - in_use
    pair.assert_sound()


def test_frames_of_a_broken_transfer_are_kept_until_the_quarantine_is_over() -> None:
    pair = Pair()
    pair.here.break_after = MESSAGES - 2
    pair.run()
    assert _live_bytes(pair.one) >= NBYTES
    assert _live_bytes(pair.other) >= NBYTES
    pair.one.assert_whole()
    pair.other.assert_whole()
    gc.collect()  # a future of asyncio and the error in it hold each other
    assert _live_bytes(pair.one) == _live_bytes(pair.other) == 0


def _live_bytes(process: Process) -> int:
    return process.statistics_mr.allocation_counts.current_bytes


@pytest.mark.parametrize(
    ("header", "match"),
    [
        (b"\x07" + bytes(7) + (5).to_bytes(8, "little"), "kind 7, which ucxuvm does not know"),
        (
            b"\x02" + bytes(7) + (5).to_bytes(8, "little"),
            "no size of chunks for its stream, or more than one",
        ),
    ],
)
def test_header_that_cannot_be_breaks_the_transfer_off(header: bytes, match: str) -> None:
    pair = Pair()

    async def run() -> None:
        receiving = asyncio.create_task(pair.other.receive(pair.there))
        prelude = pack_prelude(closing=False, entries=1)
        await pair.here.send(pack_opening(prelude, header, ()))
        with pytest.raises(DataError, match=match):
            await receiving

    asyncio.run(run())
    pair.assert_sound()


def test_wrong_message_in_place_of_a_ready_message_breaks_the_transfer_off() -> None:
    pair = Pair()

    async def run() -> None:
        receiving = asyncio.create_task(pair.other.receive(pair.there))
        entries, header = pack_header([FrameKind.STREAM], [2 * CHUNK], CHUNK)
        prelude = pack_prelude(closing=False, entries=entries)
        await pair.here.send(pack_opening(prelude, header, ()))
        await pair.here.send(bytes(CHUNK))
        await pair.here.send(b"x")
        with pytest.raises(DataError, match="lost step"):
            await receiving

    asyncio.run(run())
    pair.assert_sound()


def test_device_without_memory_behind_it_receives_nothing() -> None:
    pair = Pair()

    def copy(copies: Any) -> None:
        raise ConfigurationError("copying needs real bytes")

    made: Callable[..., Any] = pair.other.copies.copy
    pair.other.copies.copy = copy  # type: ignore[method-assign]
    sent, received = pair.run()
    assert isinstance(received, ConfigurationError)
    assert isinstance(sent, ClosedError)
    pair.other.copies.copy = made  # type: ignore[method-assign]
    pair.assert_sound()


def test_processes_in_these_tests_see_what_is_alive() -> None:
    process = Process()
    frame = process.frame(1000)
    assert _live_bytes(process) == 1000
    assert isinstance(frame, rmm.DeviceBuffer)
    del frame
    assert _live_bytes(process) == 0
