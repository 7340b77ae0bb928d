# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The whole mortgage pipeline: ETL of all parts, PREP, TRAIN, and a report on each stage.

Allocates from whatever memory resource the engine uses; choosing one is the caller's business.
Not covered: comparing several memory resources, printing, plotting.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.output import written_whole
from rmm_uvm_mortgage.compare import features_digest
from rmm_uvm_mortgage.dictionary import load_domains
from rmm_uvm_mortgage.engines.base import Engine
from rmm_uvm_mortgage.etl import STAGES, run_etl
from rmm_uvm_mortgage.files import find_files, make_parts
from rmm_uvm_mortgage.fit import fit, is_out_of_memory
from rmm_uvm_mortgage.result import PipelineResult, StageOutOfMemory, StageTiming
from rmm_uvm_mortgage.stage_clock import PipelineProgress, StageClock
from rmm_uvm_mortgage.steps.final import LABEL
from rmm_uvm_mortgage.train import ROUNDS, check_xgboost

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "PipelineConfig",
    "PipelineProgress",
    "PipelineResult",
    "StageOutOfMemory",
    "StageTiming",
    "run_pipeline",
]


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """The run of a pipeline that is asked for.

    Parameters
    ----------
    data : Path
        Root of a data set.
    parts : int or None
        Parts of each quarter, >= 1; 1 is the unsplit case, None takes the files as they are.
    train_parts : int, "max" or None
        ETL results to train on: the first so many, as many as memory holds, or all. 0 skips
        PREP and TRAIN.
    rounds : int
        Trees of the model; >= 1.
    features_path : Path or None
        Where to write the features as an Arrow file, for comparison with another run.
    """

    data: Path
    parts: int | None = None
    train_parts: int | Literal["max"] | None = None
    rounds: int = ROUNDS
    features_path: Path | None = None

    def __post_init__(self) -> None:
        """Check all values.

        Raises
        ------
        ConfigurationError
            A value is out of its range.
        """
        if self.parts is not None and self.parts < 1:
            raise ConfigurationError(f"parts is {self.parts}; it must be 1 or more")
        if isinstance(self.train_parts, int) and self.train_parts < 0:
            raise ConfigurationError(f"train_parts is {self.train_parts}; it must be 0 or more")
        if self.rounds < 1:
            raise ConfigurationError(f"rounds is {self.rounds}; it must be 1 or more")


def run_pipeline(
    config: PipelineConfig,
    engine: Engine[Any, Any],
    *,
    teardown_pool: Callable[[], None] | None = None,
    progress: Callable[[PipelineProgress], None] | None = None,
) -> PipelineResult:
    """Run ETL, PREP and TRAIN.

    Parameters
    ----------
    config : PipelineConfig
        What to run.
    engine : Engine
        Runs it; nothing of its memory is held when this function returns.
    teardown_pool : callable or None
        Called between ETL and PREP, as part of the stage ``teardown_pool``; the original finalised
        RMM's pool here. None: the pool stays.
    progress : callable or None
        Called at the begin of every stage.

    Returns
    -------
    PipelineResult
        Also when memory was exhausted: then its `out_of_memory` says where.

    Raises
    ------
    ConfigurationError, DataError
        The data cannot be read or divided as asked, or the features not be written.
    AvailabilityError
        XGBoost is needed and not installed.
    """
    if config.train_parts != 0:
        check_xgboost()
    files = find_files(config.data)
    parts = make_parts(files, load_domains(files), config.parts)
    if isinstance(config.train_parts, int) and config.train_parts > len(parts):
        raise ConfigurationError(
            f"train_parts is {config.train_parts}, but there are only {len(parts)} parts: "
            "give that or less, or more parts"
        )
    clock = StageClock(len(parts) * len(STAGES) + 2, progress)
    engine.observers.append(clock)
    outcome: dict[str, Any] = {}
    try:
        tables: list[pa.Table] = []
        for part in parts:
            clock.part = part.title
            tables.append(run_etl(engine, part))
        clock.part = None
        outcome |= _describe_features(tables)
        if config.features_path is not None:
            _write_features(config.features_path, tables)
        if teardown_pool is not None:
            with engine.stage("teardown_pool"):
                gc.collect()
                teardown_pool()
        if config.train_parts != 0:
            trained = fit(engine, tables, config.train_parts, config.rounds)
            outcome["training_parts"] = trained.training_parts
            outcome["training_rows"] = trained.training_rows
            outcome["quality"] = trained.quality
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        outcome["out_of_memory"] = StageOutOfMemory(clock.stage, clock.part, message)
    finally:
        engine.observers.remove(clock)
    spent = clock.seconds
    return PipelineResult(
        engine=engine.name,
        parts=tuple(part.title for part in parts),
        performance_bytes=sum(part.performance.size_bytes for part in parts),
        stages=clock.results(),
        etl_seconds=sum(spent.get(name, 0.0) for name in STAGES),
        prep_seconds=spent.get("prep", 0.0) + spent.get("teardown_pool", 0.0),
        train_seconds=spent.get("train", 0.0),
        **outcome,
    )


def _describe_features(tables: Sequence[pa.Table]) -> dict[str, Any]:
    import pyarrow.compute as pc

    rows = sum(table.num_rows for table in tables)
    ones = sum(pc.sum(table.column(LABEL)).as_py() or 0 for table in tables)
    return {
        "feature_rows": rows,
        "feature_digest": features_digest(tables),
        "label_fraction": ones / rows if rows else None,
    }


def _write_features(path: Path, tables: Sequence[pa.Table]) -> None:
    import pyarrow as pa

    with (
        written_whole(path, "the features") as target,
        pa.OSFile(str(target), "wb") as sink,
        pa.ipc.new_file(sink, tables[0].schema) as writer,
    ):
        for table in tables:
            writer.write_table(table)
