# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A recording that goes from one process to another is the same recording."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmm_uvm.errors import DataError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.as_json import plain, restored
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.line_traffic import (
    CallPath,
    LineTraffic,
    MovedBytes,
    MovedObject,
    ProgramLine,
)
from rmm_uvm.recording.recorded import RecordedDevice, Recording, Stage
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.report import Report
from rmm_uvm.residency.statistics import ResidencyStatistics
from rmm_uvm.run.handover import load, save

BUDGET = ResidencyStatistics(
    **{
        field.name: "lru" if field.type == "str" else field.type == "bool" or 3
        for field in dataclasses.fields(ResidencyStatistics)
    }
)


def recording() -> Recording:
    samples = np.zeros(5, SAMPLE_DTYPE)
    samples["time_ns"] = np.arange(5) * 10**9
    samples["host_to_device_bytes"] = np.uint64(2**63) + np.arange(5, dtype=np.uint64)
    return Recording(
        samples=samples,
        devices=(RecordedDevice(0, "NVIDIA H200", "GPU-1", 1 << 37, 1 << 36, chain=("A", "B")),),
        stages=(Stage("etl", 0.0, math.nan, 1, "MainThread"),),
        findings=(Finding("eviction", 0, 1.5, np.float64(2.0), 1.0, "it evicts", "use less"),),
        sources={"cupti": Availability(available=False, reason="not asked for")},
        causes={"columns": ["time_seconds", "device_id"], "rows": [[np.int64(3), 0]]},
        busiest=((4096, 1, 2),),
        lines=LineTraffic(
            "known",
            (ProgramLine("a.py", 3, "f", "x = 1"),),
            (CallPath((0,), 0, 2, 3, 4, MovedBytes(5, 6, 7, 8, 9)),),
            (MovedObject(1, 0, 2, True, MovedBytes(1)),),
        ),
        budgets={0: dataclasses.asdict(BUDGET)},
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


def test_budget_that_was_handed_over_is_in_the_report(tmp_path: Path) -> None:
    save(recording(), tmp_path)
    loaded = load(tmp_path)
    assert loaded is not None
    assert Report(loaded).to_dict()["devices"][0]["budget"]["budget_bytes"] == 3
    assert "policy lru" in str(Report(loaded))
    without = dataclasses.replace(loaded, budgets={})
    assert "policy lru" not in str(Report(without))


def test_recording_that_was_not_left_is_none(tmp_path: Path) -> None:
    assert load(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"devices": [{"nonsense": 1}]}', "[" * 100_000])
def test_recording_that_is_damaged_is_one_error(tmp_path: Path, text: str) -> None:
    save(recording(), tmp_path)
    (tmp_path / "recording.json").write_text(text)
    with pytest.raises(DataError, match="what the program recorded cannot be read"):
        load(tmp_path)


def facts_of(told: Recording) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(json.dumps(plain(told)))
    return values


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("devices", 0, "total_bytes"), "2GiB", r"it.devices\[0\].total_bytes is '2GiB'"),
        (("devices", 0, "simulated"), 1, "simulated is 1, not of type bool"),
        (("devices", 0, "chain"), "AB", "chain is 'AB', not a list"),
        (("devices", 0, "capacity_bytes"), 2**64, "not of type int"),
        (("devices", 0, "shape"), 1, "a field 'shape', which is not known"),
        (("stages", 0, "begin_seconds"), math.nan, "begin_seconds is nan"),
        (("stages", 0, "end_seconds"), math.inf, "end_seconds is inf"),
        (("findings", 0), {}, "has no field device_id"),
        (("findings", 0, "value"), True, "value is True"),
        (("sources", "cupti", "reason"), None, "reason is None"),
        (("busiest", 0), [1, 2], "has 2 values, not 3"),
        (("budgets", "00"), {}, "budgets\\['00'\\] is of no device"),
        (("budgets", "0", "evicted_bytes"), 0.5, "evicted_bytes is 0.5"),
        (("causes", "columns"), ["time_seconds"], "causes without time or device"),
        (("causes", "rows", 0), [1.0], "has not 2 values"),
        (("settings",), [], "settings is \\[\\], not a mapping"),
        (("samples",), [], "a field 'samples'"),
        (("cost_seconds",), 10**400, "cost_seconds is 1000"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_value_of_another_type_is_an_error_that_names_it(
    place: tuple[str | int, ...], value: object, message: str
) -> None:
    told = facts_of(recording())
    assert restored(told, b"").devices == recording().devices
    within: Any = told
    for key in place[:-1]:
        within = within[key]
    within[place[-1]] = value
    with pytest.raises(DataError, match=message):
        restored(told, b"")


def test_rows_of_causes_are_in_order_of_time() -> None:
    told = facts_of(recording())
    told["causes"]["rows"] = [[2.0, 0], [1.0, 1], [1.0, 0]]
    causes = restored(told, b"").causes
    assert causes is not None
    assert causes["rows"] == [[1.0, 1], [1.0, 0], [2.0, 0]]


def test_samples_that_go_back_in_time_are_an_error() -> None:
    samples = recording().samples
    assert restored(facts_of(recording()), samples.tobytes()).duration_seconds == 4
    with pytest.raises(DataError, match="back in time"):
        restored(facts_of(recording()), samples[::-1].tobytes())


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


@pytest.mark.parametrize(
    ("which", "wrong"),
    [
        ("paths", {"lines": [1]}),
        ("paths", {"lines": [-1]}),
        ("paths", {"users": 1}),
        ("objects", {"path": 1}),
    ],
)
def test_lines_that_name_what_is_not_there_are_refused(which: str, wrong: dict[str, Any]) -> None:
    told = plain(recording())
    told["lines"][which][0] |= wrong
    with pytest.raises(DataError, match="lines whose call paths or allocations name others"):
        restored(told, recording().samples.tobytes())
