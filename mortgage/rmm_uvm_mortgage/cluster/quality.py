# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How good a model is, from predictions that workers made of their held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rmm_uvm_mortgage.train import ModelQuality

if TYPE_CHECKING:
    import numpy.typing as npt

_LEAST_PROBABILITY = 1e-16  # as in XGBoost's logloss


def quality_of(
    pieces: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
) -> ModelQuality | None:
    """Judge predictions as `rmm_uvm_mortgage.train.evaluate` judges a model.

    XGBoost's own evaluation over several workers is not used: its AUC is a mean of theirs.

    Parameters
    ----------
    pieces : sequence of (ndarray, ndarray)
        Labels, 0 or 1, and predicted probabilities, from each worker; 1-dimensional.

    Returns
    -------
    ModelQuality or None
        None without rows.
    """
    import numpy as np

    if not sum(len(labels) for labels, _ in pieces):
        return None
    labels = np.concatenate([labels for labels, _ in pieces]).astype(bool)
    predicted = np.concatenate([predicted for _, predicted in pieces]).astype(np.float32)
    likelihood = np.where(labels, predicted, 1 - predicted).astype(np.float64)
    log_loss = float(-np.log(np.maximum(likelihood, _LEAST_PROBABILITY)).mean())
    return ModelQuality(len(labels), _auc(labels, predicted), log_loss)


def _auc(labels: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float | None:
    """Return the area under the ROC curve; None when all labels are equal.

    It is the chance that a random 1 is predicted higher than a random 0, a tie counting half.
    """
    import numpy as np

    ones = int(labels.sum())
    zeros = len(labels) - ones
    if not ones or not zeros:
        return None
    _, place, count = np.unique(predicted, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(count)
    mean_rank = last_rank - (count - 1) / 2
    return float((mean_rank[place][labels].sum() - ones * (ones + 1) / 2) / (ones * zeros))
