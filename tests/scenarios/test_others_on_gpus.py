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

from rmm_uvm.support.units import parse_bytes

from .documents import document
from .residency_scripts import BENCHMARKS, committed, missed, script

TPCH, SCRIPTS, LOAD = map(committed, ("tpch", "dask_scripts", "endurance_gpu"))
REPOSITORY = BENCHMARKS.parent
MOST_MANAGED_BYTES = 24 << 30


@pytest.mark.parametrize("result", [TPCH, SCRIPTS, LOAD], ids=lambda result: result["benchmark"])
def test_run_was_on_a_gpu_under_the_cap_and_reached_everything(result: dict[str, Any]) -> None:
    environment = result["environment"]
    assert environment["simulated"] is False
    assert environment["commit"]
    assert parse_bytes(environment["managed_limit"]) <= MOST_MANAGED_BYTES
    assert result["verdicts"]
    assert missed(result["verdicts"]) == set()


def test_every_query_ran_in_every_way_with_the_answer_of_the_others() -> None:
    assert TPCH["failures"] == []
    ways = {(row["library"], row["query"], row["way"]) for row in TPCH["rows"]}
    queries = {(library, query) for library, query, _ in ways}
    for brought in ("pandas-pdsh", "pdsh"):  # all that others wrote, and nothing that is ours
        assert len([library for library, _ in queries if library == brought]) == 22
    assert len(queries) == 44
    assert set(TPCH["fallbacks"]["pandas-pdsh"]) == {"cuda", "stock", "ours"}
    assert {way for *_, way in ways} == {"cuda", "stock", "ours"}
    assert len(ways) == 3 * len(queries)
    assert {f"{library}: answers of budget" for library, _ in queries} <= set(TPCH["verdicts"])
    assert {(one["library"], one["query"]) for one in TPCH["answers"]} == queries
    assert len(TPCH["answers"]) == len(queries)  # of all ways together: they are compared


def test_queries_past_a_budget_passed_it() -> None:
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
    [runs] = {row["runs"] for row in SCRIPTS["rows"]}
    assert SCRIPTS["workers"] == 2  # with one nothing travels
    assert f"ran each script {runs} times with {SCRIPTS['workers']} workers." in text
    [(asked, gpus)] = [
        (script("cluster/scripts").parser().parse_args(one.command[1:]), one.gpus)
        for one in script("common/record_table").BENCHMARKS
        if one.result == "dask_scripts"
    ]
    assert (asked.workers, asked.runs * asked.rounds, gpus) == (SCRIPTS["workers"], runs, 2)


def test_memcheck_found_nothing_in_all_the_tests_that_are_told() -> None:
    found = committed("memcheck")
    rows = found["rows"]
    assert (found["errors"], found["failed"], found["environment"]["simulated"]) == (0, 0, False)
    for name in ("passed", "failed", "errors"):
        assert sum(row[name] for row in rows) == found[name]
    cards = {row.get("device", found["environment"]["device"]) for row in rows}
    assert cards == {"NVIDIA H200", "NVIDIA H100 80GB HBM3"}
    on_two = {row["file"] for row in rows if row["gpus"] == 2}
    assert on_two == {
        f"tests/gpu/test_{name}.py" for name in ("topology", "neighbors", "residency")
    }
    text = " ".join(document("measure/endurance.md").split())
    told = f"in {found['passed']} tests on H200s and an H100, those of topology, neighbours and"
    assert f"found {found['errors']} errors {told} residency on two at once" in text
    [contract] = [row for row in rows if row["file"] == "tests/contract"]
    assert f"; {contract['passed']} are cases of the contract." in text
    assert [row["skipped"] for row in rows if row["skipped"]] == []
    assert "None was skipped" in text
    assert f"nothing is left, and all {found['passed']} pass." in text
    minutes = sum(row["seconds"] for row in rows) / 60
    script_of_it = (REPOSITORY / "ci" / "sanitize_gpu.sh").read_text()
    assert f"which takes {minutes:.0f} minutes on one GPU" in script_of_it


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


def test_memcheck_ran_over_every_file_of_the_script(tmp_path: Path) -> None:
    calls = words_of_the_script(tmp_path)
    files = {str(Path(words[-1]).relative_to(REPOSITORY)) for words in calls}
    assert files == {row["file"] for row in committed("memcheck")["rows"]}
    text = " ".join(document("measure/endurance.md").split())
    assert "every file of the script has run on the core as it is" in text


def test_every_program_of_torch_ran_under_memcheck_but_for_those_left_out(tmp_path: Path) -> None:
    file = "tests/gpu/test_torch_programs.py"
    there = re.findall(r"^def (test_\w+)\(", (REPOSITORY / file).read_text(), re.MULTILINE)
    left_out = {
        word.partition("::")[2]
        for word in words_of_the_script(tmp_path)[0]
        if word.startswith(f"{file}::")
    }
    assert left_out == {one for one in there if one.startswith("test_ranks_")}
    passed = [row["passed"] for row in committed("memcheck")["rows"] if row["file"] == file]
    assert sum(passed) == len(there) - len(left_out)


def test_memory_that_stays_under_memcheck_is_told_to_be_the_tools() -> None:
    levels: dict[str, dict[str, list[float]]] = {"cuda": {}, "cpu": {}}
    for row in committed("memcheck_frames")["rows"]:
        levels[row["device"]].setdefault(row["way"], []).append(row["tensors_mebibytes"])
    text = document("measure/endurance.md")
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
    judge = script("endurance/load_verdicts").load_verdicts
    verdicts = {"the run came to its end": True, **judge(LOAD["rows"], with_frames=True)}
    assert verdicts == LOAD["verdicts"]
    last = LOAD["rows"][-1]
    assert (last["wrong"], last["frames_wrong"], last["failed_calls"]) == (0, 0, 0)
    assert last["to_host_bytes"] > 1 << 40


def grown_mebibytes(rows: list[dict[str, int]], name: str) -> float:
    """Return by how much a level grew after the first quarter of a run."""
    settled = [row[name] for row in rows[len(rows) // 4 :]]
    return (max(settled) - settled[0]) / (1 << 20)


def test_memory_that_grew_is_told_to_be_what_malloc_keeps_free() -> None:
    text = " ".join(document("measure/endurance.md").split())
    trimmed = committed("endurance_gpu_trimmed")
    assert trimmed["settings"] == LOAD["settings"]
    judged = script("endurance/load_verdicts").load_verdicts(trimmed["rows"], with_frames=True)
    assert trimmed["verdicts"] == {"the run came to its end": True, **judged}
    named = {one.result: one for one in script("common/record_table").BENCHMARKS}
    [[variable, value]] = named["endurance_gpu_trimmed"].settings
    assert f"`{variable}={value}` in its environment" in text
    held, resident = (grown_mebibytes(LOAD["rows"], name) for name in ("held_bytes", "rss_bytes"))
    assert f"grew by {held:.2f} MiB after the first quarter" in text
    assert f"all resident memory grew by {resident:.1f} MiB." in text
    less = grown_mebibytes(trimmed["rows"], "rss_bytes")
    assert less < resident / 2
    assert f"resident memory grew by {less:.1f} MiB." in text
