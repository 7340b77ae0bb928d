# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What stands under a cell of a notebook, of recordings made up for it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report import words
from rmm_uvm.report.figures import of_device
from rmm_uvm.report.summary import cell_summary

from . import recordings
from .test_budgets import with_budget


def _whole(recording: Recording) -> str:
    return cell_summary(recording, 0.0, recording.duration_seconds)


def test_cell_without_allocations_in_samples_claims_no_more_than_they_saw() -> None:
    recording = recordings.fitting()
    samples = recording.samples.copy()
    assert "footprint at most 9.30 GiB, " in _whole(recording)
    samples["footprint_bytes"] = 0
    said = _whole(dataclasses.replace(recording, samples=samples))
    assert "footprint 0 B in every sample, 0.00 times capacity" in said


@pytest.mark.parametrize(
    ("budget", "said"), [(True, r"evicted by the kernel driver,"), (False, r"evicted,")]
)
def test_evictions_beside_a_budget_are_named_as_the_drivers(budget: bool, said: str) -> None:
    recording = with_budget() if budget else recordings.oversubscribed()

    line = _whole(recording).splitlines()[0]

    assert line.startswith("uvm: ")
    assert said in line


def test_footprint_is_told_at_its_worst_and_not_only_as_it_was_found() -> None:
    plain = recordings.oversubscribed()
    facts = plain.devices[0]
    figures: Any = of_device(plain, facts)
    peak = words.size(figures.peak_footprint_bytes)
    factor = words.factor(figures.peak_footprint_bytes, facts.capacity_bytes)
    found = Finding("footprint", 0, 1.0, 1.01, 1.0, "live is 1.01 times it", "use a budget")
    recording = dataclasses.replace(plain, findings=(found,))

    advice = " ".join(line.strip() for line in _whole(recording).splitlines()[1:])

    assert advice == f"* use a budget: live is 1.01 times it; at most {peak}, {factor} times"
