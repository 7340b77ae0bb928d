# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""PREP and TRAIN on some of the ETL's tables, or on as many as memory holds."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rmm_uvm_mortgage.engines.base import Engine
from rmm_uvm_mortgage.prep import build_matrix, hold_out, prepare
from rmm_uvm_mortgage.train import PARAMETERS, ModelQuality, evaluate, train

if TYPE_CHECKING:
    import pyarrow as pa

SEARCH_STAGE = "find_training_set"
_OUT_OF_MEMORY = ("bad_alloc", "out of memory", "memory allocation error")


@dataclass(frozen=True, slots=True)
class Fit:
    """A trained model's origin and quality.

    Parameters
    ----------
    training_parts, training_rows : int
        What it was trained on.
    quality : ModelQuality or None
        None when the parts hold no held-out rows.
    """

    training_parts: int
    training_rows: int
    quality: ModelQuality | None


def fit(
    engine: Engine[Any, Any],
    tables: Sequence[pa.Table],
    train_parts: int | Literal["max"] | None,
    rounds: int,
) -> Fit:
    """Train a model and judge it by rows that it has not seen.

    Parameters
    ----------
    engine : Engine
        Trains.
    tables : sequence of pyarrow.Table
        Features of all parts; held-out rows are set aside first.
    train_parts : int, "max" or None
        The first so many, as many as memory holds, or all.
    rounds : int
        Number of trees; >= 1.

    Raises
    ------
    MemoryError, xgboost.core.XGBoostError
        Memory is exhausted, see `is_out_of_memory`.
    """
    import pyarrow as pa

    training, held_out = zip(*map(hold_out, tables), strict=True)
    count = len(tables) if train_parts is None else train_parts
    if count == "max":
        with engine.stage(SEARCH_STAGE):
            count = largest_training_set(engine, training)
    model = train(engine, prepare(engine, training[:count]), rounds)
    unseen = pa.concat_tables(held_out[:count])
    return Fit(
        training_parts=count,
        training_rows=sum(table.num_rows for table in training[:count]),
        quality=evaluate(model, unseen) if unseen.num_rows else None,
    )


def largest_training_set(engine: Engine[Any, Any], tables: Sequence[pa.Table]) -> int:
    """Return how many of the first tables can be converted and trained on.

    Tries all, then halves the interval; one round of training each. That more data never needs
    less memory is taken for granted.

    Raises
    ------
    MemoryError
        Not even one table fits.
    """
    fits, fails = 0, len(tables) + 1
    count = len(tables)
    while fails - fits > 1:
        if _can_train(engine, tables[:count]):
            fits = count
        else:
            fails = count
        count = (fits + fails) // 2
    if fits == 0:
        raise MemoryError("not even one part can be trained on; use more parts")
    return fits


def _can_train(engine: Engine[Any, Any], tables: Sequence[pa.Table]) -> bool:
    """Return whether one round of training on the tables does not run out of memory."""
    try:
        engine.train(PARAMETERS, build_matrix(engine, tables), rounds=1)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return False
    else:
        return True
    finally:
        gc.collect()


def is_out_of_memory(error: Exception) -> bool:
    """Tell exhausted memory from everything else; XGBoost has no exception type for it."""
    if isinstance(error, MemoryError):
        return True
    return type(error).__name__ == "XGBoostError" and says_out_of_memory(str(error))


def says_out_of_memory(text: str) -> bool:
    """Return whether an error of XGBoost says that memory is exhausted."""
    text = text.lower()
    return any(sign in text for sign in _OUT_OF_MEMORY)
