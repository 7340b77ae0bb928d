# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The whole mortgage pipeline: ETL of all parts, PREP, TRAIN, and a report on each stage.

Allocates from whatever memory resource the engine uses; choosing one is the caller's business.
Not covered: comparing several memory resources, printing, plotting.
"""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.mortgage.compare import features_digest
from rmm_uvm.mortgage.dictionary import load_domains
from rmm_uvm.mortgage.engines.base import Engine
from rmm_uvm.mortgage.etl import STAGES, run_etl
from rmm_uvm.mortgage.files import find_files, make_parts
from rmm_uvm.mortgage.prep import hold_out, prepare
from rmm_uvm.mortgage.steps.final import LABEL
from rmm_uvm.mortgage.train import ROUNDS, ModelQuality, check_xgboost, evaluate, train

if TYPE_CHECKING:
    import pyarrow as pa
    import xgboost as xgb


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """What to run.

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


@dataclass(frozen=True, slots=True)
class StageResult:
    """One stage, over all parts.

    Parameters
    ----------
    name : str
        See `rmm_uvm.mortgage.etl.STAGES`; ``prep`` and ``train`` follow.
    wall_seconds : float
        Time from begin to end, all work complete.
    runs : int
        How often the stage ran: once for each part in the ETL.
    """

    name: str
    wall_seconds: float
    runs: int


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """Where the run ended by an exhausted memory.

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
    """What a run did; `to_json` makes plain values of it.

    Parameters
    ----------
    engine : str
        Name of the engine.
    parts : tuple of str
        Titles of all parts.
    performance_bytes : int
        Text read, in bytes.
    stages : tuple of StageResult
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
    out_of_memory : OutOfMemory or None
        Where the run ended early; None when it completed.
    """

    engine: str
    parts: tuple[str, ...]
    performance_bytes: int
    stages: tuple[StageResult, ...]
    etl_seconds: float
    prep_seconds: float
    train_seconds: float
    feature_rows: int = 0
    feature_digest: str | None = None
    label_fraction: float | None = None
    training_parts: int = 0
    training_rows: int = 0
    quality: ModelQuality | None = None
    out_of_memory: OutOfMemory | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists, strings and numbers."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class PipelineProgress:
    """How far a run is: stages begun, of how many, and the one that runs now."""

    stages_begun: int
    stages_total: int
    stage: str
    part: str | None


class _StageClock:
    """Observes stages: adds up their time, and remembers which one ran last."""

    def __init__(
        self, stages_total: int, progress: Callable[[PipelineProgress], None] | None
    ) -> None:
        self.seconds: dict[str, float] = {}
        self.runs: dict[str, int] = {}
        self.stage = ""
        self.part: str | None = None
        self._stages_total = stages_total
        self._progress = progress
        self._begun_seconds = 0.0

    def begin(self, name: str) -> None:
        self.stage = name
        self.runs[name] = self.runs.get(name, 0) + 1
        if self._progress is not None:
            begun = sum(self.runs.values())
            total = max(self._stages_total, begun)
            self._progress(PipelineProgress(begun, total, name, self.part))
        self._begun_seconds = time.perf_counter()

    def end(self, name: str) -> None:
        spent = time.perf_counter() - self._begun_seconds
        self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def results(self) -> tuple[StageResult, ...]:
        return tuple(StageResult(n, s, self.runs[n]) for n, s in self.seconds.items())


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
        The data can not be read or divided as asked.
    AvailabilityError
        XGBoost is needed and not installed.
    """
    if config.train_parts != 0:
        check_xgboost()
    files = find_files(config.data)
    parts = make_parts(files, load_domains(files), config.parts)
    if isinstance(config.train_parts, int) and config.train_parts > len(parts):
        raise ConfigurationError(
            f"train_parts is {config.train_parts}, but there are only {len(parts)} parts"
        )
    clock = _StageClock(len(parts) * len(STAGES) + 2, progress)
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
            outcome |= _fit(config, engine, tables)
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        outcome["out_of_memory"] = OutOfMemory(clock.stage, clock.part, message)
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

    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)


def _fit(
    config: PipelineConfig, engine: Engine[Any, Any], tables: Sequence[pa.Table]
) -> dict[str, Any]:
    """Train on some parts and judge the model."""
    import pyarrow as pa

    count = len(tables) if config.train_parts is None else config.train_parts
    if count == "max":
        count = largest_training_set(engine, tables)
    divided = [hold_out(table) for table in tables[:count]]
    training = [train_rows for train_rows, _ in divided if train_rows.num_rows]
    held_out = pa.concat_tables([rows for _, rows in divided])
    del divided
    model = train(engine, prepare(engine, training), config.rounds)
    return {
        "training_parts": count,
        "training_rows": sum(table.num_rows for table in training),
        "quality": evaluate(model, held_out) if held_out.num_rows else None,
    }


def largest_training_set(engine: Engine[Any, Any], tables: Sequence[pa.Table]) -> int:
    """Return how many of the first tables can be converted and trained on.

    Tries all, then halves the interval; one round of training each. That more data never needs
    less memory is taken for granted.

    Raises
    ------
    MemoryError
        Not even one table fits.
    """
    fits, fails = 0, len(tables) + 1
    count = len(tables)
    while fails - fits > 1:
        if _can_train(engine, tables[:count]):
            fits = count
        else:
            fails = count
        count = (fits + fails) // 2
    if fits == 0:
        raise MemoryError("not even one part can be trained on; use more parts")
    return fits


def _can_train(engine: Engine[Any, Any], tables: Sequence[pa.Table]) -> bool:
    """Return whether one round of training on the tables does not run out of memory."""
    try:
        model: xgb.Booster = train(
            engine, prepare(engine, [hold_out(table)[0] for table in tables]), 1
        )
        del model
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        return False
    else:
        return True
    finally:
        gc.collect()


def _is_out_of_memory(error: Exception) -> bool:
    """Tell exhausted memory from everything else; XGBoost has no exception type for it."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return type(error).__name__ == "XGBoostError" and any(
        sign in text for sign in ("bad_alloc", "out of memory", "memory allocation error")
    )
