# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The model beside an H200: every measured figure, the committed comparison, and the document."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm_mortgage.etl import STAGES

from ..scenarios.residency_scripts import script

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "benchmarks" / "results"


@pytest.fixture(scope="module")
def calibration() -> ModuleType:
    """The benchmark's module."""
    return script("planner/model_calibration")


@pytest.fixture(scope="module")
def rows(calibration: ModuleType) -> list[dict[str, Any]]:
    return list(calibration.compared())


def test_every_measured_figure_is_met_within_15_percent(rows: list[dict[str, Any]]) -> None:
    assert len(rows) >= 25
    assert [row["figure"] for row in rows if abs(row["ratio"] - 1) > 0.15] == []


def test_committed_comparison_and_document_are_what_the_model_says_now(
    calibration: ModuleType, rows: list[dict[str, Any]]
) -> None:
    assert json.loads((RESULTS / "model_calibration.json").read_text())["figures"] == rows
    text = calibration.DOCUMENT.read_text()
    assert calibration.PLACE.search(text)
    assert calibration.filled(text, rows) == text, "run: model_calibration.py --write"


def test_figure_that_is_too_far_off_would_be_seen(calibration: ModuleType) -> None:
    wrong = calibration.Figure("wrong", "ms", 100, 110, lambda: 130.0)
    calibration.FIGURES, before = (wrong,), calibration.FIGURES
    try:
        (row,) = calibration.compared()
    finally:
        calibration.FIGURES = before
    assert row["ratio"] == pytest.approx(130 / 110, abs=1e-4)
    assert not row["reached"]


def test_committed_speed_has_reached_its_bounds() -> None:
    found = json.loads((RESULTS / "model_speed.json").read_text())["verdicts"]
    assert found["block operations a second"]["must_be_at_least"] == 5e6
    assert found["bytes for each 2 MiB"]["must_be_at_most"] == 200
    assert all(verdict["reached"] for verdict in found.values())


def test_mortgage_as_recorded_on_a_gpu_has_its_stages() -> None:
    workload = load_workload(REPOSITORY / "tests/data/mortgage-h200.trace.gz", strict=True)
    assert set(STAGES) <= set(workload.stages)
    assert workload.touches_assumed  # a GPU does not tell
    assert workload.device_name == "NVIDIA H200"
    assert workload.cut_off == ""
    assert workload.peak_live_bytes > 1 << 30


def test_document_has_the_profile_that_was_measured() -> None:
    profiles = json.loads((RESULTS / "model_profile.json").read_text())["profiles"]
    document = (RESULTS.parents[1] / "docs" / "measure" / "simulator-accuracy.md").read_text()
    for kind, shares in profiles.items():
        most = [
            f"`{name.removeprefix('uvm_model::')}` {share:.0%}"
            for name, share in list(shares.items())[:5]
            if share >= 0.005
        ]
        assert f"| {kind} | {', '.join(most)} |" in document
        assert sum(shares.values()) > 0.7
        # What would be mended first: memory that is taken, and tables that are searched.
        assert not any("alloc" in name or "hash" in name for name in list(shares)[:3])
