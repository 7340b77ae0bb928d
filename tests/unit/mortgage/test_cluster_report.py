# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a run on a cluster looks like: figures put together, the page, JSON."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from rmm_uvm.report.as_text import as_text
from rmm_uvm.report.document import Document
from rmm_uvm_mortgage.cluster.account import Account, WorkerOutOfMemory, merged_stages
from rmm_uvm_mortgage.cluster.page import cluster_page, simulated_lines
from rmm_uvm_mortgage.cluster.report import ClusterRunReport, worker_totals
from rmm_uvm_mortgage.cluster.workers import WorkerInfo
from rmm_uvm_mortgage.run_report import StageTotals
from rmm_uvm_mortgage.train import ModelQuality

MIB = 1 << 20
GIB = 1 << 30


def info(name: str) -> WorkerInfo:
    return WorkerInfo(
        f"tcp://10.0.0.1:{name}", name, "host", int(name), "simulated device", "", 50 * GIB, True
    )


def stage(name: str, peak_bytes: int = GIB, xgboost_peak_bytes: int = 0) -> StageTotals:
    return StageTotals(name, 1, 2.0, 0.25, peak_bytes, 3 * MIB, 5 * MIB, 0, xgboost_peak_bytes)


def account(worker: str, *stages: StageTotals, seconds: float = 2.0) -> Account:
    return Account(info(worker).address, stages, seconds)


PARTS = [
    ("2000Q1", account("7", stage("load"), stage("join", 40 * GIB), seconds=12.5)),
    ("2000Q2", account("8", stage("load"), stage("join", 60 * GIB), seconds=10.0)),
    ("2000Q3", account("7", stage("load"), stage("join", 41 * GIB), seconds=12.5)),
]
OTHERS = [
    account("7", stage("prep")),
    account("7", stage("train", 0, 7 * GIB)),
    account("8", stage("prep")),
]


def report_of(**changes: object) -> ClusterRunReport:
    report = ClusterRunReport(
        chain="rmm-uvm adaptor (auto) > pool > rmm-uvm managed, simulated",
        simulated=True,
        protocol="ucxuvm",
        workers=worker_totals([info("7"), info("8"), info("9")], PARTS, OTHERS),
        lost_workers=(),
        stages=merged_stages([*(each for _, each in PARTS), *OTHERS]),
        parts=("2000Q1", "2000Q2", "2000Q3"),
        performance_bytes=GIB,
        etl_seconds=1234.5,
        prep_seconds=12.34,
        train_seconds=123.4,
        feature_rows=123_456_789,
        feature_digest="0" * 16,
        label_fraction=0.1,
        training_parts=3,
        training_rows=111_111_111,
        training_workers=2,
        quality=ModelQuality(12_345_678, 0.81234, 0.25),
        features_against_pandas="identical",
    )
    return dataclasses.replace(report, **changes)


def text_of(page: Document, width: int = 80) -> str:
    return as_text(page, width)


def test_stages_of_several_tasks_add_up_and_keep_the_highest_peak() -> None:
    load, join, prep, train = merged_stages([*(each for _, each in PARTS), *OTHERS])
    assert (load.name, load.runs, load.wall_seconds) == ("load", 3, 6.0)
    assert (join.peak_bytes, join.host_to_device_bytes) == (60 * GIB, 9 * MIB)
    assert prep.device_to_host_bytes == 10 * MIB
    assert train.xgboost_peak_bytes == 7 * GIB


def test_worker_figures_are_those_of_its_own_tasks() -> None:
    seven, eight, idle = worker_totals([info("7"), info("8"), info("9")], PARTS, OTHERS)
    assert seven.parts == ("2000Q1", "2000Q3")
    assert (seven.etl_seconds, eight.etl_seconds) == (25.0, 10.0)
    assert (seven.peak_bytes, eight.peak_bytes) == (41 * GIB, 60 * GIB)
    assert seven.modelled_seconds == pytest.approx(6 * 0.25)
    assert seven.host_to_device_bytes == 6 * 3 * MIB
    assert (seven.xgboost_peak_bytes, eight.xgboost_peak_bytes) == (7 * GIB, 0)
    assert eight.oversubscription_factor == pytest.approx(1.2)
    assert (idle.parts, idle.etl_seconds, idle.peak_bytes) == ((), 0.0, 0)


def test_part_that_ran_out_of_memory_counts_time_and_is_not_done() -> None:
    ended = WorkerOutOfMemory("7", "join", "2000Q1", "full")
    failed = dataclasses.replace(PARTS[0][1], out_of_memory=ended)
    (seven,) = worker_totals([info("7")], [("2000Q1", failed)], [])
    assert (seven.parts, seven.etl_seconds) == ((), 12.5)


def test_page_fits_the_terminal_and_has_a_row_for_each_worker_and_all() -> None:
    text = text_of(cluster_page(report_of()))
    assert max(map(len, text.splitlines())) <= 80
    rows = [re.split(r"\s+", line.strip()) for line in text.splitlines()]
    assert ["7", "2", "25.00", "1.500", "41.00", "0.82", "0.02", "0.03"] in rows
    assert ["9", "0", "0.00", "0.000", "-", "-", "-", "-"] in rows
    assert ["all", "3", "35.00", "2.250", "0.03", "0.04"] in rows


def test_page_says_what_was_computed_and_how_long_it_took() -> None:
    text = text_of(cluster_page(report_of()))
    assert "3 workers: rmm-uvm adaptor" in text
    assert "3 parts, completes; data between workers over ucxuvm" in text
    assert "By the clock: ETL 1234.50 s, PREP 12.34 s, TRAIN 123.40 s" in text
    assert "Features: 123,456,789 rows, identical to plain pandas" in text
    assert "Model: 111,111,111 rows of 3 parts on 2 workers; AUC 0.8123" in text
    assert "at most 7.00 GiB on a worker" in text
    assert "PREP: no pool torn down; 6.00 MiB in, 10.00 MiB out" in text
    assert "Out of memory" not in text
    assert "Lost" not in text


def test_page_on_gpus_has_no_modelled_time() -> None:
    assert "modelled" not in text_of(cluster_page(report_of(simulated=False)))


def test_page_out_of_memory_names_the_worker() -> None:
    ended = WorkerOutOfMemory("8", "join", "2000Q2", "x.cpp:73: Maximum pool size exceeded")
    text = text_of(cluster_page(report_of(out_of_memory=ended, quality=None)), 200)
    assert "3 parts, stops in join" in text
    expected = "Out of memory on worker 8 in join of part 2000Q2: Maximum pool size exceeded"
    assert expected in text


def test_page_with_lost_workers_and_other_features_says_so() -> None:
    report = report_of(lost_workers=("tcp://a",), features_against_pandas="different: upb: 1 and 2")
    text = text_of(cluster_page(report))
    assert "Lost on the way: 1 worker; others did that work again" in text
    assert "NOT those of plain pandas; different: upb: 1 and 2" in text


def test_json_of_a_report_is_plain_and_has_factors() -> None:
    plain = json.loads(json.dumps(report_of().to_json()))
    assert [worker["oversubscription_factor"] for worker in plain["workers"]] == [0.82, 1.2, 0.0]
    assert plain["quality"]["rows"] == 12_345_678


def test_simulated_lines_say_what_is_real_and_how_large_a_device_is() -> None:
    lines = text_of(simulated_lines(GIB, "as asked")).splitlines()
    assert [line.split(":")[0].strip() for line in lines] == [
        "real",
        "modelled",
        "not shown",
        "also real",
        "each device",
    ]
    assert lines[-1].endswith("1.00 GiB, as asked")
    assert max(map(len, lines)) <= 80
