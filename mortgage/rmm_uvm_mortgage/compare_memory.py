# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The same pipeline on several memories, each in a process of its own.

A process for each run: a pool that ran out, a replaced resource or a broken CUDA context of one
cannot disturb the next. Runs follow one another, so that their wall seconds can be compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rmm_uvm.errors import UvmError
from rmm_uvm.run.tidying import ended_with_us, temporary_folder
from rmm_uvm_mortgage.files import find_files
from rmm_uvm_mortgage.memory import find_memory
from rmm_uvm_mortgage.pipeline import PipelineProgress
from rmm_uvm_mortgage.reference import Reference
from rmm_uvm_mortgage.run_report import RunReport

SPLIT = 4
"""How many times a file is split where the whole does not fit."""


class RunFailedError(UvmError, RuntimeError):
    """A run in a process of its own ended without a report."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One row of a comparison.

    Parameters
    ----------
    memory : str
        Name of the memory.
    split : int
        How many times each performance file is split; 1 is the unsplit case.
    """

    memory: str
    split: int

    @property
    def title(self) -> str:
        """Return a few words for a person."""
        return f"{self.memory}, " + ("unsplit" if self.split == 1 else f"in {self.split} parts")


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A row that has run."""

    planned: PlannedRun
    report: RunReport

    @property
    def title(self) -> str:
        """Return a few words for a person."""
        return self.planned.title

    @property
    def is_unexpected(self) -> bool:
        """Whether it ran out of memory although its memory may exceed the device."""
        ended = self.report.pipeline.out_of_memory is not None
        return ended and find_memory(self.report.memory).managed

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"split": self.planned.split, **self.report.to_json()}


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    """The request that all runs of a comparison share.

    Parameters
    ----------
    data : Path
        Root of a data set.
    engine : str
        "pandas", on a simulated device, or "cudf".
    device_bytes : int or None
        Memory of the simulated device; None on a GPU.
    pool_bytes : int, float or None
        See `rmm_uvm_mortgage.memory`.
    budget_bytes, eviction : int, float or str, and str, or None
        Of the memories that keep a budget; the others have none.
    rounds : int
        Trees.
    train_parts : int or "max"
        See `rmm_uvm_mortgage.pipeline.PipelineConfig`.
    """

    data: Path
    engine: Literal["pandas", "cudf"]
    device_bytes: int | None
    pool_bytes: int | float | None
    rounds: int
    train_parts: int | Literal["max"]
    budget_bytes: int | float | str | None = None
    eviction: str | None = None

    def arguments(self, memory: str) -> list[str]:
        """Return the options of ``rmm-uvm mortgage`` that ask for this on one memory."""
        arguments = ["--data", str(self.data), "--engine", self.engine]
        arguments += ["--rounds", str(self.rounds), "--train-parts", str(self.train_parts)]
        if self.device_bytes is not None:
            arguments += ["--device-memory", str(self.device_bytes)]
        if self.pool_bytes is not None:
            arguments += ["--pool-size", str(self.pool_bytes)]
        if find_memory(memory).keeps_budget:
            given = {"--device-budget": self.budget_bytes, "--eviction": self.eviction}
            for option, value in given.items():
                arguments += [] if value is None else [option, str(value)]
        return arguments


def planned_runs(memories: Sequence[str] = (), split: int | None = None) -> list[PlannedRun]:
    """Return the rows of a comparison.

    Parameters
    ----------
    memories : sequence of str
        Which; empty for all but plain cudaMalloc, whose capacity is that of ``cuda-pool``.
    split : int or None
        Splits of every row; None for unsplit, and in 4 as well where memory cannot exceed the
        device.
    """
    names = memories or ("cuda-pool", "managed", "managed-nopool", "rmm-managed", "rmm-prefetch")
    planned = []
    for name in names:
        if split is not None:
            planned.append(PlannedRun(name, split))
            continue
        planned.append(PlannedRun(name, 1))
        if not find_memory(name).managed:
            planned.append(PlannedRun(name, SPLIT))
    return planned


def compare_memories(
    planned: Sequence[PlannedRun],
    shared: ComparisonRequest,
    reference: Reference,
    *,
    progress: Callable[[int, PipelineProgress], None] | None = None,
) -> list[ComparedRun]:
    """Run the pipeline on each memory.

    Parameters
    ----------
    planned : sequence of PlannedRun
        The rows.
    shared : ComparisonRequest
        What they have in common.
    reference : Reference
        What the features must be.
    progress : callable or None
        Called with the number of the row at the begin of every stage.

    Raises
    ------
    RunFailedError
        A run ended without a report; the message is its own.
    """
    files = max(len(quarter.performance) for quarter in find_files(shared.data).quarters)
    compared = []
    with temporary_folder("rmm-uvm-mortgage-") as folder:
        report_path, features_path = folder / "report.json", folder / "features.arrow"
        for number, run in enumerate(planned):
            arguments = ["--memory", run.memory, *shared.arguments(run.memory)]
            arguments += ["--json", str(report_path), "--features", str(features_path)]
            if run.split > 1:
                arguments += ["--parts", str(run.split * files)]
            _run_child(arguments, number, progress)
            plain = json.loads(report_path.read_text())
            digest = plain["pipeline"]["feature_digest"]
            plain["features_against_pandas"] = reference.describe(digest, features_path)
            compared.append(ComparedRun(run, RunReport.from_json(plain)))
            report_path.unlink()
            features_path.unlink(missing_ok=True)
    return compared


def _run_child(
    arguments: Sequence[str],
    number: int,
    progress: Callable[[int, PipelineProgress], None] | None,
) -> None:
    """Run ``rmm-uvm mortgage`` in a process that prints a line of JSON for every stage."""
    command = [sys.executable, "-P", "-m", "rmm_uvm.cli", "mortgage", "--child", *arguments]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
        ended_with_us(child),
    ):
        assert child.stdout is not None  # as asked for
        for line in child.stdout:
            if progress is not None:
                progress(number, PipelineProgress(**json.loads(line)))
        status = child.wait()
        if status != 0:
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip()]
            reason = lines[-1].removeprefix("Error: ") if lines else "it said nothing"
            memory = arguments[1]
            raise RunFailedError(f"the run of {memory} ended with status {status}: {reason}")
