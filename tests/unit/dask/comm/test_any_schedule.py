# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Transfers over a transport that is polled, as UCX is, and moves messages whenever it likes.

Every worker sends to every other at once, over two connections each, with tiny budgets; some
messages are broken off or cancelled in the middle. Whatever the schedule: nothing halts, all that
was not broken arrives as it was, and every chunk comes back.

Time is the schedule's, too: how long the transfers keep the event loop follows from the seed and
not from the machine. So a seed that halts does so each time, and no seconds decide what is halted.
"""

from __future__ import annotations

import asyncio
import ctypes
import random
from typing import Any, NamedTuple

import pytest

from rmm_uvm.dask.comm import channel, staging
from rmm_uvm.dask.comm.channel import Posted
from rmm_uvm.dask.comm.pulling import Agreement

from .fakes import (
    EAGER_BYTES,
    KIB,
    ClosedError,
    Lane,
    Process,
    address_and_bytes,
    contents,
)

SIZES = (0, 1, 255, 256, 300, 4 * KIB, 8 * KIB, 50_000, 120_000)
MESSAGES = 3
HALTED_ROUNDS = 5000  # of the event loop; a quarantine takes 500 of them


class Breaks(NamedTuple):
    """How many messages are broken off, and within how many rounds of the event loop.

    And before how many one of the ends takes another pool.
    """

    fraction: float
    most_rounds: int
    renewed: float = 0


RARE, OFTEN, RENEWED = Breaks(0.1, 200), Breaks(0.6, 60), Breaks(0.1, 200, 0.3)


class ScheduledTime:
    """Stands for the module `time`: mostly little of it passes, at times too much to go on."""

    def __init__(self, schedule: random.Random) -> None:
        self._schedule = schedule
        self._now = 0.0

    def perf_counter(self) -> float:
        self._now += self._schedule.choice((1e-7, 1e-6, 1e-6, 5e-6, 3e-4))
        return self._now


class Pending:
    """A message that was sent, or a receive that was posted."""

    def __init__(self, buffer: Any) -> None:
        self.address, self.nbytes, self.alive = address_and_bytes(buffer)
        self.done = False
        self.broken = False

    def copy_out(self) -> None:
        """Keep a small message by itself, as UCX does."""
        self.alive = ctypes.create_string_buffer(
            ctypes.string_at(self.address, self.nbytes), max(self.nbytes, 1)
        )
        self.address, self.done = ctypes.addressof(self.alive), True


class PolledChannel:
    """One end: requests are coroutines that look again and again, as those of ucxx."""

    def __init__(self, schedule: random.Random) -> None:
        self.peer: PolledChannel
        self.closed = False
        self.agreement = Agreement()
        self._schedule = schedule
        self._lanes = (Lane(), Lane())  # the second is what `send_back` and `recv_back` use

    @classmethod
    def pair(cls, schedule: random.Random) -> tuple[PolledChannel, PolledChannel]:
        one, other = cls(schedule), cls(schedule)
        one.peer, other.peer = other, one
        return one, other

    @property
    def alive(self) -> bool:
        return not self.closed

    def send(self, buffer: Any, lane: int = 0) -> Posted:
        message = self._new(buffer)
        if message.nbytes <= EAGER_BYTES:
            message.copy_out()
        self.peer._lanes[lane].arrived.append(message)
        return Posted(self._until_done(message), self._progress)

    def recv(self, buffer: Any, *, idle: bool = False, lane: int = 0) -> Posted:
        posted = self._new(buffer)
        self._lanes[lane].posted.append(posted)
        return Posted(self._until_done(posted), None if idle else self._progress)

    def send_back(self, buffer: Any) -> Posted:
        return self.send(buffer, lane=1)

    def recv_back(self, buffer: Any) -> Posted:
        return self.recv(buffer, lane=1)

    def abort(self) -> None:
        for end in (self, self.peer):
            end.closed = True
            end.agreement.end()
            for lane in end._lanes:
                for each in (*lane.arrived, *lane.posted):
                    each.broken = not each.done
                lane.arrived.clear()
                lane.posted.clear()

    def _new(self, buffer: Any) -> Pending:
        if self.closed:
            raise ClosedError("the connection is closed")
        return Pending(buffer)

    async def _until_done(self, request: Pending) -> None:
        while True:
            self._progress()
            if request.broken:
                raise ClosedError("the connection broke")
            if request.done:
                return
            await asyncio.sleep(0)

    def _progress(self) -> None:
        for lane in (*self._lanes, *self.peer._lanes):
            if lane.arrived and lane.posted and self._schedule.random() < 0.3:
                message, posted = lane.arrived.popleft(), lane.posted.popleft()
                assert message.nbytes <= posted.nbytes
                ctypes.memmove(posted.address, message.address, message.nbytes)
                message.done = posted.done = True


async def _break_off(
    channel: PolledChannel,
    transfers: list[asyncio.Task[Any]],
    schedule: random.Random,
    most_rounds: int,
) -> None:
    """Cancel one end, or break the connection, at some moment."""
    for _ in range(schedule.randrange(most_rounds)):
        await asyncio.sleep(0)
    if schedule.random() < 0.5:
        cancelled = schedule.choice(transfers)
        cancelled.cancel()
        await asyncio.wait([cancelled])
    channel.abort()
    await asyncio.gather(*transfers, return_exceptions=True)


async def _connection(
    one: Process, other: Process, schedule: random.Random, breaks: Breaks
) -> None:
    here, there = PolledChannel.pair(schedule)
    for _ in range(MESSAGES):
        if schedule.random() < breaks.renewed:
            schedule.choice((one, other)).reinitialize()
        frames = [
            b"h" * schedule.choice((1, 100, 5000)),
            *(
                one.frame(schedule.choice(SIZES), schedule.randrange(1000))
                for _ in range(schedule.choice((1, 2, 5)))
            ),
        ]
        expected = [contents(frame) for frame in frames]
        transfers = [
            asyncio.create_task(one.send(here, frames, other)),  # type: ignore[arg-type]
            asyncio.create_task(other.receive(there)),  # type: ignore[arg-type]
        ]
        if schedule.random() < breaks.fraction:
            await _break_off(here, transfers, schedule, breaks.most_rounds)
            here, there = PolledChannel.pair(schedule)
            continue
        _, received = await asyncio.gather(*transfers)
        assert [contents(frame) for frame in received] == expected
    here.abort()


async def _time_goes_on(processes: list[Process]) -> None:
    """Let quarantines end while others wait for their chunks, until nothing moves any more."""
    seen: object = None
    idle_rounds = 0
    while idle_rounds < HALTED_ROUNDS:
        await asyncio.sleep(0)
        for process in processes:
            process.clock.now += 0.01
            for each in process.stagings:
                each.quarantine.collect()
        now = [_progress_of(process) for process in processes]
        idle_rounds = 0 if now != seen else idle_rounds + 1
        seen = now


def _progress_of(process: Process) -> tuple[int, ...]:
    return (
        process.copies.queued_count,
        process.copies.copied_bytes,
        len(process.copies.events),
        process.totals.chunk_waits,
        len(process.staging.quarantine),
    )


async def _connections(processes: list[Process], schedule: random.Random, breaks: Breaks) -> None:
    async with asyncio.TaskGroup() as group:
        for one in processes:
            for other in processes:
                for _ in range(2 if one is not other else 0):
                    group.create_task(_connection(one, other, schedule, breaks))


async def _all_to_all(processes: list[Process], schedule: random.Random, breaks: Breaks) -> None:
    transfers = asyncio.create_task(_connections(processes, schedule, breaks))
    clock = asyncio.create_task(_time_goes_on(processes))
    await asyncio.wait([transfers, clock], return_when=asyncio.FIRST_COMPLETED)
    halted = not transfers.done()
    clock.cancel()
    transfers.cancel()
    await asyncio.gather(transfers, clock, return_exceptions=True)
    if clock.done() and not clock.cancelled():
        clock.result()
    assert not halted, "nothing moves any more"
    transfers.result()


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.IpcPoolWarning")
@pytest.mark.parametrize("pulling", [0, 0.8])
@pytest.mark.parametrize(
    ("seed", "breaks"),
    [
        *((seed, RARE) for seed in range(8)),
        *((seed, OFTEN) for seed in range(4)),
        *((seed, RENEWED) for seed in range(4)),
        # Halted when senders on a closed connection waited for the chunks that they held.
        (127, OFTEN),
    ],
)
def test_transfers_on_any_schedule_arrive_or_leave_nothing_behind(
    seed: int, breaks: Breaks, pulling: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = random.Random(seed)
    for module in (channel, staging):
        monkeypatch.setattr(module, "time", ScheduledTime(random.Random(seed)))
    monkeypatch.setattr(staging, "_PAUSE_SECONDS", 0)
    processes = [
        Process(
            schedule.choice((24, 32, 64)) * KIB,
            chunk_bytes=schedule.choice((2, 4)) * KIB,
            wait_seconds=1e6,  # what would hang is not let off with an extra chunk
            polls=schedule.choice((0, 1, 5, 40)),
            managed=schedule.random() < 0.8,
            shares=schedule.random() < pulling,
        )
        for _ in range(schedule.choice((2, 3, 4)))
    ]
    asyncio.run(_all_to_all(processes, schedule, breaks))
    for process in processes:
        process.assert_whole()
        assert not any(process.copies.mapped.values())
    assert pulling or not any(process.totals.pulled_bytes for process in processes)
