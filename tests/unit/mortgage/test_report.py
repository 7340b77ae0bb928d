# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What runs look like on a terminal: what must be said, and that it fits."""

from __future__ import annotations

import dataclasses
import re

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from rmm_uvm.report.as_text import as_text
from rmm_uvm.report.document import Document
from rmm_uvm_mortgage.compare_memory import ComparedRun, PlannedRun
from rmm_uvm_mortgage.etl import STAGES
from rmm_uvm_mortgage.fragmentation import run_fragmentation
from rmm_uvm_mortgage.report import (
    comparison_page,
    fragmentation_lines,
    run_page,
    short_message,
    simulated_lines,
)
from rmm_uvm_mortgage.result import PipelineResult, StageOutOfMemory, StageTiming
from rmm_uvm_mortgage.run_report import RunReport, StageTotals
from rmm_uvm_mortgage.train import ModelQuality

MIB = 1 << 20
GIB = 1 << 30


def report_of(memory: str = "managed", *, ended: StageOutOfMemory | None = None) -> RunReport:
    names = [*STAGES, "prep", "train"]
    stages = tuple(
        StageTotals(name, 4, 123.45, 12.3456, 99_999 * MIB, 12_345 * MIB, 99_999 * MIB, 0, 3 * GIB)
        for name in names
    )
    pipeline = PipelineResult(
        engine="pandas",
        parts=("2000Q1 1/2", "2000Q1 2/2"),
        performance_bytes=GIB,
        stages=tuple(StageTiming(name, 1.0, 1) for name in names),
        etl_seconds=1234.5,
        prep_seconds=12.3,
        train_seconds=123.4,
        feature_rows=0 if ended else 1_000_000,
        feature_digest=None if ended else "0" * 16,
        training_parts=2,
        training_rows=900_000,
        quality=None if ended else ModelQuality(100_000, 0.81, 0.25),
        out_of_memory=ended,
    )
    return RunReport(
        memory,
        "a > b",
        simulated=True,
        device_name="simulated device",
        capacity_bytes=50_000 * MIB,
        stages=stages,
        pipeline=pipeline,
        largest_training_rows=None if ended else 1_800_000,
        features_against_pandas=None if ended else "identical",
    )


def text_of(page: Document, width: int = 80) -> str:
    return as_text(page, width)


FULL = StageOutOfMemory("final_performance_delinquency", "2000Q1", "x.cpp:73: Maximum pool size")
COMPARED = [
    ComparedRun(PlannedRun("cuda-pool", 1), report_of("cuda-pool", ended=FULL)),
    ComparedRun(PlannedRun("cuda-pool", 4), report_of("cuda-pool")),
    ComparedRun(PlannedRun("managed-nopool", 1), report_of("managed-nopool")),
    ComparedRun(PlannedRun("managed", 1), report_of("managed")),
]


@pytest.mark.parametrize("width", [80, 120])
def test_run_page_fits_the_terminal_and_names_every_stage_whole(width: int) -> None:
    text = text_of(run_page(report_of()), width)
    assert max(map(len, text.splitlines())) <= width
    for name in (*STAGES, "prep", "train"):
        assert re.search(rf"^{name} x4 +123\.45 ", text, re.M), name


def test_run_page_has_the_figures_of_a_stage() -> None:
    row = next(line for line in text_of(run_page(report_of())).splitlines() if "prep x4" in line)
    assert row.split() == [
        "prep",
        "x4",
        "123.45",
        "12.346",
        "97.66",
        "2.00",
        "12.06",
        "97.66",
    ]


def test_run_page_says_what_the_features_and_the_model_are() -> None:
    text = text_of(run_page(report_of()))
    assert "Features: 1,000,000 rows, identical to plain pandas" in text
    assert "AUC 0.8100 on 100,000 others" in text
    assert "1,800,000 rows" in text


def test_run_page_of_different_features_says_so() -> None:
    report = dataclasses.replace(report_of(), features_against_pandas="different: upb: 1 and 2")
    assert "NOT those of plain pandas; different: upb: 1 and 2" in text_of(run_page(report))


def test_run_page_out_of_memory_says_where_and_why() -> None:
    text = text_of(run_page(report_of(ended=FULL)), 200)
    assert "stops in final_performance_delinquency" in text
    assert "of part 2000Q1: Maximum pool size" in text


def test_comparison_page_fits_80_columns_on_one_line_for_each_run() -> None:
    text = text_of(comparison_page(COMPARED, 900_000))
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"cuda-pool +unsplit stops in final_performance_delinquency ", text)
    assert re.search(r"managed-nopool +unsplit completes", text)
    assert "identical to plain pandas" in text
    assert "x2.00" in text


def moved(memory: str, to_host_bytes: int, seconds: float, chain: str = "a > b") -> ComparedRun:
    stage = StageTotals("etl", 1, 1.0, seconds, GIB, 0, to_host_bytes)
    report = dataclasses.replace(report_of(memory), stages=(stage,), chain=chain)
    return ComparedRun(PlannedRun(memory, 1), report)


def test_comparison_page_begins_with_what_stock_memory_moves_more() -> None:
    ours = moved("managed", GIB, 0.5, "a > b, budget 1.00 GiB (repeat)")
    text = text_of(comparison_page([ours, moved("rmm-managed", 3 * GIB, 1.0)], 900_000), 200)
    first = next(line for line in text.splitlines() if line)
    assert first == (
        "Past the edge our pool (managed) moves 1.00 GiB in 0.500 s of modelled time, rmm-managed "
        "3.00 GiB in 1.000 s (3.0 and 2.0 times as much)"
    )
    assert "rmm-managed: freed memory stays on the device, and leaves as if it were alive" in text
    assert "Past the edge" not in text_of(comparison_page([ours], 900_000))  # nothing beside it


def test_comparison_page_never_relates_modelled_to_wall_time() -> None:
    text = text_of(comparison_page(COMPARED, 900_000)).lower()
    assert not re.search(r"speed-?up|slow-?down|times (faster|slower)", text)


def test_simulated_lines_say_what_is_real_modelled_and_not_shown() -> None:
    lines = text_of(simulated_lines(GIB, by_default=True)).splitlines()
    assert [line.split(":")[0].strip() for line in lines] == [
        "real",
        "modelled",
        "not shown",
        "its memory",
    ]
    assert "1.00 GiB, five times the largest performance file" in lines[-1]
    assert "as asked" in text_of(simulated_lines(GIB, by_default=False))
    least = text_of(simulated_lines(128 << 20, by_default=True))
    assert "128.00 MiB, the least for any data, as XGBoost needs" in least
    assert "as asked" in text_of(simulated_lines(128 << 20, by_default=False))


def test_fragmentation_lines_tell_both_memories_apart() -> None:
    cases = [run_fragmentation("cuda-pool", 64 * MIB), run_fragmentation("managed", 64 * MIB)]
    text = text_of(fragmentation_lines(cases))
    assert "cuda-pool: out of memory" in text
    assert "managed: completes" in text
    assert "32.00 MiB of 64.00 MiB are free, in pieces of 4.00 MiB" in text


def test_short_message_leaves_out_the_place_in_the_source() -> None:
    assert short_message("std::bad_alloc: a: RMM failure at:/x/y.cpp:73: Pool full") == "Pool full"
    assert short_message("XGBoost failed") == "XGBoost failed"


def test_only_managed_memory_running_out_is_unexpected() -> None:
    ran_out = [
        ComparedRun(PlannedRun(name, 1), report_of(name, ended=FULL))
        for name in ("cuda", "cuda-pool", "managed", "rmm-managed")
    ]
    assert [run.is_unexpected for run in ran_out] == [False, False, True, True]
    assert not COMPARED[-1].is_unexpected
