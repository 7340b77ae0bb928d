# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of columns, masks and hash tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm_mortgage.shadow.sizes import (
    ColumnShape,
    groupby_set_bytes,
    index_bytes,
    join_table_bytes,
    mask_bytes,
)


@pytest.mark.parametrize(
    ("rows", "expected"), [(0, 0), (1, 64), (512, 64), (513, 128), (1_000_000, 125_056)]
)
def test_mask_of_rows_is_padded_to_64_bytes(rows: int, expected: int) -> None:
    assert mask_bytes(rows) == expected


@given(st.integers(0, 1 << 31))
def test_mask_of_any_rows_has_a_bit_for_each_and_little_more(rows: int) -> None:
    assert 0 <= mask_bytes(rows) * 8 - rows < 64 * 8


def test_column_with_mask_has_data_and_mask() -> None:
    shape = ColumnShape("float64", 1000, has_mask=True)
    assert shape.buffers == {"data": 8000, "mask": 128}
    assert shape.nbytes == 8128


def test_string_column_has_offsets_text_and_no_data() -> None:
    shape = ColumnShape("string", 10, null_count=1, has_mask=True, text_bytes=33)
    assert shape.buffers == {"offsets": 44, "text": 33, "mask": 64}


def test_string_column_of_nulls_has_no_text_buffer() -> None:
    assert "text" not in ColumnShape("string", 10, null_count=10, has_mask=True).buffers


@pytest.mark.parametrize("dtype", ["int8", "timestamp", "string"])
def test_column_without_rows_has_no_buffers(dtype: str) -> None:
    assert ColumnShape(dtype, 0, has_mask=True).buffers == {}  # type: ignore[arg-type]


def test_hash_tables_of_rows_are_half_full() -> None:
    assert join_table_bytes(1000) == 2 * 1000 * 8
    assert groupby_set_bytes(1000) == 2 * 1000 * 4
    assert index_bytes(1000) == 4000
