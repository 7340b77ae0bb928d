# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Every committed result by the same rules, and what documents quote of them.

A result names a commit of this repository, so that what was measured can be looked at, the machine,
and every bound that it misses. Where the history is not whole (a shallow clone, an archive of the
sources) commits are not checked.
"""

from __future__ import annotations

import datetime
import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.support.units import parse_bytes

from .scripts import REPOSITORY, script

RESULTS = REPOSITORY / "benchmarks" / "results"
NAMES = [str(path.relative_to(RESULTS).with_suffix("")) for path in sorted(RESULTS.rglob("*.json"))]
# Sides whose memory may lie on the device beside the budget: others have a pool of its size.
MANAGED = {"default", "announced", "fault-driven", "fault-driven-prefetched"}
MOST_MANAGED_BYTES = 24 << 30
is_result = script("benchmarks", "common/past_the_edge").is_result
_COMMIT = re.compile(r'"commit": "([0-9a-f]{7,40})(?:-dirty)?"')
# By file: the history was rewritten after these were measured. No others are to come.
REWRITTEN = {
    "cpp_allocate_free": {"d2bba33"},
    "report_size": {"a1acd72"},
    "sampler_cost": {"43347a4"},
    "trace_cost": {"56c217d"},
}


def result(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return loaded


# What is not reached yet, by result; the documents that name a result have the figures.
MISSED: dict[str, list[str]] = {
    "dask_results": ["1 GiB, ours, GB/s"],
    "lines_cost": ["nanoseconds of an allocation and its free"],
    "ledger_cost": ["fits: processor time of a call, 8 threads / 1"],
    "recycled_memory": ["ours / Prefetch(Pool(Managed))"],
    # `repeat` without `ahead` takes 3 % less, since kernels wait for what another stream brings.
    "residency_policies": ["the default wins on the recordings"],
    "residency_discards": [
        "fir, 2x: time against fetching, the paper's programs simulated",
        "hash join, 2x: time against fault-driven, the paper's ratio",
        "hash join, 3x: time against fault-driven, the paper's ratio",
    ],
    "migration_threads": ["fetching, against whole mappings"],
    "neighbors_interference_before": ["slowdown of etl"],
    "torch_fits": [
        "gpt2-medium bf16: everything fits, managed / native",
        "resnet152 bf16: everything fits, managed / native",
        "resnet152 fp32: everything fits, managed / native",
    ],
}


# By result and by what a side is compared with: how many times as long it may take.
BOUNDS = {
    "past_the_edge_cudf": {"resident": 1.35, "by-hand": 1.0, "fault-driven": 0.5},
    "past_the_edge_cudf_three_budgets": {"resident": 2.0, "by-hand": 1.0},
    "past_the_edge_merge_and_sort": {"resident": 3.0},
}


@pytest.mark.parametrize("name", BOUNDS)
def test_default_is_as_fast_as_it_was(name: str) -> None:
    ratios = {
        row["over"]: row["seconds_ratio"]
        for row in result(name)["ratios"]
        if row["of"] == "default"
    }
    assert {over: ratios[over] for over, most in BOUNDS[name].items() if ratios[over] > most} == {}


def complaints(name: str, kept: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a result, whatever it is of."""
    environment = kept.get("environment")
    if environment is not None:
        datetime.date.fromisoformat(environment["date"])
        yield from (f"no {what}" for what in ("commit", "versions") if not environment[what])
    if environment is not None and environment.get("simulated") is False:
        if "NVIDIA" not in environment["device"]:
            yield f"measured on {environment['device']}"
        if parse_bytes(environment["managed_limit"]) > MOST_MANAGED_BYTES:
            yield f"a cap of {environment['managed_limit']}"
    missed = [
        bound
        for bound, verdict in kept.get("verdicts", {}).items()
        if verdict is False or (isinstance(verdict, dict) and verdict.get("reached") is False)
    ]
    if missed != MISSED.get(name, []):
        yield f"missed: {missed}"
    for what in ("failures", "findings", "errors", "failed"):
        if kept.get(what):
            yield f"{what}: {kept[what]}"
    yield from _of_ratios(kept)


def _of_ratios(kept: Mapping[str, Any]) -> Iterator[str]:
    """Yield ratios that are told as results and are none by the protocol, and other answers."""
    if "protocol" not in kept:
        return
    for row in kept["ratios"]:
        managed = {row["of"], row["over"]} & MANAGED
        if row["result"] is not (managed <= row["beyond"].keys() and is_result(row)):
            yield f"{row['of']} / {row['over']}: told as a result: {row['result']}"
    answers = [side["checksums"] for side in kept["sides"] if side.get("checksums")]
    if not answers or any(each != answers[0] for each in answers):
        yield "sides with other answers"


@pytest.mark.parametrize("name", NAMES)
def test_result_is_by_the_rules(name: str) -> None:
    assert list(complaints(name, result(name))) == []


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("tpch", {"failures": ["query 1"]}, "failures"),
        ("tpch", {"verdicts": {"answers": False}}, "missed: ['answers']"),
        ("dask_results", {"verdicts": {}}, "missed: []"),
        ("past_the_edge_cudf", {"sides": [{"checksums": [n]} for n in range(2)]}, "other answers"),
    ],
)
def test_result_that_is_not_by_the_rules_is_found(
    name: str, change: Mapping[str, Any], complaint: str
) -> None:
    (found,) = complaints(name, {**result(name), **change})
    assert complaint in found


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"device": "simulated"}, "measured on"),
        ({"managed_limit": "25GiB"}, "a cap of 25GiB"),
        ({"commit": ""}, "no commit"),
    ],
)
def test_machine_that_is_not_by_the_rules_is_found(
    change: Mapping[str, str], complaint: str
) -> None:
    kept = result("tpch")
    kept["environment"] |= change
    assert [each[: len(complaint)] for each in complaints("tpch", kept)] == [complaint]


@pytest.mark.parametrize("change", [{}, {"most_bytes": 1 << 30}])
def test_ratio_without_its_device_memory_or_with_too_much_is_no_result(
    change: Mapping[str, int],
) -> None:
    kept = result("past_the_edge_cudf")
    beyond = kept["ratios"][0]["beyond"]
    if change:
        beyond["default"]["page_tables"] |= change
    else:
        del beyond["default"]
    (found,) = complaints("past_the_edge_cudf", kept)
    assert found == "default / fault-driven: told as a result: True"


def told(row: Mapping[str, Any]) -> str:
    """Return a ratio as documents write it."""
    return f"{row['seconds_ratio']:.2f} ({min(row['ratios']):.2f} to {max(row['ratios']):.2f})"


def quoted(text: str) -> list[str]:
    """Return the ratios in a document but for those that a benchmark wrote into it."""
    by_hand = re.sub(r"<!-- begin: .*?<!-- end: .*?-->", "", text, flags=re.DOTALL)
    return re.findall(r"\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)", " ".join(by_hand.split()))


def test_ratios_in_documents_are_results_by_the_protocol() -> None:
    results = {
        told(row)
        for name in NAMES
        if "protocol" in (kept := result(name))
        for row in kept["ratios"]
        if is_result(row)
    }
    documents = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    found = [
        (path.name, ratio)
        for path in documents
        if path.parent.name != "decisions"  # what was decided then had the figures of then
        for ratio in quoted(path.read_text())
    ]
    assert [one for one in found if one[1] not in results] == []
    assert {name for name, _ in found} >= {"README.md", "past-the-edge.md"}


def test_ratio_is_quoted_unless_a_benchmark_wrote_it() -> None:
    text = "takes 0.80 (0.71\nto 1.11)\n<!-- begin: x -->\n1.00 (0.90 to 1.10)\n<!-- end: x -->"
    assert quoted(text) == ["0.80 (0.71 to 1.11)"]


def commits_of(file: Path) -> set[str]:
    """Return the commits that a result file names."""
    return set(_COMMIT.findall(file.read_text()))


def asked(folder: Path, *words: str) -> str:
    """Return what git says, nothing where it is not there or says an error."""
    try:
        command = ["git", "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def missing(folder: Path, commits: Iterable[str]) -> set[str]:
    """Return those that are not in the history of HEAD; none where it is not whole."""
    if asked(folder, "rev-parse", "--is-shallow-repository") != "false":
        return set()
    history = asked(folder, "rev-list", "HEAD").split()
    return {one for one in commits if not any(each.startswith(one) for each in history)}


def test_results_name_commits_that_exist_but_for_those_before_history_was_rewritten() -> None:
    named = {str(f.relative_to(RESULTS))[:-5]: commits_of(f) for f in RESULTS.rglob("*.json")}
    gone = missing(REPOSITORY, set().union(*named.values()))
    found = {name: commits & gone for name, commits in named.items() if commits & gone}

    assert {name: commits - REWRITTEN.get(name, set()) for name, commits in found.items()} == {
        name: set() for name in found
    }


def test_exceptions_are_in_the_files_that_they_are_made_for() -> None:
    named = {name: commits_of(RESULTS / f"{name}.json") for name in REWRITTEN}

    assert {name: REWRITTEN[name] - commits for name, commits in named.items()} == {
        name: set() for name in REWRITTEN
    }


def repository(folder: Path) -> tuple[Path, str]:
    """Return a repository of two commits, and the last one."""
    folder.mkdir()
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for number in range(2):
        asked(folder, *author, "commit", "-q", "--allow-empty", "-m", str(number))
    return folder, asked(folder, "rev-parse", "--short", "HEAD")


def test_commit_that_is_not_in_the_history_is_found(tmp_path: Path) -> None:
    made, commit = repository(tmp_path / "whole")
    result = tmp_path / "result.json"
    result.write_text(f'{{"commit": "{commit}-dirty", "rows": [{{"commit": "0123456"}}]}}')

    assert commit
    assert commits_of(result) == {commit, "0123456"}
    assert missing(made, commits_of(result)) == {"0123456"}


def test_history_that_is_not_whole_finds_nothing(tmp_path: Path) -> None:
    made, _ = repository(tmp_path / "whole")
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", made.as_uri(), str(shallow)], check=True)

    assert missing(shallow, {"0123456"}) == set()
    assert missing(tmp_path, {"0123456"}) == set()
