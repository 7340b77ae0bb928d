# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The device allocations of libcudf 26.10, operator by operator.

Every function appends to a plan what one libcudf call does: work space, outputs, and which
buffers its kernels read and write, in libcudf's order. Outputs come back as planned columns;
whoever composes the plan frees what the caller of libcudf would free. Sizes follow from rows,
types, nulls and distinct keys only.

Not covered: work space of CUB scans and reductions (below 1 % of their input), one-element
scalars and counters, column views copied to the device. `docs/understand/shadow-sizing.md` lists
them.

References
----------
Paths in the docstrings are of https://github.com/rapidsai/cudf, branch release/26.10.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmm_uvm_mortgage.shadow.plan import (
    Allocate,
    EventPlan,
    Operand,
    PlannedColumn,
    PlannedFree,
    WorkSpace,
)
from rmm_uvm_mortgage.shadow.sizes import (
    MEMCPY_WORK_BYTES,
    ColumnShape,
    DeviceType,
    groupby_set_bytes,
    index_bytes,
    join_table_bytes,
    mask_bytes,
)

GROUPBY_BLOCK_ROWS = 128
"""Threads of a groupby kernel's block, and the keys that its shared memory can hold."""
GROUPBY_GRID_BLOCKS = 132 * 16
"""Blocks of such a kernel that run at once: multiprocessors of an H100 or H200, 16 on each."""


# -- element-wise -----------------------------------------------------------------------------


def map_elements(
    plan: EventPlan, inputs: Sequence[PlannedColumn], dtype: DeviceType, null_count: int
) -> PlannedColumn:
    """Compute a new column element by element: cast, arithmetic, comparison, date part.

    A mask is made where any input has one, whether it marks nulls or not.

    References
    ----------
    cpp/src/unary/cast_ops.cu `dispatch_unary_cast_to`; cpp/src/binaryop/binaryop.cpp
    `make_fixed_width_column_for_output`; cpp/src/datetime/datetime_ops.cu `apply_datetime_op`.
    """
    has_mask = any(column.shape.has_mask for column in inputs)
    shape = ColumnShape(dtype, inputs[0].shape.rows, null_count, has_mask)
    result = plan.declare_column("result", shape)
    if has_mask:
        plan.allocate_roles(result, "mask")
        plan.kernel([b for c in inputs for b in c.role("mask")], result.role("mask"))
    plan.allocate_roles(result, "data")
    plan.kernel([b for c in inputs for b in c.role("data")], result.role("data"))
    return result


def copy_column(plan: EventPlan, source: PlannedColumn) -> PlannedColumn:
    """Copy a column with its mask.

    References
    ----------
    cpp/src/column/column.cu, copying constructor of `column`.
    """
    result = plan.allocate_column("copy", source.shape)
    plan.kernel([source], [result])
    return result


def replace_nulls(plan: EventPlan, source: PlannedColumn) -> PlannedColumn:
    """Put a value in place of nulls; the result has no mask. Without nulls it is a plain copy.

    References
    ----------
    cpp/src/replace/nulls.cu `replace_nulls`.
    """
    if source.shape.null_count == 0:
        return copy_column(plan, source)
    result = plan.allocate_column("filled", source.shape.with_nulls(0, has_mask=False))
    plan.kernel([source], [result])
    return result


def fill_column(plan: EventPlan, dtype: DeviceType, rows: int) -> PlannedColumn:
    """Make a column of one value, or of a sequence.

    References
    ----------
    cpp/src/column/column_factories.cu `make_column_from_scalar`; cpp/src/filling/sequence.cu.
    """
    result = plan.allocate_column("constant", ColumnShape(dtype, rows))
    plan.kernel([], [result])
    return result


# -- rows -------------------------------------------------------------------------------------


def gather(
    plan: EventPlan,
    columns: Sequence[PlannedColumn],
    gather_map: Operand,
    rows: int,
    null_counts: Sequence[int],
    *,
    nullify: bool,
) -> list[PlannedColumn]:
    """Pick rows of a table by index: data of all columns first, then their masks.

    With `nullify`, as after a join, every result has a mask; otherwise those whose source has.

    References
    ----------
    cpp/include/cudf/detail/gather.cuh `gather`, `gather_bitmask`.
    """
    results = []
    for column, null_count in zip(columns, null_counts, strict=True):
        has_mask = nullify or column.shape.has_mask
        shape = ColumnShape(column.shape.dtype, rows, null_count, has_mask)
        result = plan.declare_column(_base_name(column), shape)
        plan.allocate_roles(result, "data")
        plan.kernel([*column.role("data"), gather_map], result.role("data"))
        results.append(result)
    for result in results:
        plan.allocate_roles(result, "mask")
    masks_in = [buffer for column in columns for buffer in column.role("mask")]
    masks_out = [buffer for result in results for buffer in result.role("mask")]
    if masks_out:
        plan.kernel([*masks_in, gather_map], masks_out)
    return results


def apply_boolean_mask(
    plan: EventPlan,
    columns: Sequence[PlannedColumn],
    mask: PlannedColumn,
    rows: int,
    null_counts: Sequence[int],
) -> list[PlannedColumn]:
    """Keep the rows where a boolean column is true: their indices, then a gather.

    References
    ----------
    cpp/include/cudf/detail/copy_if.cuh `copy_if`.
    """
    all_rows = mask.shape.rows
    with plan.work("kept_rows", index_bytes(all_rows)) as indices:
        plan.kernel([mask], [indices])
        if rows == all_rows:
            return [copy_column(plan, column) for column in columns]
        return gather(plan, columns, indices, rows, null_counts, nullify=False)


def concatenate(plan: EventPlan, parts: Sequence[PlannedColumn]) -> PlannedColumn:
    """Append columns of one type; a mask only where a part has nulls.

    References
    ----------
    cpp/src/copying/concatenate.cu `fused_concatenate`, `for_each_concatenate`.
    """
    null_count = sum(part.shape.null_count for part in parts)
    rows = sum(part.shape.rows for part in parts)
    shape = ColumnShape(parts[0].shape.dtype, rows, null_count, null_count > 0)
    result = plan.allocate_column(_base_name(parts[0]), shape)
    plan.kernel(parts, [result])
    return result


def left_join_maps(
    plan: EventPlan,
    left_keys: Sequence[PlannedColumn],
    right_keys: Sequence[PlannedColumn],
    rows: int,
) -> tuple[WorkSpace, WorkSpace]:
    """Match rows by hash: two row indices for each of `rows` results.

    Returns
    -------
    tuple of WorkSpace
        Gather maps of the left and the right table, to be freed by the caller.

    References
    ----------
    cpp/src/join/join.cu `left_join`; cpp/src/join/hash_join/hash_join.cu;
    cpp/src/join/hash_join/retrieve_impl.cuh `probe_join_hash_table`.
    """
    right_rows = right_keys[0].shape.rows
    with plan.work("join_table", join_table_bytes(right_rows)) as table:
        has_masks = any(key.shape.has_mask for key in right_keys)
        with plan.work("valid_keys", mask_bytes(right_rows) if has_masks else 0) as valid:
            plan.kernel(right_keys, [valid])
            plan.kernel(right_keys, [table])
        plan.kernel([*left_keys, *right_keys, table])
        left_map = plan.allocate("left_map", index_bytes(rows))
        right_map = plan.allocate("right_map", index_bytes(rows))
        plan.kernel([*left_keys, *right_keys, table], [left_map, right_map])
    return left_map, right_map


# -- groupby ----------------------------------------------------------------------------------


def groupby(
    plan: EventPlan,
    keys: Sequence[PlannedColumn],
    values: Sequence[PlannedColumn],
    groups: int,
    key_runs: int,
    null_counts: Sequence[int],
) -> tuple[list[PlannedColumn], list[PlannedColumn]]:
    """Aggregate with one pass over a hash set of the keys (min, max, sum, count).

    Parameters
    ----------
    plan : EventPlan
        Grows by the call's events.
    keys, values : sequence of PlannedColumn
        Key columns without nulls, and one value column for each aggregate.
    groups : int
        Distinct keys.
    key_runs : int
        Runs of equal keys in row order, `groups`..rows. It decides whether the keys that one
        block meets fit its shared memory, and so which of two algorithms runs.
    null_counts : sequence of int
        Nulls of each aggregate.

    Returns
    -------
    tuple of lists of PlannedColumn
        Key columns and aggregates, `groups` rows each.

    References
    ----------
    cpp/src/groupby/hash/compute_groupby.cu; compute_single_pass_aggs.cuh;
    compute_global_memory_aggs.cuh; output_utils.cu `result_column_creator`.
    """
    rows = keys[0].shape.rows
    grid_blocks = min(GROUPBY_GRID_BLOCKS, -(-rows // GROUPBY_BLOCK_ROWS))
    set_ = plan.allocate("key_set", groupby_set_bytes(rows))
    plan.kernel([], [set_])
    ranks = plan.allocate("block_ranks", index_bytes(rows))
    targets = plan.allocate("block_keys", index_bytes(grid_blocks * GROUPBY_BLOCK_ROWS))
    plan.kernel([*keys, set_], [set_, ranks, targets])

    if keys_of_a_block(rows, groups, key_runs) <= GROUPBY_BLOCK_ROWS:
        group_rows = plan.allocate("group_rows", index_bytes(rows))
        plan.kernel([set_], [group_rows])
        with plan.work("group_of_row", index_bytes(rows)) as group_of_row:
            plan.kernel([group_rows, targets], [group_of_row, targets])
        results = _result_columns(plan, values, groups, null_counts)
        plan.kernel([*values, ranks, targets], results)
        plan.free(targets, ranks)
    elif len(values) > 2:
        group_rows, results = _dense_aggregates(plan, keys, values, set_, groups, null_counts)
        plan.free(targets, ranks)
    else:
        group_rows, results = _sparse_aggregates(plan, keys, values, set_, groups, null_counts)
        plan.free(targets, ranks)

    key_columns = gather(plan, keys, group_rows, groups, [0] * len(keys), nullify=False)
    plan.free(group_rows, set_)
    return key_columns, results


def keys_of_a_block(rows: int, groups: int, key_runs: int) -> float:
    """Return how many distinct keys one block of the groupby kernel meets on average.

    A block takes stretches of 128 consecutive rows, as many as the grid leaves it.
    """
    if rows == 0:
        return 0.0
    stretch = min(GROUPBY_BLOCK_ROWS, rows)
    stretches = -(-rows // (GROUPBY_GRID_BLOCKS * GROUPBY_BLOCK_ROWS))
    runs_of_a_stretch = 1 + (stretch - 1) * key_runs / rows
    return min(stretches * runs_of_a_stretch, float(groups))


def _result_columns(
    plan: EventPlan, values: Sequence[PlannedColumn], rows: int, null_counts: Sequence[int]
) -> list[PlannedColumn]:
    """Allocate and initialise aggregates; one can be null only where its values have nulls."""
    results = []
    for value, null_count in zip(values, null_counts, strict=True):
        shape = ColumnShape(value.shape.dtype, rows, null_count, value.shape.null_count > 0)
        result = plan.allocate_column(_base_name(value), shape)
        plan.kernel([], [result])
        results.append(result)
    return results


def _sparse_aggregates(
    plan: EventPlan,
    keys: Sequence[PlannedColumn],
    values: Sequence[PlannedColumn],
    set_: WorkSpace,
    groups: int,
    null_counts: Sequence[int],
) -> tuple[WorkSpace, list[PlannedColumn]]:
    """Aggregate into columns as tall as the input, then gather the rows that stand for groups."""
    rows = keys[0].shape.rows
    sparse = _result_columns(plan, values, rows, null_counts)
    plan.kernel([*keys, *values, set_], [set_, *sparse])
    group_rows = plan.allocate("group_rows", index_bytes(rows))
    plan.kernel([set_], [group_rows])
    results = gather(plan, sparse, group_rows, groups, null_counts, nullify=False)
    for column in sparse:
        plan.free_column(column)
    return group_rows, results


def _dense_aggregates(
    plan: EventPlan,
    keys: Sequence[PlannedColumn],
    values: Sequence[PlannedColumn],
    set_: WorkSpace,
    groups: int,
    null_counts: Sequence[int],
) -> tuple[WorkSpace, list[PlannedColumn]]:
    """Find the number of each group first, then aggregate into columns of one row for each."""
    rows = keys[0].shape.rows
    matches = plan.allocate("matching_keys", index_bytes(rows))
    plan.kernel([*keys, set_], [set_, matches])
    group_rows = plan.allocate("group_rows", index_bytes(rows))
    plan.kernel([set_], [group_rows])
    transform = plan.allocate("group_of_row", index_bytes(rows))
    plan.kernel([group_rows], [transform])
    targets = plan.allocate("target_groups", index_bytes(rows))
    plan.kernel([matches, transform], [targets])
    plan.free(transform, matches)
    results = _result_columns(plan, values, groups, null_counts)
    plan.kernel([*values, targets], results)
    plan.free(targets)
    return group_rows, results


# -- strings and sorting --------------------------------------------------------------------------


def make_strings(
    plan: EventPlan, pairs: Operand, source: Operand, shape: ColumnShape
) -> PlannedColumn:
    """Build a string column from pointers and lengths into `source`.

    References
    ----------
    cpp/include/cudf/strings/detail/strings_column_factories.cuh `make_strings_column`;
    strings_children.cuh `make_chars_buffer` and CUB `DeviceMemcpy::Batched`.
    """
    result = plan.declare_column("strings", shape)
    mask = (result.name, "mask")
    plan.allocate_roles(result, "offsets")
    plan.kernel([pairs], result.role("offsets"))
    plan.events.append(Allocate(mask, mask_bytes(shape.rows)))
    plan.kernel([pairs], [mask])
    if not shape.has_mask:
        plan.events.append(PlannedFree(mask))
    plan.allocate_roles(result, "text")
    with plan.work("copy_list", shape.rows * MEMCPY_WORK_BYTES) as work:
        plan.kernel([pairs, source, work], [work, *result.role("text")])
    return result


def sort_by_row_index(plan: EventPlan, values: PlannedColumn, order: Operand) -> PlannedColumn:
    """Sort a column by row indices that come with it: radix sort of (index, position), gather.

    References
    ----------
    cpp/src/sort/stable_sort.cu `stable_sort_by_key`; cpp/src/sort/sorted_order_radix.cu; CUB
    `DeviceRadixSort::SortPairs`, which keeps a second copy of keys and positions.
    """
    rows = values.shape.rows
    positions = plan.allocate("sorted_positions", index_bytes(rows))
    with (
        plan.work("sorted_keys", index_bytes(rows)) as keys,
        plan.work("positions", index_bytes(rows)) as sequence,
        plan.work("radix_copies", 2 * index_bytes(rows)) as copies,
    ):
        plan.kernel([order, sequence], [sequence, copies, keys, positions])
    null_counts = [values.shape.null_count]
    result = gather(plan, [values], positions, rows, null_counts, nullify=False)[0]
    plan.free(positions)
    return result


def _base_name(column: PlannedColumn) -> str:
    return column.name.partition("#")[0]
