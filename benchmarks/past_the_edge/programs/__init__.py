# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `run.py` runs: programs of equal rounds. Each imports its libraries when it is made.

A class is made with the bytes of all data together (or of live data at the peak, where it says
so), a number of pieces, and ``announced``. It has ``STEPS``, the operations of a piece, ``SIDES``,
which are compared where nothing else is asked for, and ``PIECES``. It may have ``prepare``, which
is called with bytes and pieces before the first process begins.
"""

from __future__ import annotations

from typing import Any

from benchmarks.past_the_edge.programs.arrays import Arrays
from benchmarks.past_the_edge.programs.boosting import Boosting
from benchmarks.past_the_edge.programs.cudf_pandas import CudfPandas
from benchmarks.past_the_edge.programs.frames import Frames
from benchmarks.past_the_edge.programs.loops import Etl, Training
from benchmarks.past_the_edge.programs.merge_and_sort import MergeAndSort
from benchmarks.past_the_edge.programs.mortgage import Mortgage
from benchmarks.past_the_edge.programs.pds_h import PdsH
from benchmarks.past_the_edge.programs.simulated import Simulated
from benchmarks.past_the_edge.programs.training import SageTraining, SwinTraining

TORCH: dict[str, type[Any]] = {"swin-b": SwinTraining, "graphsage": SageTraining}
PROGRAMS: dict[str, type[Any]] = {
    **{"cudf": Frames, "cupy": Arrays, "merge-and-sort": MergeAndSort, "cudf-pandas": CudfPandas},
    **{"pds-h": PdsH, "xgboost": Boosting, "etl": Etl, "training": Training},
    **{"mortgage": Mortgage, **TORCH},
}
__all__ = ["PROGRAMS", "TORCH", "Simulated"]
