# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Queries that cudf.pandas and cudf-polars bring along: found, run as they are, and compared.

Both need a GPU. Here modules of their names have 22 queries with one answer each, on the CPU.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .residency_scripts import script

tables_module = script("tpch/tables")
answers = script("tpch/answers")
shared = script("tpch/queries")
benchmark = script("tpch/compare")
SCALE = 0.01
QUERIES = {f"q{number}" for number in shared.PDSH_NUMBERS}
IN_PANDAS = """
import pandas as pd

class PDSHQueries:
    pass

def query(number):
    def run(config):
        table = pd.read_parquet(f"{{config.dataset_path}}/nation{{config.suffix}}")
        share = len(table) / 24.0 * config.scale_factor
        return pd.DataFrame(
            {{"number": [number], "mkt_share": [round(share, 2) if number == 8 else share {off}]}}
        )
    return run

for number in range(1, 23):
    setattr(PDSHQueries, f"q{{number}}", staticmethod(query(number)))
"""
IN_POLARS = """
from types import SimpleNamespace
import polars as pl

class PDSHQueries:
    pass

def query(number):
    def run(config):
        table = pl.scan_parquet(f"{config.dataset_path}/nation{config.suffix}")
        share = pl.len() / 24.0 * config.scale_factor
        frame = table.select(number=pl.lit(number), mkt_share=share)
        return SimpleNamespace(frame=frame, sort_by=[["number", False]])
    return run

for number in range(1, 23):
    setattr(PDSHQueries, f"q{number}", staticmethod(query(number)))
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, Any]]:
    """Return how to run the benchmark where a query in pandas is off by so much."""

    def put(path: str, text: str) -> None:
        file = tmp_path / "modules" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        for folder in file.parents:
            if folder == tmp_path / "modules":
                break
            (folder / "__init__.py").touch()
        file.write_text(text)

    def run_with(off: str) -> tuple[int, Any]:
        put("cudf/pandas/_benchmarks/pdsh.py", IN_PANDAS.format(off=off))
        put("cudf_polars/streaming/benchmarks/pdsh.py", IN_POLARS)
        modules = [str(tmp_path / "modules"), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, modules)))
        monkeypatch.setenv("RMM_UVM_DRIVER", "simulated")
        result = tmp_path / "tpch.json"
        words = ["--ways", "cpu", "--scale", str(SCALE), "--rounds", "1", "--json", str(result)]
        return benchmark.main(words), json.loads(result.read_text())

    return run_with


def test_queries_of_both_run_as_they_are_and_have_one_answer(
    run: Callable[[str], tuple[int, Any]],
) -> None:
    status, result = run("")
    assert status == 0
    assert result["failures"] == []
    assert result["verdicts"] == {"pandas-pdsh: answers of cpu": True, "pdsh: answers of cpu": True}
    for library in ("pandas-pdsh", "pdsh"):
        assert {row["query"] for row in result["rows"] if row["library"] == library} == QUERIES


def test_query_in_pandas_with_another_answer_is_seen_unless_it_rounds(
    run: Callable[[str], tuple[int, Any]],
) -> None:
    status, result = run("* 1.001")
    assert status > 0
    assert not result["verdicts"]["pandas-pdsh: answers of cpu"]
    assert {row["query"] for row in result["failures"]} == QUERIES - {"q8"}


def test_answer_is_rounded_in_the_columns_that_a_query_rounds_only() -> None:
    answer = {"mkt_share": [0.0846, 0.0889], "other": [0.0846, 1]}
    assert answers.rounded(answer, {"mkt_share": 2}) == {
        "mkt_share": [0.08, 0.09],
        "other": [0.0846, 1],
    }
