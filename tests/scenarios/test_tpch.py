# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""tpch/compare.py on the CPU: processes that answer, fail or hang, and what is judged of a run."""

from __future__ import annotations

import json
import logging
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import rmm

import rmm_uvm

from .residency_scripts import script

tables_module = script("tpch/tables")
polars_queries = script("tpch/polars_engine")
shared = script("tpch/queries")
answers = script("tpch/answers")
memory = script("tpch/memory")
fallbacks = script("tpch/fallbacks")
processes = script("tpch/process")
benchmark = script("tpch/compare")
SCALE = 0.01


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("tables")
    tables_module.provide_tables(made, SCALE)
    # What Polars opens it keeps: no test of its own leaves that behind.
    polars_queries.QUERIES["q6"](polars_queries.scan_tables(made)).collect()
    return made


def test_fallbacks_are_counted_within_the_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Said:
        def __init__(self, name: str) -> None:
            self.kwargs = {"slow_object": name, "exception": "TypeError"}

    monkeypatch.delenv(fallbacks.SWITCH, raising=False)
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    with fallbacks.counted_fallbacks() as counter:
        root.info(Said("pandas.merge"))
        root.info(Said("pandas.merge"))
        root.info("something else")
    assert (root.level, list(root.handlers)) == before
    root.warning(Said("pandas.merge"))
    assert counter == {"pandas.merge: TypeError": 2}


def test_memory_of_our_pool_says_its_peak_and_what_a_budget_moved() -> None:
    sizes = memory.Sizes(64 << 20, 16 << 20)
    pool = rmm_uvm.mr.ManagedPool(driver="simulated:64MiB", **sizes.keywords())
    pointers = [pool.allocate(8 << 20) for _ in range(4)]
    found = memory.figures_of(pool)
    for pointer in pointers:
        pool.deallocate(pointer, 8 << 20)
    assert found["peak_bytes"] == 32 << 20
    assert found["evicted_bytes"] + found["dropped_bytes"] > 0
    without = rmm_uvm.mr.ManagedPool(driver="simulated:64MiB", **memory.Sizes(32 << 20).keywords())
    assert memory.figures_of(without) == {"peak_bytes": 0}
    assert memory.figures_of(without.upstream_mr) == {}


def test_memory_that_cuda_gives_polars_is_bounded_by_the_size_of_the_pool() -> None:
    upstream = rmm_uvm.mr.ManagedPool(driver="simulated:64MiB", **memory.Sizes(64 << 20).keywords())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rmm.mr, "CudaAsyncMemoryResource", lambda: upstream)
        resource = memory.stock_resource("cuda", memory.Sizes(16 << 20), pooled=False)
    pointer = resource.allocate(16 << 20)
    with pytest.raises(MemoryError):
        resource.allocate(1 << 20)  # which the one below has
    resource.deallocate(pointer, 16 << 20)
    resource.deallocate(resource.allocate(1 << 20), 1 << 20)


def test_process_answers_and_survives_a_query_that_fails(folder: Path) -> None:
    sizes = memory.Sizes(0)
    with processes.EngineProcess("polars", folder, "cpu", sizes, 0) as process:
        assert process.call("orders")["q6"] == []
        assert process.seconds("q6") > 0
        with pytest.raises(processes.QueryError, match=r"(?s)polars, cpu:.*KeyError: 'q7'"):
            process.call("answer", "q7")
        wanted = polars_queries.QUERIES["q6"](polars_queries.scan_tables(folder)).collect()
        wanted = answers.plain(wanted.to_dict(as_series=False))
        assert answers.differences(wanted, process.call("answer", "q6")) == []
        assert process.call("memory") == {}


def test_process_that_ends_by_itself_is_told(folder: Path) -> None:
    with processes.EngineProcess("polars", folder, "cpu", memory.Sizes(0), 0) as process:
        process._process.kill()
        process._process.wait()
        with pytest.raises(processes.QueryError, match="polars, cpu: the process ended"):
            process.call("memory")


def test_process_that_never_answers_is_ended_and_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with processes.EngineProcess("polars", folder, "cpu", memory.Sizes(0), 0) as process:
        assert process.call("memory") == {}
        os.kill(process._process.pid, signal.SIGSTOP)
        monkeypatch.setattr(processes, "CALL_SECONDS", 0.05)
        with pytest.raises(
            processes.QueryError, match=r"polars, cpu: the process ended: no answer within 0\.05 s"
        ):
            process.call("memory")
        assert process._process.wait() == -signal.SIGKILL


def test_process_without_tables_is_told(tmp_path: Path) -> None:
    with (
        processes.EngineProcess("pandas", tmp_path, "cpu", memory.Sizes(0), 0) as process,
        pytest.raises(processes.QueryError, match=r"(?s)pandas, cpu:.*FileNotFound"),
    ):
        process.call("orders")


def run(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    result = folder.parent / f"{folder.name}.json"
    tables = ["--tables", str(folder), "--json", str(result)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RMM_UVM_DRIVER", "simulated")
        status = benchmark.main(
            [*tables, *words, "--scale", str(SCALE), "--ways", "cpu", "--rounds", "2"]
        )
    return status, json.loads(result.read_text())


def test_benchmark_on_the_cpu_compares_and_times_every_query(folder: Path) -> None:
    status, result = run(folder, "--libraries", "pandas", "polars")
    assert status == 0
    assert result["verdicts"] == {"pandas: answers of cpu": True, "polars: answers of cpu": True}
    assert result["failures"] == []
    timed = {(row["library"], row["query"]) for row in result["rows"]}
    assert timed == {(name, query) for name in ("pandas", "polars") for query in shared.ORDER}
    assert all(row["seconds"] > 0 and row["rounds"] == 2 for row in result["rows"])
    assert all(row["in_ratios"] for row in result["rows"])
    assert {row["query"]: row["rows"] for row in result["answers"]}["q1"] == 4


def test_benchmark_with_an_answer_that_is_wrong_or_missing_fails(folder: Path) -> None:
    comparison = benchmark.Comparison("pandas", folder, 0)
    comparison.refer()
    comparison._expected["q6"]["revenue"][0] *= 1.001
    comparison._orders["q99"] = []  # there is none
    comparison.run(("cpu",), 1, 60.0)
    found = benchmark.results_of([comparison], ("cpu",))
    assert [row["query"] for row in found["failures"]] == ["q6", "q99"]
    assert "KeyError" in found["failures"][1]["what"]
    assert {row["query"] for row in found["rows"]} == set(shared.ORDER) - {"q6"}
    assert benchmark.harness.exit_status(found["verdicts"]) == 1


def test_benchmark_whose_process_ends_keeps_what_it_found_and_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = benchmark.Comparison("polars", folder, 0)

    def end(*_: object) -> None:
        raise benchmark.QueryError("polars, cpu: the process ended")

    kept: list[int] = []
    monkeypatch.setattr(comparison, "_time", end)
    comparison.complete(("cpu",), 1, 60.0, 1.5, lambda: kept.append(len(comparison.failures)))
    assert kept == [0, 1]  # after the answers, and after the process ended
    found = benchmark.results_of([comparison], ("cpu",))
    assert [row["what"] for row in found["failures"]] == ["polars, cpu: the process ended"]
    assert len(found["answers"]) == len(shared.ORDER)
    assert not found["verdicts"]["polars: answers of cpu"]


def test_benchmark_goes_on_without_a_way_that_does_not_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    comparison = benchmark.Comparison("pandas", folder, 64 << 20)
    comparison.refer()
    comparison.run(("cpu", "stock"), 1, 60.0)  # of which the second needs cuDF
    found = benchmark.results_of([comparison], ("cpu", "stock"))
    assert {row["query"] for row in found["failures"] if row["way"] == "stock"} == set(shared.ORDER)
    assert "pylibcudf" in found["failures"][0]["what"]
    assert {(row["query"], row["way"]) for row in found["rows"]} == {
        (n, "cpu") for n in shared.ORDER
    }
    assert not found["verdicts"]["pandas: answers of stock"]


def test_benchmark_writes_what_it_found_after_each_part(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[int, int]] = []

    def write(_: Path, __: str, results: dict[str, Any]) -> None:
        written.append((len(results["answers"]), len(results["rows"])))

    monkeypatch.setattr(benchmark.harness, "write_json", write)
    words = ["--tables", str(folder), "--json", "f", "--scale", str(SCALE)]
    benchmark.main([*words, "--libraries", "polars", "--ways", "cpu", "--rounds", "1"])
    count = len(shared.ORDER)
    assert written == [(count, 0), (count, count), (count, count)]


def test_ratios_leave_out_a_query_of_one_round() -> None:
    comparison = benchmark.Comparison("pandas", Path(), 0)

    def timed(name: str, factor: float, rounds: int) -> None:
        ways = {"ours": lambda: factor, "stock": lambda: 1.0}
        runs = {way: SimpleNamespace(seconds=lambda _, run=run: run()) for way, run in ways.items()}
        comparison._time(runs, [name], rounds, 60.0)

    timed("q1", 1.5, 5)
    timed("q3", 100.0, 1)
    assert comparison.ratios() == {"pandas: ours / stock": 1.5}
    marked = {(row["query"], row["in_ratios"]) for row in comparison.rows}
    assert marked == {("q1", True), ("q3", False)}
    timed("q4", 2.5, 2)
    assert comparison.ratios() == {"pandas: ours / stock": 2.0}


def of_memories(stock: dict[str, int], moved: int, peak_bytes: int = 1) -> Any:
    """Return the verdicts of a comparison whose runs left that behind."""
    comparison = benchmark.Comparison("pandas", Path(), 0)
    comparison.fallbacks = {"stock": {"q1": stock}, "ours": {"q1": {"merge: MemoryError": 1}}}
    comparison.memory = {
        "ours": {"peak_bytes": peak_bytes},
        "budget": {"budget_bytes": 1, "evicted_bytes": moved},
    }
    return comparison.verdicts(("stock", "ours", "budget"))


def test_verdicts_ask_for_the_fallbacks_of_stock_and_for_evictions() -> None:
    assert all(of_memories({"merge: MemoryError": 1}, 4096).values())
    assert not of_memories({}, 4096)["pandas: ours leaves to the CPU what stock does"]
    assert not of_memories({}, 0)["pandas: the budget was passed"]


def test_verdicts_ask_that_ours_ran_in_our_pool_and_past_the_edge() -> None:
    stock = {"merge: MemoryError": 1}
    assert not of_memories(stock, 4096, peak_bytes=0)["pandas: ours ran in our pool"]
    comparison = benchmark.Comparison("pandas", Path(), 0)
    comparison.memory = {"ours": {}}  # of a resource that is not ours: the edge is not known
    found = comparison.verdicts(("stock", "ours"))
    assert not found["pandas: ours ran in our pool"]
    assert not found["pandas: ran past the edge"]
    assert set(comparison.verdicts(("stock",))) == {"pandas: answers of stock"}


@pytest.mark.parametrize("words", [[], ["--json", "f", "--ways", "gpu"], ["--json", "f", "--x"]])
def test_benchmark_with_wrong_words_ends(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        benchmark.main(words)
    assert caught.value.code == 2


@pytest.mark.parametrize("ways", [[], ["--ways", "cuda"], ["--ways", "cpu", "stock"]])
def test_benchmark_of_any_memory_needs_a_gpu(
    ways: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("RMM_UVM_MANAGED_LIMIT", "24GiB")
    with pytest.raises(SystemExit, match="1 GPUs are needed"):
        benchmark.main(["--json", str(tmp_path / "f.json"), *ways])
    assert not list(tmp_path.iterdir())


def test_benchmark_of_cuda_memory_needs_the_cap_on_managed_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = SimpleNamespace(memory=lambda: (80 << 30, 80 << 30))
    monkeypatch.setattr("rmm_uvm.drivers.cuda_driver", lambda _: card)
    monkeypatch.delenv("RMM_UVM_MANAGED_LIMIT", raising=False)
    with pytest.raises(SystemExit, match="set RMM_UVM_MANAGED_LIMIT"):
        benchmark.main(["--json", str(tmp_path / "f.json"), "--ways", "cuda"])


def is_declared(version: str) -> bool:
    """Say whether a version of Polars is one that cudf-polars takes."""
    return (1, 35) <= tuple(map(int, version.split(".")[:2])) < (1, 45)


def test_polars_is_the_one_that_is_declared() -> None:
    assert is_declared(pl.__version__)
    assert not any(map(is_declared, ("1.4.1", "1.45.0", "1.100.0")))
