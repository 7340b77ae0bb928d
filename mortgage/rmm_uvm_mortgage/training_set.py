# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The largest training set that fits a memory, by a dry run of PREP and TRAIN on the simulation.

Allocates what PREP and TRAIN would for a number of rows, without values, so that sets larger than
the data at hand can be tried. Counted are cuDF's frames in RMM's resource and XGBoost's own
cudaMalloc memory (`rmm_uvm_mortgage.xgboost_memory`); host memory is taken to be enough.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

from rmm_uvm_mortgage.shadow import operators
from rmm_uvm_mortgage.shadow.enactor import DeviceColumn, Enactor
from rmm_uvm_mortgage.shadow.plan import EventPlan, PlannedColumn
from rmm_uvm_mortgage.shadow.sizes import ColumnShape
from rmm_uvm_mortgage.simulated_engine import SimulatedEngine, XGBoostShadow
from rmm_uvm_mortgage.xgboost_memory import TrainingShape

COLUMNS = 46
"""45 features and the label, 4 bytes each."""
MOST_ROWS = 2**31 - 1
"""Of a table in cuDF, whose row numbers are of 32 bits (`cudf::size_type`)."""
_RESOLUTION_FRACTION = 0.005
_MOST_PARTS = 256  # many small tables need what few large ones do, and take longer to try


def largest_training_rows(
    engine_of: Callable[[], SimulatedEngine], shape: TrainingShape, part_rows: int
) -> int:
    """Return how many rows can be converted and trained on, to half a percent; <= MOST_ROWS.

    Parameters
    ----------
    engine_of : callable
        Makes an engine on a fresh device; for a memory that is handed over, after the hand-over.
    shape : TrainingShape
        A set of the same kind, from which values and bins for each row are taken; not empty.
    part_rows : int
        Rows of one table of the ETL; > 0. PREP concatenates such tables.
    """
    fits, fails = 0, min(max(shape.rows, 2), MOST_ROWS)
    while _fits(engine_of(), shape.scaled(fails), part_rows):
        if fails == MOST_ROWS:
            return MOST_ROWS
        fits, fails = fails, min(fails * 2, MOST_ROWS)
    while fails - fits > max(1, int(fits * _RESOLUTION_FRACTION)):
        middle = (fits + fails) // 2
        if _fits(engine_of(), shape.scaled(middle), part_rows):
            fits = middle
        else:
            fails = middle
    return fits


def _fits(engine: SimulatedEngine, shape: TrainingShape, part_rows: int) -> bool:
    try:
        _dry_run(engine._enactor, engine.xgboost, shape, part_rows)
    except MemoryError:
        return False
    else:
        return True
    finally:
        gc.collect()


def _dry_run(
    enactor: Enactor, xgboost: XGBoostShadow, shape: TrainingShape, part_rows: int
) -> None:
    """Allocate, touch and free what `prep.build_matrix` and training do."""
    part_rows = max(part_rows, -(-shape.rows // _MOST_PARTS))
    heights = [part_rows] * (shape.rows // part_rows)
    heights += [shape.rows % part_rows] if shape.rows % part_rows else []
    parts = [_copy_to_device(enactor, rows) for rows in heights]
    frame = _concatenate(enactor, parts)
    del parts
    matrix = xgboost.make_matrix(shape)
    del frame
    xgboost.train(shape)
    matrix.free()


def _copy_to_device(enactor: Enactor, rows: int) -> list[DeviceColumn]:
    plan = EventPlan()
    planned = []
    for number in range(COLUMNS):
        planned.append(plan.allocate_column(str(number), ColumnShape("float32", rows)))
        plan.kernel([], planned[-1:])
    return enactor.run(plan, {}, planned)


def _concatenate(enactor: Enactor, parts: Sequence[list[DeviceColumn]]) -> list[DeviceColumn]:
    plan = EventPlan()
    inputs = {
        f"{number} of {part}": column
        for part, columns in enumerate(parts)
        for number, column in enumerate(columns)
    }
    planned: list[PlannedColumn] = [
        operators.concatenate(
            plan,
            [
                PlannedColumn(f"{number} of {part}", columns[number].shape)
                for part, columns in enumerate(parts)
            ],
        )
        for number in range(COLUMNS)
    ]
    return enactor.run(plan, inputs, planned)
