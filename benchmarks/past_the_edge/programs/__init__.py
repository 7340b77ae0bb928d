# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `run.py` runs: programs of equal rounds. Each imports its libraries when it is made.

A class is made with the bytes of all data together (or of live data at the peak, where it says
so), a number of pieces, and ``announced``. It has ``STEPS``, the operations of a piece, ``SIDES``,
which are compared where nothing else is asked for, and ``PIECES``. It may have ``prepare``, which
is called with bytes and pieces before the first process begins; ``EACH_TIMED``, if operations are
so different that each is timed, with all that the device does for it; and ``WARMED_UP_WHOLE``, if
all data are needed to have the driver take what it takes beside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.past_the_edge.programs.arrays import Arrays
from benchmarks.past_the_edge.programs.boosting import Boosting
from benchmarks.past_the_edge.programs.cudf_pandas import CudfPandas
from benchmarks.past_the_edge.programs.frames import Frames
from benchmarks.past_the_edge.programs.frames_elsewhere import FramesByPolars, FramesOnDask
from benchmarks.past_the_edge.programs.loops import Etl, Training
from benchmarks.past_the_edge.programs.merge_and_sort import MergeAndSort
from benchmarks.past_the_edge.programs.mortgage import Mortgage
from benchmarks.past_the_edge.programs.pds_h import PdsH
from benchmarks.past_the_edge.programs.pds_h_eager import PdsHEager, PdsHStreamed
from benchmarks.past_the_edge.programs.simulated import Simulated
from benchmarks.past_the_edge.programs.training import MODELS, SageTraining, SwinTraining
from benchmarks.past_the_edge.programs.training_by_hand import checkpointed, saved_on_cpu


def _frames(way: str, data_bytes: int, pieces: int, _budget_bytes: int) -> Frames:
    return Frames(data_bytes, pieces, instead=way)


TORCH: dict[str, type[Any]] = {"swin-b": SwinTraining, "graphsage": SageTraining, **MODELS}
PROGRAMS: dict[str, type[Any]] = {
    **{"cudf": Frames, "cupy": Arrays, "merge-and-sort": MergeAndSort, "cudf-pandas": CudfPandas},
    **{"pds-h": PdsH, "pds-h-eager": PdsHEager, "xgboost": Boosting},
    **{"etl": Etl, "training": Training},
    **{"mortgage": Mortgage, **TORCH},
}
_FRAMES = ("pinned", "buffered", "spilling", "behind")
INSTEAD: dict[str, dict[str, Callable[[int, int, int], Any]]] = {
    "cudf": {
        **{way: functools.partial(_frames, way) for way in _FRAMES},
        **{"streaming": FramesByPolars, "dask": FramesOnDask},
    },
    "pds-h-eager": {"streaming": PdsHStreamed},
    **{
        name: {
            "checkpointing": functools.partial(checkpointed, kind),
            "saved": functools.partial(saved_on_cpu, kind),
        }
        for name, kind in TORCH.items()
    },
}
"""By program, and by what a side has in place of a budget: what makes the same program there.

It is called with the bytes of all data, pieces, and bytes of device memory.
"""
__all__ = ["INSTEAD", "PROGRAMS", "TORCH", "Simulated"]
