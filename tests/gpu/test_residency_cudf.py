# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""cuDF past a budget on a GPU: its operations announce themselves, and results stay the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu

PROGRAM = """
import sys
import rmm_uvm
budget = sys.argv[1]
late = sys.argv[2] == "late"
if not late:
    import cudf
uvm = rmm_uvm.reinitialize(
    "64MiB", "2GiB", device_budget=None if budget == "none" else budget, monitor=False
)
if late:
    import cudf
import cupy
cupy.random.seed(7)
rows = 2_000_000
frame = cudf.DataFrame({"key": cupy.arange(rows) % 1000})
for name in "abcdef":
    frame[name] = (cupy.arange(rows) * (ord(name) - 90)) % 1_000_003
total = 0
for _ in range(3):
    grouped = frame.groupby("key").sum().sort_index()
    merged = frame[["key", "a"]].merge(grouped[["b"]].reset_index(), on="key", how="left")
    total += int(merged["b"].sum()) + int(grouped["f"].sum()) + int((frame["c"] * 2).max())
print("total", total)
if budget != "none":
    kept = rmm_uvm.residency_statistics()
    print("announced", kept.wanted_bytes, "left", kept.evicted_bytes + kept.dropped_bytes)
    print("found", kept.found_bytes)
    print("over", kept.peak_resident_bytes - kept.budget_bytes, "failed", kept.failed_calls)
    print("active", [w.active for w in uvm.wirings if w.library == "libcudf_calls"])
import pylibcudf
before = pylibcudf.copying.gather
rmm_uvm.restore()
print("put back", pylibcudf.copying.gather is not before or budget == "none")
"""


def lines(budget: str, when: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error::rmm_uvm.errors.MonitorWarning", "-c", PROGRAM, budget, when],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("when", ["late", "early"])
def test_operations_of_cudf_announce_what_they_use(when: str) -> None:
    found = lines("128MiB", when)
    announced, _, left = found["announced"].split()
    assert int(announced) > 128 << 20
    assert int(left) > 0
    over, _, failed = found["over"].split()
    assert int(over) <= int(found["found"])  # what CuPy used unseen, until others left for it
    assert failed == "0"
    assert found["active"] == "[True]"
    assert found["put"] == "back True"
    assert found["total"] == lines("none", when)["total"]


def test_without_a_budget_nothing_of_cudf_is_observed() -> None:
    assert lines("none", "early")["put"] == "back True"
