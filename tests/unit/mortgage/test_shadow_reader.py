# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Plan of cuDF's CSV reader."""

from __future__ import annotations

from rmm_uvm_mortgage.shadow.plan import Allocate, EventPlan
from rmm_uvm_mortgage.shadow.reader import CHUNK_BYTES, read_csv
from rmm_uvm_mortgage.shadow.sizes import ColumnShape

ROWS = 1_000_000
NUMBER = ColumnShape("float64", ROWS)
STRING = ColumnShape("string", ROWS, text_bytes=3 * ROWS)


def text_buffers(plan: EventPlan) -> list[int]:
    return [e.nbytes for e in plan.events if isinstance(e, Allocate) and "text#" in e.buffer[0]]


def test_text_of_two_pieces_is_allocated_once() -> None:
    plan = EventPlan()
    read_csv(plan, 2 * CHUNK_BYTES, [NUMBER])
    assert text_buffers(plan) == [2 * CHUNK_BYTES]


def test_text_of_more_pieces_grows_by_copies() -> None:
    plan = EventPlan()
    read_csv(plan, 3 * CHUNK_BYTES + 7, [NUMBER])
    assert text_buffers(plan) == [2 * CHUNK_BYTES, 3 * CHUNK_BYTES, 3 * CHUNK_BYTES + 7]


def test_long_text_is_held_twice_at_its_last_piece() -> None:
    plan = EventPlan()
    read_csv(plan, 20 * CHUNK_BYTES, [NUMBER])
    assert plan.peak_bytes > 39 * CHUNK_BYTES


def test_short_text_stays_until_all_columns_are_made() -> None:
    plan = EventPlan()
    read_csv(plan, 1000, [NUMBER] * 3)
    assert plan.peak_bytes == 1000 + 8 * (ROWS + 1) + 3 * (8 * ROWS + 125_056)


def test_numbers_without_nulls_get_a_mask() -> None:
    plan = EventPlan()
    (column,) = read_csv(plan, 1000, [NUMBER])
    assert column.shape.has_mask
    assert plan.kept_bytes == 8 * ROWS + 125_056


def test_strings_are_decoded_to_pairs_first() -> None:
    plan = EventPlan()
    (column,) = read_csv(plan, 1000, [STRING])
    assert not column.shape.has_mask
    assert plan.kept_bytes == 4 * (ROWS + 1) + 3 * ROWS
    pairs_flags_and_mask = 16 * ROWS + ROWS + 125_056
    assert plan.peak_bytes > plan.kept_bytes + pairs_flags_and_mask + 24 * ROWS


def test_columns_come_back_in_file_order() -> None:
    columns = read_csv(EventPlan(), 1000, [NUMBER, STRING, NUMBER])
    assert [column.shape.dtype for column in columns] == ["float64", "string", "float64"]
