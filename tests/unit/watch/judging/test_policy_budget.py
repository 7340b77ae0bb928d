# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The policy: requests that a budget cannot hold, and predictors that turned themselves off."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rmm_uvm.residency import ResidencyStatistics
from rmm_uvm.watch.judging.policy import Context, PolicyState, evaluate
from rmm_uvm.watch.judging.thresholds import Thresholds

from .samples import DEVICE, GIB, Samples

ZERO = dict.fromkeys((field.name for field in dataclasses.fields(ResidencyStatistics)), 0)


def budget(**changes: Any) -> ResidencyStatistics:
    plain: dict[str, Any] = {**ZERO, "policy": "repeat", "last_failure": "", "faults_unknown": ""}
    return ResidencyStatistics(**{**plain, "budget_bytes": 4 * GIB, **changes})


def test_too_large_request_is_found_once_however_long_it_lasts() -> None:
    samples = Samples().add(900)  # 90 s
    (finding,) = samples.findings(budget=budget(too_large=1, too_large_bytes=5 * GIB))
    assert (finding.kind, finding.value, finding.threshold) == ("budget", 5 * GIB, 4 * GIB)
    assert "larger than the budget of 4.00 GiB" in finding.message


def test_what_the_budget_counts_is_told_with_the_newest_sample() -> None:
    samples = Samples().add(20)
    troubled = budget(too_large=1, too_large_bytes=5 * GIB, switched_off=1)
    found = samples.findings(budget=troubled)
    last_seconds = samples.array()["time_ns"][-1] / 1e9
    assert last_seconds > 1.0
    assert {finding.kind: finding.time_seconds for finding in found} == {
        "budget": last_seconds,  # it may have happened after all others
        "prediction": last_seconds,
    }


def test_predictor_that_turned_itself_off_is_found_once() -> None:
    off = budget(switched_off=1, predicted=10, predictions=100)
    assert Samples().add(900).kinds(budget=off) == ["prediction"]


def test_budget_that_holds_and_foresees_gives_nothing() -> None:
    assert Samples().add(3).kinds(budget=budget(foresees=True)) == []
    assert Samples().add(3).kinds(budget=None) == []


def test_budget_findings_that_are_switched_off_are_none() -> None:
    troubled = budget(too_large=1, switched_off=1)
    assert Samples().add(3).kinds(Thresholds(budget=False), budget=troubled) == []


def test_another_pool_is_told_of_anew() -> None:
    state, kinds = PolicyState(), []
    for counts in (budget(too_large=1), budget(too_large=2), budget(), budget(too_large=1)):
        context = Context(DEVICE, budget=counts)
        state, found = evaluate(state, Samples().add().array(), context, Thresholds())
        kinds.append([finding.kind for finding in found])
    assert kinds == [["budget"], [], [], ["budget"]]


@pytest.mark.parametrize(
    ("context", "remedy"),
    [
        ({}, "process the data in parts, or expect migrations"),
        (
            {"prefetch": "auto"},
            'keep a budget (device_budget="auto"), or process the data in parts',
        ),
        (
            {"prefetch": "auto", "budget": budget()},
            "say what is used next (rmm_uvm.touch) and what is not (rmm_uvm.evict), or process the "
            "data in parts",
        ),
    ],
)
def test_remedies_of_this_package_come_first_where_they_can_be_had(
    context: dict[str, Any], remedy: str
) -> None:
    (finding,) = Samples(footprint_bytes=20 * GIB).add(50).findings(**context)
    assert finding.remedy == remedy


def test_what_fits_is_the_budget_where_others_hold_some_of_the_device() -> None:
    samples = Samples(footprint_bytes=8 * GIB).add(50)  # of 16 GiB
    (finding,) = samples.findings(prefetch="auto", budget=budget(unmanaged_bytes=12 * GIB))
    assert (finding.kind, finding.value) == ("footprint", 2.0)
    assert "8.00 GiB are allocated and 4.00 GiB fit on the device" in finding.message
    assert samples.findings(prefetch="auto", budget=budget()) == ()  # asked for, not taken
