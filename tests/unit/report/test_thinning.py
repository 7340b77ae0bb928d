# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Thinning: fewer rows, and not one extreme less."""

from __future__ import annotations

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.report.thinning import averaged, thinned

VALUES = st.one_of(st.floats(-1e12, 1e12), st.just(float("nan")))


@given(
    column=arrays.arrays(np.float64, st.integers(1, 300), elements=VALUES),
    n_buckets=st.integers(1, 20),
)
def test_thinned_of_any_column_keeps_least_and_greatest_of_all(column, n_buckets) -> None:
    seconds = np.cumsum(np.ones(len(column)))

    kept = thinned(seconds, [column], n_buckets)

    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == len(column) - 1
    if not np.isnan(column).all():
        assert np.nanmax(column[kept]) == np.nanmax(column)
        assert np.nanmin(column[kept]) == np.nanmin(column)


def test_thinned_day_keeps_the_peak_of_every_bucket() -> None:
    seconds = np.arange(86_400.0)
    noise = np.random.default_rng(7).normal(size=(2, 86_400))

    kept = thinned(seconds, list(noise), 500)

    assert len(kept) <= 500 * 6
    buckets = np.minimum(seconds * 500 / 86_399, 499).astype(int)
    for column in noise:
        for bucket in range(0, 500, 37):
            inside = column[buckets == bucket]
            shown = column[kept[buckets[kept] == bucket]]
            assert (shown.max(), shown.min()) == (inside.max(), inside.min())


def test_thinned_keeps_what_stands_beside_a_mark() -> None:
    seconds = np.arange(10_000.0)

    kept = thinned(seconds, [np.zeros(10_000)], 10, [1234.5, -1.0, 99_999.0])

    assert {1234, 1235} <= set(kept)
    assert 1233 not in kept


def test_thinned_of_few_samples_keeps_all() -> None:
    assert list(thinned(np.arange(5.0), [np.zeros(5)], 100)) == [0, 1, 2, 3, 4]
    assert list(thinned(np.zeros(0), [np.zeros(0)], 100)) == []


def test_thinned_of_equal_times_is_no_error() -> None:
    assert len(thinned(np.zeros(1000), [np.arange(1000.0)], 10))


def test_averaged_keeps_bytes_and_peaks() -> None:
    seconds = np.arange(1, 10_001) * 0.5
    rates = np.random.default_rng(3).uniform(0, 10, 10_000)

    made = averaged(seconds, {"in": rates}, 100)

    lengths = np.diff(made.seconds, prepend=0.0)
    assert len(made.seconds) == 100
    assert (made.mean["in"] * lengths).sum() == pytest.approx((rates * 0.5).sum())
    assert made.highest["in"].max() == rates.max()
    assert (made.highest["in"] >= made.mean["in"]).all()


def test_averaged_of_unknown_rates_is_unknown_there_only() -> None:
    rates = np.full(1000, np.nan)
    rates[500:] = 2.0

    made = averaged(np.arange(1, 1001.0), {"in": rates}, 10)

    assert np.isnan(made.mean["in"][:5]).all()
    assert made.mean["in"][5:] == pytest.approx(2.0)
    assert np.isnan(made.highest["in"][:5]).all()


def test_averaged_of_few_samples_changes_nothing() -> None:
    seconds, rates = np.arange(1, 4.0), np.array([1.0, np.nan, 3.0])

    made = averaged(seconds, {"in": rates}, 10)

    assert made.seconds is seconds
    assert made.mean["in"] is rates


def test_averages_of_samples_of_one_moment_are_not_known() -> None:
    found = averaged(np.zeros(50), {"rate": np.full(50, np.nan)}, 10)

    assert list(found.seconds) == [0.0]
    assert np.isnan(found.mean["rate"]).all()
