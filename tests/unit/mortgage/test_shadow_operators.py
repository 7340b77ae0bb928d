# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Plans of libcudf's operators: what is allocated, in which order, and what is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm_mortgage.shadow import operators
from rmm_uvm_mortgage.shadow.plan import Allocate, EventPlan, PlannedColumn, PlannedFree
from rmm_uvm_mortgage.shadow.sizes import ColumnShape, DeviceType

ROWS = 10_000
MASK = 1280  # of ROWS rows


def column(
    name: str, dtype: DeviceType = "int64", rows: int = ROWS, nulls: int = 0, *, mask: bool = False
) -> PlannedColumn:
    return PlannedColumn(name, ColumnShape(dtype, rows, nulls, mask or nulls > 0))


def allocated(plan: EventPlan) -> dict[str, int]:
    """Sum the allocations of a plan by base name and role."""
    sums: dict[str, int] = {}
    for event in plan.events:
        if isinstance(event, Allocate):
            name = event.buffer[0].partition("#")[0] + "." + event.buffer[1]
            sums[name] = sums.get(name, 0) + event.nbytes
    return sums


def test_map_of_column_without_mask_allocates_data_only() -> None:
    plan = EventPlan()
    operators.map_elements(plan, [column("a")], "float32", 0)
    assert allocated(plan) == {"result.data": 4 * ROWS}


def test_map_of_masked_column_without_nulls_still_makes_a_mask() -> None:
    plan = EventPlan()
    result = operators.map_elements(plan, [column("a"), column("b", mask=True)], "int8", 0)
    assert allocated(plan) == {"result.mask": MASK, "result.data": ROWS}
    assert result.shape.has_mask


def test_replace_nulls_with_nulls_gives_no_mask() -> None:
    plan = EventPlan()
    assert not operators.replace_nulls(plan, column("a", nulls=5)).shape.has_mask
    assert plan.kept_bytes == 8 * ROWS


def test_replace_nulls_without_nulls_copies_the_mask_too() -> None:
    plan = EventPlan()
    operators.replace_nulls(plan, column("a", mask=True))
    assert plan.kept_bytes == 8 * ROWS + MASK


def test_gather_nullifying_masks_every_column() -> None:
    plan = EventPlan()
    rows_map = plan.allocate("map", 4 * ROWS)
    results = operators.gather(
        plan, [column("a"), column("b", mask=True)], rows_map, ROWS, [0, 0], nullify=True
    )
    assert all(result.shape.has_mask for result in results)


def test_gather_not_nullifying_masks_masked_columns_only() -> None:
    plan = EventPlan()
    rows_map = plan.allocate("map", 4 * ROWS)
    results = operators.gather(
        plan, [column("a"), column("b", mask=True)], rows_map, ROWS, [0, 0], nullify=False
    )
    assert [result.shape.has_mask for result in results] == [False, True]


def test_boolean_mask_frees_its_indices() -> None:
    plan = EventPlan()
    kept = operators.apply_boolean_mask(
        plan, [column("a")], column("m", "bool"), rows=100, null_counts=[0]
    )
    assert plan.peak_bytes == 4 * ROWS + 800
    assert plan.kept_bytes == kept[0].shape.nbytes == 800


def test_concatenate_without_nulls_drops_masks() -> None:
    plan = EventPlan()
    result = operators.concatenate(plan, [column("a", mask=True), column("b", mask=True)])
    assert allocated(plan) == {"a.data": 16 * ROWS}
    assert not result.shape.has_mask


def test_concatenate_with_nulls_in_one_part_masks_the_whole() -> None:
    plan = EventPlan()
    result = operators.concatenate(plan, [column("a"), column("b", nulls=3)])
    assert (result.shape.null_count, result.shape.has_mask) == (3, True)


def test_left_join_holds_table_and_maps_together_and_leaves_maps() -> None:
    plan = EventPlan()
    operators.left_join_maps(plan, [column("l", rows=500)], [column("r", rows=1000)], 500)
    assert plan.peak_bytes == 16_000 + 2 * 2000
    assert plan.kept_bytes == 2 * 2000


def test_left_join_of_masked_right_keys_combines_their_masks_first() -> None:
    plan = EventPlan()
    operators.left_join_maps(plan, [column("l")], [column("r", rows=1000, mask=True)], ROWS)
    assert allocated(plan)["valid_keys.work"] == 128


def groupby_peak(rows: int, groups: int, runs: int, values: list[PlannedColumn]) -> tuple[int, int]:
    plan = EventPlan()
    keys, aggregates = operators.groupby(
        plan, [column("k", rows=rows)], values, groups, runs, [0] * len(values)
    )
    outputs = sum(result.shape.nbytes for result in [*keys, *aggregates])
    assert plan.kept_bytes == outputs
    return plan.peak_bytes, outputs


def test_groupby_of_few_keys_aggregates_in_shared_memory() -> None:
    rows, groups = 1 << 20, 10
    peak, _ = groupby_peak(rows, groups, rows, [column("v", "int32", rows)])
    # Set of 8 bytes, ranks, group rows and row groups of 4 bytes each, for every row.
    assert peak / rows == pytest.approx(20, rel=0.06)


def test_groupby_of_many_keys_aggregates_as_tall_as_the_input() -> None:
    rows = 1 << 20
    peak, outputs = groupby_peak(rows, rows // 2, rows, [column("v", "timestamp", rows)])
    # Set 8, ranks 4, group rows 4, sparse column 8, block keys 1, and the dense aggregate on top.
    assert peak / rows == pytest.approx(25 + 4, rel=0.01)
    assert outputs == rows // 2 * 16


def test_groupby_of_many_values_numbers_the_groups_first() -> None:
    rows = 1 << 20
    values = [column(name, "int64", rows) for name in "vwx"]
    peak, _ = groupby_peak(rows, rows // 100, rows, values)
    assert peak / rows == pytest.approx(8 + 4 + 4 * 4, rel=0.06)


def test_groupby_of_values_with_nulls_masks_the_aggregate() -> None:
    plan = EventPlan()
    _, (aggregate,) = operators.groupby(
        plan, [column("k")], [column("v", nulls=1)], groups=5, key_runs=5, null_counts=[0]
    )
    assert aggregate.shape.has_mask


def test_keys_of_a_block_grow_with_rows_when_keys_are_clustered() -> None:
    few = operators.keys_of_a_block(1_000_000, 30_000, 30_000)
    many = operators.keys_of_a_block(30_000_000, 900_000, 900_000)
    assert few < operators.GROUPBY_BLOCK_ROWS < many


def test_keys_of_a_block_never_exceed_the_groups() -> None:
    assert operators.keys_of_a_block(10_000_000, 7, 10_000_000) == 7


@given(
    rows=st.integers(1, 1 << 24),
    group_share=st.floats(0, 1),
    run_share=st.floats(0, 1),
    value_count=st.integers(1, 4),
)
def test_groupby_of_anything_leaves_outputs_only(
    rows: int, group_share: float, run_share: float, value_count: int
) -> None:
    groups = max(1, int(rows * group_share))
    runs = groups + int((rows - groups) * run_share)
    values = [column(f"v{i}", "float64", rows) for i in range(value_count)]
    groupby_peak(rows, groups, runs, values)


def test_sort_by_row_index_keeps_second_copies() -> None:
    plan = EventPlan()
    order = plan.allocate("order", 4 * ROWS)
    result = operators.sort_by_row_index(plan, column("codes", "int8"), order)
    assert plan.peak_bytes == (4 + 20) * ROWS
    assert plan.kept_bytes == 4 * ROWS + result.shape.nbytes


def test_strings_without_nulls_free_the_mask_made_for_them() -> None:
    plan = EventPlan()
    pairs = plan.allocate("pairs", 16 * ROWS)
    shape = ColumnShape("string", ROWS, text_bytes=ROWS)
    result = operators.make_strings(plan, pairs, pairs, shape)
    assert any(
        isinstance(e, PlannedFree) and e.buffer == (result.name, "mask") for e in plan.events
    )
    assert plan.kept_bytes == 16 * ROWS + 4 * (ROWS + 1) + ROWS
