# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The policy: sources that do not work, and which of them are worth telling."""

from __future__ import annotations

import pytest

from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.sample import Known
from rmm_uvm.watch.judging.context import worth_telling
from rmm_uvm.watch.judging.thresholds import Thresholds

from .samples import EXACT, OVER, QUIET, Samples


def test_source_that_does_not_work_is_told_once_with_its_reason() -> None:
    unavailable = {"kernel_counters": "no /dev/nvidia-uvm-tools"}
    (finding,) = Samples().add(2000).findings(unavailable=unavailable)
    assert str(finding) == (
        "device 0: not watched: kernel counters (no /dev/nvidia-uvm-tools); "
        "run `rmm-uvm doctor` to see what it needs"
    )
    off = Thresholds(monitor=False)
    assert Samples().add(5).findings(off, unavailable=unavailable) == ()


def test_counters_that_stop_answering_are_told_once() -> None:
    samples = Samples(**OVER).add(5).add(100, known=int(EXACT & ~Known.COUNTERS))
    (finding,) = samples.findings(QUIET)
    assert finding.kind == "monitor"
    assert "have not answered for 3 samples" in finding.message


def test_counters_that_miss_a_sample_are_not_told() -> None:
    samples = Samples(**OVER)
    for _ in range(10):
        samples.add(2, known=int(EXACT & ~Known.COUNTERS)).add(1, known=int(EXACT))
    assert samples.kinds(QUIET) == []


def test_counters_that_never_answered_are_not_told_by_their_samples() -> None:
    assert Samples(EXACT & ~Known.COUNTERS).add(100).kinds() == []


@pytest.mark.parametrize(
    ("name", "reason", "simulated", "told"),
    [
        ("kernel_counters", "no /dev/nvidia-uvm-tools", False, True),
        ("kernel_counters", "switched off by RMM_UVM_COUNTERS", False, False),
        ("kernel_counters", "the simulated device was made without counters", True, True),
        ("cupti", "not asked for", False, False),
        ("cupti", "another profiler holds it", False, True),
        ("nvml", "no libnvidia-ml.so.1", False, False),
        ("device_memory", "reading failed", False, True),
        ("device_memory", "no GPU", True, False),
        ("kernel_counters", "", False, False),
    ],
)
def test_only_what_ought_to_work_is_worth_telling(
    name: str, reason: str, simulated: bool, told: bool
) -> None:
    sources = {name: Availability(not reason, reason)}
    assert worth_telling(sources, simulated=simulated) == ({name: reason} if told else {})


def test_sources_absent_for_one_reason_are_told_once() -> None:
    gone, other = Availability(False, "no GPU"), Availability(False, "no permission")
    sources = {"kernel_counters": gone, "device_memory": gone, "cupti": other}
    assert worth_telling(sources, simulated=False) == {
        "kernel_counters": "no GPU",
        "cupti": "no permission",
    }
