# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The policy: eviction, when it is found, and when it must not be."""

from __future__ import annotations

import itertools

import pytest

from rmm_uvm.recording.sample import Known
from rmm_uvm.watch.judging.intervals import BEGIN
from rmm_uvm.watch.judging.wording import eviction_found

from .samples import DEVICE, EVICTING, EXACT, GIB, OVER, QUIET, Samples


def test_eviction_in_three_samples_is_found_at_the_third() -> None:
    samples = Samples(**OVER).add(5).add(10, **EVICTING)
    (finding,) = samples.findings(QUIET)
    assert finding.kind == "eviction"
    assert finding.time_seconds == pytest.approx(0.8)
    assert finding.value == pytest.approx(10 * GIB)
    assert finding.threshold == pytest.approx(0.016 * GIB)
    assert "10.7 GB/s are evicted" in finding.message
    assert "(threshold 17.2 MB/s)" in finding.message
    assert finding.remedy == "work on less data at a time: 20.00 GiB are allocated, 16.00 GiB fit"


@pytest.mark.parametrize(
    ("rate", "text"),
    [(140.12e6, "140 MB/s"), (262e3, "262 kB/s"), (999.7e6, "1.0 GB/s"), (9.16e9, "9.2 GB/s")],
)
def test_rates_are_told_in_decimal_units_as_reports_have_them(rate: float, text: str) -> None:
    found = eviction_found(BEGIN, DEVICE, value=rate, threshold=1.0)
    assert found.message.startswith(f"{text} are evicted")


def test_eviction_in_two_samples_is_not_found() -> None:
    samples = Samples(**OVER)
    for _ in range(20):
        samples.add(2, **EVICTING).add()
    assert samples.kinds(QUIET) == []


BURST = {"seconds": 0.001, "evicted_bytes_estimate": 2 << 20, "device_to_host_bytes": 2 << 20}
STILL = {name: 0 for name in EVICTING}


@pytest.mark.parametrize("before_seconds", [0.001, 0.03, 0.05, 0.07, 0.099])
def test_burst_that_many_samples_see_is_no_eviction(before_seconds: float) -> None:
    samples = Samples(**OVER).add(5).add(seconds=before_seconds).add(4, **BURST)
    samples.add(seconds=max(0.1 - before_seconds, 0.01), **STILL).add(5)
    assert samples.kinds(QUIET, interval_seconds=0.1) == []
    assert samples.kinds(QUIET) == ["eviction"]  # where each sample counts


@pytest.mark.parametrize("edges", [(), (0.06,), (0.01, 0.02, 0.03), (0.04, 0.051), (0.09, 0.095)])
def test_eviction_is_found_within_three_ordinary_samples_whatever_others_there_are(
    edges: tuple[float, ...],
) -> None:
    samples = Samples(**OVER).add(5)
    for _ in range(3):
        for begin, end in itertools.pairwise((0.0, *edges, 0.1)):
            samples.add(seconds=end - begin, **EVICTING)
    (finding,) = samples.findings(QUIET, interval_seconds=0.1)
    assert finding.kind == "eviction"
    assert 0.65 <= finding.time_seconds <= 0.8 + 1e-6


def test_quiet_samples_in_quick_succession_do_not_arm_eviction_again() -> None:
    samples = Samples(**OVER).add(3, **EVICTING).add(seconds=60, **STILL).add(5, seconds=0.001)
    samples.add(3, **EVICTING)
    assert samples.kinds(QUIET, interval_seconds=0.1) == ["eviction"]
    assert samples.kinds(QUIET) == ["eviction", "eviction"]


def test_eviction_below_the_rate_is_not_found() -> None:
    assert Samples(**OVER).add(50, evicted_bytes_estimate=GIB // 1000).kinds(QUIET) == []


def test_eviction_is_found_again_only_after_quiet_samples() -> None:
    def kinds(quiet_samples: int) -> list[str]:
        samples = Samples(**OVER).add(3, **EVICTING)
        samples.add(quiet_samples, seconds=60, **{name: 0 for name in EVICTING})
        return samples.add(3, **EVICTING).kinds(QUIET)

    assert kinds(quiet_samples=3) == ["eviction", "eviction"]
    assert kinds(quiet_samples=2) == ["eviction"]


def test_eviction_without_counters_is_not_found() -> None:
    samples = Samples(EXACT & ~Known.COUNTERS, **OVER)
    assert samples.add(10, **EVICTING).kinds(QUIET) == []


def test_eviction_where_nothing_is_known_of_memory_is_found_all_the_same() -> None:
    (finding,) = Samples(Known.COUNTERS).add(3, **EVICTING).findings()
    assert finding.remedy == "work on less data at a time"


def test_what_leaves_while_everything_would_fit_is_no_eviction() -> None:
    fits = {**OVER, "footprint_bytes": 8 * GIB, "managed_bytes": 10 * GIB}
    fits |= {"resident_bytes": 8 * GIB, "device_used_bytes": 14 * GIB}
    assert Samples(**fits).add(10, **EVICTING).kinds() == []
    # A little more, and what is not on the device has no room there.
    assert Samples(**{**fits, "managed_bytes": 10 * GIB + 1}).add(10, **EVICTING).kinds() != []


def test_totals_that_begin_anew_are_no_eviction() -> None:
    samples = Samples(**OVER, evicted_bytes_estimate=100 * GIB).add(seconds=3600.0)
    for _ in range(5):
        samples.add(evicted_bytes_estimate=-10 * GIB)
    assert samples.kinds(QUIET) == []


def test_pool_larger_than_what_is_allocated_is_told_to_begin_with_one_slab() -> None:
    (finding,) = Samples(**{**OVER, "footprint_bytes": 9 * GIB}).add(3, **EVICTING).findings()
    assert finding.kind == "eviction"
    assert finding.remedy == (
        "begin with one large slab, initial_pool_size=0.9: the pool holds 20.00 GiB for "
        "9.00 GiB allocated"
    )
