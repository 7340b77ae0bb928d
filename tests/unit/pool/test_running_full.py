# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Pools that fill: how much of the maximum is live at the first MemoryError.

Sizes are random, grow, and are freed in random order, so that the free pieces of a pool become too
small for the next request. Streams are told apart only where there is a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import simulated_device
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.pool import build
from rmm_uvm.pool.build import managed_pool
from rmm_uvm.residency import Budget
from tests.stateful.choices import stream_of

MIB = 1 << 20
BLOCK = 2 * MIB
MAXIMUM = 1200 * MIB
HANDLES = (0, 7, 9, 11, 13, 15, 17, 19)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    level = rmm.get_logging_level()
    rmm.set_logging_level(rmm.level_enum.off)  # RMM logs what it refuses
    yield
    rmm.set_logging_level(level)


class Program:
    """Allocates and frees at random; what is live grows until the pool refuses."""

    def __init__(self, mr: Any, seed: int, streams: int = 1) -> None:
        self.mr = mr
        self.random = random.Random(seed)
        self.streams = [stream_of(handle) for handle in HANDLES[:streams]]
        self.live: list[rmm.DeviceBuffer] = []
        self.live_bytes = 0
        self.asked_bytes = 0
        self.error = ""

    def allocate(self) -> None:
        stream = self.random.choice(self.streams)
        self.live.append(rmm.DeviceBuffer(size=self.asked_bytes, stream=stream, mr=self.mr))
        self.live_bytes += self.asked_bytes

    def free_one(self) -> None:
        index = self.random.randrange(len(self.live))
        self.live[index], self.live[-1] = self.live[-1], self.live[index]
        self.live_bytes -= self.live.pop().size

    def run(self, turns: int = 6000) -> Program:
        """Run until the first MemoryError."""
        for turn in range(turns):
            target = MAXIMUM * (0.7 + turn / 12_000)
            self.asked_bytes = self.random.randint(1, 8 + turn // 60) * MIB
            while self.live and self.live_bytes + self.asked_bytes > target:
                self.free_one()
            try:
                self.allocate()
            except MemoryError as error:
                self.error = str(error)
                return self
        raise AssertionError("the pool did not refuse")

    def fill(self, most: int = MAXIMUM // 100) -> Program:
        """Allocate until the first MemoryError."""
        try:
            while True:
                self.asked_bytes = self.random.randint(1, most)
                self.allocate()
        except MemoryError as error:
            self.error = str(error)
        return self

    def populated_bytes(self) -> int:
        """Bytes of all blocks with a live byte."""
        found: set[int] = set()
        for buffer in self.live:
            found.update(range(buffer.ptr // BLOCK, (buffer.ptr + buffer.size - 1) // BLOCK + 1))
        return len(found) * BLOCK


@pytest.fixture
def device() -> Any:
    """Hold the maximum, and the tenth more that its blocks may take."""
    return simulated_device(MAXIMUM // 10 * 11)


def limited(device: Any, budget: str | None = None, maximum: int = MAXIMUM) -> UvmResourceAdaptor:
    return managed_pool(
        driver=device,
        initial_pool_size=min(128 * MIB, maximum // 4),
        maximum_pool_size=maximum,
        device_budget=budget,
    )


@pytest.mark.parametrize("streams", [1, 2, 8])
@pytest.mark.parametrize("budget", [None, "128MiB", "auto"])
@pytest.mark.parametrize(
    ("least", "most"), [(MIB, 68 * MIB), (300 << 10, 20 * MIB)], ids=["large", "small"]
)
def test_pool_serves_all_that_fits_and_is_full_at_its_first_refusal(
    least: int, most: int, budget: str | None, streams: int
) -> None:
    maximum = 512 * MIB
    mr = limited(simulated_device("2GiB"), budget, maximum)
    program = Program(mr, streams, streams)
    for _ in range(600):  # a MemoryError here would be one too early
        program.asked_bytes = program.random.randint(least, most)
        while program.live_bytes + program.asked_bytes > 0.98 * maximum:
            program.free_one()
        program.allocate()
    assert program.fill(maximum // 128).live_bytes >= 0.98 * maximum
    assert program.populated_bytes() <= 1.1 * program.live_bytes
    assert mr.get_allocated_bytes() == program.live_bytes


def test_default_maximum_counts_addresses_where_the_host_is_the_limit(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "host_memory", lambda **_: HostMemory(2 * MAXIMUM, 2 * MAXIMUM))
    mr = managed_pool(driver=device, initial_pool_size="128MiB", device_budget=None)
    program = Program(mr, 1).fill()
    assert "may be live" not in program.error
    assert mr.managed_mr.slab_bytes <= 1.8 * MAXIMUM


def test_pool_by_addresses_refuses_much_earlier(device: Any) -> None:
    managed = ManagedMemoryResource(device)
    pool = rmm.mr.PoolMemoryResource(managed, 128 * MIB, MAXIMUM)
    program = Program(UvmResourceAdaptor(pool), 1).run()
    assert program.live_bytes + program.asked_bytes < 0.85 * MAXIMUM


@pytest.mark.parametrize("budget", [None, "auto"])
def test_dead_blocks_past_the_maximum_are_discarded_so_that_nothing_leaves(
    device: Any, budget: str | None
) -> None:
    mr = limited(device, budget)
    Program(mr, 1).run()
    assert mr.managed_mr.slab_bytes > device.info.total_bytes  # addresses for more than there is
    assert device.statistics()["device_to_host_bytes"] == 0
    assert device.command_totals()["discarded_bytes"] > MAXIMUM // 4


def test_pool_without_a_maximum_has_data_leave_the_same_device(device: Any) -> None:
    pool = rmm.mr.PoolMemoryResource(ManagedMemoryResource(device), 128 * MIB)
    mr = UvmResourceAdaptor(pool)
    program = Program(mr, 1)
    with pytest.raises(AssertionError, match="did not refuse"):
        program.run(turns=3000)
    assert device.statistics()["device_to_host_bytes"] > 0


@pytest.mark.parametrize("why", ["driver", "budget", "budget without fetching"])
def test_pool_goes_on_within_its_addresses_where_nothing_can_be_dropped(why: str) -> None:
    budgets = {
        "budget": Budget(1 << 30, discard_dead=False, background=False),
        "budget without fetching": Budget(1 << 30, fetch=False, background=False),
    }
    device = simulated_device("2GiB", discard=why != "driver")
    mr = managed_pool(
        driver=device,
        initial_pool_size="64MiB",
        maximum_pool_size="64MiB",
        device_budget=budgets.get(why),
    )
    for _ in range(3):
        kept = [rmm.DeviceBuffer(size=6 * MIB, mr=mr) for _ in range(10)]
        with pytest.raises(MemoryError):
            rmm.DeviceBuffer(size=6 * MIB, mr=mr)
        kept.clear()
    assert rmm.DeviceBuffer(size=60 * MIB, mr=mr).size == 60 * MIB


def test_pool_without_a_budget_on_a_device_of_its_size_keeps_its_blocks_there() -> None:
    """The kernel driver evicts nothing of what is to fit, though more addresses were used."""
    device = simulated_device("512MiB")
    mr = limited(device, None, 512 * MIB)
    program = Program(mr, 1)
    for _ in range(300):
        program.asked_bytes = program.random.randint(MIB, 68 * MIB)
        while program.live_bytes + program.asked_bytes > 0.9 * 512 * MIB:
            program.free_one()
        with contextlib.suppress(MemoryError):  # in 1 of 300: its blocks would be too many
            program.allocate()
            device.touch(program.live[-1].ptr, program.asked_bytes, write=True)
    assert mr.managed_mr.slab_bytes > 512 * MIB
    assert device.statistics()["evicted_bytes"] == 0


def test_refused_request_takes_nothing_of_the_pool_for_good() -> None:
    """Also where a budget that drops nothing takes the place of one that does."""
    device = simulated_device("2GiB")
    mr = managed_pool(
        driver=device,
        initial_pool_size="64MiB",
        maximum_pool_size="64MiB",
        device_budget=Budget(1 << 30, background=False),
    )
    mr.set_budget(Budget(1 << 30, discard_dead=False, background=False))
    holes = [rmm.DeviceBuffer(size=4 * MIB, mr=mr) for _ in range(16)]
    del holes[::2]
    refused = 0
    for _ in range(4):  # no piece is that large, and dead blocks count for what they are
        try:
            rmm.DeviceBuffer(size=8 * MIB, mr=mr)
        except MemoryError:
            refused += 1
    assert refused > 0
    holes.clear()
    assert rmm.DeviceBuffer(size=60 * MIB, mr=mr).size == 60 * MIB


def test_refusal_names_live_free_and_the_largest_piece(device: Any) -> None:
    mr = managed_pool(
        driver=device, initial_pool_size="128MiB", maximum_pool_size="128MiB", device_budget=None
    )
    kept = [rmm.DeviceBuffer(size=8 * MIB, mr=mr) for _ in range(16)]
    del kept[3], kept[7:9]
    with pytest.raises(MemoryError) as refused:
        rmm.DeviceBuffer(size=25 * MIB, mr=mr)
    words = str(refused.value)
    assert "25.0 MiB asked, 104.0 MiB live in 128.0 MiB of managed memory" in words
    assert "24.0 MiB free there, at most 16.0 MiB in one piece" in words
    assert "free some, or raise the limit" in words
    assert "Maximum pool size exceeded: 128.0 MiB may be live" in words
    # What fits by its bytes is found room for, although no piece is that large.
    assert rmm.DeviceBuffer(size=24 * MIB, mr=mr).size == 24 * MIB
    assert mr.managed_mr.slab_bytes == (128 + 24) * MIB


def test_refusal_without_a_limit_of_ours_names_the_same(device: Any) -> None:
    pool = rmm.mr.PoolMemoryResource(ManagedMemoryResource(device), 16 * MIB, 16 * MIB)
    mr = UvmResourceAdaptor(pool)
    kept = [mr.allocate(4 * MIB) for _ in range(4)]
    for each in kept[::2]:
        mr.deallocate(each, 4 * MIB)
    with pytest.raises(MemoryError, match=r"8\.0 MiB free there, at most 4\.0 MiB in one piece"):
        mr.allocate(8 * MIB)


def test_refused_allocation_leaves_the_pool_as_it_was(device: Any) -> None:
    mr = limited(device, maximum=64 * MIB)
    first = rmm.DeviceBuffer(size=60 * MIB, mr=mr)
    for _ in range(3):
        with pytest.raises(MemoryError):
            rmm.DeviceBuffer(size=5 * MIB, mr=mr)
    assert mr.get_allocated_bytes() == mr.peak_bytes == 60 * MIB
    assert rmm.DeviceBuffer(size=4 * MIB, mr=mr).size + first.size == 64 * MIB


def test_addresses_of_a_pool_count_against_the_cap(
    device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "1400MiB")
    mr = limited(device)
    program = Program(mr, 1).run()
    assert mr.managed_mr.slab_bytes <= 1400 * MIB
    assert "of managed memory" in program.error


@pytest.mark.parametrize("budget", [None, "24MiB", "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_no_live_byte_is_lost_to_discards(budget: str | None, seed: int) -> None:
    device = simulated_device("96MiB", backing=True)
    mr = limited(device, budget, maximum=64 * MIB)
    choose = random.Random(seed)
    live: dict[int, tuple[int, int]] = {}

    def written(address: int, nbytes: int, value: int) -> bool:
        device.touch(address, nbytes)
        memory = (ctypes.c_uint8 * nbytes).from_address(address)
        return bytes(memory) == bytes([value]) * nbytes

    refused = 0
    for turn in range(400):
        nbytes = choose.choice([choose.randint(1, 300_000), choose.randint(1, 9 * MIB)])
        while live and (choose.random() < 0.3 or sum(n for n, _ in live.values()) > 60 * MIB):
            address = choose.choice(list(live))
            size, value = live.pop(address)
            assert written(address, size, value)
            mr.deallocate(address, size)
        try:
            address = mr.allocate(nbytes)
        except MemoryError:
            refused += 1
            continue
        device.touch(address, nbytes, write=True)
        ctypes.memset(address, turn % 251, nbytes)
        live[address] = nbytes, turn % 251
    for address, (size, value) in live.items():
        assert written(address, size, value)
    assert refused > 0
    assert mr.managed_mr.slab_bytes > 64 * MIB
    assert device.command_totals()["discarded_bytes"] > 0


def test_installed_pool_keeps_to_the_maximum_and_not_to_its_addresses(device: Any) -> None:
    handle = rmm_uvm.reinitialize(driver=device, libraries=(), maximum_pool_size=MAXIMUM)
    try:
        found = re.search(r"maximum size +([0-9.]+ GiB)", repr(handle))
        assert found is not None
        assert found[1] == "1.17 GiB"
        with pytest.raises(MemoryError, match=r"1\.17 GiB may be live"):
            handle.managed_mr.allocate(MAXIMUM + 1)
    finally:
        rmm_uvm.restore()
