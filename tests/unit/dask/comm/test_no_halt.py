# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""However many workers send to one another, with however few chunks, all transfers end.

The argument is in `rmm_uvm.dask.comm.receive`. Here the model shows that each of its rules is
needed, and the code itself runs through with the smallest budgets there can be.
"""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .fakes import KIB, InProcessChannel, Process, contents
from .halting_model import Model, Rules

CHUNK = 256
SEEDS = 60


def _all_to_all(workers: int, chunks: int) -> list[tuple[int, int, int]]:
    return [(a, b, chunks) for a, b in itertools.permutations(range(workers), 2)]


def _halts(rules: Rules, pulled: float = 0) -> int:
    """Return how many of the runs came to a halt."""
    halts = 0
    for seed in range(SEEDS):
        budget = 1 + seed % 2
        workers = 3 + seed % 3
        halts += not Model(_all_to_all(workers, 6), budget, rules, seed, pulled).runs_through()
    return halts


@pytest.mark.parametrize("pulled", [0, 0.5, 1])
def test_model_with_all_rules_never_halts(pulled: float) -> None:
    assert _halts(Rules(), pulled) == 0


def test_model_without_ready_messages_halts() -> None:
    assert _halts(Rules(ready_messages=False)) > 0


def test_model_with_one_budget_for_both_directions_halts() -> None:
    assert _halts(Rules(separate_budgets=False)) > 0


def test_model_that_sends_from_receive_chunks_what_is_not_pulled_halts() -> None:
    assert _halts(Rules(spares_are_pulled=False)) > 0


@st.composite
def topologies(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    workers = draw(st.integers(2, 6))
    pairs = list(itertools.permutations(range(workers), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=20))
    return [(a, b, draw(st.integers(1, 8))) for a, b in chosen]


@given(topologies(), st.integers(1, 3), st.integers(0, 2**32), st.sampled_from([0, 0.5, 1]))
def test_model_of_any_topology_with_all_rules_never_halts(
    transfers: list[tuple[int, int, int]], budget: int, seed: int, pulled: float
) -> None:
    assert Model(transfers, budget, Rules(), seed, pulled).runs_through()


class Cluster:
    """Processes with the smallest budgets there are: two chunks each way, of 256 bytes.

    The first so many of them share their pools.
    """

    def __init__(self, workers: int, polls: int = 0, sharing: int = 0) -> None:
        self.processes = [
            Process(
                5 * CHUNK,
                chunk_bytes=CHUNK,
                # Waiting has no end: what would hang is not let off with an extra chunk.
                wait_seconds=1e6,
                polls=polls,
                memory="64MiB",
                shares=number < sharing,
            )
            for number in range(workers)
        ]

    def run(self, transfers: list[tuple[int, int, int]]) -> None:
        async def transfer(number: int, one: Process, other: Process, chunks: int) -> None:
            here, there = InProcessChannel.pair()
            frames = [b"head", one.frame(chunks * CHUNK - 7, number), one.frame(90, number)]
            expected = [contents(frame) for frame in frames]
            _, received = await asyncio.gather(one.send(here, frames, other), other.receive(there))
            assert received is not None
            assert [contents(frame) for frame in received] == expected

        async def all_at_once() -> None:
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                for number, (a, b, chunks) in enumerate(transfers):
                    group.create_task(
                        transfer(number, self.processes[a], self.processes[b], chunks)
                    )

        asyncio.run(all_at_once())
        for process in self.processes:
            process.assert_whole()
            assert process.totals.sent_overflow_bytes == 0
            assert process.totals.received_overflow_bytes == 0


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.IpcPoolWarning")
@pytest.mark.parametrize(
    ("workers", "sharing"), [(2, 0), (3, 0), (5, 0), (2, 2), (3, 1), (3, 3), (5, 2), (5, 5)]
)
def test_all_to_all_with_the_smallest_budgets_runs_through(workers: int, sharing: int) -> None:
    cluster = Cluster(workers, 1, sharing)
    cluster.run(_all_to_all(workers, 24))
    # Two workers send and receive one message each: those wait for themselves alone. So do two
    # messages of a worker that share the chunks of both directions.
    alone = 3 if sharing == workers else 2
    waits = sum(process.totals.chunk_waits for process in cluster.processes)
    assert (waits > 0) == (workers > alone)
    for number, process in enumerate(cluster.processes):
        assert (process.totals.pulled_bytes > 0) == (sharing > 0), number


@pytest.mark.filterwarnings("ignore::rmm_uvm.errors.IpcPoolWarning")
@settings(max_examples=25)
@given(topologies(), st.integers(0, 6))
def test_any_topology_with_the_smallest_budgets_runs_through(
    transfers: list[tuple[int, int, int]], sharing: int
) -> None:
    Cluster(6, sharing=sharing).run(transfers)


@pytest.mark.parametrize("sharing", [0, 3])
def test_all_to_all_while_one_peer_does_not_read_runs_through_for_the_others(sharing: int) -> None:
    cluster = Cluster(3, sharing=sharing)
    stuck, *others = cluster.processes

    async def run() -> None:
        here, there = InProcessChannel.pair()
        # It is sent to, and never reads: what waits for it holds no receive chunk of the others.
        unread = asyncio.create_task(others[0].send(here, [others[0].frame(CHUNK)], stuck))
        for _ in range(3):
            await asyncio.sleep(0)
        forth, back = InProcessChannel.pair()
        frame = others[0].frame(8 * KIB, 1)
        async with asyncio.timeout(60):
            _, received = await asyncio.gather(
                others[0].send(forth, [frame], others[1]), others[1].receive(back)
            )
        assert received is not None
        assert contents(received[0]) == contents(frame)
        assert not unread.done()
        there.abort()
        await asyncio.gather(unread, return_exceptions=True)

    asyncio.run(run())
    for process in cluster.processes:
        process.assert_whole()
