# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Steps 9 to 11: all columns in one table of numbers, in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm_mortgage.engines.base import ColumnT, Engine, FrameT
from rmm_uvm_mortgage.steps.window import LOAN_MONTH

if TYPE_CHECKING:
    import pyarrow as pa

LABEL = "delinquency_12"

DROPPED_COLUMNS = (
    "loan_id",
    "orig_date",
    "first_pay_date",
    "seller_name",
    "monthly_reporting_period",
    "last_paid_installment_date",
    "maturity_date",
    "ever_30",
    "ever_90",
    "ever_180",
    "delinquency_30",
    "delinquency_90",
    "delinquency_180",
    "upb_12",
    "zero_balance_effective_date",
    "foreclosed_after",
    "disposition_date",
    "timestamp",
)
"""Identifiers, dates, and columns that tell the future; the label is made from the latter."""


def final_performance_delinquency(
    engine: Engine[FrameT, ColumnT], performance: FrameT, joined: FrameT
) -> FrameT:
    """Return the performance rows with the features of their loan and month."""
    timestamp = engine.column(performance, "monthly_reporting_period")
    engine.assign(performance, "timestamp_month", timestamp.month().cast("int8"))
    engine.assign(performance, "timestamp_year", timestamp.year().cast("int16"))
    merged = engine.left_join(performance, joined, on=LOAN_MONTH)
    engine.drop(merged, ["timestamp_month", "timestamp_year"])
    return merged


def join_perf_acq_gdfs(
    engine: Engine[FrameT, ColumnT], performance: FrameT, acquisition: FrameT
) -> FrameT:
    """Return the performance rows with what was known when their loan was acquired."""
    return engine.left_join(performance, acquisition, on=["loan_id"])


def last_mile_cleaning(engine: Engine[FrameT, ColumnT], table: FrameT) -> pa.Table:
    """Return features (float32, null as -1) and label (int32, 0 or 1) in host memory.

    Columns are replaced in `table` one by one, so that two versions of the table never coexist.
    Categories are codes since they were read.
    """
    engine.drop(table, DROPPED_COLUMNS)
    for name in engine.column_names(table):
        column = engine.column(table, name)
        if name == LABEL:
            column = (column > 0).fill_null(False).cast("int32")  # noqa: FBT003
        else:
            column = column.cast("float32").fill_null(-1)
        engine.assign(table, name, column)
        del column
    return engine.to_host(table)
