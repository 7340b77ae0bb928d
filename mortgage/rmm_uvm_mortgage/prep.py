# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""PREP: from the ETL's tables in host memory to XGBoost's matrix in the engine's memory.

The memory pool stays as it is. The original pipeline tore it down before this stage, so that
XGBoost could allocate; `rmm_uvm_mortgage.pipeline` can do the same, for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmm_uvm_mortgage.engines.base import ColumnT, Engine, FrameT
from rmm_uvm_mortgage.steps.final import LABEL

if TYPE_CHECKING:
    import pyarrow as pa
    import xgboost as xgb

MISSING = -1
"""Value of a feature that is null; the ETL fills it in."""

_HELD_OUT_EVERY = 10


def hold_out(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Divide features into rows to train on and rows to judge the model by, on the host.

    Held out are the loans of every tenth zip code area: whole loans, since rows of one loan
    resemble each other, and the same loans whatever the engine and the order of rows.

    Parameters
    ----------
    table : pyarrow.Table
        Features of the ETL.

    Returns
    -------
    (pyarrow.Table, pyarrow.Table)
        About nine tenths to train on, and the rest.
    """
    import numpy as np
    import pyarrow as pa

    zip_code = table.column("zip").to_numpy().astype(np.int64)
    held_out = zip_code % _HELD_OUT_EVERY == 0
    return table.filter(pa.array(~held_out)), table.filter(pa.array(held_out))


def feature_names(table_columns: Sequence[str]) -> list[str]:
    """Return the feature columns, sorted: the order in which the model sees them."""
    return sorted(set(table_columns) - {LABEL})


def prepare(engine: Engine[FrameT, ColumnT], tables: Sequence[pa.Table]) -> xgb.DMatrix:
    """Build the training matrix; the stage ``prep``.

    Parameters
    ----------
    engine : Engine
        Holds the frames.
    tables : sequence of pyarrow.Table
        Features of one or more parts.

    Raises
    ------
    MemoryError
        The engine's memory is exhausted; all frames made here are freed.
    """
    with engine.stage("prep"):
        return build_matrix(engine, tables)


def build_matrix(engine: Engine[FrameT, ColumnT], tables: Sequence[pa.Table]) -> xgb.DMatrix:
    """Build the training matrix outside of any stage."""
    features, label = training_frames(engine, tables)
    return engine.training_matrix(features, label, missing=MISSING)


def training_frames(
    engine: Engine[FrameT, ColumnT], tables: Sequence[pa.Table]
) -> tuple[FrameT, FrameT]:
    """Return a frame of features and one with the label alone, of all tables together.

    The tables' frames and their concatenation live together, as in the original: about twice the
    training data.
    """
    frames = [engine.from_host(table) for table in tables]
    frame = engine.concat(frames)
    del frames
    features = engine.select(frame, feature_names(engine.column_names(frame)))
    return features, engine.select(frame, [LABEL])
