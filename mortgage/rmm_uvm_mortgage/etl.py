# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The ETL of one part, by any engine: from text files to a table of features in host memory.

Frames live exactly as long as in the original notebook. In particular the performance table
stays alive until the end, since the original holds it by a second name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm_mortgage.engines.base import ColumnT, Engine, FrameT
from rmm_uvm_mortgage.files import Part
from rmm_uvm_mortgage.steps.delinquency import (
    create_delinq_features,
    create_ever_features,
    join_ever_delinq_features,
)
from rmm_uvm_mortgage.steps.final import (
    final_performance_delinquency,
    join_perf_acq_gdfs,
    last_mile_cleaning,
)
from rmm_uvm_mortgage.steps.load import load_names_acquisition, load_performance
from rmm_uvm_mortgage.steps.window import (
    combine_joined_12_mon,
    create_12_mon_features,
    create_joined_df,
)

if TYPE_CHECKING:
    import pyarrow as pa

STAGES = (
    "load_names_acquisition",
    "load_performance",
    "create_ever_features",
    "create_delinq_features",
    "join_ever_delinq_features",
    "create_joined_df",
    "create_12_mon_features",
    "combine_joined_12_mon",
    "final_performance_delinquency",
    "join_perf_acq_gdfs",
    "last_mile_cleaning",
)
"""Names of the ETL's stages, in order."""


def run_etl(engine: Engine[FrameT, ColumnT], part: Part) -> pa.Table:
    """Compute the features of one part.

    Parameters
    ----------
    engine : Engine
        Computes; its observers are told about every stage.
    part : Part
        Whole loans of one quarter.

    Returns
    -------
    pyarrow.Table
        45 feature columns, float32, null as -1, and the label `delinquency_12`, int32. The order
        of rows is unspecified.

    Raises
    ------
    DataError
        A file is missing or broken.
    MemoryError
        The engine's memory is exhausted; the frames made so far are freed.
    """
    stage = engine.stage
    with stage("load_names_acquisition"):
        acquisition = load_names_acquisition(engine, part)
    with stage("load_performance"):
        performance = load_performance(engine, part)
    with stage("create_ever_features"):
        ever = create_ever_features(engine, performance)
    with stage("create_delinq_features"):
        delinquencies = create_delinq_features(engine, performance)
    with stage("join_ever_delinq_features"):
        ever = join_ever_delinq_features(engine, ever, delinquencies)
        del delinquencies
    with stage("create_joined_df"):
        joined = create_joined_df(engine, performance, ever)
    with stage("create_12_mon_features"):
        windows = create_12_mon_features(engine, joined)
    with stage("combine_joined_12_mon"):
        joined = combine_joined_12_mon(engine, joined, windows)
        del windows
    with stage("final_performance_delinquency"):
        table = final_performance_delinquency(engine, performance, joined)
        del joined
    with stage("join_perf_acq_gdfs"):
        table = join_perf_acq_gdfs(engine, table, acquisition)
        del acquisition
    with stage("last_mile_cleaning"):
        return last_mile_cleaning(engine, table)
