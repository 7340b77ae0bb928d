# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Operators of cuDF 26.10's Python layer: several libcudf calls, temporaries, copies.

Each function appends to a plan and returns the columns that the operator's result consists of;
temporaries are freed where cuDF's Python drops its last reference to them.

References
----------
Paths in the docstrings are of https://github.com/rapidsai/cudf, branch release/26.10, below
python/cudf/cudf/core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rmm_uvm_mortgage.shadow import operators
from rmm_uvm_mortgage.shadow.plan import EventPlan, PlannedColumn, WorkSpace
from rmm_uvm_mortgage.shadow.sizes import (
    ITEM_BYTES,
    ColumnShape,
    DeviceType,
    index_bytes,
    join_table_bytes,
)

_FLOATS: tuple[DeviceType, ...] = ("float32", "float64")
_INTEGERS: tuple[DeviceType, ...] = ("int8", "int16", "int32", "int64")


def divide(plan: EventPlan, column: PlannedColumn, null_count: int) -> PlannedColumn:
    """Divide a float column by a number, or take its floor, which is a division by one.

    Where the result has no nulls, cuDF looks for infinities with CuPy, whose memory also comes
    from RMM: three boolean columns.

    References
    ----------
    column/numerical.py `NumericalColumn._binaryop`.
    """
    rows = column.shape.rows
    result = operators.map_elements(plan, [column], column.shape.dtype, null_count)
    if null_count == 0:
        with plan.work("is_infinite", rows) as infinite:
            plan.kernel(result.role("data"), [infinite])
            with plan.work("is_nonzero", rows) as nonzero, plan.work("flipped", rows) as flipped:
                plan.kernel(column.role("data"), [nonzero])
                plan.kernel([infinite, nonzero], [flipped])
    return result


def fill_null(plan: EventPlan, column: PlannedColumn) -> PlannedColumn:
    """Put a value in place of nulls. A float column without nulls is searched for NaN first.

    References
    ----------
    column/column.py `ColumnBase.fillna`, column/numerical.py `nan_count`.
    """
    if column.shape.dtype in _FLOATS:
        with plan.work("is_nan", column.shape.rows) as is_nan:
            plan.kernel([column], [is_nan])
    return operators.replace_nulls(plan, column)


def date_part(plan: EventPlan, column: PlannedColumn) -> PlannedColumn:
    """Extract a part of a date: int16 from libcudf, cast to int32.

    References
    ----------
    column/datetime.py `DatetimeColumn._get_dt_field`.
    """
    nulls = column.shape.null_count
    part = operators.map_elements(plan, [column], "int16", nulls)
    result = operators.map_elements(plan, [part], "int32", nulls)
    plan.free_column(part)
    return result


def filter_rows(
    plan: EventPlan,
    columns: Sequence[PlannedColumn],
    mask: PlannedColumn,
    labels: PlannedColumn,
    rows: int,
    null_counts: Sequence[int],
) -> list[PlannedColumn]:
    """Keep rows where a mask is true; the row labels are filtered too, and then dropped.

    Parameters
    ----------
    plan : EventPlan
        Grows by the call's events.
    columns : sequence of PlannedColumn
        Columns of the frame.
    mask : PlannedColumn
        Boolean column; its nulls are filled first.
    labels : PlannedColumn
        The frame's row labels as a column.
    rows : int
        Rows kept.
    null_counts : sequence of int
        Nulls left in each column.

    References
    ----------
    indexed_frame.py `_apply_boolean_mask`.
    """
    keep = fill_null(plan, mask) if mask.shape.null_count else mask
    kept_labels, *kept = operators.apply_boolean_mask(
        plan, [labels, *columns], keep, rows, [0, *null_counts]
    )
    if keep is not mask:
        plan.free_column(keep)
    plan.free_column(kept_labels)
    return kept


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One table of a join: its columns, and which of them are keys."""

    keys: Sequence[PlannedColumn]
    columns: Sequence[PlannedColumn]


def left_join(
    plan: EventPlan,
    left: JoinSide,
    right: JoinSide,
    rows: int,
    null_counts: Sequence[int],
    *,
    unmatched: bool,
) -> list[PlannedColumn]:
    """Join two frames: match, gather all of the left, gather all of the right, drop its keys.

    Before each gather, if the result is as tall as the table, cuDF compares the gather map with
    the row numbers, which would make a copy suffice; after a hash join the two differ.

    Parameters
    ----------
    plan : EventPlan
        Grows by the call's events.
    left, right : JoinSide
        The tables; the right one's keys are gathered like its other columns.
    rows : int
        Rows of the result.
    null_counts : sequence of int
        Nulls of the left columns, then of the right ones without keys, in the result.
    unmatched : bool
        Whether rows of the left table found no match. Integer columns of the right table that
        are then null in part become float64, as in pandas.

    Returns
    -------
    list of PlannedColumn
        Left columns, then right ones without keys.

    References
    ----------
    join/join.py `Merge.perform_merge`, `_merge_results`; indexed_frame.py `_gather`.
    """
    left_map, right_map = operators.left_join_maps(plan, left.keys, right.keys, rows)

    left_nulls = null_counts[: len(left.columns)]
    left_result = _gather_frame(plan, left.columns, left_map, rows, left_nulls)
    plan.free(left_map)

    nulls_by_name = dict(
        zip(
            (column.name for column in right.columns if column not in right.keys),
            null_counts[len(left.columns) :],
            strict=True,
        )
    )
    right_nulls = [nulls_by_name.get(column.name, 0) for column in right.columns]
    right_result = _gather_frame(plan, right.columns, right_map, rows, right_nulls)
    plan.free(right_map)

    results = left_result
    leavers: list[PlannedColumn] = []
    for source, column in zip(right.columns, right_result, strict=True):
        if source in right.keys:
            leavers.append(column)
        elif unmatched and column.shape.dtype in _INTEGERS and column.shape.null_count:
            nulls = column.shape.null_count
            results.append(operators.map_elements(plan, [column], "float64", nulls))
            leavers.append(column)
        else:
            results.append(column)
    for column in leavers:
        plan.free_column(column)
    return results


def _gather_frame(
    plan: EventPlan,
    columns: Sequence[PlannedColumn],
    gather_map: WorkSpace,
    rows: int,
    null_counts: Sequence[int],
) -> list[PlannedColumn]:
    if rows == columns[0].shape.rows:
        with plan.work("row_numbers", rows * ITEM_BYTES["int64"]) as numbers:
            plan.kernel([], [numbers])
            same = plan.allocate_column("same", ColumnShape("bool", rows, has_mask=True))
            plan.kernel([gather_map, numbers], [same])
            plan.free_column(same)
    return operators.gather(plan, columns, gather_map, rows, null_counts, nullify=True)


def encode_categories(
    plan: EventPlan, strings: PlannedColumn, category_count: int
) -> PlannedColumn:
    """Replace strings by int32 positions in a given list of categories.

    cuDF joins the strings with the categories, gathers 1-byte codes, sorts them back into row
    order, and marks what was not found.

    References
    ----------
    column/column.py `as_categorical_column`, `_label_encoding`; accessors/categorical.py `codes`.
    """
    rows, nulls = strings.shape.rows, strings.shape.null_count
    narrow: DeviceType = "int8" if category_count < 128 else "int16"
    categories = PlannedColumn("", ColumnShape("string", 0))
    codes_of_categories = PlannedColumn("", ColumnShape(narrow, 0))

    with plan.work("categories_table", join_table_bytes(category_count)) as table:
        plan.kernel([strings, table])
        left_map = plan.allocate("left_map", index_bytes(rows))
        right_map = plan.allocate("right_map", index_bytes(rows))
        plan.kernel([strings, table, categories], [left_map, right_map])
    unsorted = operators.gather(
        plan, [codes_of_categories], right_map, rows, [nulls], nullify=True
    )[0]
    plan.free(right_map)
    codes = operators.sort_by_row_index(plan, unsorted, left_map)
    filled = operators.replace_nulls(plan, codes)
    plan.free_column(codes)
    plan.free_column(unsorted)
    plan.free(left_map)

    # The codes take over the strings' null mask by reference.
    is_known = plan.allocate_column("is_known", ColumnShape("bool", rows, nulls, nulls > 0))
    plan.kernel([filled, *strings.role("mask")], [is_known])
    marked = plan.allocate_column("marked", ColumnShape(narrow, rows, nulls, has_mask=True))
    plan.kernel([filled, is_known, *strings.role("mask")], [marked])
    plan.free_column(is_known)
    plan.free_column(filled)
    unsigned = operators.map_elements(plan, [marked], narrow, nulls)
    plan.free_column(marked)
    signed = operators.map_elements(plan, [unsigned], narrow, nulls)
    result = operators.map_elements(plan, [signed], "int32", nulls)
    plan.free_column(signed)
    plan.free_column(unsigned)
    return result
