# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""dask-cuda's benchmark scripts on two clusters, in little and without a GPU; what is judged."""

from __future__ import annotations

import copy
import importlib
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .residency_scripts import BENCHMARKS, script

benchmark = script("cluster/scripts")
chains = script("cluster/chains")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any]]:
    """Run everything once, in a process of its own: its clusters find their modules by its path."""
    file = tmp_path_factory.mktemp("whole") / "result.json"
    command = [sys.executable, str(BENCHMARKS / "cluster/scripts.py"), "--on-cpu"]
    done = subprocess.run(
        [*command, "--rounds", "1", "--runs", "2", "--json", str(file)],
        env={**os.environ, "RMM_UVM_DRIVER": "simulated"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert file.exists(), done.stderr
    return done.returncode, json.loads(file.read_text())


@pytest.mark.nightly
@pytest.mark.timeout(400)
def test_scripts_run_on_stock_workers_and_on_ours(whole: tuple[int, dict[str, Any]]) -> None:
    status, result = whole
    assert result["failures"] == []
    assert status == 0, result["verdicts"]
    ran = {(row["script"], row["chain"]) for row in result["rows"]}
    assert ran == {(name, chain) for name in benchmark.SCRIPTS for chain in benchmark.CHAINS["cpu"]}
    assert all(row["seconds"] > 0 and row["runs"] == 2 for row in result["rows"])
    assert set(result["ratios"]) == set(benchmark.SCRIPTS)


@pytest.mark.nightly
@pytest.mark.timeout(400)
def test_scripts_run_where_our_pool_is_and_stock_has_none(
    whole: tuple[int, dict[str, Any]],
) -> None:
    memory = whole[1]["memory"]
    ours, stock = memory["ours-simulated"], memory["stock-cpu"]
    assert [one["resource"][0] for one in ours] == ["UvmResourceAdaptor"] * 2
    assert not any("UvmResourceAdaptor" in one["resource"] for one in stock)


@pytest.mark.nightly
@pytest.mark.timeout(400)
def test_answers_are_of_as_many_rows_as_the_scripts_make(
    whole: tuple[int, dict[str, Any]],
) -> None:
    answers = whole[1]["answers"]["ours-simulated"]
    assert answers["merge"]["rows"] == 2 * 2 * int(20_000 / 2 * 0.3)
    assert answers["shuffle"]["rows"] == 8 * (64 << 10) // 8
    assert answers["array"]["sum"] == pytest.approx(400 * 400, rel=0.01)  # twice a mean of a half


@pytest.mark.nightly
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("what", "name", "missed"),
    [
        ("merge", "rows", {"ours-simulated, merge: as expected", "merge: the same on all"}),
        ("merge", "mixed", {"merge: the same on all"}),
        ("shuffle", "bits", {"ours-simulated, shuffle: as expected"}),
        ("array", "sum", {"ours-simulated, array: as expected", "array: the same on all"}),
    ],
)
def test_answer_that_is_another_misses_its_verdicts(
    whole: tuple[int, dict[str, Any]], what: str, name: str, missed: set[str]
) -> None:
    answers = copy.deepcopy(whole[1]["answers"])
    assert all(benchmark.verdicts_of(answers, {}).values())
    value = answers["ours-simulated"][what][name]
    answers["ours-simulated"][what][name] = value + 1 if isinstance(value, int) else value * 1.0001
    verdicts = benchmark.verdicts_of(answers, {})
    assert {name for name, reached in verdicts.items() if not reached} == missed


def test_answers_that_one_cluster_has_not_are_not_the_same() -> None:
    verdicts = benchmark.verdicts_of({"stock": {"merge": {"rows": 1}}, "ours": {}}, {})
    assert not verdicts["merge: the same on all"]


def test_script_that_processes_other_data_misses_its_verdict() -> None:
    runs = {
        "equal": {"stock": [{"data_bytes": 1}], "ours": [{"data_bytes": 1}]},
        "other": {"stock": [{"data_bytes": 1}], "ours": [{"data_bytes": 2}]},
    }
    verdicts = benchmark.verdicts_of({}, runs)
    assert verdicts["equal: processes the same on all"]
    assert not verdicts["other: processes the same on all"]


def test_script_that_did_not_run_or_ran_elsewhere_misses_its_verdict() -> None:
    measured = benchmark.Measured({"stock-cuda": None, "ours": None}, "gpu", 1)
    measured.runs = {"local_cupy": {"stock-cuda": [], "ours": []}}
    pool = {"resource": ["UvmResourceAdaptor"], "peak_bytes": 4096}
    measured.memory = {"stock-cuda": [{"resource": ["PoolMemoryResource"]}], "ours": [pool]}
    assert measured.verdicts()["ours: in our pool"]
    assert measured.verdicts()["local_cupy, ours: runs"]
    measured._keep("local_cupy", "ours", RuntimeError("it ended with status 1"))
    assert not measured.verdicts()["local_cupy, ours: runs"]
    assert measured.verdicts()["local_cupy, stock-cuda: runs"]
    for other in ({**pool, "peak_bytes": 0}, {"resource": ["CudaMemoryResource"]}):
        measured.memory["ours"] = [other]
        assert not measured.verdicts()["ours: in our pool"]


def test_rows_have_medians_and_ours_over_stock() -> None:
    runs = {
        "local_cupy": {
            "stock-cuda": [{"seconds": s, "data_bytes": 8} for s in (1.0, 2.0, 9.0)],
            "ours": [{"seconds": 3.0, "data_bytes": 8}],
        },
        "local_cudf_merge": {"stock-cuda": [{"seconds": 1.0, "data_bytes": 8}], "ours": []},
    }
    rows, ratios = benchmark.rows_of(runs)
    assert [(row["chain"], row["seconds"], row["least_seconds"]) for row in rows] == [
        ("stock-cuda", 2.0, 1.0),
        ("ours", 3.0, 3.0),
        ("stock-cuda", 1.0, 1.0),
    ]
    assert ratios == {"local_cupy": 1.5}


def parsed(name: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what a script's own parser makes of a command line."""
    module = importlib.import_module(f"dask_cuda.benchmarks.{name}")
    monkeypatch.setattr(sys, "argv", [name, *words])
    return module.parse_args()


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
@pytest.mark.parametrize("name", benchmark.SCRIPTS)
def test_command_line_is_one_that_the_script_takes(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = benchmark.words_of(name, kind, "ucxuvm://10.0.0.1:8786", Path("here"), 5, 2)
    found = parsed(name, words, monkeypatch)
    assert (found.type, found.runs, found.output_basename) == (kind, 5, "here")
    assert found.disable_rmm  # memory is the cluster's
    assert (found.scheduler_address, found.devs) == ("ucxuvm://10.0.0.1:8786", "0,1")


@pytest.mark.parametrize("name", benchmark.SCRIPTS)
def test_command_line_with_a_word_that_there_is_not_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = benchmark.words_of(name, "gpu", "tcp://10.0.0.1:8786", Path("here"), 5, 2)
    with pytest.raises(SystemExit):
        parsed(name, [*words, "--chunks-size", "1"], monkeypatch)


def test_script_that_ends_with_an_error_says_its_last_lines() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)local_cupy ended with status 2:.*invalid choice"):
        benchmark.run_script("local_cupy", "neither", "tcp://10.0.0.1:8786", 1, 1)


def test_script_has_no_part_of_the_cap_on_managed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []

    def start(words: list[str], *, env: dict[str, str], **_: Any) -> Any:
        given.append(env)
        return SimpleNamespace(returncode=2, stdout="", stderr="")

    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "24GiB")
    monkeypatch.setenv("UCX_TLS", "tcp")
    monkeypatch.setattr(benchmark.subprocess, "run", start)
    with pytest.raises(RuntimeError, match="status 2"):
        benchmark.run_script("local_cupy", "gpu", "tcp://10.0.0.1:8786", 1, 1)
    assert given[0]["RMM_UVM_MANAGED_LIMIT"] == "1MiB"
    assert given[0]["UCX_TLS"] == "tcp"


class Cluster:
    """In the place of a cluster: each call gives its figures, and its name is its address."""

    def __init__(self, chain: Any, *_: Any) -> None:
        self._name = getattr(chain, "name", chain)

    def call(self, function: Any, *_: Any) -> Any:
        if function is benchmark.answers.scheduler_address:
            return self._name
        pool = [{"resource": ["UvmResourceAdaptor"], "peak_bytes": 1}]
        return pool if function is benchmark.answers.memories else {"rows": 1}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        raise ChildProcessError("the cluster does not end")


NAMES = ("stock-cpu", "ours-simulated")
ANSWERED = benchmark.ANSWERS["cpu"]
TWO = ("local_cudf_merge", "local_cupy")


def timed(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, *, seconds: float = 1.0
) -> tuple[Any, list[tuple[str, str]]]:
    """Return what two rounds of two scripts find, the first of which fails so on ours; and starts.

    Each takes so many of ten seconds.
    """
    measured = benchmark.Measured({name: Cluster(name) for name in NAMES}, "cpu", 1)
    clock, started = [0.0], []

    def start(script: str, _: str, address: str, *__: Any) -> list[dict[str, float]]:
        clock[0] += seconds
        started.append((script, address))
        if error is not None and started[-1] == (TWO[0], NAMES[1]):
            raise error
        return [{"seconds": seconds, "data_bytes": 8}]

    monkeypatch.setattr(benchmark, "run_script", start)
    monkeypatch.setattr(benchmark, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    assert len(list(measured.time(TWO, 1, 2, 10.0))) == 4
    return measured, started


def test_chain_on_which_a_script_never_ended_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, started = timed(monkeypatch, subprocess.TimeoutExpired("it", 120))
    ours = [script for script, name in started if name == NAMES[1]]
    assert ours == [TWO[0]]
    assert len(started) == 1 + 4  # stock has all
    measured.answer()
    reason = "left out: local_cudf_merge did not end here within 120 s"
    said = [one["script"] for one in measured.failures if one["what"].startswith(reason)]
    assert said == [TWO[1], TWO[0], TWO[1], "answers"]
    assert {one["chain"] for one in measured.failures} == {NAMES[1]}
    assert measured.answers == {NAMES[0]: {what: {"rows": 1} for what in ANSWERED}, NAMES[1]: {}}
    verdicts = measured.verdicts()
    assert not verdicts[f"{TWO[1]}, {NAMES[1]}: runs"]
    assert not verdicts["ours: in our pool"]


def test_chain_on_which_a_script_failed_has_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, started = timed(monkeypatch, RuntimeError("status 1"))
    assert len(started) == 8
    assert [one["script"] for one in measured.failures] == [TWO[0], TWO[0]]
    assert measured.verdicts()[f"{TWO[1]}, {NAMES[1]}: runs"]


def test_scripts_start_within_the_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, started = timed(monkeypatch, None, seconds=4.0)  # three of ten seconds
    assert started == [(TWO[0], NAMES[0]), (TWO[0], NAMES[1]), (TWO[1], NAMES[0])]
    assert [(one["script"], one["chain"], one["what"]) for one in measured.failures] == [
        (TWO[1], NAMES[1], "not started: 10 s were over")
    ]
    assert not measured.verdicts()[f"{TWO[1]}, {NAMES[1]}: runs"]
    measured, started = timed(monkeypatch, None, seconds=2.0)  # five: one of the second round
    assert len(started) == 5
    assert measured.failures == []


def test_results_are_there_if_a_cluster_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RMM_UVM_DRIVER", "simulated")
    monkeypatch.setattr(benchmark, "ClusterProcess", Cluster)
    file = tmp_path / "f.json"
    with pytest.raises(ChildProcessError):
        benchmark.main(["--on-cpu", "--rounds", "0", "--json", str(file)])
    assert json.loads(file.read_text())["answers"]["ours-simulated"]["merge"] == {"rows": 1}


@pytest.mark.parametrize("listens", [True, False])
def test_cluster_process_that_closed_its_end_is_no_error_of_ours(listens: bool) -> None:
    cluster = chains.ClusterProcess.__new__(chains.ClusterProcess)
    cluster._pipe, theirs = multiprocessing.Pipe()
    alive = iter([True, False])
    cluster._process = SimpleNamespace(is_alive=lambda: next(alive), join=lambda _: None)
    if not listens:
        theirs.close()
    cluster.close()
    assert cluster._pipe.closed
    if listens:
        assert theirs.recv() is None
        theirs.close()


@pytest.mark.parametrize("words", [[], ["--json", "f", "--scripts", "x"], ["--json", "f", "--x"]])
def test_benchmark_with_wrong_words_ends(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        benchmark.main(words)
    assert caught.value.code == 2


def test_benchmark_needs_as_many_gpus_as_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "24GiB")
    with pytest.raises(SystemExit, match="2 GPUs are needed"):
        benchmark.main(["--json", str(tmp_path / "f.json")])
    assert not list(tmp_path.iterdir())
