# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Carrying out plans on a memory resource that records what is asked of it."""

from __future__ import annotations

import pytest
import rmm.mr

from rmm_uvm_mortgage.shadow.enactor import DeviceColumn, Enactor
from rmm_uvm_mortgage.shadow.plan import EventPlan, PlannedColumn
from rmm_uvm_mortgage.shadow.sizes import ColumnShape

NUMBERS = ColumnShape("int64", 100, has_mask=True)


class FakeMemory:
    """Hands out addresses without memory behind them, up to a limit."""

    def __init__(self, limit_bytes: int = 1 << 40) -> None:
        self.live: dict[int, int] = {}
        self.log: list[int] = []
        self.limit_bytes = limit_bytes
        self._next = 1 << 40
        self.resource = rmm.mr.CallbackMemoryResource(self._allocate, self._deallocate)

    def _allocate(self, nbytes: int, stream: object) -> int:
        if sum(self.live.values()) + nbytes > self.limit_bytes:
            raise MemoryError(f"{nbytes} bytes asked for, the limit is {self.limit_bytes}")
        address = self._next
        self._next += -(-nbytes // 256) * 256
        self.live[address] = nbytes
        self.log.append(nbytes)
        return address

    def _deallocate(self, address: int, nbytes: int, stream: object) -> None:
        assert self.live.pop(address) == nbytes
        self.log.append(-nbytes)


class FakeDevice:
    """Records touches."""

    def __init__(self) -> None:
        self.touches: list[tuple[int, int, bool]] = []

    def touch(self, address: int, nbytes: int, write: bool = False) -> None:
        self.touches.append((address, nbytes, write))


def test_run_follows_the_order_of_the_plan() -> None:
    memory = FakeMemory()
    plan = EventPlan()
    with plan.work("first", 10):
        kept = plan.allocate_column("kept", NUMBERS)
    columns = Enactor(memory.resource).run(plan, {}, [kept])
    assert memory.log == [10, 800, 64, -10]
    assert sorted(memory.live.values()) == [64, 800]
    del columns
    assert memory.live == {}


def test_run_frees_what_is_no_output() -> None:
    memory = FakeMemory()
    plan = EventPlan()
    plan.allocate_column("forgotten", NUMBERS)
    assert Enactor(memory.resource).run(plan, {}, []) == []
    assert memory.live == {}


def test_run_out_of_memory_leaves_nothing_even_while_the_error_is_held() -> None:
    memory = FakeMemory(limit_bytes=1000)
    plan = EventPlan()
    kept = plan.allocate_column("kept", NUMBERS)
    plan.allocate("too large", 500)
    enactor = Enactor(memory.resource)
    with pytest.raises(MemoryError) as caught:
        enactor.run(plan, {}, [kept])
    assert memory.live == {}
    assert enactor.footprint.now_bytes == 0
    assert caught.value is not None


def test_run_touches_inputs_and_outputs_of_kernels() -> None:
    memory, device = FakeMemory(), FakeDevice()
    enactor = Enactor(memory.resource, device)
    plan = EventPlan()
    made = plan.allocate_column("made", NUMBERS)
    source = enactor.run(plan, {}, [made])[0]
    plan = EventPlan()
    result = plan.allocate_column("result", ColumnShape("int8", 100))
    plan.kernel([PlannedColumn("source", source.shape)], [result])
    output = enactor.run(plan, {"source": source}, [result])[0]
    assert device.touches == [
        (source.blocks["data"].address, 800, False),
        (source.blocks["mask"].address, 64, False),
        (output.blocks["data"].address, 100, True),
    ]


def test_run_returns_an_input_by_reference() -> None:
    memory = FakeMemory()
    plan = EventPlan()
    made = plan.allocate_column("made", NUMBERS)
    enactor = Enactor(memory.resource)
    source = enactor.run(plan, {}, [made])[0]
    same = enactor.run(EventPlan(), {"source": source}, [PlannedColumn("source", NUMBERS)])[0]
    assert same is source


def test_footprint_counts_the_peak_within_a_plan() -> None:
    memory = FakeMemory()
    plan = EventPlan()
    with plan.work("work", 5000):
        kept = plan.allocate_column("kept", NUMBERS)
    enactor = Enactor(memory.resource)
    columns: list[DeviceColumn] = enactor.run(plan, {}, [kept])
    assert (enactor.footprint.peak_bytes, enactor.footprint.now_bytes) == (5864, 864)
    columns.clear()
    assert enactor.footprint.now_bytes == 0
