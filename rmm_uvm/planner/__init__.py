# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The planner: what a recorded workload would do on another card.

A workload is read from a trace or from RMM's log, replayed on the simulated device once for each
capacity and way to run that was asked for, and what was seen is told with the settings it speaks
for. Needs no GPU. `replay_paced` runs the kernels of a trace that has their times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmm_uvm.planner.outcome import (
    Answer,
    Card,
    Helps,
    MachineFacts,
    PlanFigures,
    Settings,
    Variant,
)
from rmm_uvm.planner.pacing import replay_paced
from rmm_uvm.planner.planned import Plan
from rmm_uvm.planner.planning import plan
from rmm_uvm.planner.request import Options
from rmm_uvm.planner.trials.runs import PlanProgress
from rmm_uvm.planner.workload.result import PacedFigures, PacedReplay
from rmm_uvm.support.submodules import submodules_of

__all__ = [
    "Answer",
    "Card",
    "Helps",
    "MachineFacts",
    "Options",
    "PacedFigures",
    "PacedReplay",
    "Plan",
    "PlanFigures",
    "PlanProgress",
    "Settings",
    "Variant",
    "plan",
    "replay_paced",
]

if not TYPE_CHECKING:
    __getattr__ = submodules_of(__name__)
