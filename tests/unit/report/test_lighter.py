# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A lighter recording makes the same report."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import Recording, Stage
from rmm_uvm.recording.sample import Known
from rmm_uvm.report.as_dict import as_dict
from rmm_uvm.report.lighter import lighter
from rmm_uvm.report.series import DeviceSeries

from . import recordings


def told(recording: Recording) -> dict[str, Any]:
    """Return a report's figures without how many samples they are of."""
    return {name: value for name, value in as_dict(recording).items() if name != "samples"}


@pytest.mark.parametrize(
    "shape", ["fitting", "oversubscribed", "two_devices", "unknown", "attributed", "hostile", "day"]
)
def test_lighter_recording_makes_the_same_report(shape: str) -> None:
    whole = getattr(recordings, shape)()
    light = lighter(whole, n_buckets=5)

    assert told(light) == told(whole)
    assert len(whole.samples) < 200 or len(light.samples) < len(whole.samples) / 2


def test_recording_of_nothing_stays_as_it_is() -> None:
    assert told(lighter(recordings.blind())) == told(recordings.blind())


@given(
    spans=st.lists(st.tuples(st.floats(0, 60), st.floats(0, 60)), max_size=5),
    unknown=st.sets(st.integers(0, 599), max_size=100),
    n_buckets=st.integers(1, 20),
)
def test_peaks_of_any_stages_are_kept(
    spans: list[tuple[float, float]], unknown: set[int], n_buckets: int
) -> None:
    stages = tuple(Stage(f"{i}", min(span), max(span)) for i, span in enumerate(spans))
    whole = dataclasses.replace(recordings.oversubscribed(), stages=stages)
    whole.samples["known"][sorted(unknown)] &= ~np.uint32(Known.RESIDENT)
    light = lighter(whole, n_buckets)

    def peaks(recording: Recording) -> Any:
        (device,) = as_dict(recording)["devices"]
        return [
            {name: row[name] for name in row if name.startswith("peak")}
            for row in (device, *device["by_stage"], device["outside_stages"] or {})
        ]

    assert peaks(light) == peaks(whole)


def test_highest_rate_is_kept() -> None:
    whole = recordings.day()
    light = lighter(whole)
    for name in ("host_to_device_bytes", "device_to_host_bytes"):
        rates = [DeviceSeries(one.of(0)).rates(name) for one in (whole, light)]
        assert np.nanmax(rates[1]) == np.nanmax(rates[0])


def test_day_with_very_many_findings_and_stages_is_light_and_says_what_it_lost() -> None:
    worst = Finding("eviction", 0, 77.0, 1e6, 1.0, "the worst", "use less")
    many = [Finding("eviction", 0, float(i), 2.0, 1.0, f"{i}", "use less") for i in range(5000)]
    stages = tuple(Stage(f"{i}", i * 1.0, i + 0.5) for i in range(9000))
    longest = Stage("longest", 5.0, 5000.0)
    whole = dataclasses.replace(
        recordings.day(),
        findings=tuple(sorted([worst, *many], key=lambda one: one.time_seconds)),
        stages=(stages[0], longest, *stages[1:]),
    )
    light = lighter(whole)

    assert len(pickle.dumps(light)) < 1.5e6 < len(pickle.dumps(whole))
    assert worst in light.findings
    assert many[0] in light.findings
    assert many[-1] in light.findings
    assert longest in light.stages
    assert light.settings["findings left out"] == "4001"
    assert light.settings["stages left out"] == "8501"


def test_causes_keep_their_last_row_and_their_sums() -> None:
    whole = recordings.attributed()
    assert whole.causes is not None
    first = whole.causes["rows"][0]
    rows = [[i * 0.1, 0, *first[2:]] for i in range(9000)] + [[1000.0, 0, *range(12)]]
    light = lighter(dataclasses.replace(whole, causes={**whole.causes, "rows": rows}))

    assert light.causes is not None
    assert light.causes["rows"][-1] == rows[-1]
    assert len(light.causes["rows"]) <= 2001
