# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""No byte of a live allocation ever changes, whatever is allocated, freed and evicted around it.

Runs over RMM's own pool, on a simulated device with real host pages behind its addresses: a discard
overwrites them, so a discard of one page too many is seen.
"""

from __future__ import annotations

import ctypes
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import rmm
from hypothesis import given, settings
from hypothesis import strategies as st

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.mr import ManagedAccount, ManagedMemoryResource, UvmResourceAdaptor

MIB = 1 << 20
DEVICE_BYTES = 16 * MIB  # 8 blocks of 2 MiB
POOL_BYTES = 48 * MIB
DISCARDED_BYTE = 0xDB  # what the simulated device leaves in discarded pages
MODES = ("auto", "always", "never")

sizes_bytes = st.one_of(
    st.integers(1, 700),
    st.integers(1, 4 * MIB),
    st.sampled_from([256, 4096, 2 * MIB - 256, 2 * MIB, 2 * MIB + 1, 6 * MIB + 257]),
)
actions = st.one_of(
    st.tuples(st.just("allocate"), sizes_bytes),
    st.tuples(st.sampled_from(["free", "evict", "read", "cpu"]), st.integers(0, 63)),
)


class Program:
    """A program on a device that remembers what it wrote where."""

    def __init__(self, mr: UvmResourceAdaptor, device: SimulatedDevice) -> None:
        self.mr, self.device = mr, device
        self.live: list[tuple[int, int, int]] = []  # address, bytes, the byte that fills them
        self._fills = 0

    def allocate(self, nbytes: int) -> None:
        try:
            address = self.mr.allocate(nbytes)
        except MemoryError:  # the pool is full, or in pieces
            return
        self._fills = self._fills % 199 + 1  # 1 ... 199: neither fresh zeros nor discarded bytes
        ctypes.memset(address, self._fills, nbytes)
        self.device.touch(address, nbytes, write=True)
        self.live.append((address, nbytes, self._fills))

    def apply(self, action: str, number: int) -> None:
        if action == "allocate":
            self.allocate(number)
            return
        if not self.live:
            return
        address, nbytes, _ = self.live[number % len(self.live)]
        if action == "free":
            del self.live[number % len(self.live)]
            self.mr.deallocate(address, nbytes)
        elif action == "evict":  # takes neighbours in the same pages along
            self.device.prefetch(address, nbytes, where="host")
        elif action == "read":
            self.device.touch(address, nbytes)
        elif action == "cpu":
            self.device.cpu_touch(address, nbytes)

    def changed(self) -> list[tuple[int, int]]:
        """Offset and value of the first wrong byte of each live allocation."""
        found = []
        for address, nbytes, fill in self.live:
            view = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
            wrong = np.flatnonzero(view != fill)
            if wrong.size:
                found.append((int(wrong[0]), int(view[wrong[0]])))
        return found

    def free_all(self) -> None:
        for address, nbytes, _ in self.live:
            self.mr.deallocate(address, nbytes)
        self.live.clear()


def make_program(mode: str = "auto", **features: bool) -> Program:
    device = rmm_uvm.simulated_device(DEVICE_BYTES, backing=True, **features)
    upstream = ManagedMemoryResource(device, prefetch=mode, account=ManagedAccount())
    pool = rmm.mr.PoolMemoryResource(upstream, 4 * MIB, POOL_BYTES)
    return Program(UvmResourceAdaptor(pool, prefetch=mode), device)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60)
@given(steps=st.lists(actions, min_size=1, max_size=60))
def test_live_bytes_stay_in_every_mode(mode: str, steps: list[tuple[str, int]]) -> None:
    program = make_program(mode)
    for action, number in steps:
        program.apply(action, number)
        assert program.changed() == []
    program.free_all()
    assert program.mr.get_allocated_bytes() == 0
    assert program.mr.refused_frees == 0


@pytest.mark.parametrize("missing", ["discard", "counters", "concurrent_managed_access"])
@settings(max_examples=30)
@given(steps=st.lists(actions, min_size=1, max_size=40))
def test_live_bytes_stay_without_a_feature(missing: str, steps: list[tuple[str, int]]) -> None:
    program = make_program("auto", **{missing: False})
    for action, number in steps:
        if action == "evict" and missing == "concurrent_managed_access":
            continue  # nothing can be prefetched there
        program.apply(action, number)
        assert program.changed() == []
    program.free_all()


@pytest.mark.parametrize("mode", MODES)
def test_live_bytes_stay_with_many_threads(mode: str) -> None:
    first = make_program(mode)

    def work(seed: int) -> list[tuple[int, int]]:
        choose = random.Random(seed)
        program = Program(first.mr, first.device)
        for _ in range(150):
            action = choose.choice(["allocate", "allocate", "free", "evict", "read", "cpu"])
            number = choose.choice([17, 300, 5000, MIB, 3 * MIB]) if action == "allocate" else 0
            program.apply(action, number or choose.randrange(64))
            if bad := program.changed():
                return bad
        program.free_all()
        return []

    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(work, range(4))) == [[]] * 4
    assert first.mr.get_allocated_bytes() == 0


@pytest.mark.parametrize("offset_blocks", [0, 1, 3])
def test_recycled_memory_between_live_neighbours_is_discarded_up_to_them(
    offset_blocks: int,
) -> None:
    # GIVEN two neighbours 256 bytes long, right before and right after a large allocation,
    # and all of it evicted to the host
    program = make_program("auto")
    program.allocate(offset_blocks * 2 * MIB + 256 * 7)
    program.allocate(256)
    program.allocate(7 * MIB + 256)
    program.allocate(256)
    middle = program.live[2]
    for address, nbytes, _ in program.live:
        program.device.prefetch(address, nbytes, where="host")

    # WHEN the middle is freed and allocated again
    del program.live[2]
    program.mr.deallocate(middle[0], middle[1])
    moved_before = program.device.migrated_bytes()[0]
    discarded_before = program.mr.statistics()["discarded_bytes"]
    program.allocate(middle[1])

    # THEN it is the same memory, its inside came without a copy, and the neighbours are whole
    assert program.live[-1][0] == middle[0]
    block = 2 * MIB
    inside = (middle[0] + middle[1]) // block * block - -(-middle[0] // block) * block
    assert inside >= 2 * block
    assert program.mr.statistics()["discarded_bytes"] - discarded_before == inside
    moved_bytes = program.device.migrated_bytes()[0] - moved_before
    assert moved_bytes <= 2 * 2 * MIB  # the two edge blocks
    assert program.changed() == []
    program.free_all()


def test_discard_of_live_bytes_would_be_seen() -> None:
    # What keeps the tests above honest: the device does destroy what is discarded.
    program = make_program("auto")
    program.allocate(4 * MIB)
    address, nbytes, _ = program.live[0]
    program.device.discard(address, nbytes)
    assert [value for _, value in program.changed()] == [DISCARDED_BYTE]
    program.free_all()
