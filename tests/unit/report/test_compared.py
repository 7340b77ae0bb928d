# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Two kept reports side by side."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from rmm_uvm.cli.main import make_group
from rmm_uvm.errors import DataError
from rmm_uvm.recording.line_traffic import CallPath, LineTraffic, MovedBytes, ProgramLine
from rmm_uvm.recording.recorded import Recording, Stage
from rmm_uvm.report import Report
from rmm_uvm.report.compared import Compared, KeptReport, kept_report

from . import recordings


def kept(path: Path, recording: Recording) -> KeptReport:
    Report(recording).save_json(path)
    return kept_report(path)


def twice(recording: Recording) -> Recording:
    """A recording of which twice as much moved to the device."""
    samples = recording.samples.copy()
    samples["host_to_device_bytes"] *= 2
    return dataclasses.replace(recording, samples=samples)


def test_report_beside_itself_has_once_as_much_of_all(tmp_path: Path) -> None:
    one = kept(tmp_path / "a.json", recordings.oversubscribed())
    told = Compared(one, one).to_dict()
    (device,) = told["devices"]
    assert device["rows"][0]["of"] == "whole"
    assert device["rows"][-1]["of"] == "outside"
    assert all(row["report"] == row["against"] for row in device["rows"])
    text = Compared(one, one).text()
    narrow = Compared(one, one).text(60)
    assert all(cell_len(line) <= 60 for line in narrow.splitlines())
    assert "to device" in narrow
    assert {line.split()[-1] for line in text.splitlines() if "GiB" in line} == {"1.00"}


def test_times_are_of_the_report_over_the_other(tmp_path: Path) -> None:
    less = kept(tmp_path / "less.json", recordings.oversubscribed())
    more = kept(tmp_path / "more.json", twice(recordings.oversubscribed()))
    for compared, told in (
        (Compared(more, less), "60.0 s 1.00 387.44 GiB 2.00 170.45 GiB 1.00"),
        (Compared(less, more), "60.0 s 1.00 193.72 GiB 0.50 170.45 GiB 1.00"),
    ):
        (whole,) = (one for one in compared.text().splitlines() if "whole run" in one)
        assert " ".join(whole.split()) == f"whole run {told}"


def test_stages_of_one_run_alone_are_new_or_gone_and_may_have_any_name(tmp_path: Path) -> None:
    names = ("whole run", "outside stages", "\x1b[31mred")
    recording = recordings.oversubscribed()
    ours = dataclasses.replace(
        recording, stages=tuple(Stage(name, 10.0 * n, 10.0 * n + 5) for n, name in enumerate(names))
    )
    theirs = dataclasses.replace(recording, stages=(Stage("theirs", 1.0, 2.0),))
    compared = Compared(kept(tmp_path / "a.json", ours), kept(tmp_path / "b.json", theirs))
    (device,) = compared.to_dict()["devices"]
    assert [(row["of"], row["name"]) for row in device["rows"]] == [
        ("whole", "whole run"),
        *(("stage", name) for name in names),
        ("stage", "theirs"),
        ("outside", "outside stages"),
    ]
    assert [row["against"] is None for row in device["rows"]] == [False, *[True] * 3, False, False]
    lines = compared.text().splitlines()
    (gone,) = (line for line in lines if line.startswith("theirs"))
    assert gone.split() == ["theirs", *["-", "gone"] * 3]
    assert sum(line.count(" new") for line in lines) == 9
    assert "\x1b" not in compared.text()
    assert all(cell_len(line) <= 80 for line in lines)


def test_devices_that_only_one_run_has_are_told(tmp_path: Path) -> None:
    two = kept(tmp_path / "two.json", recordings.two_devices())
    one = kept(tmp_path / "one.json", recordings.oversubscribed())
    text = Compared(two, one).text()
    assert "device 0" in text
    assert "device 1" in text
    assert "new" in text.partition("device 1")[2]


def of_lines(path: Path, *found: tuple[str, int, str, int]) -> KeptReport:
    """A report of lines: text, number, function and MiB that were brought back and evicted."""
    lines = tuple(ProgramLine("/home/me/etl.py", number, f, text) for text, number, f, _ in found)
    paths = tuple(
        CallPath((n,), 0, 1, 1, 1, MovedBytes(brought_bytes=mib << 20, evicted_bytes=mib << 20))
        for n, (*_, mib) in enumerate(found)
    )
    recording = recordings.oversubscribed()
    return kept(path, dataclasses.replace(recording, lines=LineTraffic("", lines, paths)))


def test_lines_are_the_same_by_their_text_where_their_numbers_differ(tmp_path: Path) -> None:
    twice = [("x = f()", 5, "load", 8), ("x = f()", 6, "load", 2)]
    ours = of_lines(
        tmp_path / "a", *twice, ("y = g()", 9, "load", 6), ("", 3, "run", 1), ("", 4, "new", 7)
    )
    theirs = of_lines(tmp_path / "b", *twice[::-1], ("y = g()", 12, "load", 3), ("", 4, "run", 5))
    compared = Compared(ours, theirs)
    pairs = [
        tuple(one and (one["line"]["number"], one["to_device_bytes"] >> 20) for one in pair)
        for pair in ((each["report"], each["against"]) for each in compared.to_dict()["lines"])
    ]
    assert pairs[:4] == [
        ((4, 7), None),
        (None, (4, 5)),
        ((9, 6), (12, 3)),
        ((3, 1), None),
    ]
    assert sorted(pairs[4:]) == [((5, 8), (5, 8)), ((6, 2), (6, 2))]
    lines = compared.text().partition("differ most\n")[2].splitlines()
    assert [" ".join(line.split()) for line in lines[1:4]] == [
        "etl.py:4 in new 7.00 MiB new 7.00 MiB new",
        "etl.py:4 in run - gone - gone",
        "etl.py:9 in load 6.00 MiB 2.00 6.00 MiB 2.00",
    ]
    assert all(cell_len(line) <= 80 for line in lines)


def test_ten_lines_are_told_and_none_where_one_run_has_none(tmp_path: Path) -> None:
    many = of_lines(tmp_path / "a", *((f"f({n})", n, "load", n) for n in range(1, 15)))
    few = of_lines(tmp_path / "b", ("f(14)", 14, "load", 13))
    assert Compared(many, few).text().count("etl.py:") == 10
    assert "etl.py:14" not in Compared(many, few).text()
    none = kept(tmp_path / "c", recordings.oversubscribed())
    assert Compared(many, none).to_dict()["lines"] is None
    assert "differ" not in Compared(none, many).text()


def test_command_prints_the_table_or_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    one = kept(path, recordings.oversubscribed())
    words = ["report", str(path), "--against", str(path)]
    done = CliRunner().invoke(make_group(), words)
    assert (done.exit_code, done.output) == (0, Compared(one, one).text() + "\n")
    done = CliRunner().invoke(make_group(), [*words, "--json"])
    assert json.loads(done.output) == json.loads(json.dumps(Compared(one, one).to_dict()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "another"}, "is not a report: give what `rmm-uvm run --json FILE` wrote"),
        ({"format_version": 2}, "is a report of version 2, and this rmm-uvm reads version 1"),
        ({"devices": None}, "is a damaged report: devices is None, not a list"),
        ({"devices": [{}]}, "is a damaged report: device_id is None"),
        ({"devices": [3]}, "is a damaged report: "),
        ({"about": {"program": 3}}, "is a damaged report: about"),
        ({"lines": {"by_line": [{"file": "a.py"}]}}, "is a damaged report: brought_bytes is None"),
        ({"lines": {"by_line": [3]}}, "is a damaged report: "),
        ({"lines": 3}, "is a damaged report: lines"),
    ],
)
def test_file_that_is_no_report_is_one_error(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**Report(recordings.oversubscribed()).to_dict(), **change}))
    with pytest.raises(DataError) as caught:
        kept_report(path)
    assert str(caught.value).startswith(f"{path} {said}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"\xff", b"[" * 100_000, b"[1]"])
def test_file_that_is_no_json_is_one_error(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(DataError, match="is not a report"):
        kept_report(path)
    with pytest.raises(DataError, match="cannot be read"):
        kept_report(tmp_path)
