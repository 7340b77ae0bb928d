# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of embeddings runs on a simulated device, and finds a way that is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
WAYS = ["resident", "ours, not reordered", "ours", "host table", "plain"]


def run(tmp_path: Path, program: str) -> subprocess.CompletedProcess[str]:
    paths = [*filter(None, sys.path), str(REPOSITORY)]
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "RMM_UVM_DRIVER": "simulated:64MiB",
        },
    )


MAIN = """
import sys
from benchmarks.training import embedding
sys.argv = ["embedding", "--cpu", "--small", "--json", "found.json"]
embedding.BATCHES = dict.fromkeys(embedding.BATCHES, 2)
{more}
embedding.main()
"""


def test_small_benchmark_has_the_same_rows_in_every_way_and_hits_more_once_reordered(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, MAIN.format(more=""))
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    rows = {row["way"]: row for row in found["rows"]}
    assert list(rows) == WAYS
    assert list(found["verdicts"]) == ["same rows in every way"]
    assert rows["ours"]["hit_fraction"] > 2 * rows["ours, not reordered"]["hit_fraction"]
    assert rows["ours"]["hot_bytes"] <= found["settings"]["budget_bytes"]
    assert found["settings"]["table_bytes"] == 4 * found["settings"]["budget_bytes"]


def test_way_that_trains_other_rows_misses_the_verdict(tmp_path: Path) -> None:
    other = "embedding.HostTable.train = lambda self, ids: None"
    done = run(tmp_path, MAIN.format(more=other))
    assert done.returncode == 1, done.stderr
    assert "missed: same rows in every way" in done.stdout


@pytest.mark.parametrize(("plain_seconds", "status"), [(5.1, True), (4.9, False)])
def test_verdicts_judge_both_bounds(tmp_path: Path, plain_seconds: float, status: bool) -> None:
    program = f"""
from benchmarks.training import embedding
times = {{"ours": 1.0, "plain": {plain_seconds}, "resident": 0.51}}
rows = [{{"way": w, "infer_seconds": t, "train_seconds": t}} for w, t in times.items()]
found = embedding.verdicts_of(rows, 0.0, timed=True)
print([found[f"{{what}}: speed / {{base}}"]["reached"]
       for what in ("infer", "train") for base in ("plain managed", "resident")])
"""
    done = run(tmp_path, program)
    assert done.stdout.strip() == str([status, True, status, True]), done.stderr
