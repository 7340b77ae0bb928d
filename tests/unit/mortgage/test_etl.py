# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The ETL against an independent implementation of its definition, row by row in plain Python."""

from __future__ import annotations

import csv
import datetime
import json
import math
import struct
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmm_uvm_mortgage.compare import compare_features
from rmm_uvm_mortgage.dictionary import load_domains
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.etl import STAGES, run_etl
from rmm_uvm_mortgage.files import find_files, make_parts
from rmm_uvm_mortgage.schema import ACQUISITION, NAMES, PERFORMANCE, TableSchema
from rmm_uvm_mortgage.steps.delinquency import (
    create_delinq_features,
    create_ever_features,
    join_ever_delinq_features,
)
from rmm_uvm_mortgage.steps.final import DROPPED_COLUMNS, LABEL
from rmm_uvm_mortgage.steps.load import load_performance

Row = dict[str, Any]


# -- the reference ---------------------------------------------------------------------------------


def read_rows(path: Path, schema: TableSchema) -> list[Row]:
    convert = {"int64": int, "int32": int, "float64": float, "category": str, "date": month_of}
    with path.open(newline="") as file:
        lines = list(csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE))[1:]
    return [
        {
            column.name: None if field in ("", "X") else convert[column.type](field)
            for column, field in zip(schema.columns, line, strict=True)
        }
        for line in lines
    ]


def month_of(text: str) -> int:
    date = datetime.datetime.strptime(text, "%m/%d/%Y")
    return 12 * date.year + date.month


def float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def reference_features(directory: Path) -> list[dict[str, float]]:
    """Return the features of all quarters, by the meaning of each column."""
    names = {r["seller_name"]: r["new"] for r in read_rows(directory / "names.csv", NAMES)}
    performance, acquisition = [], {}
    for path in sorted((directory / "perf").iterdir()):
        performance += read_rows(path, PERFORMANCE)
    for path in sorted((directory / "acq").iterdir()):
        for row in read_rows(path, ACQUISITION):
            acquisition[row["loan_id"]] = row
    for row in acquisition.values():
        row["seller_name"] = names.get(row["seller_name"])
    domains = json.loads((directory / "categories.json").read_text())["domains"]
    by_loan = defaultdict(list)
    for row in performance:
        by_loan[row["loan_id"]].append(row)

    features = []
    for row in performance:
        merged = {**row, **acquisition.get(row["loan_id"], dict.fromkeys(ACQUISITION.column_names))}
        result = {}
        for spec in (*PERFORMANCE.columns, *ACQUISITION.columns):
            if spec.name in DROPPED_COLUMNS or spec.type == "date":
                continue
            value = merged[spec.name]
            if value is not None and spec.domain is not None:
                value = domains[spec.domain].index(value)
            result[spec.name] = -1.0 if value is None else float32(value)
        result[LABEL] = reference_label(row["monthly_reporting_period"], by_loan[row["loan_id"]])
        features.append(result)
    return features


def reference_label(month: int, history: list[Row]) -> int:
    """Return 1 when the loan, within a year from this month on, is 4 months late or ends."""
    year = [r for r in history if month <= r["monthly_reporting_period"] < month + 12]
    status = [
        r["current_loan_delinquency_status"]
        for r in year
        if r["current_loan_delinquency_status"] is not None
    ]
    owed = [r["current_actual_upb"] for r in year if r["current_actual_upb"] is not None]
    return int(bool(status) and bool(owed) and (max(status) > 3 or min(owed) == 0))


def etl_rows(directory: Path, parts: int) -> list[dict[str, float]]:
    files = find_files(directory)
    engine = make_engine("pandas")
    tables = [run_etl(engine, part) for part in make_parts(files, load_domains(files), parts)]
    return [row for table in tables for row in table.to_pylist()]


def in_order(rows: list[dict[str, float]]) -> list[list[float]]:
    return sorted([row[name] for name in sorted(row)] for row in rows)


# -- the whole ETL ---------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 4])
def test_run_etl_on_generated_data_gives_the_reference_features(
    mortgage_data: Path, parts: int
) -> None:
    expected = reference_features(mortgage_data)

    rows = etl_rows(mortgage_data, parts)

    assert in_order(rows) == in_order(expected)
    assert 0 < sum(row[LABEL] for row in rows) < len(rows) / 2


def test_run_etl_returns_45_float_features_and_the_label(mortgage_data: Path) -> None:
    import pyarrow as pa

    files = find_files(mortgage_data)
    part = make_parts(files, load_domains(files), 1)[0]

    table = run_etl(make_engine("pandas"), part)

    types = {field.name: field.type for field in table.schema}
    assert types.pop(LABEL) == pa.int32()
    assert len(types) == 45
    assert set(types.values()) == {pa.float32()}
    assert not any(column.null_count for column in table.columns)


def test_run_etl_tells_observers_of_every_stage_in_order(mortgage_data: Path) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.events: list[tuple[str, str]] = []

        def begin(self, name: str) -> None:
            self.events.append(("begin", name))

        def end(self, name: str) -> None:
            self.events.append(("end", name))

    files = find_files(mortgage_data)
    engine = make_engine("pandas")
    recorder = Recorder()
    engine.observers.append(recorder)

    run_etl(engine, make_parts(files, load_domains(files), 1)[0])

    assert recorder.events == [(kind, name) for name in STAGES for kind in ("begin", "end")]


# -- any data --------------------------------------------------------------------------------------

STATUS_FIELDS = st.sampled_from(["0", "1", "2", "3", "4", "6", "7", "X", ""])
UPB_FIELDS = st.sampled_from(["100.25", "7", "0", "0.0", ""])
MONTHS = st.lists(st.integers(1, 40), min_size=1, max_size=12, unique=True)
SELLERS = st.sampled_from(["OLD BANK", "NEW BANK", "UNLISTED", ""])


@st.composite
def data_sets(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Return lines of a performance and an acquisition file; some loans lack an acquisition."""
    performance, acquisition = [], []
    for loan in range(draw(st.integers(1, 4))):
        loan_id = 100 + loan
        for month in sorted(draw(MONTHS)):
            row = dict.fromkeys(PERFORMANCE.column_names, "")
            row["loan_id"] = str(loan_id)
            row["monthly_reporting_period"] = f"{month % 12 + 1:02d}/01/{1999 + month // 12}"
            row["current_loan_delinquency_status"] = draw(STATUS_FIELDS)
            row["current_actual_upb"] = draw(UPB_FIELDS)
            row["servicing_activity_indicator"] = draw(st.sampled_from(["Y", "N", ""]))
            performance.append("|".join(row.values()))
        if draw(st.integers(0, 4)):
            row = dict.fromkeys(ACQUISITION.column_names, "")
            row |= {"loan_id": str(loan_id), "seller_name": draw(SELLERS), "zip": "123"}
            acquisition.append("|".join(row.values()))
    if not acquisition:
        acquisition.append("999" + "|" * (len(ACQUISITION.columns) - 1))
    return performance, acquisition


def write_data(directory: Path, performance: list[str], acquisition: list[str]) -> None:
    for name, lines in (
        ("names.csv", ["OLD BANK|NEW BANK"]),
        ("acq/Acquisition_2000Q1.txt", acquisition),
        ("perf/Performance_2000Q1.txt", performance),
    ):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["header", *lines]) + "\n")


@settings(max_examples=25, deadline=None)
@given(data_sets())
def test_run_etl_on_any_small_data_gives_the_reference_features(
    data: tuple[list[str], list[str]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_data(directory, *data)
        files = find_files(directory)
        domains = load_domains(files)
        tables = [run_etl(make_engine("pandas"), p) for p in make_parts(files, domains)]
        (directory / "categories.json").write_text(json.dumps({"domains": domains}))

        expected = reference_features(directory)

    assert in_order([row for table in tables for row in table.to_pylist()]) == in_order(expected)


# -- single steps ----------------------------------------------------------------------------------


def test_loan_features_on_generated_data_give_worst_status_and_first_months(
    mortgage_data: Path,
) -> None:
    files = find_files(mortgage_data)
    part = make_parts(files, load_domains(files), 1)[0]
    engine = make_engine("pandas")
    performance = load_performance(engine, part)

    loans = join_ever_delinq_features(
        engine,
        create_ever_features(engine, performance),
        create_delinq_features(engine, performance),
    )

    history = defaultdict(list)
    for row in read_rows(part.performance.path, PERFORMANCE):
        if row["current_loan_delinquency_status"] is not None:
            history[row["loan_id"]].append(row)
    found = {row["loan_id"]: row for row in engine.to_host(loans).to_pylist()}
    assert found.keys() == history.keys()
    counts = dict.fromkeys((30, 90, 180), 0)
    for loan_id, rows in history.items():
        for days, limit in ((30, 1), (90, 3), (180, 6)):
            late = [r for r in rows if r["current_loan_delinquency_status"] >= limit]
            first = min((r["monthly_reporting_period"] for r in late), default=None)
            date = found[loan_id][f"delinquency_{days}"]
            assert found[loan_id][f"ever_{days}"] == int(bool(late))
            assert (date and 12 * date.year + date.month) == first
            counts[days] += bool(late)
    assert counts[30] > counts[90] > counts[180] > 0


def test_compare_features_of_two_divisions_finds_no_difference(mortgage_data: Path) -> None:
    import pyarrow as pa

    files = find_files(mortgage_data)
    domains = load_domains(files)
    engine = make_engine("pandas")
    whole, divided = (
        pa.concat_tables([run_etl(engine, part) for part in make_parts(files, domains, parts)])
        for parts in (1, 3)
    )

    assert compare_features(whole, divided) is None
    assert math.isclose(whole.num_rows, divided.num_rows)
