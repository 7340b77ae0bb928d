# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Levels of memory over a run."""

from __future__ import annotations

import threading

from rmm_uvm_mortgage.timeline import LevelSampler, RunTimeline


def timeline_of(levels: list[int]) -> RunTimeline:
    remaining = iter(levels)
    return RunTimeline(lambda: (next(remaining), 0, 0))


def test_timeline_without_a_clock_counts_operations() -> None:
    timeline = timeline_of([1, 2, 3])
    for _ in range(3):
        timeline.sample()
    assert [sample.position for sample in timeline.samples] == [0, 1, 2]


def test_timeline_with_a_clock_begins_at_zero() -> None:
    seconds = iter([7.0, 7.5])
    timeline = RunTimeline(lambda: (0, 0, 0), lambda: next(seconds))
    timeline.sample()
    timeline.sample()
    assert [sample.position for sample in timeline.samples] == [0.0, 0.5]


def test_timeline_thinned_keeps_the_peak() -> None:
    timeline = timeline_of([*range(50), 1000, *range(49)])
    for _ in range(100):
        timeline.sample()
    thinned = timeline.thinned(10)
    assert len(thinned) == 10
    assert max(sample.footprint_bytes for sample in thinned) == 1000


def test_timeline_thinned_keeps_a_short_stage_whole() -> None:
    timeline = timeline_of([0] * 300)
    timeline.begin("create_12_mon_features")
    for _ in range(200):
        timeline.sample()
    timeline.end("create_12_mon_features")
    timeline.begin("train")
    timeline.sample()
    timeline.end("train")
    kept = [sample.position for sample in timeline.thinned(30)]
    assert kept[-3:] == [202, 203, 204]
    assert len(kept) <= 30


def test_timeline_marks_stages_by_their_first_and_last_sample() -> None:
    timeline = timeline_of([0] * 5)
    timeline.begin("prep")
    timeline.sample()
    timeline.end("prep")
    plain = timeline.to_json()
    assert plain["stages"] == [["prep", 0.0, 2.0]]
    assert plain["position"] == "operations"
    assert len(plain["samples"]) == 3


def test_sampler_takes_samples_and_ends_its_thread() -> None:
    seen = threading.Event()
    timeline = RunTimeline(lambda: (seen.set() or 0, 0, 0))
    with LevelSampler(timeline, interval_seconds=0.001):
        assert seen.wait(timeout=10)
    count = len(timeline.samples)
    assert count > 0
    assert not any(thread.name == "rmm-uvm-sampler" for thread in threading.enumerate())
