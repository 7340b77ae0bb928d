# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `run.py` runs: programs of equal rounds. Each imports its libraries when it is made.

A class is made with the bytes of all data together, a number of pieces, and ``announced``. It has
``STEPS``, the operations of a piece, ``SIDES``, which are compared where nothing else is asked for,
and ``PIECES``.
"""

from __future__ import annotations

from typing import Any

from benchmarks.past_the_edge.programs.arrays import Arrays
from benchmarks.past_the_edge.programs.frames import Frames
from benchmarks.past_the_edge.programs.loops import Etl, Training
from benchmarks.past_the_edge.programs.mortgage import Mortgage
from benchmarks.past_the_edge.programs.simulated import Simulated

PROGRAMS: dict[str, type[Any]] = {
    "cudf": Frames,
    "cupy": Arrays,
    "etl": Etl,
    "training": Training,
    "mortgage": Mortgage,
}
__all__ = ["PROGRAMS", "Simulated"]
