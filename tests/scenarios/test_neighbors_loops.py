# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs with an idle neighbour: the benchmark on simulated programs, and its verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .residency_scripts import script

loops = script("neighbors/loops")
SMALL = ["--simulated", "--rounds", "2"]


def run(where: Path, *words: str) -> tuple[int, dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RMM_UVM_DRIVER", "simulated")
        status = loops.main(["--json", str(where), *SMALL, *words])
    return status, json.loads(where.read_text())


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("loops") / "loops.json")[1]


def rows(program: str, host: float, ours: float, **more: Any) -> list[dict[str, Any]]:
    counts = {"neighbor_bytes": 1, "failed_calls": 0}
    return [
        {"program": program, "way": way, "each_seconds": [seconds], "residency": counts, **more}
        for way, seconds in ((loops.HOST, host), (loops.HARVEST, ours))
    ]


def test_simulated_programs_are_faster_with_a_neighbour(result: dict[str, Any]) -> None:
    assert set(result["speedups"]) == {"page rank", "breadth first", "training"}
    assert min(result["speedups"].values()) > 1.3
    for row in result["rows"]:
        sent = row["residency"]["neighbor_bytes"]
        assert (sent > 0) is (row["way"] == loops.HARVEST)


def test_call_for_one_program_keeps_the_rows_of_the_others(tmp_path: Path) -> None:
    where = tmp_path / "loops.json"
    run(where, "--workloads", "page rank")
    before = json.loads(where.read_text())["rows"]
    _, after = run(where, "--workloads", "training")
    assert after["rows"][: len(before)] == before
    assert {row["program"] for row in after["rows"]} == {"page rank", "training"}


def test_unknown_program_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no workload sorting: there are page rank"):
        loops.main(["--json", str(tmp_path / "x.json"), *SMALL, "--workloads", "sorting"])


def test_program_that_fails_is_kept_with_its_reason_and_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise MemoryError("no room\nat all")

    made = {**loops.simulated_workloads(), "page rank": fails}
    monkeypatch.setattr(loops, "simulated_workloads", lambda: made)
    status, found = run(tmp_path / "x.json", "--workloads", "page rank,training")
    assert status == 1
    assert found["failed"] == {"page rank": "MemoryError: no room"}
    assert set(found["speedups"]) == {"training"}


def test_verdicts_reach_their_bounds_where_programs_do() -> None:
    found = loops.verdicts([*rows("a", 3.0, 1.0), *rows("b", 1.5, 1.0)])
    assert found["the best"]["value"] == 3.0
    assert loops.harness.exit_status(found) == 0


@pytest.mark.parametrize(
    "found",
    [
        rows("a", 2.0, 1.0),
        [*rows("a", 3.0, 1.0), *rows("b", 1.0, 2.0), *rows("c", 1.0, 1.0)],
        rows("a", 3.0, 1.0, residency={"neighbor_bytes": 0, "failed_calls": 0}),
        rows("a", 3.0, 1.0, residency={"neighbor_bytes": 1, "failed_calls": 1}),
        [*rows("a", 3.0, 1.0, digest="x")[:1], *rows("a", 3.0, 1.0, digest="y")[1:]],
        [*rows("a", 3.0, 1.0, losses=[1.0])[:1], *rows("a", 3.0, 1.0, losses=[1.1])[1:]],
    ],
)
def test_verdict_that_is_missed_is_told(found: list[dict[str, Any]]) -> None:
    assert loops.harness.exit_status(loops.verdicts(found)) == 1


def test_pipeline_of_uneven_stages_trains() -> None:
    pytest.importorskip("torch")
    pipeline = script("neighbors/pipeline").Pipeline
    small = {"width": 8, "rows": 4, "micro_batches": 2}
    found = pipeline(("cpu", "cpu"), layers=(3, 1), **small).train(4)
    again = pipeline(("cpu", "cpu"), layers=(3, 1), **small).train(4)
    assert found["losses"] == again["losses"]
    assert found["losses"][-1] < found["losses"][0]
