# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the committed runs on a GPU say: programs of others, and eight minutes of mixed load."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from rmm_uvm.units import parse_bytes

from .documents import document
from .residency_scripts import BENCHMARKS, committed, script

TPCH, SCRIPTS, LOAD = map(committed, ("tpch", "dask_scripts", "endurance_gpu"))
MOST_MANAGED_BYTES = 24 << 30


@pytest.mark.parametrize("result", [TPCH, SCRIPTS, LOAD], ids=lambda result: result["benchmark"])
def test_run_was_on_a_gpu_under_the_cap_and_reached_everything(result: dict[str, Any]) -> None:
    environment = result["environment"]
    assert environment["simulated"] is False
    assert environment["commit"]
    assert parse_bytes(environment["managed_limit"]) <= MOST_MANAGED_BYTES
    reached = [
        one if isinstance(one, bool) else one["reached"] for one in result["verdicts"].values()
    ]
    assert reached
    assert all(reached)


def test_every_query_ran_in_every_way_with_the_answer_of_the_others() -> None:
    assert TPCH["failures"] == []
    ways = {(row["library"], row["query"], row["way"]) for row in TPCH["rows"]}
    queries = {(library, query) for library, query, _ in ways}
    assert len([library for library, _ in queries if library == "pandas"]) == 11
    assert len([library for library, _ in queries if library == "pdsh"]) == 22
    assert {way for *_, way in ways} == {"cuda", "stock", "ours", "budget"}
    assert len(ways) == 4 * len(queries)
    assert {(one["library"], one["query"]) for one in TPCH["answers"]} == queries
    assert len(TPCH["answers"]) == len(queries)  # of all ways together: they are compared


def test_queries_past_the_edge_moved_memory() -> None:
    for memory in TPCH["memory"].values():
        assert memory["budget"]["budget_bytes"] < memory["budget"]["peak_bytes"]
        assert memory["budget"]["evicted_bytes"] > 0


def test_scripts_ran_on_both_clusters_with_the_same_answers() -> None:
    assert SCRIPTS["failures"] == []
    assert len(SCRIPTS["rows"]) == 6
    assert {row["chain"] for row in SCRIPTS["rows"]} == {"stock-cuda", "ours"}
    stock, ours = (SCRIPTS["answers"][chain] for chain in ("stock-cuda", "ours"))
    for what in ("merge", "shuffle"):
        assert stock[what] == ours[what]
    assert ours["array"]["sum"] == pytest.approx(stock["array"]["sum"], rel=1e-12)


def test_memcheck_found_nothing_in_every_file_that_the_script_runs() -> None:
    found = committed("memcheck")
    rows = {row["file"]: row for row in found["rows"]}
    assert (found["errors"], found["failed"], found["environment"]["simulated"]) == (0, 0, False)
    for name in ("passed", "failed", "errors"):
        assert sum(row[name] for row in rows.values()) == found[name]
    tests = BENCHMARKS.parent / "tests"
    there = {f"tests/gpu/{path.name}" for path in (tests / "gpu").glob("test_*.py")}
    script = (BENCHMARKS.parent / "ci" / "sanitize_gpu.sh").read_text()
    [ignored] = re.findall(r"^ignored=\((.+?)^\)", script, re.DOTALL | re.MULTILINE)
    names = re.sub(r"^ *#.*$", "", ignored, flags=re.MULTILINE).split()
    assert {*there, "tests/contract"} - {f"tests/gpu/test_{name}.py" for name in names} == set(rows)
    text = document("endurance.md")
    of_contract = rows["tests/contract"]["passed"]
    told = f"in {found['passed']} tests on two H100, of which {of_contract} are cases of the"
    assert f"found {found['errors']} errors {told} contract" in text


def test_memory_that_stays_under_memcheck_is_told_to_be_the_tools() -> None:
    levels: dict[str, dict[str, list[float]]] = {"cuda": {}, "cpu": {}}
    for row in committed("memcheck_frames")["rows"]:
        levels[row["device"]].setdefault(row["way"], []).append(row["tensors_mebibytes"])
    kept = levels["cuda"].pop("backtraces of host and device")
    assert {round(after - before) for before, after in pairwise(kept)} == {288}
    assert "each step of training leaves 288 MiB of tensors behind" in document("endurance.md")
    others = [*levels["cuda"].values(), *levels["cpu"].values()]
    assert len(others) == 5
    assert all(len(set(steps)) == 1 for steps in others)


def test_load_went_on_for_eight_minutes_and_its_verdicts_are_those_of_its_rows() -> None:
    assert LOAD["settings"] == {"threads": 4, "seconds_asked": 480.0, "frames": True}
    assert LOAD["run_seconds"] >= 480
    judge = script("_load_verdicts").load_verdicts
    verdicts = {"the run came to its end": True, **judge(LOAD["rows"], with_frames=True)}
    assert verdicts == LOAD["verdicts"]
    last = LOAD["rows"][-1]
    assert (last["wrong"], last["frames_wrong"], last["failed_calls"]) == (0, 0, 0)
    assert last["to_host_bytes"] > 1 << 40
