# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A recording that goes from one process to another is the same recording."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from rmm_uvm.device_info import Availability
from rmm_uvm.errors import DataError
from rmm_uvm.run.handover import load, save
from rmm_uvm.watch.finding import Finding
from rmm_uvm.watch.recording import DeviceFacts, Recording, Stage
from rmm_uvm.watch.sample import SAMPLE_DTYPE


def recording() -> Recording:
    samples = np.zeros(5, SAMPLE_DTYPE)
    samples["time_ns"] = np.arange(5) * 10**9
    samples["host_to_device_bytes"] = np.uint64(2**63) + np.arange(5, dtype=np.uint64)
    return Recording(
        samples=samples,
        devices=(DeviceFacts(0, "NVIDIA H200", "GPU-1", 1 << 37, 1 << 36, chain=("A", "B")),),
        stages=(Stage("etl", 0.0, math.nan, 1, "MainThread"),),
        findings=(Finding("eviction", 0, 1.5, np.float64(2.0), 1.0, "it evicts", "use less"),),
        sources={"cupti": Availability(available=False, reason="not asked for")},
        causes={"columns": ["time_seconds"], "rows": [[np.int64(3), 0]]},
        busiest=((4096, 1, 2),),
        began="2026-11-21T12:00:00+00:00",
        interval_seconds=0.1,
        lost_samples=3,
        settings={"faults": "no"},
        versions={"rmm": "26.10"},
        cost_seconds=0.25,
    )


def test_recording_saved_and_loaded_is_equal(tmp_path: Path) -> None:
    original = recording()
    save(original, tmp_path)
    loaded = load(tmp_path)
    assert loaded is not None
    assert np.array_equal(loaded.samples, original.samples)
    assert loaded.samples.dtype == SAMPLE_DTYPE
    assert math.isnan(loaded.stages[0].end_seconds)
    for field in dataclasses.fields(Recording):
        if field.name not in ("samples", "stages"):
            assert getattr(loaded, field.name) == getattr(original, field.name)


def test_recording_that_was_not_left_is_none(tmp_path: Path) -> None:
    assert load(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"devices": [{"nonsense": 1}]}', "[" * 100_000])
def test_recording_that_is_damaged_is_one_error(tmp_path: Path, text: str) -> None:
    save(recording(), tmp_path)
    (tmp_path / "recording.json").write_text(text)
    with pytest.raises(DataError, match="what the program recorded cannot be read"):
        load(tmp_path)


def test_samples_of_another_layout_are_an_error(tmp_path: Path) -> None:
    save(recording(), tmp_path)
    facts = tmp_path / "recording.json"
    facts.write_text(facts.read_text().replace("own_to_host_bytes", "was_to_host_bytes"))
    with pytest.raises(DataError, match="another layout"):
        load(tmp_path)


def test_samples_that_are_cut_off_are_an_error(tmp_path: Path) -> None:
    save(recording(), tmp_path)
    samples = tmp_path / "samples.raw"
    samples.write_bytes(samples.read_bytes()[:-1])
    with pytest.raises(DataError, match="cut off"):
        load(tmp_path)
