# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that share a simulated node, each step by step, so that others can go on between.

Their shapes are those of the programs of HUVM's evaluation, not their data: what is gone over, in
what order, and what is written. Sizes are shares of a GPU's memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.mr import SimulatedCudaMemoryResource
from rmm_uvm.residency import Budget
from rmm_uvm.support.units import parse_bytes

MIB = 1 << 20
PIECE_BYTES = 8 * MIB  # of data; a kernel uses one, or several
MARGIN_BYTES = 4 * MIB  # as of `residency/policy_card.py`: what is in flight beside a budget
# Chosen, not measured: how fast kernels go over data that are there.
GRAPH_BYTES_PER_SECOND = 400e9
TRAINING_BYTES_PER_SECOND = 100e9


def bytes_per_second(kind: str) -> float:
    """Return how fast a program's kernels go over data that are there."""
    return TRAINING_BYTES_PER_SECOND if kind == "training" else GRAPH_BYTES_PER_SECOND


@dataclass
class Harvester:
    """A program over its GPU's memory, under a budget that is all of it.

    With `evicts_ahead` what the budget's thread would do is done beside each kernel, which uses
    `kernel_pieces` pieces.
    """

    device: SimulatedDevice
    kind: str
    data_bytes: int
    budget: dict[str, Any]
    evicts_ahead: bool = True
    kernel_pieces: int = 1
    iteration_ns: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        total_bytes = self.device.memory()[1]
        self.mr = rmm_uvm.managed_pool(
            driver=self.device,
            device_budget=Budget(total_bytes - MARGIN_BYTES, background=False, **self.budget),
            initial_pool_size=self.data_bytes + PIECE_BYTES,
            maximum_pool_size=self.data_bytes + PIECE_BYTES,
            prefetch="never",
        )
        self.prefetcher = self.mr.managed_mr.residency
        self.pieces = [self.mr.allocate(PIECE_BYTES) for _ in range(self.data_bytes // PIECE_BYTES)]

    def begin(self) -> Iterator[None]:
        """Write all data, a step of one kernel at a time."""
        for address in self.pieces:
            self.use([(address, True)])
            yield

    @property
    def now_ns(self) -> float:
        return float(self.device.statistics()["modelled_ns"])

    def use(self, uses: Sequence[tuple[int, bool]]) -> None:
        """Announce what a kernel uses, and let it go over that."""
        self.prefetcher.touch_all([(address, PIECE_BYTES, address) for address, _ in uses])
        if self.evicts_ahead:
            self.device.migrate_beside(beside=True)
            self.prefetcher.run_pending()
            self.device.migrate_beside(beside=False)
        for address, write in uses:
            self.device.touch(address, PIECE_BYTES, write=write)
        self.device.compute(len(uses) * PIECE_BYTES / bytes_per_second(self.kind))

    def steps(self, iterations: int) -> Iterator[None]:
        """Go on, a step of one kernel at a time."""
        for number in range(iterations):
            begin_ns = self.now_ns
            order = ORDERS[self.kind](self.pieces, number)
            while uses := list(itertools.islice(order, self.kernel_pieces)):
                self.use(uses)
                yield
            self.iteration_ns.append(self.now_ns - begin_ns)

    def seconds(self, warm_up: int) -> float:
        """Mean time of an iteration after those of the warm-up."""
        kept = self.iteration_ns[warm_up:]
        return sum(kept) / len(kept) / 1e9


Uses = Iterator[tuple[int, bool]]


def page_rank(pieces: list[int], _number: int) -> Uses:
    """Edges once in their order; ranks, a tenth of all, are written after each tenth of them."""
    ranks, edges = pieces[: len(pieces) // 10], pieces[len(pieces) // 10 :]
    for number, address in enumerate(edges):
        yield address, False
        if number % 9 == 8:
            yield ranks[number // 9 % len(ranks)], True


def components(pieces: list[int], _number: int) -> Uses:
    """As ranks, and back again: labels go both ways along the edges."""
    yield from page_rank(pieces, 0)
    yield from ((address, False) for address in reversed(pieces[len(pieces) // 10 :]))


def breadth_first(pieces: list[int], number: int) -> Uses:
    """Eight levels, each with the edges of its frontier: few, most, few; distances are written."""
    random = Random(number)
    distances, edges = pieces[: len(pieces) // 10], pieces[len(pieces) // 10 :]
    for share in (0.02, 0.1, 0.4, 0.8, 0.4, 0.1, 0.05, 0.02):
        frontier = random.sample(edges, max(1, int(share * len(edges))))
        for address in sorted(frontier):
            yield address, False
        yield from ((address, True) for address in distances)


def louvain(pieces: list[int], _number: int) -> Uses:
    """Sweeps over a graph that becomes coarser."""
    for share in (1.0, 1.0, 0.5, 0.25):
        yield from page_rank(pieces[: max(10, int(share * len(pieces)))], 0)


def training(pieces: list[int], _number: int) -> Uses:
    """Weights, a fifth, forward and back; activations written forward and read back."""
    weights, activations = pieces[: len(pieces) // 5], pieces[len(pieces) // 5 :]
    layers = [
        (weight, activations[number * 4 : number * 4 + 4]) for number, weight in enumerate(weights)
    ]
    for weight, kept in layers:
        yield weight, False
        yield from ((address, True) for address in kept)
    for weight, kept in reversed(layers):
        yield from ((address, False) for address in reversed(kept))
        yield weight, True


ORDERS = {
    "page rank": page_rank,
    "components": components,
    "breadth first": breadth_first,
    "louvain": louvain,
    "training": training,
}


class Owner:
    """A program that fits, in cudaMalloc memory, and reads its input from the host."""

    def __init__(self, device: SimulatedDevice, spare: float, kind: str = "training") -> None:
        self.device = device
        total_bytes = device.memory()[1]
        self._cuda = SimulatedCudaMemoryResource(device)
        self._input = rmm_uvm.managed_pool(  # which gives all back when it goes
            driver=device,
            initial_pool_size=PIECE_BYTES,
            maximum_pool_size=PIECE_BYTES,
            prefetch="never",
            device_budget=None,
        )
        self.batch = self._input.allocate(PIECE_BYTES)
        held_bytes = int(total_bytes * (1 - spare)) - PIECE_BYTES
        self._held = self._cuda.allocate(held_bytes)
        self.batch_seconds = held_bytes / bytes_per_second(kind)
        self.steps_done = 0
        self.begun_ns = 0.0

    def begin(self) -> None:
        self.step()  # takes memory that it then has
        self.begun_ns, self.steps_done = self.now_ns, 0

    @property
    def now_ns(self) -> float:
        return float(self.device.statistics()["modelled_ns"])

    def step(self) -> None:
        self.device.cpu_touch(self.batch, PIECE_BYTES, write=True)
        self.device.prefetch(self.batch, PIECE_BYTES)
        self.device.compute(self.batch_seconds)
        self.steps_done += 1

    def step_seconds(self) -> float:
        return (self.now_ns - self.begun_ns) / self.steps_done / 1e9


def memory_bytes(text: str) -> int:
    """Return a GPU's memory, in whole pieces."""
    return parse_bytes(text, name="memory") // PIECE_BYTES * PIECE_BYTES
