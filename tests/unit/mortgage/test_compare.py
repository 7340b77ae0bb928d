# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Comparing features: order does not count, whole numbers exactly, floats nearly."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm_mortgage.compare import compare_features, features_digest


def table(a: list[float], b: list[float]) -> pa.Table:
    return pa.table({"a": np.asarray(a, np.float32), "b": np.asarray(b, np.float32)})


def features(rows: int = 50) -> pa.Table:
    rng = np.random.default_rng(0)
    return table(list(rng.integers(0, 4, rows)), list(rng.random(rows)))


@given(
    st.permutations(range(8)), st.lists(st.sampled_from([0, 1, -1, 0.5]), min_size=8, max_size=8)
)
def test_permuted_rows_are_equal_and_have_equal_digests(order: list[int], b: list[float]) -> None:
    original = table([0, 0, 0, 1, 1, 2, 2, 2], b)
    permuted = original.take(order)

    assert compare_features(original, permuted) is None
    assert features_digest([original]) == features_digest([permuted])


def test_columns_in_another_order_are_equal() -> None:
    original = features()

    assert compare_features(original, original.select(["b", "a"])) is None
    assert features_digest([original]) == features_digest([original.select(["b", "a"])])


def test_digest_of_pieces_equals_that_of_the_whole() -> None:
    whole = features()

    assert features_digest([whole]) == features_digest([whole.slice(20), whole.slice(0, 20)])


@pytest.mark.parametrize("column", ["a", "b"])
def test_one_changed_value_is_found_and_changes_the_digest(column: str) -> None:
    original = features()
    values = original.column(column).to_numpy().copy()
    values[17] += 1
    changed = original.set_column(original.column_names.index(column), column, pa.array(values))

    difference = compare_features(original, changed)

    assert difference is not None
    assert str(difference)
    assert features_digest([original]) != features_digest([changed])


def test_values_swapped_between_rows_are_found() -> None:
    assert compare_features(table([0, 1], [5, 6]), table([0, 1], [6, 5])) is not None
    assert features_digest([table([0, 1], [5, 6])]) != features_digest([table([0, 1], [6, 5])])


def test_values_swapped_between_columns_are_found() -> None:
    assert compare_features(table([1], [2]), table([2], [1])) is not None
    assert features_digest([table([1], [2])]) != features_digest([table([2], [1])])


@pytest.mark.parametrize(("factor", "equal"), [(1 + 5e-7, True), (1 + 5e-6, False)])
def test_floats_may_differ_by_a_relative_1e_6(factor: float, equal: bool) -> None:
    values = np.linspace(0.1, 0.9, 20)

    difference = compare_features(
        table([1] * 20, list(values)), table([1] * 20, list(values * factor))
    )

    assert (difference is None) == equal


def test_whole_numbers_must_be_equal() -> None:
    difference = compare_features(table([8388607], [1]), table([8388608], [1]))

    assert difference is not None
    assert (difference.column, difference.rows) == ("a", 1)


def test_other_heights_and_columns_are_named() -> None:
    assert str(compare_features(table([1], [1]), table([1, 1], [1, 1]))) == "1 and 2 rows"
    renamed = table([1], [1]).rename_columns(["a", "c"])
    assert str(compare_features(table([1], [1]), renamed)) == "columns in only one table: b, c"
