# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What top looks like: whole pages at three widths, and what must hold at any width."""

from __future__ import annotations

import dataclasses

import pytest
from rich.console import Console

from rmm_uvm.top.columns import choose, short_bytes
from rmm_uvm.top.render import render, sparkline
from rmm_uvm.top.view import ProcessRow, View

from .fakes import GIB, device

HISTORY = tuple((59.0 - age, float(age * age)) for age in range(60))

ETL = ProcessRow(
    pid=48213,
    name="python3",
    command="/opt/conda/bin/python3 -u /home/ann/jobs/mortgage_etl.py --parts 4",
    user="ann",
    source="published",
    device_id=0,
    footprint_bytes=167 * GIB,
    resident_bytes=131 * GIB,
    capacity_bytes=134 * GIB,
    host_to_device_bytes=812 * GIB,
    device_to_host_bytes=790 * GIB,
    evicted_bytes_estimate=771 * GIB,
    in_bytes_per_second=21.5 * GIB,
    out_bytes_per_second=18.25 * GIB,
    history=HISTORY,
)
PLAIN = ProcessRow(
    pid=977,
    name="stencil",
    command="./stencil -n 4096",
    user="bob",
    source="attached",
    host_to_device_bytes=64 << 20,
    device_to_host_bytes=0,
    evicted_bytes_estimate=0,
    in_bytes_per_second=0.0,
    out_bytes_per_second=0.0,
)
HIDDEN = ProcessRow(
    pid=1200,
    name="trainer",
    reason="process 1200 belongs to another user: attaching needs root or CAP_SYS_PTRACE",
)
VIEW = View((ETL, PLAIN, HIDDEN), (device(137.4),), time="2026-11-21T14:02:33+00:00")


def text(view: View, width: int, **options: object) -> str:
    console = Console(width=width, color_system=None, force_terminal=False, legacy_windows=False)
    with console.capture() as capture:
        console.print(render(view, width, **options))  # type: ignore[arg-type]
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


GOLDEN = {
    40: """
rmm-uvm top 14:02:33 every 1 s q quits
GPU 0: 137G of 139G in use, 99 %, full

  PID NAME        FOOT  IN/s OUT/s EVICT
48213 mortgage_…  167G   23G   20G  771G
  977 stencil        -     0     0     0
 1200 trainer: process 1200 belongs to
another user: attaching needs root or
CAP_SYS_PTRACE
""",
    80: """
rmm-uvm top  14:02:33  every 1 s  q quits
GPU 0 NVIDIA H200: 137 GiB of 139 GiB in use, 99 %, full

  PID NAME            FOOTPRINT RESIDENT     IN/s    OUT/s  EVICTED LAST MINUTE
48213 mortgage_etl.py   167 GiB  131 GiB  23.1 GB  19.6 GB  771 GiB ▁▁▁▁▁▂▃▃▄▆▇█
  977 stencil                 -        -      0 B      0 B      0 B
 1200 trainer: process 1200 belongs to another user: attaching needs root or
CAP_SYS_PTRACE
""",
    120: """
rmm-uvm top  14:02:33  every 1 s  q quits
GPU 0 NVIDIA H200: 137 GiB of 139 GiB in use, 99 %, full

  PID NAME            FOOTPRINT RESIDENT CAPACITY     IN/s    OUT/s  EVICTED LAST MINUTE
48213 mortgage_etl.py   167 GiB  131 GiB  134 GiB  23.1 GB  19.6 GB  771 GiB  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃▄▄▄▅▅▅▆▆▆▆▇▇▇█
  977 stencil                 -        -        -      0 B      0 B      0 B
 1200 trainer: process 1200 belongs to another user: attaching needs root or CAP_SYS_PTRACE
""",  # noqa: E501
}


@pytest.mark.parametrize("width", sorted(GOLDEN))
def test_page_looks_as_it_did(width: int) -> None:
    assert text(VIEW, width, live=True) == GOLDEN[width].strip("\n")


@pytest.mark.parametrize("width", [40, 41, 50, 59, 60, 72, 80, 100, 120, 200])
def test_page_fits_its_width_and_names_every_process(width: int) -> None:
    rows = [dataclasses.replace(ETL, pid=4_194_304, gpu_faults=1, faults_per_second=123_456.0)]
    rows += [dataclasses.replace(PLAIN, device_id=3), HIDDEN]
    page = text(View(tuple(rows), (device(), device(index=1))), width)
    assert max(map(len, page.splitlines())) <= width
    for pid in ("4194304", "977", "1200"):
        assert pid in page


@pytest.mark.parametrize("width", [40, 80, 120])
def test_page_in_ascii_has_no_other_character(width: int) -> None:
    assert text(VIEW, width, plain_ascii=True).isascii()


def test_page_higher_than_the_terminal_says_how_many_are_left_out() -> None:
    rows = tuple(dataclasses.replace(PLAIN, pid=pid) for pid in range(1, 51))
    page = text(View(rows), 80, height=20)
    assert len(page.splitlines()) <= 20
    assert "more that move less" in page


def test_page_without_processes_says_why() -> None:
    page = text(View(devices_reason="no NVML: libnvidia-ml.so.1 is not there"), 40)
    assert "No CUDA process" in page
    assert "libnvidia-ml.so.1" in page


def test_process_that_ended_is_marked() -> None:
    row = dataclasses.replace(PLAIN, exited=True, in_bytes_per_second=None)
    assert "stencil ended" in text(View((row,)), 80)


def test_hostile_names_are_printed_as_they_are() -> None:
    row = dataclasses.replace(PLAIN, name="[red]x[/red]\x1b[2J\n", command="")
    page = text(View((row,)), 80)
    assert "[red]x[/" in page
    assert "\x1b" not in page


def test_history_shows_any_movement_and_nothing_else() -> None:
    line = sparkline([(59.9, 1e-3), (0.0, 1e9)], 6)
    assert line[0] == "▁"
    assert line[-1] == "█"
    assert line[1:-1].strip() == ""
    assert sparkline([], 6) == " " * 6


def test_columns_never_exceed_the_width() -> None:
    for width in range(40, 240):
        for devices in (False, True):
            for faults in (False, True):
                columns = choose(width, devices=devices, faults=faults)
                assert sum(c.width for c in columns) + len(columns) - 1 <= width
                assert {"pid", "name", "in", "out"} <= {column.key for column in columns}


@pytest.mark.parametrize(
    ("kib", "shown"),
    [
        (9.99, "9.99 KiB"),
        (10, "10.0 KiB"),
        (99.9, "99.9 KiB"),
        (100, "100 KiB"),
        (1000, "0.98 MiB"),
    ],
)
def test_size_has_three_digits_on_both_sides_of_each_edge(kib: float, shown: str) -> None:
    assert short_bytes(kib * 1024) == shown
