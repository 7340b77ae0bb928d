# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""RMM's own logs, read as traces."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import rmm
from hypothesis import given
from hypothesis import strategies as st
from rmm.pylibrmm.memory_resource import _memory_resource

import rmm_uvm
from rmm_uvm.errors import DataError
from rmm_uvm.trace import EventKind, read, read_rmm_log
from rmm_uvm.trace.log_lines import why_bad

HEADER = "Thread,Time,Action,Pointer,Size,Stream\n"
LINE = "8298,13:16:52.923440,allocate,0x7fce86600000,1000,0\n"


def write(path: Path, *lines: str) -> Path:
    path.write_text(HEADER + "".join(lines))
    return path


def test_log_that_rmm_writes_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory_resource, "getDevice", lambda: 0)  # there is no GPU to ask
    mr = rmm_uvm.managed_pool(
        driver="simulated:64MiB", initial_pool_size="8MiB", maximum_pool_size="8MiB"
    )
    logging_mr = rmm.mr.LoggingResourceAdaptor(mr, log_file_name=str(tmp_path / "rmm.csv"))
    first, second = logging_mr.allocate(1000), logging_mr.allocate(1 << 20)
    logging_mr.deallocate(first, 1000)
    with pytest.raises(MemoryError):
        logging_mr.allocate(1 << 40)
    logging_mr.flush()

    trace = read_rmm_log(tmp_path / "rmm.csv")  # RMM wrote rmm.dev0.csv

    events = trace.events
    assert (trace.truncated, trace.damaged) == (False, "")
    assert events["kind"].tolist() == [
        EventKind.ALLOCATE,
        EventKind.ALLOCATE,
        EventKind.FREE,
        EventKind.ALLOCATE_FAILED,
    ]
    assert events["address"].tolist() == [first, second, first, 0]
    assert events["bytes"].tolist() == [1000, 1 << 20, 1000, 1 << 40]
    assert events["id"].tolist() == [0, 1, 0, -1]
    assert events["time_ns"][0] == 0
    logging_mr.deallocate(second, 1 << 20)


def test_logs_of_several_devices_are_put_in_order(tmp_path: Path) -> None:
    write(
        tmp_path / "rmm.dev0.csv",
        "1,10:00:00.000001,allocate,0x100,8,0\n",
        "1,10:00:00.000003,free,0x100,8,0\n",
    )
    write(
        tmp_path / "rmm.dev1.csv",
        "2,10:00:00.000002,allocate,0x100,16,0x7f00\n",
        "2,10:00:00.000004,free,0x100,16,2\n",
    )
    events = read_rmm_log(tmp_path / "rmm.csv").events

    assert events["device_id"].tolist() == [0, 1, 0, 1]
    assert events["id"].tolist() == [0, 1, 0, 1]
    assert events["time_ns"].tolist() == [0, 1000, 2000, 3000]
    assert events["stream"].tolist() == [0, 0x7F00, 0, 2]


def test_log_past_midnight_goes_on(tmp_path: Path) -> None:
    log = write(
        tmp_path / "rmm.csv",
        "1,23:59:59.999999,allocate,0x100,8,0\n",
        "1,00:00:00.000001,free,0x100,8,0\n",
    )
    assert read_rmm_log(log).events["time_ns"].tolist() == [0, 2000]


def test_log_of_old_rmm_with_a_colon_is_read(tmp_path: Path) -> None:
    log = write(tmp_path / "rmm.csv", "1,10:00:00:000001,allocate,0x100,8,0\n")
    assert len(read_rmm_log(log).events) == 1


@pytest.mark.parametrize(
    "line",
    [
        "garbage",
        "1,10:00:00.000001,allocate,0x100,8",
        "1,10:00:00.000001,steal,0x100,8,0",
        "1,25:00:00.000001,allocate,0x100,8,0",
        "1,10:00:00,allocate,0x100,8,0",
        "1,10:00:00.000001,allocate,0x100,-8,0",
        "1,10:00:00.000001,allocate,0x1" + "0" * 16 + ",8,0",
        "1" + "0" * 12 + ",10:00:00.000001,allocate,0x100,8,0",
        "1,10:00:00.000001,allocate,0x100," + "9" * 400 + ",0",
        "x" * 3_000_000,
    ],
)
def test_line_that_makes_no_sense_is_counted_and_passed_over(tmp_path: Path, line: str) -> None:
    trace = read_rmm_log(write(tmp_path / "rmm.csv", LINE, line + "\n", LINE, line + "\n"))

    assert len(trace.events) == 2
    why = why_bad(line.encode()[:512])
    assert trace.damaged == f"rmm.csv: 2 lines were not understood, the first is line 3 ({why})"

    trace = read_rmm_log(write(tmp_path / "rmm.csv", LINE, line + "\n", LINE))
    assert trace.damaged == f"rmm.csv: line 3 was not understood ({why})"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("garbage", "1 field and not 6"),
        ("1,10:00:00.000001,allocate,0x100,8", "5 fields and not 6"),
        ("x,10:00:00.000001,allocate,0x100,8,0", "its thread is 'x' and not a number"),
        ("1,10:00:00,allocate,0x100,8,0", "its time is '10:00:00' and not a time as"),
        ("1,10:00:00.000001,steal,0x100,8,0", "its action is 'steal' and not allocate, free"),
        ("1,10:00:00.000001,allocate,100g,8,0", "its pointer is '100g' and not an address"),
        ("1,10:00:00.000001,allocate,0x100,-8,0", "its size is '-8' and not a number of bytes"),
        ("1,10:00:00.000001,allocate,0x100,8,\x1b[2J", "its stream is '\\x1b[2J' and not an"),
        ("1,10:00:00.000001,allocate,0x100," + "9" * 400 + ",0", "its size is '9999999999"),
    ],
)
def test_first_line_that_makes_no_sense_is_told_with_its_reason(line: str, why: str) -> None:
    said = why_bad(line.encode())
    assert said.startswith(why)
    assert "\n" not in said
    assert len(said) < 100


@pytest.mark.parametrize("read_it", [read, read_rmm_log])
def test_path_that_is_none_is_one_line(read_it: Any) -> None:
    with pytest.raises(DataError, match="5 cannot be read: the name of a file is needed"):
        read_it(5)


def test_log_cut_off_in_a_line_is_truncated(tmp_path: Path) -> None:
    trace = read_rmm_log(write(tmp_path / "rmm.csv", LINE, LINE[:30]))
    assert (len(trace.events), trace.truncated, trace.damaged) == (1, True, "")


def test_other_files_are_no_logs(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    for text in ("", "Time,Thread\n", "x" * 1000):
        other.write_text(text)
        with pytest.raises(DataError, match="is not a log of RMM's LoggingResourceAdaptor"):
            read_rmm_log(other)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_rmm_log(tmp_path / "missing.csv")
    with pytest.raises(DataError, match="is not a file"):
        read_rmm_log(tmp_path)


@given(st.binary(max_size=400))
def test_random_text_after_the_header_never_breaks_the_reader(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(HEADER.encode() + data)
        file.flush()
        read_rmm_log(file.name).recording()


def test_recording_of_a_log_has_the_footprint(tmp_path: Path) -> None:
    lines = []
    for number in range(1000):
        lines.append(f"1,10:00:{number // 100:02}.{number:06},allocate,{hex(4096 * number)},10,0\n")
    lines.append("1,10:01:00.000000,free,0x1000,10,0\n")
    recording = read_rmm_log(write(tmp_path / "rmm.csv", *lines)).recording()

    assert recording.samples["footprint_bytes"].max() == 10_000
    assert recording.samples["footprint_bytes"][-1] == 9990
    assert [device.device_id for device in recording.devices] == [0]
    assert not recording.samples["device_used_bytes"].any()
