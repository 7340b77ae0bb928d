# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Saving: JSON that says null and never NaN, whole files, errors of one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rmm_uvm.errors import AvailabilityError, DataError
from rmm_uvm.report import Report
from rmm_uvm.report.causes import of_device

from . import recordings

SHAPES = ["fitting", "oversubscribed", "two_devices", "blind", "unknown", "attributed", "hostile"]


@pytest.mark.parametrize("shape", SHAPES)
def test_json_of_any_recording_reads_back_the_same(shape: str, tmp_path: Path) -> None:
    report = Report(getattr(recordings, shape)())

    report.save_json(tmp_path / "report.json")

    text = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_dict_of_an_oversubscribed_run_has_its_figures() -> None:
    given = Report(recordings.oversubscribed()).to_dict()

    assert given["format_version"] == 1
    assert [one["count"] for one in given["advice"]] == [2, 1, 1]
    assert [one["stage"] for one in given["advice"]] == ["read csv", "load", "shuffle"]
    (device,) = given["devices"]
    assert device["peak_oversubscription_factor"] == 1.5
    assert device["by_stage"][-1]["open"] is True
    assert given["stages"][-1]["end_seconds"] is None
    assert given["sources"]["cupti"]["available"] is False
    assert given["verdict"] == ""


def test_dict_of_unknown_figures_holds_none() -> None:
    (device,) = Report(recordings.unknown()).to_dict()["devices"]

    assert device["host_to_device_bytes"] is None
    assert device["peak_footprint_bytes"] is None
    assert device["peak_oversubscription_factor"] is None
    assert device["causes"] is None


def test_causes_of_attribution_add_up_and_ignore_other_columns() -> None:
    recording = recordings.attributed()
    assert recording.causes is not None
    columns = [*recording.causes["columns"], "gpu_fault_groups"]
    rows = [[*row, 7] for row in recording.causes["rows"]]
    object.__setattr__(recording, "causes", {"columns": columns, "rows": rows})

    found = of_device(recording, 0)

    assert found is not None
    last = found.last()
    assert set(last["host_to_device"]) == {"user", "coherence", "prefetch"}
    assert set(last["device_to_host"]) == {"coherence", "eviction"}
    assert of_device(recording, 1) is None
    assert of_device(recordings.fitting(), 0) is None


@pytest.mark.parametrize("save", ["save_json", "save_html"])
def test_save_to_a_missing_folder_is_one_line(save: str, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "report"

    with pytest.raises(DataError, match="cannot be written to") as caught:
        getattr(Report(recordings.fitting()), save)(path)

    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("missing", ["bokeh.embed", "jinja2"])
def test_html_without_bokeh_names_the_remedy(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    report = Report(recordings.fitting())

    with pytest.raises(AvailabilityError, match=r"pip install 'rmm-uvm\[report\]'"):
        report.save_html(tmp_path / "report.html")

    assert not list(tmp_path.iterdir())
    assert report._repr_html_() is None
    assert str(report)
