# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Accounts of tasks on their workers: plain values, which travel to the client."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rmm_uvm.errors import UvmError
from rmm_uvm_mortgage.run_report import StageTotals


@dataclass(frozen=True, slots=True)
class WorkerOutOfMemory:
    """The point where the memory of a worker's pool, or of XGBoost beside it, was exhausted.

    Parameters
    ----------
    worker : str
        Name of the worker.
    stage : str
        Stage that failed.
    part : str or None
        Title of the part being processed; None in PREP and TRAIN.
    message : str
        What the memory resource or XGBoost said, one line.
    """

    worker: str
    stage: str
    part: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Account:
    """One task of the pipeline on one worker.

    Parameters
    ----------
    address : str
        Address of the worker.
    stages : tuple of StageTotals
        The task's stages, each of one run.
    seconds : float
        Wall time of the task.
    out_of_memory : WorkerOutOfMemory or None
        Where it ended early; None when it completed.
    refused : UvmError or None
        Why it could not be done at all; None when it was.
    """

    address: str
    stages: tuple[StageTotals, ...]
    seconds: float
    out_of_memory: WorkerOutOfMemory | None = None
    refused: UvmError | None = None


@dataclass(frozen=True, slots=True)
class PartSummary:
    """The features of one part, in figures.

    Parameters
    ----------
    title : str
        Of the part.
    rows : int
        Rows of features.
    ones : int
        Rows with label 1.
    digest : str
        See `rmm_uvm_mortgage.compare.features_digest`.
    """

    title: str
    rows: int
    ones: int
    digest: str


@dataclass(frozen=True, slots=True)
class PreparedSummary:
    """Figures of what PREP made on one worker.

    Parameters
    ----------
    features : tuple of str
        Names of the feature columns, in the model's order.
    training_rows, held_out_rows : int
        Rows to train on, and to judge the model by.
    """

    features: tuple[str, ...]
    training_rows: int
    held_out_rows: int


def merged_stages(accounts: Iterable[Account]) -> tuple[StageTotals, ...]:
    """Return the stages of several tasks together, in order of their first run.

    Times, bytes and runs add up; of peaks the largest is taken.
    """
    merged: dict[str, StageTotals] = {}
    for account in accounts:
        for stage in account.stages:
            known = merged.get(stage.name)
            merged[stage.name] = stage if known is None else _together(known, stage)
    return tuple(merged.values())


def _together(a: StageTotals, b: StageTotals) -> StageTotals:
    return StageTotals(
        name=a.name,
        runs=a.runs + b.runs,
        wall_seconds=a.wall_seconds + b.wall_seconds,
        modelled_seconds=a.modelled_seconds + b.modelled_seconds,
        peak_bytes=max(a.peak_bytes, b.peak_bytes),
        host_to_device_bytes=a.host_to_device_bytes + b.host_to_device_bytes,
        device_to_host_bytes=a.device_to_host_bytes + b.device_to_host_bytes,
        upstream_allocations=a.upstream_allocations + b.upstream_allocations,
        xgboost_peak_bytes=max(a.xgboost_peak_bytes, b.xgboost_peak_bytes),
    )
