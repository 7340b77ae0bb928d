# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Random programs on a device with memory behind it: no byte is lost, and the budget holds.

A program's kernels are played: what they use is announced, then touched on the device, then read or
written there. A page that was dropped reads as other bytes.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmm_uvm
from rmm_uvm.residency import POLICIES, Budget

MIB = 1 << 20
PAGE = 4096
SLAB = 128 * MIB
MOST = 4 * MIB  # of an allocation: it fits the smallest budget beside what is pinned

sizes = st.one_of(
    st.integers(1, MOST), st.sampled_from([256, PAGE, 2 * MIB - 256, 2 * MIB, 3 * MIB, MOST])
)
steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("allocate", "allocate", "write", "read", "read"),
                *("evict", "prefetch", "advise", "free", "work"),
            ]
        ),
        st.integers(0, 1000),
        sizes,
    ),
    min_size=5,
    max_size=60,
)


@dataclass
class Data:
    """A live allocation, and the byte that all of it has."""

    address: int
    nbytes: int
    value: int

    def view(self) -> Any:
        memory = (ctypes.c_uint8 * self.nbytes).from_address(self.address)
        return np.frombuffer(memory, dtype=np.uint8)

    def check(self) -> None:
        pages = self.view()
        assert (pages[::PAGE] == self.value).all()  # contents come and go by the page
        assert pages[-1] == self.value


class Program:
    """Runs steps, and looks after each."""

    def __init__(self, budget: Budget, neighbors: int = 0) -> None:
        self.device = rmm_uvm.simulated_device("256MiB", backing=True, neighbors=neighbors)
        self.mr = rmm_uvm.managed_pool(
            driver=self.device,
            device_budget=budget,
            initial_pool_size=SLAB,
            maximum_pool_size=SLAB,
        )
        self.slab = self.mr.allocate(256)  # a pool begins at the front
        self.mr.deallocate(self.slab, 256)
        assert not self.mr.managed_mr.residency.holds(self.slab - 1)
        self.budget = budget
        self.live: list[Data] = []
        self.written = 0

    def run(self, program: list[tuple[str, int, int]]) -> None:
        for step, which, nbytes in program:
            self.step(step, which, nbytes)
            if not self.budget.background:  # else the thread is at work beside us
                self.check_budget()
        for data in self.live:
            self.use(data)
            data.check()

    def step(self, step: str, which: int, nbytes: int) -> None:
        if step == "allocate" and len(self.live) < 16:
            self.live.append(Data(self.mr.allocate(nbytes), nbytes, 0))
            self.write(self.live[-1])
        elif step == "work":
            self.mr.managed_mr.residency.run_pending()
        elif self.live:
            data = self.live[which % len(self.live)]
            thing = (data.address, data.nbytes)
            if step == "write":
                self.write(data)
            elif step == "read":
                self.use(data)
                data.check()
            elif step == "evict":
                with rmm_uvm.pin((data.address, min(data.nbytes, PAGE)), mr=self.mr):
                    rmm_uvm.evict(thing, mr=self.mr)
            elif step == "prefetch":
                rmm_uvm.prefetch(thing, mr=self.mr)
            elif step == "advise":
                read_mostly = (None, True, False)[which // 16 % 3]
                preferred = ("none", "device", "host")[which // 48 % 3]
                rmm_uvm.advise(thing, read_mostly=read_mostly, preferred=preferred, mr=self.mr)
            elif step == "free":
                self.live.remove(data)
                self.mr.deallocate(*thing)

    def write(self, data: Data) -> None:
        self.use(data, write=True)
        self.written += 1
        data.value = self.written % 255 + 1  # 0 is what fresh pages have
        data.view()[:] = data.value

    def use(self, data: Data, *, write: bool = False) -> None:
        rmm_uvm.touch((data.address, data.nbytes), mr=self.mr)
        self.device.touch(data.address, data.nbytes, write)

    def check_budget(self) -> None:
        # Not what the device counts: like the kernel driver it keeps the memory of a block that
        # left, unused, until another block needs it.
        resident_bytes = self.device.resident_bytes(self.slab, SLAB)
        found = rmm_uvm.residency_statistics(self.mr)
        assert resident_bytes <= self.budget.budget_bytes
        assert found.resident_bytes <= self.budget.budget_bytes
        assert found.over_budget == found.too_large == found.failed_calls == 0


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=30)
@given(program=steps, budget_bytes=st.sampled_from([12 * MIB, 16 * MIB, 22 * MIB + 4096]))
def test_random_program_keeps_its_data_and_its_budget(
    policy: str, program: list[tuple[str, int, int]], budget_bytes: int
) -> None:
    Program(Budget(budget_bytes, policy, background=False)).run(program)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=15)
@given(program=steps)
def test_random_program_beside_the_migration_thread_keeps_its_data(
    policy: str, program: list[tuple[str, int, int]]
) -> None:
    Program(Budget(12 * MIB, policy)).run(program)


@settings(max_examples=30)
@given(program=steps, room_bytes=st.sampled_from([0, 4 * MIB, 128 * MIB]))
def test_random_program_beside_a_neighbour_with_some_room_keeps_its_data(
    program: list[tuple[str, int, int]], room_bytes: int
) -> None:
    played = Program(Budget(12 * MIB, neighbors=[1], background=False), neighbors=1)
    played.device.occupy_neighbor(1, (256 - 16) * MIB - room_bytes)  # 1/16 stays free
    played.run(program)
    found = rmm_uvm.residency_statistics(played.mr)
    assert found.neighbor_bytes <= found.evicted_bytes
    assert room_bytes or not found.neighbor_bytes


class ProgramBesideOwners(Program):
    """Owners of its neighbours take and give memory while it works."""

    def step(self, step: str, which: int, nbytes: int) -> None:
        super().step(step, which, nbytes)
        if step == "work":
            taken = (0, 128, 240, 250, 256)[which % 5]
            self.device.occupy_neighbor(1 + which // 5 % 2, taken * MIB)


BESIDE = {"in_place": True, "copy_beside": True, "multipath": True}


@pytest.mark.parametrize("background", [False, True])
@settings(max_examples=30)
@given(program=steps)
def test_random_program_beside_owners_that_take_their_memory_back_keeps_its_data(
    background: bool, program: list[tuple[str, int, int]]
) -> None:
    budget = Budget(12 * MIB, neighbors="auto", background=background, **BESIDE)
    played = ProgramBesideOwners(budget, neighbors=2)
    played.run(program)
    found = rmm_uvm.residency_statistics(played.mr)
    assert found.given_back_at_once_bytes <= found.given_back_bytes <= found.neighbor_bytes


def test_program_that_repeats_beside_owners_uses_every_way_and_keeps_its_data() -> None:
    budget = Budget(12 * MIB, neighbors="auto", background=False, **BESIDE)
    program = ProgramBesideOwners(budget, neighbors=2)
    steps = [("allocate", 0, 3 * MIB)] * 8
    round_of = [("read", which, 0) for which in range(8)]
    steps += round_of * 12 + [("read", 7, 0)] * 70 + [("work", 0, 0)]
    steps += [("work", 3, 0), ("work", 8, 0), *round_of, ("work", 0, 0), ("work", 5, 0)]
    program.run(steps + round_of * 4)
    found = rmm_uvm.residency_statistics(program.mr)
    assert min(found.in_place_bytes, found.copied_beside_bytes, found.given_back_bytes) > 0
    assert found.failed_calls == 0


class ProgramThatReads(Program):
    """Announces what it only reads, as libcudf's calls are, and writes now and then unannounced."""

    def step(self, step: str, which: int, nbytes: int) -> None:
        super().step(step, which, nbytes)
        if step == "work" and self.live:
            data = self.live[which % len(self.live)]
            if self.device.resident_bytes(data.address, data.nbytes) == data.nbytes:
                part = data.view()[: data.nbytes // 2 + 1]
                self.device.touch(data.address, part.size, write=True)
                data.view()[:] = data.value = data.value % 255 + 1
                self.device.touch(data.address, data.nbytes, write=True)

    def use(self, data: Data, *, write: bool = False) -> None:
        if data.value:  # else it is new, and what makes it announces nothing
            uses = ((data.address, data.nbytes, data.address),)
            self.mr.managed_mr.residency.touch_all(uses, only_read=not write)
        self.device.touch(data.address, data.nbytes, write)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=30)
@given(program=steps, background=st.booleans())
def test_random_program_whose_copies_the_host_keeps_keeps_its_data(
    policy: str, background: bool, program: list[tuple[str, int, int]]
) -> None:
    budget = Budget(12 * MIB, policy, background=background)
    ProgramThatReads(budget).run(program)


@pytest.mark.parametrize("keep_copies", [False, True])
def test_what_is_only_read_is_copied_to_the_host_once_where_it_keeps_its_copy(
    keep_copies: bool,
) -> None:
    program = ProgramThatReads(Budget(12 * MIB, keep_copies=keep_copies, background=False))
    round_of = [("read", which, 0) for which in range(8)]
    program.run([("allocate", 0, 3 * MIB)] * 8 + round_of * 4)
    before = program.device.migrated_bytes()[1]
    evicted = rmm_uvm.residency_statistics(program.mr).evicted_bytes
    program.run(round_of * 4)
    found = rmm_uvm.residency_statistics(program.mr)
    left_bytes = program.device.migrated_bytes()[1] - before
    assert found.evicted_bytes > evicted
    assert (found.uncopied_bytes > 0) == keep_copies == ("it had kept one" in str(found))
    if keep_copies:  # of 3 MiB the half block at each end is shared, and copied each time
        assert 0 < found.kept_copy_bytes <= found.resident_bytes
        assert left_bytes < 0.7 * (found.evicted_bytes - evicted)
    else:
        assert left_bytes == found.evicted_bytes - evicted


@pytest.mark.parametrize("failing", ["advise", "migrate", "prefetch"])
def test_program_whose_copies_the_host_keeps_outlives_calls_that_fail(failing: str) -> None:
    program = ProgramThatReads(Budget(12 * MIB, background=False))
    program.run([("allocate", 0, 4 * MIB)] * 8)
    for skip in range(12):
        program.device.fail_call(failing, "driver_error", skip=skip)
        for which in (*range(8), 2):
            data = program.live[which]
            program.use(data)
            data.check()
        program.device.cancel_failures()
    for which in range(8):
        program.step("write", which, 0)
        program.step("free", 7 - which, 0) if which > 5 else None
    for data in program.live:
        program.use(data)
        data.check()


@pytest.mark.parametrize("policy", POLICIES)
def test_program_that_repeats_over_its_budget_keeps_its_data(policy: str) -> None:
    program = Program(Budget(12 * MIB, policy, background=False))
    program.run(
        [("allocate", 0, 3 * MIB)] * 8
        + [(step, which, 0) for _ in range(12) for which in range(8) for step in ("read", "work")]
    )
    found = rmm_uvm.residency_statistics(program.mr)
    assert found.evicted_bytes > 24 * MIB  # it really was too small
    assert found.peak_resident_bytes <= 12 * MIB


def test_data_that_are_dropped_while_alive_would_be_noticed() -> None:
    # The other side of these tests: the device forgets what is discarded.
    program = Program(Budget(12 * MIB, background=False))
    program.step("allocate", 0, 4 * MIB)
    (data,) = program.live
    data.check()
    program.device.discard(data.address, data.nbytes)
    program.device.prefetch(data.address, data.nbytes)
    with pytest.raises(AssertionError):
        data.check()
