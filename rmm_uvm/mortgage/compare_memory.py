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
from typing import TYPE_CHECKING

from rmm_uvm.errors import UvmError
from rmm_uvm.mortgage.compare import compare_features
from rmm_uvm.mortgage.memory import find_memory
from rmm_uvm.mortgage.pipeline import PipelineConfig, PipelineProgress, run_pipeline
from rmm_uvm.mortgage.run_report import RunReport

if TYPE_CHECKING:
    from rmm_uvm.mortgage.result import PipelineResult

SPLIT = 4
DEFAULT_ROWS = (
    ("cuda-pool", 1),
    ("cuda-pool", SPLIT),
    ("managed", 1),
    ("managed-nopool", 1),
    ("rmm-managed", 1),
    ("rmm-prefetch", 1),
)
"""Memory, and how many times each performance file is split: what ``--compare`` runs."""


class RunFailedError(UvmError, RuntimeError):
    """A run in a process of its own ended without a report."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One row of the comparison.

    Parameters
    ----------
    split : int
        How many times each file was split; 1 is the unsplit case.
    report : RunReport
        What was seen.
    """

    split: int
    report: RunReport

    @property
    def is_unexpected(self) -> bool:
        """Whether it ran out of memory although its memory may exceed the device."""
        ended = self.report.pipeline.out_of_memory is not None
        return ended and find_memory(self.report.memory).managed


@dataclass(frozen=True, slots=True)
class Reference:
    """Plain pandas without any device: what features must be.

    Parameters
    ----------
    result : PipelineResult
        Of the run.
    features_path : Path
        Arrow file of its features.
    """

    result: PipelineResult
    features_path: Path

    def describe(self, digest: str | None, features_path: Path) -> str | None:
        """Return how features compare with these; None when there are none to compare."""
        if digest is None:
            return None
        if digest == self.result.feature_digest:
            return "identical"
        difference = compare_features(_read(self.features_path), _read(features_path))
        return "equal to 1e-6" if difference is None else f"different: {difference}"


def make_reference(
    data: Path,
    features_path: Path,
    progress: Callable[[PipelineProgress], None] | None = None,
) -> Reference:
    """Compute the features with plain pandas, unsplit.

    Parameters
    ----------
    data : Path
        Root of a data set.
    features_path : Path
        Where to write the features.
    progress : callable or None
        Called at the begin of every stage.
    """
    from rmm_uvm.mortgage.engines import make_engine

    config = PipelineConfig(data, train_parts=0, features_path=features_path)
    return Reference(run_pipeline(config, make_engine("pandas"), progress=progress), features_path)


def compare_memories(
    rows: Sequence[tuple[str, int]],
    files_per_quarter: int,
    arguments: Sequence[str],
    reference: Reference,
    *,
    progress: Callable[[int, PipelineProgress], None] | None = None,
) -> list[ComparedRun]:
    """Run the pipeline on each memory.

    Parameters
    ----------
    rows : sequence of (str, int)
        Memory, and how many times to split each file.
    files_per_quarter : int
        Most performance files of a quarter; >= 1.
    arguments : sequence of str
        Further options of ``rmm-uvm mortgage``, the same for all.
    reference : Reference
        What the features must be.
    progress : callable or None
        Called with the number of the row at the begin of every stage.

    Raises
    ------
    RunFailedError
        A run ended without a report; the message is its own.
    """
    compared = []
    with tempfile.TemporaryDirectory(prefix="rmm-uvm-") as folder:
        report_path, features_path = Path(folder, "report.json"), Path(folder, "features.arrow")
        for number, (memory, split) in enumerate(rows):
            command = [sys.executable, "-P", "-m", "rmm_uvm.cli", "mortgage", "--child"]
            command += ["--memory", memory, "--json", str(report_path), *arguments]
            command += ["--features", str(features_path)]
            if split > 1:
                command += ["--parts", str(split * files_per_quarter)]
            _run_child(command, lambda p, n=number: progress(n, p) if progress else None)
            plain = json.loads(report_path.read_text())
            digest = plain["pipeline"]["feature_digest"]
            plain["features_identical"] = reference.describe(digest, features_path)
            compared.append(ComparedRun(split, RunReport.from_json(plain)))
            report_path.unlink()
            features_path.unlink(missing_ok=True)
    return compared


def _run_child(command: Sequence[str], progress: Callable[[PipelineProgress], None]) -> None:
    """Run a command that prints a line of JSON for every stage."""
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
    ):
        assert child.stdout is not None  # as asked for
        for line in child.stdout:
            if line.startswith("{"):
                progress(PipelineProgress(**json.loads(line)))
        status = child.wait()
        if status != 0:
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip()]
            reason = lines[-1].removeprefix("Error: ") if lines else "it said nothing"
            raise RunFailedError(f"a run ended with status {status}: {reason}")


def _read(path: Path) -> object:
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()
