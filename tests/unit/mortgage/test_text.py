# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reading text files: nulls, dates, and lines that do not fit."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

import pytest

from rmm_uvm.errors import DataError
from rmm_uvm_mortgage.ranges import TextRange, body_of
from rmm_uvm_mortgage.schema import PERFORMANCE
from rmm_uvm_mortgage.text import read_table, scan_batches

GOOD = {"loan_id": "1", "monthly_reporting_period": "02/01/2000"}


def body(tmp_path: Path, *rows: Mapping[str, str]) -> TextRange:
    path = tmp_path / "Performance_2000Q1.txt"
    lines = [
        "|".join({**dict.fromkeys(PERFORMANCE.column_names, ""), **row}.values()) for row in rows
    ]
    path.write_text("\n".join(["header", *lines, ""]))
    return body_of(path, PERFORMANCE)


def test_read_table_of_empty_fields_and_x_gives_nulls(tmp_path: Path) -> None:
    table = read_table(
        body(tmp_path, GOOD, {**GOOD, "current_loan_delinquency_status": "X"}), PERFORMANCE
    )

    nulls = {name: table.column(name).null_count for name in table.column_names}
    assert {name for name, count in nulls.items() if count == 0} == GOOD.keys()
    assert nulls["current_loan_delinquency_status"] == 2


def test_read_table_of_a_month_without_day_gives_its_first(tmp_path: Path) -> None:
    table = read_table(body(tmp_path, {**GOOD, "maturity_date": "11/2031"}), PERFORMANCE)

    assert table.column("maturity_date").to_pylist() == [datetime.datetime(2031, 11, 1)]


def test_read_table_of_a_part_reads_its_lines_only(tmp_path: Path) -> None:
    whole = body(tmp_path, GOOD, {**GOOD, "loan_id": "2"}, {**GOOD, "loan_id": "3"})
    line_bytes = whole.size_bytes // 3
    middle = TextRange(
        whole.path, whole.begin_bytes + line_bytes, whole.begin_bytes + 2 * line_bytes
    )

    assert read_table(middle, PERFORMANCE).column("loan_id").to_pylist() == [2]


@pytest.mark.parametrize("read", [read_table, lambda *a: list(scan_batches(*a))])
@pytest.mark.parametrize(
    ("column", "field", "message"),
    [
        ("monthly_reporting_period", "13/01/2000", "13/01/2000"),
        ("maturity_date", "2031-11-01", "2031-11-01"),
        ("loan_id", "abc", "abc"),
        ("current_actual_upb", "1,5", "1,5"),
        ("loan_id", "", "1 rows have no loan_id"),
        ("monthly_reporting_period", "", "1 rows have no monthly_reporting_period"),
        ("servicer", "A|B", "Expected 31 columns, got 32"),
    ],
)
def test_reading_a_bad_field_names_file_and_field(
    tmp_path: Path, read: object, column: str, field: str, message: str
) -> None:
    source = body(tmp_path, GOOD, {**GOOD, column: field}, GOOD)

    with pytest.raises(DataError, match=f"Performance_2000Q1.txt is broken: .*{message}") as error:
        read(source, PERFORMANCE)  # type: ignore[operator]
    assert str(error.value).count("\n") == 0
