# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The advisor: what it reads, when, and that nothing stops it but `stop`."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

from rmm_uvm.errors import AvailabilityError, OversubscriptionWarning
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.machine.host_memory import HostMemory
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.watch import advisor as advisor_module
from rmm_uvm.watch.advisor import Advisor
from rmm_uvm.watch.judging.thresholds import Thresholds
from rmm_uvm.watch.telling.delivery import Delivery

GIB = 1 << 30
DEVICES = tuple(
    RecordedDevice(number, "GPU", f"GPU-{number}", total_bytes=16 * GIB, capacity_bytes=16 * GIB)
    for number in (0, 1)
)


class FakeSampler:
    """Hands out what a test put in."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.asked: list[int] = []
        self.error: Exception | None = None

    def add(self, footprint_bytes: int, device_id: int = 0) -> None:
        row = np.zeros(1, SAMPLE_DTYPE)
        row["time_ns"] = (len(self.rows) + 1) * 10**9
        row["footprint_bytes"] = footprint_bytes
        row["device_id"] = device_id
        row["known"] = int(Known.FOOTPRINT | Known.COUNTERS)
        self.rows.append(row)

    def samples(self, since_sequence: int = 0, /) -> tuple[np.ndarray[Any, Any], int, int]:
        self.asked.append(since_sequence)
        if self.error is not None:
            raise self.error
        rows = self.rows[since_sequence:]
        return np.concatenate([np.zeros(0, SAMPLE_DTYPE), *rows]), len(self.rows), 0


def enough_memory() -> HostMemory:
    return HostMemory(1000 * GIB, 1000 * GIB)


@pytest.fixture
def sampler() -> FakeSampler:
    return FakeSampler()


def make(sampler: FakeSampler, on_finding: Any = None, **options: Any) -> Advisor:
    options.setdefault("read_host_memory", enough_memory)
    devices = options.pop("devices", DEVICES)
    return Advisor(sampler, devices, Delivery(on_finding), **options)


def kinds(findings: tuple[Finding, ...]) -> list[tuple[str, int]]:
    return [(finding.kind, finding.device_id) for finding in findings]


def test_look_reads_each_sample_once_and_keeps_findings(sampler: FakeSampler) -> None:
    advisor = make(sampler)
    assert advisor.look() == ()
    sampler.add(20 * GIB)
    assert kinds(advisor.look()) == [("footprint", 0)]
    assert advisor.look() == ()
    assert sampler.asked == [0, 0, 1]
    assert kinds(advisor.findings) == [("footprint", 0)]
    advisor.stop()


def test_devices_are_judged_apart(sampler: FakeSampler) -> None:
    advisor = make(sampler)
    sampler.add(20 * GIB, device_id=1)
    sampler.add(GIB, device_id=0)
    sampler.add(20 * GIB, device_id=1)
    assert kinds(advisor.look()) == [("footprint", 1)]
    advisor.stop()


def test_device_that_is_not_watched_is_passed_over(sampler: FakeSampler) -> None:
    advisor = make(sampler)
    sampler.add(20 * GIB, device_id=7)
    assert advisor.look() == ()
    advisor.stop()


def test_new_facts_count_from_the_next_look(sampler: FakeSampler) -> None:
    advisor = make(sampler)
    sampler.add(10 * GIB)
    assert advisor.look() == ()
    smaller = RecordedDevice(0, "GPU", "GPU-0", total_bytes=16 * GIB, capacity_bytes=8 * GIB)
    advisor.set_devices([smaller])
    sampler.add(10 * GIB)
    assert kinds(advisor.look()) == [("footprint", 0)]
    advisor.stop()


def test_host_memory_is_read_once_a_second_at_most(sampler: FakeSampler) -> None:
    reads: list[int] = []
    now = [0.0]

    def read() -> HostMemory:
        reads.append(1)
        return HostMemory(64 * GIB, GIB, 2 * GIB, "/limit")

    advisor = make(
        sampler,
        read_host_memory=read,
        clock=lambda: now[0],
        thresholds=Thresholds(footprint_factor=None),
    )
    sampler.add(20 * GIB)
    (finding,) = advisor.look()
    assert finding.kind == "host_memory"
    assert "(/limit)" in finding.remedy
    for now[0] in (0.5, 0.9, 1.0, 1.5):
        sampler.add(20 * GIB)
        advisor.look()
    assert len(reads) == 2
    advisor.stop()


def test_host_memory_is_not_read_while_all_fits(sampler: FakeSampler) -> None:
    advisor = make(sampler, read_host_memory=lambda: pytest.fail("read"))
    sampler.add(16 * GIB)
    assert advisor.look() == ()
    assert advisor.failures == ()
    advisor.stop()


def test_host_memory_that_cannot_be_read_is_no_failure(sampler: FakeSampler) -> None:
    def read() -> HostMemory:
        raise AvailabilityError("no /proc")

    advisor = make(sampler, read_host_memory=read)
    sampler.add(20 * GIB)
    assert kinds(advisor.look()) == [("footprint", 0)]
    assert advisor.failures == ()
    advisor.stop()


def test_host_memory_does_not_matter_for_a_simulated_device(sampler: FakeSampler) -> None:
    model = RecordedDevice(0, "model", "", 16 * GIB, 16 * GIB, simulated=True)
    advisor = make(sampler, devices=[model], read_host_memory=lambda: HostMemory(GIB, 1))
    sampler.add(20 * GIB)
    assert kinds(advisor.look()) == [("footprint", 0)]
    advisor.stop()


def test_sources_that_fail_are_told_once_for_each_device(sampler: FakeSampler) -> None:
    sources = {"kernel_counters": Availability(False, "no device file")}
    advisor = make(sampler, sources=lambda: sources)
    for _ in range(3):
        sampler.add(GIB)
        advisor.look()
    assert kinds(advisor.findings) == [("monitor", 0)]
    advisor.stop()


def test_hooks_run_before_samples_are_read(sampler: FakeSampler) -> None:
    advisor = make(sampler, on_round=[lambda: sampler.add(20 * GIB)])
    assert kinds(advisor.look()) == [("footprint", 0)]
    advisor.stop()


def test_hook_that_fails_is_logged_once_and_the_rest_goes_on(
    sampler: FakeSampler, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise OSError("disk full")

    advisor = make(sampler, on_round=[fail])
    sampler.add(20 * GIB)
    assert kinds(advisor.look()) == [("footprint", 0)]
    advisor.look()
    assert advisor.failures == ("a watching hook: OSError: disk full",)
    assert [record.getMessage() for record in caplog.records] == ["a watching hook failed"]
    advisor.stop()


def test_sampler_that_fails_is_asked_again(
    sampler: FakeSampler, caplog: pytest.LogCaptureFixture
) -> None:
    advisor = make(sampler)
    sampler.error = RuntimeError("gone")
    assert advisor.look() == advisor.look() == ()
    sampler.error = None
    sampler.add(20 * GIB)
    assert kinds(advisor.look()) == [("footprint", 0)]
    assert len(caplog.records) == 1
    advisor.stop()


def test_cost_is_counted(sampler: FakeSampler) -> None:
    advisor = make(sampler, on_round=[lambda: sum(range(100_000))])
    advisor.look()
    assert 0 < advisor.cost_seconds < 10
    advisor.stop()


def test_thread_looks_by_itself_and_ends_with_stop(
    sampler: FakeSampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advisor_module, "_PAUSE_SECONDS", 0.001)
    found = threading.Event()
    advisor = make(sampler, lambda finding: found.set())
    sampler.add(20 * GIB)
    advisor.start()
    advisor.start()  # once is enough
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("rmm_uvm advisor") == 1
    assert found.wait(30)
    advisor.stop()
    advisor.stop()
    assert "rmm_uvm advisor" not in [thread.name for thread in threading.enumerate()]


def test_stop_looks_once_more_and_shows_what_it_finds(
    sampler: FakeSampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advisor_module, "_PAUSE_SECONDS", 3600)  # only stop looks
    advisor = make(sampler, "warn")
    advisor.start()
    sampler.add(20 * GIB)
    with pytest.warns(OversubscriptionWarning):
        advisor.stop()
    assert len(advisor.findings) == 1


def test_stop_from_a_callback_does_not_wait_for_itself(
    sampler: FakeSampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advisor_module, "_PAUSE_SECONDS", 0.001)
    stopped = threading.Event()
    threads: list[threading.Thread] = []

    def stop(finding: Finding) -> None:
        threads.append(threading.current_thread())  # may be gone before anybody looks for it
        advisor.stop()
        stopped.set()

    advisor = make(sampler, stop)
    sampler.add(20 * GIB)
    advisor.start()
    assert stopped.wait(30)
    (thread,) = threads
    assert thread.name == "rmm_uvm advisor"
    thread.join()
    assert advisor.failures == ()


def test_forked_child_neither_looks_nor_waits(
    sampler: FakeSampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    advisor = make(sampler, on_round=[lambda: pytest.fail("looked")])
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        advisor.start()
        assert advisor.look() == ()
        advisor.stop()
    assert sampler.asked == []
