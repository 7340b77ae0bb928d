# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A program whose memory fits hears nothing: 1,000 random ones, and the mortgage pipeline."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.mr import SimulatedCudaMemoryResource

from .watched_device import WatchedDevice, prefetches_of

MIB = 1 << 20
BLOCK_BYTES = 2 * MIB
MOVING = {"eviction", "amplification", "device_taken", "prefetch"}


class RandomProgram:
    """Allocates, frees, and touches from both sides, at random.

    Parameters
    ----------
    seed : int
        Of everything.
    factor : float
        The pool's maximum over what neighbours leave of the device; up to 1.0 everything fits.
    """

    def __init__(self, seed: int, factor: float) -> None:
        self._random = random.Random(seed)
        blocks = self._random.choice((16, 24, 32))
        neighbour_blocks = self._random.choice((0, 0, 2, blocks // 2))
        room_blocks = max(1, int((blocks - neighbour_blocks) * factor))
        self.device = rmm_uvm.simulated_device(blocks * BLOCK_BYTES)
        self._neighbour = SimulatedCudaMemoryResource(self.device)
        self._neighbour_blocks = neighbour_blocks
        self._neighbours: list[int] = []
        self._live: list[tuple[int, int]] = []
        mode = self._random.choice(("auto", "always", "never"))
        self.mr: Any = rmm_uvm.managed_pool(
            driver=self.device,
            initial_pool_size=self._random.randint(1, room_blocks) * BLOCK_BYTES,
            maximum_pool_size=room_blocks * BLOCK_BYTES,
            prefetch=mode,
            device_budget=None,  # the kernel driver evicts
        )
        self.watched = WatchedDevice(
            self.device, self.mr.get_allocated_bytes, prefetches_of(self.mr), prefetch=mode
        )

    def run(self, operations: int) -> None:
        """Do so many operations, with a sample after most of them."""
        choices = (self._allocate, self._allocate, self._free, self._touch, self._touch)
        choices += (self._cpu_touch, self._send_home, self._change_neighbour)
        for _ in range(operations):
            self._random.choice(choices)()
            if self._random.random() < 0.7:
                self.watched.tick(self._random.choice((0.01, 0.1, 1.0)))
        self.watched.tick()

    def _allocate(self) -> None:
        nbytes = int(2 ** self._random.uniform(10, 24))
        try:
            self._live.append((self.mr.allocate(nbytes), nbytes))
        except MemoryError:
            return  # the pool is full: so be it

    def _free(self) -> None:
        if self._live:
            self.mr.deallocate(*self._live.pop(self._random.randrange(len(self._live))))

    def _touch(self) -> None:
        for address, nbytes in self._some():
            self.device.touch(address, nbytes, write=self._random.random() < 0.5)

    def _cpu_touch(self) -> None:
        for address, nbytes in self._some():
            self.device.cpu_touch(address, nbytes, write=self._random.random() < 0.5)

    def _send_home(self) -> None:
        for address, nbytes in self._some()[:1]:
            before = self.device.migrated_bytes()[1]
            self.device.prefetch(address, nbytes, "host")
            self.watched.own_to_host_bytes += self.device.migrated_bytes()[1] - before

    def _change_neighbour(self) -> None:
        if len(self._neighbours) < self._neighbour_blocks:
            self._neighbours.append(self._neighbour.allocate(BLOCK_BYTES))
        elif self._neighbours:
            self._neighbour.deallocate(self._neighbours.pop(), BLOCK_BYTES)

    def _some(self) -> list[tuple[int, int]]:
        return self._random.sample(self._live, self._random.randint(0, len(self._live)))


@pytest.mark.parametrize(
    "batch", [0, 1, *(pytest.param(number, marks=pytest.mark.nightly) for number in range(2, 10))]
)
def test_random_programs_that_fit_hear_nothing(batch: int) -> None:
    for seed in range(batch * 100, batch * 100 + 100):
        program = RandomProgram(seed, factor=1.0)
        program.run(60)
        assert program.watched.findings() == (), f"seed {seed}"
        assert program.device.statistics()["evicted_bytes"] == 0


def test_random_programs_that_do_not_fit_hear_only_what_is_true() -> None:
    heard: set[str] = set()
    for seed in range(200):
        program = RandomProgram(seed, factor=2.0)
        program.run(60)
        kinds = set(program.watched.kinds())
        heard |= kinds
        if kinds & MOVING:
            assert program.device.statistics()["evicted_bytes"] > 0, f"seed {seed}"
        if "footprint" in kinds:
            assert program.mr.peak_bytes > program.watched.total_bytes
    assert heard >= {"footprint", "eviction"}


@pytest.fixture(scope="module")
def mortgage_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data set whose ETL needs about 17 MB unsplit, and a quarter of that in 4 parts."""
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from rmm_uvm_mortgage.generate import GeneratorConfig, generate

    directory = tmp_path_factory.mktemp("mortgage")
    generate(directory, GeneratorConfig(loans_per_quarter=400), workers=1)
    return directory


def mortgage_kinds(data: Path, device_bytes: int, parts: int, **options: Any) -> list[str]:
    """Run the pipeline, watched at every allocation and access, and return what was found."""
    from rmm_uvm_mortgage.memory import find_memory, simulated_chain
    from rmm_uvm_mortgage.pipeline import PipelineConfig, run_pipeline
    from rmm_uvm_mortgage.simulated_engine import SimulatedEngine

    device = rmm_uvm.simulated_device(device_bytes)
    chain = simulated_chain(find_memory("managed"), device)
    watched = WatchedDevice(
        device, chain.resource.get_allocated_bytes, prefetches_of(chain.resource), prefetch="auto"
    )
    engine = SimulatedEngine(chain, lambda: watched.tick(0.01))
    engine.observers.append(engine.xgboost)
    result = run_pipeline(PipelineConfig(data, parts=parts, **options), engine)
    assert result.out_of_memory is None
    return watched.kinds()


def test_mortgage_pipeline_that_fits_hears_nothing(mortgage_data: Path) -> None:
    assert mortgage_kinds(mortgage_data, 128 * MIB, parts=4, rounds=1) == []


def test_mortgage_etl_in_parts_that_fit_hears_nothing(mortgage_data: Path) -> None:
    assert mortgage_kinds(mortgage_data, 12 * MIB, parts=4, train_parts=0) == []


def test_mortgage_etl_unsplit_on_a_small_device_hears_of_it(mortgage_data: Path) -> None:
    kinds = mortgage_kinds(mortgage_data, 8 * MIB, parts=1, train_parts=0)
    assert kinds[0] == "footprint"
    assert set(kinds) & MOVING
