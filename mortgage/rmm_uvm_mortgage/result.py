# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The results of a run of the mortgage pipeline: plain values, ready for JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from rmm_uvm_mortgage.train import ModelQuality


@dataclass(frozen=True, slots=True)
class StageTiming:
    """One stage, over all parts.

    Parameters
    ----------
    name : str
        See `rmm_uvm_mortgage.etl.STAGES`; then ``teardown_pool`` and ``find_training_set`` where
        asked for, ``prep`` and ``train``.
    wall_seconds : float
        Time from begin to end, all work complete.
    runs : int
        How often the stage ran: once for each part in the ETL.
    """

    name: str
    wall_seconds: float
    runs: int


@dataclass(frozen=True, slots=True)
class StageOutOfMemory:
    """The point where a run ended by an exhausted memory.

    Parameters
    ----------
    stage : str
        Stage that failed.
    part : str or None
        Title of the part being processed; None in PREP and TRAIN.
    message : str
        What the memory resource or XGBoost said, one line.
    """

    stage: str
    part: str | None
    message: str


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """The result of a run; `to_json` makes plain values of it.

    Parameters
    ----------
    engine : str
        Name of the engine.
    parts : tuple of str
        Titles of all parts.
    performance_bytes : int
        Text read, in bytes.
    stages : tuple of StageTiming
        In order of their first run.
    etl_seconds, prep_seconds, train_seconds : float
        Sums over stages; the original's three figures.
    feature_rows : int
        Rows that the ETL returned.
    feature_digest : str or None
        Independent of the order of rows and the number of parts; None without all parts.
    label_fraction : float or None
        Share of rows with label 1.
    training_parts, training_rows : int
        What the model was trained on.
    quality : ModelQuality or None
        None without a model or held-out rows.
    out_of_memory : StageOutOfMemory or None
        Where the run ended early; None when it completed.
    """

    engine: str
    parts: tuple[str, ...]
    performance_bytes: int
    stages: tuple[StageTiming, ...]
    etl_seconds: float
    prep_seconds: float
    train_seconds: float
    feature_rows: int = 0
    feature_digest: str | None = None
    label_fraction: float | None = None
    training_parts: int = 0
    training_rows: int = 0
    quality: ModelQuality | None = None
    out_of_memory: StageOutOfMemory | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists, strings and numbers."""
        return dataclasses.asdict(self)
