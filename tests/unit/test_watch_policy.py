# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The policy over samples made by hand: every kind, and what must not be found."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from rmm_uvm.device_info import Availability
from rmm_uvm.watch.context import Context, worth_telling
from rmm_uvm.watch.finding import WARNING_OF, Finding
from rmm_uvm.watch.intervals import BEGIN
from rmm_uvm.watch.policy import PolicyState, evaluate
from rmm_uvm.watch.recording import DeviceFacts
from rmm_uvm.watch.sample import SAMPLE_DTYPE, Known
from rmm_uvm.watch.thresholds import Thresholds
from rmm_uvm.watch.wording import eviction_found

GIB = 1 << 30
DEVICE = DeviceFacts(0, "GPU", "GPU-0", total_bytes=16 * GIB, capacity_bytes=16 * GIB)
EXACT = Known.COUNTERS | Known.FOOTPRINT | Known.DEVICE | Known.RESIDENT | Known.RESIDENT_EXACT


class Samples:
    """Builds samples one after the other: levels stay, totals grow."""

    def __init__(self, known: int = EXACT, **levels: int) -> None:
        self._values: dict[str, int] = {"time_ns": 0, "known": known, **levels}
        self._rows: list[tuple[int, ...]] = []

    def add(self, count: int = 1, seconds: float = 0.1, **changes: int) -> Samples:
        """Add samples; names in ``_bytes`` that are totals grow by what is given."""
        for _ in range(count):
            self._values["time_ns"] += round(seconds * 1e9)
            for name, value in changes.items():
                total = name in TOTALS
                self._values[name] = value + (self._values.get(name, 0) if total else 0)
            self._rows.append(tuple(self._values.get(n, 0) for n in SAMPLE_DTYPE.names or ()))
        return self

    def array(self) -> np.ndarray[Any, Any]:
        return np.array(self._rows, SAMPLE_DTYPE)

    def findings(self, thresholds: Thresholds | None = None, **context: Any) -> tuple[Finding, ...]:
        device = context.pop("device", DEVICE)
        return evaluate(
            PolicyState(), self.array(), Context(device, **context), thresholds or Thresholds()
        )[1]

    def kinds(self, thresholds: Thresholds | None = None, **context: Any) -> list[str]:
        return [finding.kind for finding in self.findings(thresholds, **context)]


TOTALS = {
    "host_to_device_bytes",
    "device_to_host_bytes",
    "evicted_bytes_estimate",
    "prefetched_bytes",
    "discarded_bytes",
}
# 20 GiB of managed memory on a full device of 16.
OVER = {
    "footprint_bytes": 20 * GIB,
    "managed_bytes": 20 * GIB,
    "resident_bytes": 16 * GIB,
    "device_used_bytes": 16 * GIB,
}
EVICTING = {"evicted_bytes_estimate": GIB, "device_to_host_bytes": GIB}
QUIET = Thresholds(footprint_factor=None)


def test_nothing_gives_nothing() -> None:
    assert Samples().kinds() == []
    assert Samples().add(100).kinds() == []


# Footprint


def test_footprint_over_capacity_is_found_once_with_figure_threshold_and_remedy() -> None:
    (finding,) = Samples(footprint_bytes=20 * GIB).add(50).findings()
    assert (finding.kind, finding.value, finding.threshold) == ("footprint", 1.25, 1.0)
    assert str(finding) == (
        "device 0: 20.00 GiB are allocated and 16.00 GiB fit on the device: 1.25 times as much "
        "(threshold 1); process the data in parts, or expect migrations"
    )


def test_footprint_at_capacity_is_not_found() -> None:
    assert Samples(footprint_bytes=16 * GIB).add(50).kinds() == []


def test_footprint_that_is_not_known_is_not_found() -> None:
    samples = Samples(EXACT & ~Known.FOOTPRINT, footprint_bytes=20 * GIB)
    assert samples.add(5).kinds() == []


@pytest.mark.parametrize(
    ("between_bytes", "pause_seconds", "count"),
    [
        (15 * GIB, 120.0, 1),  # above 0.9: not armed again
        (14 * GIB, 120.0, 2),
        (14 * GIB, 20.0, 1),  # armed, and within the minute
    ],
)
def test_footprint_is_found_again_only_after_it_fell_and_a_minute_passed(
    between_bytes: int, pause_seconds: float, count: int
) -> None:
    samples = Samples(footprint_bytes=20 * GIB).add()
    samples.add(seconds=pause_seconds, footprint_bytes=between_bytes)
    samples.add(footprint_bytes=20 * GIB)
    assert samples.kinds() == ["footprint"] * count


def test_footprint_still_over_when_the_minute_has_passed_is_found() -> None:
    samples = Samples(footprint_bytes=20 * GIB).add().add(footprint_bytes=GIB)
    samples.add(footprint_bytes=20 * GIB, seconds=1).add(700)
    first, second = samples.findings()
    assert second.time_seconds - first.time_seconds == pytest.approx(60, abs=0.2)


# Eviction and what explains it


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


# Amplification


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


# Host memory


def test_host_memory_too_small_is_found() -> None:
    samples = Samples(**OVER).add(5)
    (finding,) = samples.findings(QUIET, host_available_bytes=3 * GIB)
    assert (finding.kind, finding.value, finding.threshold) == ("host_memory", 4 * GIB, 3 * GIB)
    assert "4.00 GiB do not fit on the device" in finding.message
    assert "which has 3.00 GiB left" in finding.message
    assert finding.remedy == "allocate less, or the kernel may end the process"


def test_host_memory_of_a_container_is_told_with_the_file_of_its_limit() -> None:
    source = "/sys/fs/cgroup/memory.max"
    (finding,) = (
        Samples(**OVER)
        .add(5)
        .findings(QUIET, host_available_bytes=3 * GIB, host_limit_source=source)
    )
    assert finding.remedy.startswith(f"raise the container's memory limit ({source})")


@pytest.mark.parametrize("available_bytes", [4 * GIB, None])
def test_host_memory_that_suffices_or_is_not_known_is_not_found(
    available_bytes: int | None,
) -> None:
    assert Samples(**OVER).add(5).kinds(QUIET, host_available_bytes=available_bytes) == []


def test_host_memory_does_not_count_twice_what_lies_there_already() -> None:
    samples = Samples(**OVER, device_to_host_bytes=4 * GIB).add(5)
    assert samples.kinds(QUIET, host_available_bytes=GIB) == []


@pytest.mark.parametrize("freed", ["managed_bytes", "footprint_bytes"])
def test_host_memory_does_not_count_what_was_evicted_and_freed(freed: str) -> None:
    # Without managed bytes the footprint tells how much there is.
    levels = {**OVER, "footprint_bytes": 12 * GIB}
    levels |= {"managed_bytes": 0} if freed == "footprint_bytes" else {}
    samples = Samples(**levels).add(5, device_to_host_bytes=GIB)
    assert samples.kinds(QUIET, host_available_bytes=GIB) == []
    samples.add(**{"device_to_host_bytes": 0, "footprint_bytes": 0, freed: 0})
    samples.add(**{"footprint_bytes": 20 * GIB, freed: 20 * GIB})
    (finding,) = samples.findings(QUIET, host_available_bytes=GIB)
    assert (finding.kind, finding.value) == ("host_memory", 4 * GIB)
    assert "of which 4.00 GiB must still go to the host" in finding.message


def test_host_memory_counts_what_is_kept_on_the_host_whatever_came_before() -> None:
    # Data that were made on the host came first, and are no part of what left.
    samples = Samples(**{**OVER, "footprint_bytes": 12 * GIB}).add(5, host_to_device_bytes=GIB)
    samples.add(4, host_to_device_bytes=0, device_to_host_bytes=GIB)
    samples.add(device_to_host_bytes=0, footprint_bytes=20 * GIB)
    assert samples.kinds(QUIET, host_available_bytes=GIB) == []


def test_host_memory_is_told_again_after_all_has_fitted_for_a_minute() -> None:
    samples = Samples(**OVER).add().add(seconds=60, footprint_bytes=GIB)
    samples.add(footprint_bytes=20 * GIB)
    assert samples.kinds(QUIET, host_available_bytes=GIB) == ["host_memory"] * 2


# Sources


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


# The function itself


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "evicted_bytes_estimate": st.sampled_from([0, 0, 1 << 20, GIB, 30 * GIB]),
            "host_to_device_bytes": st.sampled_from([0, GIB, 30 * GIB]),
            "device_to_host_bytes": st.sampled_from([0, GIB]),
            "prefetched_bytes": st.sampled_from([0, GIB]),
            "footprint_bytes": st.sampled_from([0, GIB, 15 * GIB, 20 * GIB]),
            "managed_bytes": st.sampled_from([0, 10 * GIB, 20 * GIB]),
            "resident_bytes": st.sampled_from([0, GIB, 16 * GIB]),
            "device_used_bytes": st.sampled_from([0, 15 * GIB, 16 * GIB]),
            "known": st.sampled_from([int(EXACT), int(EXACT), 63, 0, 1, 5]),
            "seconds": st.sampled_from([0.0, 0.01, 0.04, 0.1, 1.0, 70.0]),
        }
    ),
    max_size=40,
)


@hypothesis.given(rows=ROWS, cuts=st.lists(st.integers(0, 40), max_size=6))
def test_result_does_not_depend_on_how_samples_are_cut(
    rows: list[dict[str, Any]], cuts: list[int]
) -> None:
    samples = Samples()
    for row in rows:
        samples.add(**row)
    array = samples.array()
    context = Context(
        DEVICE,
        host_available_bytes=GIB,
        prefetch="auto",
        interval_seconds=0.1,
        unavailable={"cupti": "gone"},
    )
    whole = evaluate(PolicyState(), array, context, Thresholds())
    state, findings = PolicyState(), []
    edges = [0, *sorted(min(cut, len(array)) for cut in cuts), len(array)]
    for begin, end in itertools.pairwise(edges):
        state, found = evaluate(state, array[begin:end], context, Thresholds())
        findings.extend(found)
    assert (state, tuple(findings)) == whole
    for finding in findings:
        assert finding.kind in WARNING_OF
        assert "\n" not in str(finding)
        assert len(str(finding)) < 300
        assert not finding.message.endswith(".")
        assert not finding.remedy.endswith(".")


@hypothesis.given(rows=ROWS)
def test_findings_of_one_kind_are_a_minute_apart(rows: list[dict[str, Any]]) -> None:
    samples = Samples()
    for row in rows:
        samples.add(**row)
    times: dict[str, float] = {}
    for finding in samples.findings(host_available_bytes=GIB, prefetch="auto"):
        name = "eviction" if finding.kind in ("prefetch", "device_taken") else finding.kind
        if name == "monitor":
            continue
        assert finding.time_seconds - times.get(name, -60.0) >= 60.0
        times[name] = finding.time_seconds


@hypothesis.given(rows=ROWS)
def test_everything_off_finds_nothing(rows: list[dict[str, Any]]) -> None:
    off = Thresholds(
        footprint_factor=None,
        eviction_fraction_per_second=None,
        amplification_factor=None,
        host_memory_fraction=None,
        device_taken_fraction=None,
        prefetch_fraction=None,
        monitor=False,
    )
    samples = Samples()
    for row in rows:
        samples.add(**row)
    context = {"host_available_bytes": 1, "prefetch": "auto", "unavailable": {"cupti": "gone"}}
    assert samples.findings(off, **context) == ()
