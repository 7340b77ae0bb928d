# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Steps 1 and 2: read the tables."""

from __future__ import annotations

from rmm_uvm_mortgage.engines.base import ColumnT, Engine, FrameT
from rmm_uvm_mortgage.files import Part
from rmm_uvm_mortgage.schema import ACQUISITION, NAMES, PERFORMANCE


def load_names_acquisition(engine: Engine[FrameT, ColumnT], part: Part) -> FrameT:
    """Read the acquisitions of the quarter, with the bank names replaced by their new ones."""
    names = engine.read_text(part.names, NAMES, part.domains)
    acquisition = engine.read_text(part.acquisition, ACQUISITION, part.domains)
    acquisition = engine.left_join(acquisition, names, on=["seller_name"])
    engine.drop(acquisition, ["seller_name"])
    return engine.rename(acquisition, {"new": "seller_name"})


def load_performance(engine: Engine[FrameT, ColumnT], part: Part) -> FrameT:
    """Read the performance rows of the part: one row for each loan and month."""
    return engine.read_text(part.performance, PERFORMANCE, part.domains)
