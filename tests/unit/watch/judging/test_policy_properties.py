# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The policy over any samples: what holds for all of them."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis
from hypothesis import strategies as st

from rmm_uvm.recording.finding import WARNING_OF
from rmm_uvm.watch.judging.context import Context
from rmm_uvm.watch.judging.policy import PolicyState, evaluate
from rmm_uvm.watch.judging.thresholds import Thresholds

from .samples import DEVICE, EXACT, GIB, Samples

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
        budget=False,
    )
    samples = Samples()
    for row in rows:
        samples.add(**row)
    context = {"host_available_bytes": 1, "prefetch": "auto", "unavailable": {"cupti": "gone"}}
    assert samples.findings(off, **context) == ()
