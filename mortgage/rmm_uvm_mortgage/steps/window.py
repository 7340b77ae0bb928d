# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Steps 6 to 8: what happens to each loan in the twelve months that begin at each month.

The twelve-month features are computed once for each of the twelve possible first months of a
window, and concatenated. Here is the peak of memory: the twelve frames, their concatenation, the
joined table and the performance table live together.
"""

from __future__ import annotations

from rmm_uvm_mortgage.engines.base import ColumnT, Engine, FrameT
from rmm_uvm_mortgage.steps.delinquency import STATUS

MONTHS = 12
EPOCH_MONTHS = 2000 * MONTHS
LOAN_MONTH = ("loan_id", "timestamp_year", "timestamp_month")


def create_joined_df(
    engine: Engine[FrameT, ColumnT], performance: FrameT, ever_delinquencies: FrameT
) -> FrameT:
    """Return month, delinquency and balance of every performance row, with the loan features."""
    timestamp = engine.column(performance, "monthly_reporting_period")
    joined = engine.select(
        performance, ["loan_id", "monthly_reporting_period", STATUS, "current_actual_upb"]
    )
    joined = engine.rename(
        joined,
        {
            "monthly_reporting_period": "timestamp",
            STATUS: "delinquency_12",
            "current_actual_upb": "upb_12",
        },
    )
    engine.assign(joined, "timestamp_month", timestamp.month().cast("int32"))
    engine.assign(joined, "timestamp_year", timestamp.year().cast("int32"))
    return engine.left_join(joined, ever_delinquencies, on=["loan_id"])


def create_12_mon_features(engine: Engine[FrameT, ColumnT], joined: FrameT) -> FrameT:
    """Return worst delinquency and lowest balance in the twelve months from each month on.

    `delinquency_12` counts what went wrong or ended: more than three months late, nothing owed.
    """
    windows = [_windows_from_month(engine, joined, month) for month in range(1, MONTHS + 1)]
    return engine.concat(windows)


def _windows_from_month(engine: Engine[FrameT, ColumnT], joined: FrameT, month: int) -> FrameT:
    """Return the features of all windows that begin in one month of the year."""
    window = engine.select(joined, [*LOAN_MONTH, "delinquency_12", "upb_12"])
    year = engine.column(window, "timestamp_year")
    months = year * MONTHS + engine.column(window, "timestamp_month")
    window_index = ((months.cast("float64") - EPOCH_MONTHS - month) / MONTHS).floor()
    engine.assign(window, "window", window_index)
    del year, months, window_index

    window = engine.groupby(
        window, ["loan_id", "window"], {"delinquency_12": "max", "upb_12": "min"}
    )
    late = (engine.column(window, "delinquency_12") > 3).cast("int32")
    closed = engine.column(window, "upb_12").equals(0).cast("int32")
    engine.assign(window, "delinquency_12", late + closed)
    del late, closed

    first_months = engine.column(window, "window") * MONTHS + (EPOCH_MONTHS + month - 1)
    engine.assign(window, "timestamp_year", (first_months / MONTHS).floor().cast("int16"))
    engine.assign_constant(window, "timestamp_month", month, "int8")
    engine.drop(window, ["window"])
    return window


def combine_joined_12_mon(
    engine: Engine[FrameT, ColumnT], joined: FrameT, windows: FrameT
) -> FrameT:
    """Return the joined table with the twelve-month features in place of the monthly ones."""
    engine.drop(joined, ["delinquency_12", "upb_12"])
    engine.assign(joined, "timestamp_year", engine.column(joined, "timestamp_year").cast("int16"))
    engine.assign(joined, "timestamp_month", engine.column(joined, "timestamp_month").cast("int8"))
    return engine.left_join(joined, windows, on=LOAN_MONTH)
