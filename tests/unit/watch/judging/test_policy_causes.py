# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The policy: what explains eviction, and is told in its place."""

from __future__ import annotations

import dataclasses

import pytest

from rmm_uvm.recording.sample import Known
from rmm_uvm.watch.judging.thresholds import Thresholds

from .samples import EVICTING, GIB, OVER, QUIET, Samples


def test_device_taken_is_found_in_place_of_eviction_and_amplification() -> None:
    taken = {**OVER, "footprint_bytes": 10 * GIB, "managed_bytes": 10 * GIB}
    taken |= {"resident_bytes": 6 * GIB}
    samples = Samples(**taken).add(60, **EVICTING, host_to_device_bytes=GIB)
    (finding,) = samples.findings()
    assert (finding.kind, finding.value, finding.threshold) == ("device_taken", 10 * GIB, 6 * GIB)
    assert "hold 10.00 GiB of the device, and only 6.00 GiB are left over" in finding.message
    off = Thresholds(device_taken_fraction=None)
    assert samples.kinds(off) == ["eviction", "amplification"]


def test_a_context_of_half_a_gigabyte_is_not_called_taken() -> None:
    nearly = {**OVER, "footprint_bytes": 16 * GIB, "managed_bytes": 16 * GIB}
    nearly |= {"resident_bytes": 16 * GIB - GIB // 2}
    assert Samples(**nearly).add(5, **EVICTING).kinds() == ["eviction"]


def test_prefetch_is_found_in_place_of_eviction_when_ours_is_most_of_what_comes() -> None:
    samples = Samples(**OVER)
    samples.add(3, **EVICTING, host_to_device_bytes=GIB, prefetched_bytes=600 << 20)
    (finding,) = samples.findings(QUIET, prefetch="auto")
    assert finding.kind == "prefetch"
    assert finding.value == pytest.approx(600 / 1024)
    assert finding.remedy == 'try prefetch="never", or work on less data at a time'
    assert samples.kinds(QUIET, prefetch="never") == ["eviction"]
    assert samples.kinds(QUIET, prefetch=None) == ["eviction"]
    off = dataclasses.replace(QUIET, prefetch_fraction=None)
    assert samples.kinds(off, prefetch="auto") == ["eviction"]


def test_prefetch_of_less_than_half_is_plain_eviction() -> None:
    samples = Samples(**OVER)
    samples.add(3, **EVICTING, host_to_device_bytes=GIB, prefetched_bytes=500 << 20)
    assert samples.kinds(QUIET, prefetch="auto") == ["eviction"]


def test_discarding_for_new_allocations_is_not_to_blame_for_what_leaves() -> None:
    # They take the room however their pages get there: prefetch="never" would change nothing.
    samples = Samples(**OVER).add(3, **EVICTING, discarded_bytes=GIB)
    assert samples.kinds(QUIET, prefetch="always") == ["eviction"]


def test_amplification_is_found_and_then_eviction_is_not_told_as_well() -> None:
    samples = Samples(**OVER)
    passes = {"evicted_bytes_estimate": 20 * GIB, "host_to_device_bytes": 20 * GIB}
    (finding,) = samples.add(20, **passes).findings(QUIET)
    assert finding.kind == "amplification"
    assert finding.time_seconds == pytest.approx(0.2)
    assert (finding.value, finding.threshold) == (2.0, 1.5)
    assert "40.00 GiB in 0.2 s, 2.0 times what is in use" in finding.message


def test_what_moves_between_samples_of_one_moment_counts_with_the_next() -> None:
    passes = {"evicted_bytes_estimate": 20 * GIB, "host_to_device_bytes": 20 * GIB}
    samples = Samples(**OVER).add(1, **passes).add(1, seconds=0, **passes)
    assert samples.kinds(QUIET) == []
    samples.add(evicted_bytes_estimate=1, host_to_device_bytes=1)
    (finding,) = samples.findings(QUIET)
    assert (finding.kind, finding.time_seconds) == ("amplification", pytest.approx(0.2))


def test_one_pass_over_data_that_do_not_fit_is_no_amplification() -> None:
    samples = Samples(**OVER).add(20, **EVICTING, host_to_device_bytes=GIB)
    samples.add(600, **{name: 0 for name in EVICTING}, host_to_device_bytes=0)
    assert samples.kinds(QUIET) == ["eviction"]


def test_a_pass_every_two_minutes_is_no_amplification() -> None:
    samples = Samples(**OVER)
    for _ in range(5):
        samples.add(20, **EVICTING, host_to_device_bytes=GIB)
        samples.add(120, 1.0, **{name: 0 for name in EVICTING}, host_to_device_bytes=0)
    assert "amplification" not in samples.kinds(QUIET)


def test_bytes_that_come_while_nothing_leaves_are_no_amplification() -> None:
    assert Samples(**OVER).add(100, host_to_device_bytes=20 * GIB).kinds(QUIET) == []


def test_amplification_without_footprint_is_measured_by_the_capacity() -> None:
    def kinds(step_bytes: int) -> list[str]:
        samples = Samples(Known.COUNTERS)
        return samples.add(
            3, evicted_bytes_estimate=step_bytes, host_to_device_bytes=step_bytes
        ).kinds()

    assert kinds(9 * GIB) == ["amplification"]
    assert kinds(8 * GIB) == ["eviction"]
