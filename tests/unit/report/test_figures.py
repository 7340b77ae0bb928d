# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Totals, peaks and stages of recordings whose numbers are known."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest

from rmm_uvm.recording.recorded import Recording, Stage
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.report import Report
from rmm_uvm.report.figures import (
    Figures,
    between,
    by_stage,
    in_all,
    of_device,
    outside_stages,
)
from rmm_uvm.report.series import DeviceSeries

from . import recordings

MIB = 1 << 20


def steady(n_samples: int = 10) -> np.ndarray:
    """Return samples each second: 1 MiB a second to the device, footprint i MiB at second i."""
    rows = np.zeros(n_samples, SAMPLE_DTYPE)
    second = np.arange(1, n_samples + 1, dtype=np.uint64)
    rows["time_ns"] = second * 1_000_000_000
    rows["host_to_device_bytes"] = second * MIB
    rows["footprint_bytes"] = second * MIB
    rows["known"] = int(Known.COUNTERS | Known.FOOTPRINT)
    return rows


def recording(rows: np.ndarray, *stages: Stage) -> Recording:
    return Recording(rows, (recordings.device(),), stages=stages)


def test_figures_of_device_are_last_totals_and_peaks() -> None:
    rows = steady()
    rows["footprint_bytes"][4] = 77 * MIB

    figures = of_device(recording(rows), recordings.device())

    assert figures.seconds == 10
    assert figures.host_to_device_bytes == 10 * MIB
    assert figures.peak_footprint_bytes == 77 * MIB


def test_figures_of_totals_beyond_float_precision_are_exact() -> None:
    rows = steady(2)
    rows["host_to_device_bytes"][1] = 2**60 + 1

    assert of_device(recording(rows), recordings.device()).host_to_device_bytes == 2**60 + 1


def test_figures_of_unknown_samples_are_none() -> None:
    rows = steady()
    rows["known"] = int(Known.DEVICE)

    figures = of_device(recording(rows), recordings.device())

    assert figures.host_to_device_bytes is None
    assert figures.peak_footprint_bytes is None
    assert figures.peak_device_used_bytes == 0
    assert not figures.empty
    assert Figures(1.0).empty


def test_figures_with_counters_lost_midway_keep_the_last_known_total() -> None:
    rows = steady()
    rows["known"][6:] = int(Known.FOOTPRINT)
    rows["host_to_device_bytes"][6:] = 0

    assert of_device(recording(rows), recordings.device()).host_to_device_bytes == 6 * MIB


def test_figures_of_no_samples_are_empty() -> None:
    assert of_device(recording(steady(0)), recordings.device()).empty
    assert between(recording(steady(0)), recordings.device(), 0, 1).empty


def test_between_samples_splits_totals_in_proportion() -> None:
    figures = between(recording(steady()), recordings.device(), 2.5, 4.0)

    assert figures.host_to_device_bytes == 1.5 * MIB
    # The sample at second 2 still held when the stretch began.
    assert figures.peak_footprint_bytes == 4 * MIB
    assert figures.seconds == 1.5


def test_stages_of_one_name_are_one_row_of_their_union() -> None:
    rows = by_stage(
        recording(
            steady(),
            Stage("load", 0.0, 2.0),
            Stage("join", 2.0, 6.0),
            Stage("join", 4.0, 8.0, thread="other"),
            Stage("load", 9.0, math.nan),
        ),
        recordings.device(),
    )

    assert [(r.name, r.runs, r.open, r.figures.seconds) for r in rows] == [
        ("load", 2, True, 3.0),
        ("join", 2, False, 6.0),
    ]
    assert [row.figures.host_to_device_bytes for row in rows] == [3 * MIB, 6 * MIB]


def test_time_outside_of_stages_is_what_no_stage_covers() -> None:
    stages = (
        Stage("load", 1.0, 3.0),
        Stage("part", 2.0, 2.5, depth=1),
        Stage("other", 2.0, 4.0, thread="other"),
        Stage("join", 7.0, math.nan),
    )
    figures = outside_stages(recording(steady(), *stages), recordings.device())

    assert figures is not None
    assert figures.seconds == 1.0 + 3.0
    assert figures.host_to_device_bytes == 4 * MIB
    assert figures.peak_footprint_bytes == 7 * MIB


def test_waits_are_told_by_stage_and_outside_of_them() -> None:
    rows = steady()
    rows["waited_ns"] = np.cumsum([0, 0, 10**8, 3 * 10**8, 0, 0, 5 * 10**8, 0, 0, 0][: len(rows)])
    stages = (Stage("load", 0.0, 3.0), Stage("join", 3.0, 5.0))
    told = by_stage(recording(rows, *stages), recordings.device())
    outside = outside_stages(recording(rows, *stages), recordings.device())

    assert [row.figures.waited_ns for row in told] == [10**8, 3 * 10**8]
    assert outside is not None
    assert outside.waited_ns == 5 * 10**8


def test_without_stages_or_without_time_outside_of_them_nothing_is_outside() -> None:
    all_of_it = Stage("all", 0.0, math.nan)

    assert outside_stages(recording(steady()), recordings.device()) is None
    assert outside_stages(recording(steady(), all_of_it), recordings.device()) is None


def test_stages_after_the_last_sample_moved_nothing() -> None:
    (row,) = by_stage(recording(steady(), Stage("late", 20.0, 30.0)), recordings.device())

    assert row.figures.host_to_device_bytes == 0
    assert row.figures.peak_footprint_bytes == 10 * MIB


def test_in_all_adds_bytes_and_takes_the_fullest_peak() -> None:
    a = Figures(2.0, host_to_device_bytes=3, peak_footprint_bytes=5)
    b = dataclasses.replace(a, host_to_device_bytes=4, peak_footprint_bytes=None)

    both = in_all([a, b])

    assert (both.seconds, both.host_to_device_bytes, both.peak_footprint_bytes) == (2.0, 7, 5)
    assert both.cpu_faults is None
    assert in_all([]).empty


@pytest.mark.parametrize(("exact", "peak"), [(3, 10), (11, 11), (None, 10)])
def test_peak_footprint_is_no_less_than_the_exact_peak_of_the_pool(
    exact: int | None, peak: int
) -> None:
    settings = {} if exact is None else {"peak_live_bytes": str(exact * MIB)}
    one = dataclasses.replace(recording(steady()), settings=settings)
    device = one.devices[0]
    # Of several devices nobody knows which the pool is of.
    two = dataclasses.replace(one, devices=(device, recordings.device(1)))
    unknown = steady()
    unknown["known"] = 0

    assert of_device(one, device).peak_footprint_bytes == peak * MIB
    assert of_device(two, device).peak_footprint_bytes == 10 * MIB
    blind = dataclasses.replace(one, samples=unknown)
    assert of_device(blind, device).peak_footprint_bytes is None


def test_rates_are_nan_where_unknown_or_begun_anew() -> None:
    rows = steady(5)
    rows["known"][1] = 0
    rows["host_to_device_bytes"][4] = 0

    rates = DeviceSeries(rows).rates("host_to_device_bytes")

    assert rates[[0, 3]] == pytest.approx([MIB, MIB])
    assert np.isnan(rates[[1, 2, 4]]).all()


def test_resident_is_exact_only_if_every_sample_says_so() -> None:
    rows = steady(3)
    rows["known"] |= int(Known.RESIDENT | Known.RESIDENT_EXACT)
    assert DeviceSeries(rows).resident_exact
    rows["known"][2] = int(Known.RESIDENT)
    assert not DeviceSeries(rows).resident_exact


def test_prefetched_and_discarded_are_told_as_the_most_that_it_can_be() -> None:
    text = Report(recordings.oversubscribed()).text(100)
    (line,) = [one for one in text.splitlines() if one.startswith("  prefetched ")]
    assert re.fullmatch(
        r"  prefetched +at most [\d.]+ [GM]iB; discarded at most [\d.]+ [GM]iB", line
    )
    nothing = Report(recordings.fitting()).text(100)
    assert "at most 0 B" not in nothing
