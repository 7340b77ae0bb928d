# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Chunks are handed out first come, first served, and none is ever lost."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from rmm_uvm.dask.comm import budget
from rmm_uvm.dask.comm.budget import Chunk, ChunkBudget, DeviceRange, Holding
from rmm_uvm.dask.comm.quarantine import Quarantine
from rmm_uvm.errors import DriverError

from .fakes import FakeClock, FakeCopies

SIZE = 1024


class Memory:
    def __init__(self, number: int, nbytes: int = SIZE) -> None:
        self.ptr = number * SIZE
        self.nbytes = nbytes


class Extra:
    """Where overflow chunks come from."""

    def __init__(self) -> None:
        self.made: list[int] = []
        self.out_of_memory = False

    def __call__(self, nbytes: int) -> Chunk:
        if self.out_of_memory:
            raise MemoryError("none left")
        self.made.append(nbytes)
        return Chunk(Memory(1000 + len(self.made), nbytes), pooled=False, overflow=True)


class Made:
    def __init__(self, count: int = 2, wait_seconds: float = 60.0) -> None:
        self.clock = FakeClock()
        self.extra = Extra()
        self.waits: list[float] = []
        self.quarantine = Quarantine(5.0, self.clock)
        self.budget = ChunkBudget(
            [Chunk(Memory(number)) for number in range(1, count + 1)],
            self.extra,
            wait_seconds=wait_seconds,
            quarantine=self.quarantine,
            on_wait=self.waits.append,
            clock=self.clock,
        )

    def assert_whole(self, count: int = 2) -> None:
        assert self.budget.free_count == count
        assert self.budget.waiting_count == 0
        assert len({chunk.address for chunk in self.budget._free}) == count


async def _turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_budget_hands_out_what_is_free_without_waiting() -> None:
    async def run() -> None:
        made = Made()
        chunks = [await made.budget.acquire(SIZE), await made.budget.acquire(1)]
        assert made.budget.free_count == 0
        assert {chunk.address for chunk in chunks} == {SIZE, 2 * SIZE}
        for chunk in chunks:
            made.budget.release(chunk)
        made.assert_whole()
        assert made.waits == []

    asyncio.run(run())


def test_budget_serves_those_who_wait_in_their_order() -> None:
    async def run() -> None:
        made, order = Made(1), []

        async def wait(number: int) -> None:
            chunk = await made.budget.acquire(SIZE)
            order.append(number)
            await _turns()
            made.budget.release(chunk)

        held = await made.budget.acquire(SIZE)
        waiting = [asyncio.create_task(wait(number)) for number in range(5)]
        await _turns()
        assert made.budget.waiting_count == 5
        made.clock.now = 2.0
        made.budget.release(held)
        # Who comes now stands behind them, although a chunk was just given back.
        await asyncio.gather(*waiting, wait(5))
        assert order == [0, 1, 2, 3, 4, 5]
        assert made.waits == [2.0] * 5 + [0.0]
        made.assert_whole(1)

    asyncio.run(run())


def test_budget_that_is_exhausted_for_too_long_gives_an_extra_chunk() -> None:
    async def run() -> None:
        made = Made(1, wait_seconds=0.001)
        held = await made.budget.acquire(SIZE)
        extra = await made.budget.acquire(SIZE)
        assert extra.overflow
        assert made.extra.made == [SIZE]
        assert len(made.waits) == 1
        made.budget.release(extra)
        assert made.budget.free_count == 0  # it is not one of the budget's
        made.budget.release(held)
        made.assert_whole(1)

    asyncio.run(run())


def test_budget_without_chunks_gives_extra_ones_at_once() -> None:
    async def run() -> None:
        made = Made(0)
        chunk = await made.budget.acquire(SIZE)
        assert not chunk.pooled
        made.budget.release(chunk)
        made.assert_whole(0)
        assert made.waits == []

    asyncio.run(run())


def test_budget_asked_for_more_than_a_chunk_gives_an_extra_one_of_that_size() -> None:
    async def run() -> None:
        made = Made()
        chunk = await made.budget.acquire(SIZE + 1)
        assert made.extra.made == [SIZE + 1]
        made.budget.release(chunk)
        made.assert_whole()

    asyncio.run(run())


def test_budget_without_memory_for_an_extra_chunk_says_so_and_stays_whole() -> None:
    async def run() -> None:
        made = Made(1, wait_seconds=0.001)
        made.extra.out_of_memory = True
        held = await made.budget.acquire(SIZE)
        with pytest.raises(MemoryError, match="none left"):
            await made.budget.acquire(SIZE)
        made.budget.release(held)
        made.assert_whole(1)

    asyncio.run(run())


@pytest.mark.parametrize("when", ["while it waits", "as the chunk is handed over"])
def test_budget_loses_no_chunk_when_who_waits_is_cancelled(when: str) -> None:
    async def run() -> None:
        made = Made(1)
        held = await made.budget.acquire(SIZE)
        waiting = asyncio.create_task(made.budget.acquire(SIZE))
        await _turns()
        if when == "while it waits":
            waiting.cancel()
            await _turns()
            made.budget.release(held)
        else:
            made.budget.release(held)
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        made.assert_whole(1)

    asyncio.run(run())


def test_budget_that_is_shared_by_event_loops_of_two_threads_serves_both() -> None:
    made = Made(1)
    rounds, done = 200, []

    async def work() -> None:
        for _ in range(rounds):
            chunk = await made.budget.acquire(SIZE)
            await asyncio.sleep(0)
            made.budget.release(chunk)
        done.append(True)

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert done == [True, True]
    assert made.extra.made == []
    made.assert_whole(1)


def test_budget_keeps_a_chunk_whose_waiter_has_no_event_loop_any_more() -> None:
    made = Made(1)

    async def hold() -> Chunk:
        return await made.budget.acquire(SIZE)

    held = asyncio.run(hold())
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(made.budget.acquire(SIZE))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    made.budget.release(held)
    made.assert_whole(1)
    waiting._log_destroy_pending = False  # its loop is gone on purpose
    waiting.get_coro().close()


def test_holding_that_released_everything_puts_nothing_into_quarantine() -> None:
    async def run() -> None:
        made = Made()
        with Holding(made.budget, FakeCopies().mark) as held:
            held.release(await held.acquire(SIZE))
        assert len(made.quarantine) == 0
        made.assert_whole()

    asyncio.run(run())


@pytest.mark.parametrize("fails", [True, False])
def test_holding_that_is_left_with_chunks_puts_them_into_quarantine(fails: bool) -> None:
    async def run() -> None:
        made = Made()

        async def transfer() -> None:
            with Holding(made.budget, FakeCopies().mark) as held:
                await held.acquire(SIZE)
                await held.acquire(SIZE)
                if fails:
                    raise DriverError("broken")

        if fails:
            with pytest.raises(DriverError):
                await transfer()
        else:
            await transfer()
        assert (made.budget.free_count, len(made.quarantine)) == (0, 2)
        # Whoever asks next gets one as soon as the time is over.
        made.clock.now = 4.9
        waiting = asyncio.create_task(made.budget.acquire(SIZE))
        await _turns()
        assert not waiting.done()
        made.clock.now = 5.0
        made.quarantine.collect()
        made.budget.release(await waiting)
        made.assert_whole()

    asyncio.run(run())


def test_chunk_is_kept_alive_by_its_views() -> None:
    memory: Any = Memory(1)
    gone = weakref.ref(memory)
    chunk = Chunk(memory)
    view = chunk.view(100)
    del memory, chunk
    gc.collect()
    assert gone() is not None
    assert isinstance(view, DeviceRange)
    assert view.__cuda_array_interface__["shape"] == (100,)
    del view
    gc.collect()
    assert gone() is None


def test_message_that_waited_in_vain_waits_less_for_its_next_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "_IMPATIENT_SECONDS", 0.0)

    async def run() -> None:
        made = Made(wait_seconds=0.01)
        stuck = [await made.budget.acquire(SIZE) for _ in range(2)]
        granted, waited_seconds = made.budget._granted, []

        async def noted(waiter: Any, wait_seconds: float) -> Chunk | None:
            waited_seconds.append(wait_seconds)
            return await granted(waiter, wait_seconds)

        monkeypatch.setattr(made.budget, "_granted", noted)
        with Holding(made.budget, lambda: None) as held:
            for _ in range(10):
                held.release(await held.acquire(SIZE))
            assert waited_seconds == [0.01] + [0.0] * 9
            # Who is given one again has reason to wait again.
            made.budget.release(stuck.pop())
            chunk = await held.acquire(SIZE)
            assert chunk.pooled
            held.release(await held.acquire(SIZE))
            assert waited_seconds[10:] == [0.01]
            held.release(chunk)
        made.budget.release(stuck.pop())
        made.assert_whole()
        assert made.extra.made == [SIZE] * 11

    asyncio.run(run())


def test_holding_takes_spares_only_at_once_and_gives_each_back_to_its_own_budget() -> None:
    made, other = Made(1), Made(2)

    async def run() -> None:
        with Holding(made.budget, FakeCopies().mark) as held:
            held.spare = other.budget
            chunks = [held.acquire_now(SIZE) for _ in range(4)]
            assert [chunk is None for chunk in chunks] == [False, False, False, True]
            assert (made.budget.free_count, other.budget.free_count) == (0, 0)
            waiting = asyncio.create_task(held.acquire(SIZE))
            await _turns()
            assert (made.budget.waiting_count, other.budget.waiting_count) == (1, 0)
            for chunk in chunks:
                if chunk is not None:
                    held.release(chunk)
            assert other.budget.free_count == 2
            assert (await waiting).pooled
        assert len(made.quarantine) == 1
        assert len(other.quarantine) == 0

    asyncio.run(run())
    made.clock.now = 10.0
    made.quarantine.collect()
    made.assert_whole(1)
    other.assert_whole()


def test_holding_that_waits_in_vain_takes_no_spares_any_more() -> None:
    made, other = Made(0, wait_seconds=0.001), Made()

    async def run() -> None:
        with Holding(made.budget, FakeCopies().mark) as held:
            held.spare = other.budget
            assert not (await held.acquire(SIZE)).pooled
            assert held.spare is None

    asyncio.run(run())
    assert other.budget.free_count == 2
