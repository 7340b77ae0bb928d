# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""TRAIN: gradient boosting with the original's parameters, and how good the model is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import AvailabilityError
from rmm_uvm_mortgage.engines.base import Engine
from rmm_uvm_mortgage.prep import MISSING, feature_names
from rmm_uvm_mortgage.steps.final import LABEL

if TYPE_CHECKING:
    import pyarrow as pa
    import xgboost as xgb

ROUNDS = 100
PARAMETERS: Mapping[str, Any] = {
    "objective": "binary:logistic",
    "eval_metric": ["auc", "logloss"],
    "tree_method": "hist",
    "grow_policy": "lossguide",
    "max_depth": 8,
    "max_leaves": 256,
    "eta": 0.1,
    "gamma": 0.1,
    "alpha": 0.9,
    "reg_lambda": 1,
    "min_child_weight": 30,
    "scale_pos_weight": 2,
    "subsample": 1,
    "verbosity": 0,
}
"""The original's, with today's names; the objective is that of its later version."""


@dataclass(frozen=True, slots=True)
class ModelQuality:
    """How well a model predicts rows that it was not trained on.

    Parameters
    ----------
    rows : int
        Held-out rows.
    auc : float or None
        Area under the ROC curve, 0.5 (chance) to 1; None when all labels are equal.
    log_loss : float
        Mean negative log-likelihood; lower is better.
    """

    rows: int
    auc: float | None
    log_loss: float


def check_xgboost() -> None:
    """Raise AvailabilityError when XGBoost is not installed."""
    try:
        import xgboost  # noqa: F401
    except ImportError as error:
        raise AvailabilityError(
            "training needs xgboost: pip install xgboost, or xgboost-cpu without a GPU"
        ) from error


def train(engine: Engine[Any, Any], matrix: xgb.DMatrix, rounds: int = ROUNDS) -> xgb.Booster:
    """Train the model; the stage ``train``.

    Parameters
    ----------
    engine : Engine
        Names the device to train on.
    matrix : xgboost.DMatrix
        From `prep.prepare`.
    rounds : int
        Number of trees; >= 1.
    """
    with engine.stage("train"):
        return engine.train(PARAMETERS, matrix, rounds)


def evaluate(model: xgb.Booster, held_out: pa.Table) -> ModelQuality:
    """Judge a model by held-out rows, which stay in host memory.

    Parameters
    ----------
    model : xgboost.Booster
        From `train`.
    held_out : pyarrow.Table
        Features, from `prep.hold_out`; at least one row.
    """
    import math

    import xgboost as xgb

    names = feature_names(held_out.column_names)
    matrix = xgb.DMatrix(
        held_out.select(names).to_pandas(),
        label=held_out.column(LABEL).to_numpy(),
        missing=MISSING,
    )
    # One line such as "[0]\teval-auc:0.84\teval-logloss:0.21".
    report = model.eval(matrix, name="eval")
    metrics = dict(item.removeprefix("eval-").split(":") for item in report.split("\t")[1:])
    auc = float(metrics["auc"])
    return ModelQuality(
        held_out.num_rows, None if math.isnan(auc) else auc, float(metrics["logloss"])
    )
