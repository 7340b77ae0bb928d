# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Judging predictions of several workers: as XGBoost judges one model's."""

from __future__ import annotations

import itertools
import math

import pytest

pytest.importorskip("pandas")
pytest.importorskip("xgboost")

import numpy as np
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm_mortgage.cluster.quality import quality_of

PREDICTED = st.floats(0, 1, width=32)
ROWS = st.lists(st.tuples(st.booleans(), PREDICTED), min_size=1, max_size=60)


def piece(rows: list[tuple[bool, float]]) -> tuple[np.ndarray, np.ndarray]:
    labels, predicted = zip(*rows, strict=True) if rows else ((), ())
    return np.array(labels, np.int8), np.array(predicted, np.float32)


@given(ROWS)
def test_auc_is_the_chance_that_a_one_is_predicted_above_a_zero(
    rows: list[tuple[bool, float]],
) -> None:
    ones = [p for label, p in rows if label]
    zeros = [p for label, p in rows if not label]
    quality = quality_of([piece(rows)])

    assert quality is not None
    if not ones or not zeros:
        assert quality.auc is None
        return
    above = [(a > b) + (a == b) / 2 for a, b in itertools.product(ones, zeros)]
    assert quality.auc == pytest.approx(sum(above) / len(above))


@given(ROWS, st.integers(0, 60))
def test_quality_of_pieces_is_that_of_the_whole(rows: list[tuple[bool, float]], cut: int) -> None:
    assert quality_of([piece(rows[:cut]), piece(rows[cut:])]) == quality_of([piece(rows)])


def test_quality_is_what_xgboost_says() -> None:
    rng = np.random.default_rng(5)
    features = rng.normal(size=(400, 3)).astype(np.float32)
    labels = (features[:, 0] + rng.normal(size=400) > 0).astype(np.int8)
    matrix = xgb.DMatrix(features, label=labels)
    parameters = {"objective": "binary:logistic", "eval_metric": ["auc", "logloss"]}
    model = xgb.train({**parameters, "max_depth": 2}, matrix, 5)
    said = dict(item.split(":") for item in model.eval(matrix, "x").split("\t")[1:])
    quality = quality_of([(labels, model.predict(matrix))])

    assert quality is not None
    assert quality.rows == 400
    assert quality.auc == pytest.approx(float(said["x-auc"]), abs=1e-6)
    assert quality.log_loss == pytest.approx(float(said["x-logloss"]), abs=1e-6)


def test_quality_of_a_sure_and_wrong_prediction_is_finite() -> None:
    quality = quality_of([piece([(True, 0.0)])])
    assert quality is not None
    assert quality.log_loss == pytest.approx(-math.log(1e-16))


def test_quality_without_rows_is_none() -> None:
    assert quality_of([]) is None
    assert quality_of([piece([])]) is None
