# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What reports say of lines, of recordings that are made up."""

from __future__ import annotations

import dataclasses
import json

import pytest

from rmm_uvm.recording.line_traffic import CallPath, LineSum, LineTraffic, MovedBytes, ProgramLine
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report import Report
from rmm_uvm.report.as_dict import as_dict
from rmm_uvm.report.by_line import told
from rmm_uvm.report.flame import flame

from . import recordings

MIB = 1 << 20
LIBRARY = "/venv/lib/python3.11/site-packages/frames/core.py"


def path_of(*lines: int, users: int | None = 0, mib: int = 1) -> CallPath:
    nbytes = mib * MIB
    moved = MovedBytes(brought_bytes=nbytes, returned_bytes=nbytes)
    return CallPath(lines, users, 1, nbytes, nbytes, moved, (nbytes // 2,), (nbytes,))


def recording_of(lines: tuple[ProgramLine, ...], *paths: CallPath) -> Recording:
    traffic = LineTraffic("as was asked for", lines, paths)
    assert traffic.holds_together
    return dataclasses.replace(recordings.fitting(), lines=traffic)


def test_callers_are_lines_of_the_program_each_by_itself() -> None:
    lines = (
        ProgramLine("/etl/load.py", 3, "load"),
        ProgramLine(LIBRARY, 70, "apply"),
        ProgramLine("/etl/one/main.py", 9, "main"),
        ProgramLine("/etl/two/main.py", 9, "main"),
    )
    ours, theirs, nobodys = path_of(0, 1, 2, mib=3), path_of(0, 1, 3, mib=2), path_of(0)
    text = " ".join(Report(recording_of(lines, ours, theirs)).text(100).split())
    assert "called by main.py:9 in main: 3.00 MiB; main.py:9 in main: 2.00 MiB" in text
    text = " ".join(Report(recording_of(lines, ours)).text(100).split())
    assert "(called by main.py:9 in main)" in text
    outermost = dataclasses.replace(lines[2], function="<module>")
    script = (*lines[:2], outermost, *lines[3:])
    assert "called by" not in Report(recording_of(script, ours)).text(100)
    text = " ".join(Report(recording_of(lines, ours, nobodys)).text(100).split())
    assert "called by main.py:9 in main: 3.00 MiB; no line of the program: 1.00 MiB" in text


@pytest.mark.parametrize("others", [(), (1,)])
def test_all_bytes_of_a_flame_graph_have_those_of_no_known_line(others: tuple[int, ...]) -> None:
    lines = tuple(ProgramLine("etl.py", number, "f") for number in range(1, 5))
    known = (path_of(0, 2, 3), *(path_of(each, mib=4) for each in others))
    chart = flame(LineTraffic("", lines, (path_of(users=None, mib=2), *known)))
    assert chart is not None
    nbytes = (3 + 4 * len(others)) * MIB
    assert chart.x.end == nbytes
    assert f"{nbytes // MIB}.00 MiB in all" in chart.caption


def test_figures_of_deep_paths_name_each_line_once() -> None:
    text = "part = " + "x" * 60
    lines = tuple(ProgramLine(f"/etl/{n}.py", n, f"step_{n}", text) for n in range(80))
    paths = [path_of(*range(n % 7, 80), users=0) for n in range(500)]
    recording = recording_of(lines, *paths)
    figures = as_dict(recording)["lines"]
    assert figures["lines"][3] == {
        "file": "/etl/3.py",
        "line": 3,
        "function": "step_3",
        "text": text,
    }
    assert figures["by_path"][3]["lines"] == list(range(3, 80))
    assert Report(recording).to_json().count(text) == 80 + 7 + 7  # and by line, and as culprits
    assert len(json.dumps(figures)) < 500_000


def test_dropped_bytes_of_a_line_are_told_as_its_share_of_the_blocks() -> None:
    moved = MovedBytes(evicted_bytes=MIB, dropped_bytes=3 * MIB)
    one = LineSum(None, 1, 0, 4 * MIB, moved)
    assert told(one) == "evicted 1.00 MiB; share of blocks dropped dead 3.00 MiB"


def test_memory_of_no_known_line_is_told_with_all_reasons() -> None:
    text = " ".join(Report(recording_of((), path_of(users=None))).text(100).split())
    assert (
        "by line: 1.00 MiB moved with no line known: allocated earlier, by no thread of Python, or "
        "on a path past the first 65,536 " in text
    )
