# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whom to attach to, whom to believe, and when to let go."""

from __future__ import annotations

import os

import pytest

from rmm_uvm.top.gather import Gatherer
from rmm_uvm.top.seams import PublishedDevice
from rmm_uvm.watch.sampling.process import CudaProcess

from .fakes import GIB, FakeClock, FakeMachine, device

PID = 2**22 + 1  # over the kernel's largest: no process has it


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine(memory=[device()])


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def published(pid: int, time_seconds: float, moved_bytes: int, **more: float) -> PublishedDevice:
    figures = {
        "host_to_device_bytes": moved_bytes,
        "device_to_host_bytes": 0,
        "footprint_bytes": 3 * GIB,
        "capacity_bytes": 2 * GIB,
    }
    return PublishedDevice(pid, "python3", 0, time_seconds, figures, **more)  # type: ignore[arg-type]


def test_look_attaches_to_every_process_once(machine: FakeMachine, clock: FakeClock) -> None:
    machine.process(PID)
    machine.process(PID + 1)
    gatherer = Gatherer(machine.seams(), clock=clock)
    for _ in range(3):
        view = gatherer.look()
    assert machine.attached == [(PID, False), (PID + 1, False)]
    assert [row.source for row in view.processes] == ["attached", "attached"]


def test_look_at_this_process_itself_does_not_attach(
    machine: FakeMachine, clock: FakeClock
) -> None:
    machine.process(os.getpid())
    assert Gatherer(machine.seams(), clock=clock).look().processes == ()
    assert machine.attached == []


def test_look_twice_gives_rates(machine: FakeMachine, clock: FakeClock) -> None:
    counters = machine.process(PID)
    gatherer = Gatherer(machine.seams(), clock=clock)
    assert gatherer.look().processes[0].in_bytes_per_second is None
    counters.totals["host_to_device_bytes"] = 6 * GIB
    clock.now += 2
    [row] = gatherer.look().processes
    assert row.in_bytes_per_second == 3 * GIB
    assert row.out_bytes_per_second == 0
    assert row.host_to_device_bytes == 6 * GIB


def test_faults_are_unknown_unless_asked_for(machine: FakeMachine, clock: FakeClock) -> None:
    machine.process(PID).totals["gpu_faults"] = 5
    assert Gatherer(machine.seams(), clock=clock).look().processes[0].gpu_faults is None
    asked = Gatherer(machine.seams(), faults=True, clock=clock).look()
    assert asked.processes[0].gpu_faults == 5
    assert machine.attached[-1] == (PID, True)


def test_eviction_counted_only_while_the_device_is_full(
    machine: FakeMachine, clock: FakeClock
) -> None:
    counters = machine.process(PID)
    gatherer = Gatherer(machine.seams(), clock=clock)
    gatherer.look()
    clock.now += 1
    counters.totals["device_to_host_bytes"] = GIB  # half empty: the CPU wanted these
    assert gatherer.look().processes[0].evicted_bytes_estimate == 0
    machine.memory = [device(138.9)]
    counters.totals["device_to_host_bytes"] = 3 * GIB
    clock.now += 1
    assert gatherer.look().processes[0].evicted_bytes_estimate == 2 * GIB


def test_eviction_is_unknown_with_two_devices(machine: FakeMachine, clock: FakeClock) -> None:
    machine.memory.append(device(index=1))
    machine.process(PID)
    gatherer = Gatherer(machine.seams(), clock=clock)
    assert gatherer.look().processes[0].evicted_bytes_estimate is None


def test_process_that_publishes_is_not_attached(machine: FakeMachine, clock: FakeClock) -> None:
    machine.process(PID)
    machine.board = [published(PID, 1.0, 0)]
    gatherer = Gatherer(machine.seams(), clock=clock)
    [row] = gatherer.look().processes
    assert (row.source, row.footprint_bytes, row.device_id) == ("published", 3 * GIB, 0)
    assert machine.attached == []


def test_process_that_begins_to_publish_is_let_go(machine: FakeMachine, clock: FakeClock) -> None:
    counters = machine.process(PID)
    gatherer = Gatherer(machine.seams(), clock=clock)
    gatherer.look()
    machine.board = [published(PID, 1.0, 0)]
    [row] = gatherer.look().processes
    assert row.source == "published"
    assert counters.closed == 1


def test_rate_of_a_publication_is_on_its_own_clock(machine: FakeMachine, clock: FakeClock) -> None:
    gatherer = Gatherer(machine.seams(), clock=clock)
    machine.board = [published(PID, 1.0, 0)]
    gatherer.look()
    clock.now += 0.2  # nothing new is on the board: no rate yet, and none of 0
    assert gatherer.look().processes[0].in_bytes_per_second is None
    machine.board = [published(PID, 3.0, 4 * GIB)]
    clock.now += 0.2
    assert gatherer.look().processes[0].in_bytes_per_second == 2 * GIB


def test_publication_that_is_stale_has_no_rate(machine: FakeMachine, clock: FakeClock) -> None:
    gatherer = Gatherer(machine.seams(), clock=clock)
    for time_seconds, age_seconds in ((1.0, 0.0), (2.0, 30.0)):
        machine.board = [published(PID, time_seconds, GIB, age_seconds=age_seconds)]
        clock.now += 1
        [row] = gatherer.look().processes
    assert row.in_bytes_per_second is None
    assert row.host_to_device_bytes == GIB


def test_two_monitors_of_a_process_are_one_row(machine: FakeMachine, clock: FakeClock) -> None:
    machine.board = [published(PID, 9.0, GIB), published(PID, 1.0, 0)]
    [row] = Gatherer(machine.seams(), clock=clock).look().processes
    assert row.host_to_device_bytes == GIB


def test_process_that_ends_is_let_go_at_the_next_poll(
    machine: FakeMachine, clock: FakeClock
) -> None:
    counters = machine.process(PID)
    gatherer = Gatherer(machine.seams(), clock=clock)
    gatherer.look()
    gatherer.poll()
    assert counters.closed == 0
    counters.ended = True
    gatherer.poll()
    assert counters.closed == 1
    assert gatherer.look().processes == ()


def test_process_that_was_named_stays_with_its_last_totals(
    machine: FakeMachine, clock: FakeClock
) -> None:
    counters = machine.process(PID)
    gatherer = Gatherer(machine.seams(), [PID], clock=clock)
    assert gatherer.require() == []
    assert not gatherer.all_ended
    counters.totals["host_to_device_bytes"] = GIB
    counters.ended = True
    [row] = gatherer.look().processes
    assert row.exited
    assert row.host_to_device_bytes == GIB
    assert gatherer.all_ended


def test_pids_that_were_named_are_the_only_ones(machine: FakeMachine, clock: FakeClock) -> None:
    machine.process(PID)
    machine.process(PID + 1)
    machine.board = [published(PID + 2, 1.0, 0)]
    gatherer = Gatherer(machine.seams(), [PID], clock=clock)
    gatherer.require()
    assert [row.pid for row in gatherer.look().processes] == [PID]


def test_require_of_a_process_without_cuda_says_so(machine: FakeMachine, clock: FakeClock) -> None:
    gatherer = Gatherer(machine.seams(), [PID], clock=clock)
    assert gatherer.require() == [f"process {PID} does not use CUDA"]


def test_process_that_may_not_be_attached_has_a_reason(
    machine: FakeMachine, clock: FakeClock
) -> None:
    machine.candidates = [CudaProcess(PID, "other", attachable=False, reason="not permitted")]
    gatherer = Gatherer(machine.seams(), clock=clock)
    for _ in range(2):
        [row] = gatherer.look().processes
    assert (row.source, row.reason) == ("", "not permitted")
    assert machine.attached == []


def test_attaching_that_fails_is_not_tried_again(machine: FakeMachine, clock: FakeClock) -> None:
    machine.candidates = [CudaProcess(PID, "other")]  # has no counters: attach raises
    gatherer = Gatherer(machine.seams(), clock=clock)
    for _ in range(2):
        [row] = gatherer.look().processes
    assert row.reason == f"process {PID} does not use CUDA"


def test_close_lets_go_of_everything(machine: FakeMachine, clock: FakeClock) -> None:
    counters = [machine.process(PID), machine.process(PID + 1)]
    gatherer = Gatherer(machine.seams(), clock=clock)
    gatherer.look()
    gatherer.close()
    gatherer.close()
    assert [each.closed for each in counters] == [1, 1]


def test_busiest_process_comes_first(machine: FakeMachine, clock: FakeClock) -> None:
    quiet, busy = machine.process(PID), machine.process(PID + 1)
    gatherer = Gatherer(machine.seams(), clock=clock)
    gatherer.look()
    busy.totals["host_to_device_bytes"] = GIB
    quiet.totals["host_to_device_bytes"] = 1
    clock.now += 1
    assert [row.pid for row in gatherer.look().processes] == [PID + 1, PID]
