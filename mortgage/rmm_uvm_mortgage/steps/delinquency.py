# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Steps 3 to 5: how late each loan ever was, and since when."""

from __future__ import annotations

from rmm_uvm_mortgage.engines.base import ColumnT, Engine, FrameT

DELINQUENCY_LIMITS = {30: 1, 90: 3, 180: 6}
"""Days late, and the delinquency status (months late) that stands for them."""

STATUS = "current_loan_delinquency_status"


def create_ever_features(engine: Engine[FrameT, ColumnT], performance: FrameT) -> FrameT:
    """Return, for each loan, whether it was ever 30, 90 or 180 days late (int8)."""
    ever = engine.select(performance, ["loan_id", STATUS])
    ever = engine.groupby(ever, ["loan_id"], {STATUS: "max"})
    worst = engine.column(ever, STATUS)
    for days, limit in DELINQUENCY_LIMITS.items():
        engine.assign(ever, f"ever_{days}", (worst >= limit).cast("int8"))
    engine.drop(ever, [STATUS])
    return ever


def create_delinq_features(engine: Engine[FrameT, ColumnT], performance: FrameT) -> FrameT:
    """Return, for each loan that was late, the first months at 30, 90 and 180 days."""
    history = engine.select(performance, ["loan_id", "monthly_reporting_period", STATUS])
    first_months = []
    for days, limit in DELINQUENCY_LIMITS.items():
        late = engine.filter(history, engine.column(history, STATUS) >= limit)
        late = engine.select(late, ["loan_id", "monthly_reporting_period"])
        first = engine.groupby(late, ["loan_id"], {"monthly_reporting_period": "min"})
        first = engine.rename(first, {"monthly_reporting_period": f"delinquency_{days}"})
        first_months.append(first)
        del late, first
    delinquencies = first_months[0]
    for first in first_months[1:]:
        delinquencies = engine.left_join(delinquencies, first, on=["loan_id"])
    return delinquencies


def join_ever_delinq_features(
    engine: Engine[FrameT, ColumnT], ever: FrameT, delinquencies: FrameT
) -> FrameT:
    """Return both sets of loan features side by side."""
    return engine.left_join(ever, delinquencies, on=["loan_id"])
