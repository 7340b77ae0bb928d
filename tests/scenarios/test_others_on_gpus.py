# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What the committed runs on a GPU say: programs of others, queries, and a mixed load."""

from __future__ import annotations

import os
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.units import parse_bytes

from .documents import document
from .residency_scripts import BENCHMARKS, committed, script

TPCH, SCRIPTS, LOAD = map(committed, ("tpch", "dask_scripts", "endurance_gpu"))
REPOSITORY = BENCHMARKS.parent
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


def test_runs_of_scripts_are_told_as_they_were_and_are_measured_again_so() -> None:
    text = " ".join((BENCHMARKS / "README.md").read_text().split())
    fewest, most = sorted({row["runs"] for row in SCRIPTS["rows"]})
    told = (
        f"ran a script {fewest} or {most} times with {SCRIPTS['workers']} worker: {fewest} a start"
    )
    assert told in text
    [asked] = [
        script("dask_scripts").parser().parse_args(one.command[1:])
        for one in script("_record_table").BENCHMARKS
        if one.result == "dask_scripts"
    ]
    assert (asked.workers, asked.runs, asked.rounds * asked.runs) == (
        *(SCRIPTS["workers"], fewest, most),
    )


def test_queries_that_this_project_wrote_are_told_from_those_of_others() -> None:
    text = " ".join((BENCHMARKS / "README.md").read_text().split())
    queries = {row["query"] for row in TPCH["rows"] if row["library"] == "pandas"}
    assert len(queries) == 11
    assert "The eleven queries in pandas (`_tpch_pandas.py`) were written in this project" in text
    assert "not written for this project" not in text


def test_memcheck_found_nothing_in_all_the_tests_that_are_told() -> None:
    found = committed("memcheck")
    rows = {row["file"]: row for row in found["rows"]}
    assert (found["errors"], found["failed"], found["environment"]["simulated"]) == (0, 0, False)
    for name in ("passed", "failed", "errors"):
        assert sum(row[name] for row in rows.values()) == found[name]
    assert found["environment"]["device"].startswith("NVIDIA H100")
    on_two = {file for file, row in rows.items() if row["gpus"] == 2}
    assert on_two == {"tests/gpu/test_topology.py", "tests/gpu/test_neighbors.py"}
    text = document("endurance.md")
    told = f"in {found['passed']} tests on H100s, those of topology and neighbours on two at once"
    assert f"found {found['errors']} errors {told}" in text
    assert f"; {rows['tests/contract']['passed']} are cases of the contract." in text
    skipped = {file: row["skipped"] for file, row in rows.items() if row["skipped"]}
    assert skipped == {"tests/gpu/test_residency.py": 5, "tests/gpu/test_topology.py": 1}
    assert f"{sum(skipped.values())} were skipped: 5 that evict to another GPU" in text
    assert f"nothing is left, and all {found['passed']} pass." in text


def words_of_the_script(folder: Path) -> list[list[str]]:
    """Return the arguments of each call of the tool."""
    kept = folder / "words"
    tool = folder / "compute-sanitizer"
    tool.write_text(f'#!/bin/bash\necho "$@" >>{kept}\n')
    tool.chmod(0o755)
    subprocess.run(
        ["bash", str(REPOSITORY / "ci" / "sanitize_gpu.sh")],
        env={**os.environ, "SANITIZER": str(tool), "RMM_UVM_MANAGED_LIMIT": "1GiB"},
        check=True,
    )
    return [line.split() for line in kept.read_text().splitlines()]


def test_memcheck_ran_over_every_file_of_the_script_but_for_those_that_are_told(
    tmp_path: Path,
) -> None:
    calls = words_of_the_script(tmp_path)
    files = {str(Path(words[-1]).relative_to(REPOSITORY)) for words in calls}
    missing = files - {row["file"] for row in committed("memcheck")["rows"]}
    assert {Path(one).stem for one in missing} == {"test_cluster_watching"}
    text = document("endurance.md")
    assert all(f"(`{Path(one).stem}`)" in text for one in missing)


def test_programs_of_torch_that_memcheck_has_not_run_are_told(tmp_path: Path) -> None:
    file = "tests/gpu/test_torch_programs.py"
    there = re.findall(r"^def (test_\w+)\(", (REPOSITORY / file).read_text(), re.MULTILINE)
    left_out = {
        word.partition("::")[2]
        for word in words_of_the_script(tmp_path)[0]
        if word.startswith(f"{file}::")
    }
    assert left_out <= set(there)
    [row] = [one for one in committed("memcheck")["rows"] if one["file"] == file]
    not_run = len(there) - len(left_out) - row["passed"]
    text = document("endurance.md")
    assert f"and {len(left_out)} longer programs of torch (not tried)." in text
    assert f"and the {not_run} tests of `run --torch` in `test_torch_programs`." in text


def test_memory_that_stays_under_memcheck_is_told_to_be_the_tools() -> None:
    levels: dict[str, dict[str, list[float]]] = {"cuda": {}, "cpu": {}}
    for row in committed("memcheck_frames")["rows"]:
        levels[row["device"]].setdefault(row["way"], []).append(row["tensors_mebibytes"])
    text = document("endurance.md")
    kept = levels["cuda"]["backtraces of host and device"]
    assert {round(after - before) for before, after in pairwise(kept)} == {288}
    assert "each step of training leaves 288 MiB of tensors behind" in text
    without = levels["cuda"]["without the tool"]
    assert levels["cuda"]["backtraces of the device"] == without
    assert "With `--show-backtrace device`, which the script passes, nothing is left" in text
    assert len(set(without)) == 1
    assert all(steps == levels["cpu"]["without the tool"] for steps in levels["cpu"].values())


def test_load_went_on_for_eight_minutes_and_its_verdicts_are_those_of_its_rows() -> None:
    assert LOAD["settings"] == {"threads": 4, "seconds_asked": 480.0, "frames": True}
    assert LOAD["run_seconds"] >= 480
    judge = script("_load_verdicts").load_verdicts
    verdicts = {"the run came to its end": True, **judge(LOAD["rows"], with_frames=True)}
    assert verdicts == LOAD["verdicts"]
    last = LOAD["rows"][-1]
    assert (last["wrong"], last["frames_wrong"], last["failed_calls"]) == (0, 0, 0)
    assert last["to_host_bytes"] > 1 << 40
