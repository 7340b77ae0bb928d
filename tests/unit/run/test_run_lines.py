# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm run --lines``: whose memory moved is the first line of the list."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from .started import run, script

BUDGET = ["--device", "simulated:64MiB", "--device-budget", "32MiB", "--libraries", "none"]
HEAD = """
import rmm, rmm_uvm
MIB = 1 << 20
device = rmm.mr.get_current_device_resource().driver
def use(buffer, write=False):
    rmm_uvm.touch(buffer)
    device.touch(buffer.ptr, buffer.size, write=write)
"""
LOOP = """
def scratch(n): return rmm.DeviceBuffer(size=n * MIB)
def load(n, each): return [rmm.DeviceBuffer(size=each * MIB) for _ in range(n)]
parts = load({n}, {each})
for _ in range(5):
    for part in {order}(parts):
        use(part, write=True)
        use(scratch(2), write=True)
rmm.mr.get_current_device_resource().managed_mr.residency.flush()
"""
LEAK = """
kept = []
def remember(n): kept.append(rmm.DeviceBuffer(size=n * MIB))
def work(n): return rmm.DeviceBuffer(size=n * MIB)
for _ in range({n}):
    {steps}
    use(kept[-1], write=True)
    use(buffer, write=True)
"""
OWN_POOL = """
rmm_uvm.reinitialize(device_budget="32MiB", monitor=False, libraries=())
device = rmm.mr.get_current_device_resource().driver
"""
TEMPORARY = """
def scratch(n): return rmm.DeviceBuffer(size=n * MIB)
for each in range(30):
    use(scratch(4 + 2 * (each % 4)), write=True)
"""
STREAM = """
def load(): return rmm.DeviceBuffer(size=4 * MIB)
for _ in range(24):
    part = load()
    device.cpu_touch(part.ptr, part.size, write=True)
    use(part)
"""
FITS = """
def load(n): return [rmm.DeviceBuffer(size=4 * MIB) for _ in range(n)]
for part in load(4):
    use(part, write=True)
"""


def figures(folder: Path, program: str, *options: str) -> tuple[dict[str, Any], str]:
    path, told = script(folder, HEAD + program), folder / "figures.json"
    done = run(folder, *BUDGET, "--lines", *options, "--json", told, path)
    assert done.returncode == 0, done.stderr
    return json.loads(told.read_text()), done.stderr


@pytest.mark.parametrize(
    ("n", "each", "order"), [(6, 8, "list"), (10, 4, "reversed"), (5, 10, "list")]
)
def test_a_loop_over_parts_is_the_line_that_loads_them(
    tmp_path: Path, n: int, each: int, order: str
) -> None:
    report, told = figures(tmp_path, LOOP.format(n=n, each=each, order=order))
    top = report["lines"]["by_line"][0]
    assert top["function"].startswith("load")
    assert top["allocations"] == n
    assert top["times"] > 2
    to_device = sum(
        one["brought_bytes"] + one["faulted_bytes"] for one in report["lines"]["by_line"]
    )
    assert to_device == report["devices"][0]["host_to_device_bytes"]
    assert report["lines"]["culprits"][0]["line"] == top["line"]
    assert f"1. script.py:{top['line']} in load" in told
    assert f"its memory comes back {top['times']:.0f} times, " in told


@pytest.mark.parametrize("n", [16, 24])
@pytest.mark.parametrize(
    "steps", ["remember(4); buffer = work(4)", "buffer = work(4); remember(4)"]
)
def test_a_leak_is_the_line_that_keeps_what_it_made(tmp_path: Path, n: int, steps: str) -> None:
    report, told = figures(tmp_path, LEAK.format(n=n, steps=steps))
    top = report["lines"]["by_line"][0]
    assert top["function"] == "remember"
    assert top["live_bytes"] == top["peak_bytes"] == n * 4 << 20
    (culprit,) = report["lines"]["culprits"]
    assert (culprit["line"], culprit["fault"]) == (top["line"], "grows")
    assert f"1. script.py:{top['line']} in remember" in told
    others = report["lines"]["by_line"][1:]
    assert all(one["live_bytes"] <= 4 << 20 for one in others)


@pytest.mark.parametrize("program", [FITS, TEMPORARY])
def test_a_program_whose_memory_fits_has_no_culprit(tmp_path: Path, program: str) -> None:
    _, told = figures(tmp_path, program)
    assert "by line: no memory of the program's lines moved" in told


def test_parts_that_the_host_writes_and_that_are_used_once_have_no_culprit(tmp_path: Path) -> None:
    report, told = figures(tmp_path, STREAM)
    (line,) = report["lines"]["by_line"]
    assert line["brought_bytes"] + line["faulted_bytes"] == line["allocated_bytes"] == 96 << 20
    assert report["lines"]["culprits"] == []
    assert "by line: no line is to blame: 96.00 MiB came to the device" in " ".join(told.split())


def test_a_pool_that_the_program_makes_itself_is_known_from_its_first_allocation(
    tmp_path: Path,
) -> None:
    report, _ = figures(tmp_path, OWN_POOL + LOOP.format(n=6, each=8, order="list"))
    top = report["lines"]["by_line"][0]
    assert (top["function"].partition(".")[0], top["allocations"]) == ("load", 6)


def test_without_a_pool_it_says_why_there_are_no_lines(tmp_path: Path) -> None:
    path = script(tmp_path, "print('ran')")
    options = ["--no-pool", "--lines", "--device", "simulated:64MiB"]
    done = run(tmp_path, *options, path)
    assert done.stdout == "ran\n"
    assert "not watched: lines: " in done.stderr


def test_a_command_has_lines_too(tmp_path: Path) -> None:
    path, told = script(tmp_path, HEAD + LOOP.format(n=6, each=8, order="list")), tmp_path / "j"
    done = run(tmp_path, *BUDGET, "--lines", "--json", told, "--", sys.executable, path)
    assert done.returncode == 0, done.stderr
    assert json.loads(told.read_text())["lines"]["by_line"][0]["function"].startswith("load")
