# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A command seen from outside: its processes' counters become a recording."""

from __future__ import annotations

import pytest

from rmm_uvm.run.attached import Follower
from rmm_uvm.run.summary import unwatched
from rmm_uvm.watch.sampling.process import CudaProcess

from ..top.fakes import GIB, FakeClock, FakeMachine, device

ROOT, CHILD, STRANGER = 2**22 + 1, 2**22 + 2, 2**22 + 3


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine(memory=[device()])


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def follower(machine: FakeMachine, clock: FakeClock, *, faults: bool = False) -> Follower:
    return Follower(
        machine.seams(),
        faults=faults,
        interval_seconds=0.1,
        clock=clock,
        tree=lambda pid: {ROOT, CHILD},
    )


def test_processes_of_the_command_are_summed(machine: FakeMachine, clock: FakeClock) -> None:
    first, second = machine.process(ROOT), machine.process(CHILD, "worker")
    machine.process(STRANGER)
    following = follower(machine, clock)
    following.look(ROOT)
    first.totals["host_to_device_bytes"] = GIB
    second.totals["host_to_device_bytes"] = 2 * GIB
    clock.now += 1.5
    following.look(ROOT)
    following.finish()
    recording = following.recording()
    assert machine.attached == [(ROOT, False), (CHILD, False)]
    assert recording.samples["host_to_device_bytes"].tolist()[-1] == 3 * GIB
    assert recording.samples["time_ns"].tolist()[1] == 1_500_000_000
    assert unwatched(recording) is None
    assert following.others(ROOT) == [
        f"also PID {CHILD} worker: 2.00 GiB to the device, 0 B to the host"
    ]
    assert (first.closed, second.closed) == (1, 1)


def test_process_that_begins_late_is_found(machine: FakeMachine, clock: FakeClock) -> None:
    following = follower(machine, clock)
    following.look(ROOT)
    machine.process(CHILD)
    clock.now += 0.1
    following.look(ROOT)
    assert machine.attached == []  # not searched for that often
    clock.now += 0.2
    following.look(ROOT)
    assert machine.attached == [(CHILD, False)]


def test_totals_of_a_process_that_ended_are_kept(machine: FakeMachine, clock: FakeClock) -> None:
    counters = machine.process(CHILD)
    following = follower(machine, clock)
    following.look(ROOT)
    counters.totals["device_to_host_bytes"] = GIB
    counters.ended = True
    for _ in range(3):
        clock.now += 1
        following.look(ROOT)
    assert following.recording().samples["device_to_host_bytes"].tolist() == [0, GIB, GIB, GIB]


def test_eviction_is_what_leaves_a_full_device(machine: FakeMachine, clock: FakeClock) -> None:
    counters = machine.process(CHILD)
    following = follower(machine, clock)
    following.look(ROOT)
    counters.totals["device_to_host_bytes"] = GIB
    clock.now += 1
    following.look(ROOT)
    machine.memory = [device(138.9)]
    counters.totals["device_to_host_bytes"] = 3 * GIB
    clock.now += 1
    following.look(ROOT)
    assert following.recording().samples["evicted_bytes_estimate"].tolist() == [0, 0, 2 * GIB]


def test_process_that_cannot_be_attached_is_named(machine: FakeMachine, clock: FakeClock) -> None:
    machine.candidates = [CudaProcess(CHILD, "worker")]
    following = follower(machine, clock)
    following.look(ROOT)
    following.finish()
    reason = f"process {CHILD} does not use CUDA"
    assert following.others(None) == [f"PID {CHILD} was not watched: {reason}"]
    assert unwatched(following.recording()) == reason


def test_command_without_cuda_says_so(clock: FakeClock) -> None:
    following = follower(FakeMachine(no_devices="no NVML here"), clock)
    following.look(ROOT)
    following.finish()
    recording = following.recording()
    assert len(recording.samples) == 0
    assert unwatched(recording) == "the command did not use CUDA"
    assert recording.sources["nvml"].reason == "no NVML here"


def test_faults_are_asked_for_only_when_wanted(machine: FakeMachine, clock: FakeClock) -> None:
    machine.process(CHILD).totals["gpu_faults"] = 3
    following = follower(machine, clock, faults=True)
    following.look(ROOT)
    assert machine.attached == [(CHILD, True)]
    assert following.recording().samples["gpu_faults"].tolist() == [3]
