# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One run of the mortgage pipeline on one memory, and everything that was seen meanwhile.

Covers a simulated device and a GPU. Does not cover several memories, see `compare_memory`, nor
printing, see `report` and `picture`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.support.optional_packages import too_old
from rmm_uvm.support.units import VA_BLOCK_BYTES, format_bytes
from rmm_uvm_mortgage import DISTRIBUTION
from rmm_uvm_mortgage.memory import (
    Chain,
    asked_budget,
    budget_words,
    find_memory,
    first_slab_bytes,
    simulated_chain,
)
from rmm_uvm_mortgage.pipeline import PipelineConfig, PipelineProgress, run_pipeline
from rmm_uvm_mortgage.run_report import RunReport, merge_stages
from rmm_uvm_mortgage.timeline import RunTimeline, simulated_levels

if TYPE_CHECKING:
    from rmm_uvm_mortgage.simulated_engine import SimulatedEngine

_LEAST_DEVICE_BYTES = 128 << 20

Progress = Callable[[PipelineProgress], None]


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The run that is asked for, and its memory.

    Parameters
    ----------
    pipeline : PipelineConfig
        Data, parts, training.
    memory : str
        A name of `rmm_uvm_mortgage.memory.MEMORIES`.
    device_bytes : int or None
        Memory of the simulated device, a multiple of 2 MiB; None for a GPU.
    pool_bytes : int, float or None
        See `simulated_chain` and `gpu_chain`.
    budget_bytes : int, float, str or None
        Most of the device that managed memory may take, or "none"; None for what others leave of it
        (`device_budget="auto"`).
    eviction : str or None
        See `rmm_uvm.residency.POLICIES`.
    find_training_set : bool
        Look for the largest training set that the memory could hold; simulated device only.
    """

    pipeline: PipelineConfig
    memory: str = "managed"
    device_bytes: int | None = None
    pool_bytes: int | float | None = None
    budget_bytes: int | float | str | None = None
    eviction: str | None = None
    find_training_set: bool = False


def run(config: RunConfig, progress: Progress | None = None) -> RunReport:
    """Run the pipeline once.

    Parameters
    ----------
    config : RunConfig
        What to run.
    progress : callable or None
        Called at the begin of every stage.

    Returns
    -------
    RunReport
        Also when memory was exhausted.

    Raises
    ------
    ConfigurationError, DataError, AvailabilityError, DriverError
        The run cannot be done as asked.
    """
    if config.device_bytes:
        return _run_simulated(config, progress)
    from rmm_uvm_mortgage.gpu_run import run_on_gpu

    return run_on_gpu(
        config.pipeline,
        find_memory(config.memory),
        config.pool_bytes,
        budget_bytes=config.budget_bytes,
        eviction=config.eviction,
        progress=progress,
    )


def default_device_bytes(data: Path) -> int:
    """Return the memory of the simulated device for a data set, in bytes.

    Five times the largest performance file, in whole blocks of 2 MiB. On this project's data the
    ETL of an unsplit file needs 10.7 times its text, and in four parts 2.7 times: so the whole
    does not fit, and a quarter does. At least 128 MiB: XGBoost's own cudaMalloc needs up to 80 for
    data of any size, and is not managed memory.
    """
    from rmm_uvm_mortgage.files import find_files

    files = find_files(data)
    largest_bytes = max(p.stat().st_size for q in files.quarters for p in q.performance)
    return max(-(-5 * largest_bytes // VA_BLOCK_BYTES) * VA_BLOCK_BYTES, _LEAST_DEVICE_BYTES)


def default_device_reason(size_bytes: int) -> str:
    """Return in a phrase why `default_device_bytes` returned so much.

    Examples
    --------
    >>> default_device_reason(200 << 20)
    'five times the largest performance file'
    """
    if size_bytes > _LEAST_DEVICE_BYTES:
        return "five times the largest performance file"
    return "the least for any data, as XGBoost needs"


def _run_simulated(config: RunConfig, progress: Progress | None) -> RunReport:
    from rmm_uvm_mortgage.shadow.stages import StageMeter

    memory = find_memory(config.memory)
    quiet_rmm()
    engine, timeline = _simulated_engine(config)
    device: Any = engine.chain.driver
    meter = StageMeter(engine.footprint, device)
    calls = _UpstreamCalls(engine.chain)
    engine.observers += [calls, engine.xgboost, meter, timeline]
    result = run_pipeline(
        config.pipeline,
        engine,
        teardown_pool=engine.tear_down_pool if memory.hands_over else None,
        progress=progress,
    )
    rows = None
    if config.find_training_set and engine.last_shape is not None and engine.last_shape.rows:
        rows = _largest_training_rows(config, engine, result.feature_rows // len(result.parts))
    return RunReport(
        memory=memory.name,
        chain=memory.simulated_chain + budget_words(engine.chain.budget),
        simulated=True,
        device_name="simulated device",
        capacity_bytes=config.device_bytes or 0,
        stages=merge_stages(
            result.stages, meter.reports, calls.by_stage, engine.xgboost.peak_bytes
        ),
        pipeline=result,
        largest_training_rows=rows,
        timeline=timeline.to_json(),
    )


def _simulated_engine(config: RunConfig) -> tuple[SimulatedEngine, RunTimeline]:
    """Build a fresh device, a chain on it, and an engine that allocates from the chain."""
    from rmm_uvm.drivers import simulated_device
    from rmm_uvm_mortgage.simulated_engine import SimulatedEngine

    memory = find_memory(config.memory)
    device = simulated_device(config.device_bytes or 0)
    pool_bytes = first_slab_bytes(config.pool_bytes, device)
    if pool_bytes and not memory.managed and pool_bytes > device.memory()[0]:
        raise ConfigurationError(
            f"the pool has {format_bytes(pool_bytes)} and cannot be larger than the device, "
            f"which has {format_bytes(device.memory()[0])}: give a smaller pool"
        )
    chain = simulated_chain(
        memory,
        device,
        pool_bytes,
        asked_budget(memory, config.budget_bytes, config.eviction, device.info.total_bytes),
    )
    timeline = RunTimeline(lambda: simulated_levels(device, engine.footprint))
    engine = SimulatedEngine(chain, timeline.sample)
    return engine, timeline


def _largest_training_rows(config: RunConfig, ran: SimulatedEngine, part_rows: int) -> int:
    from rmm_uvm_mortgage.training_set import largest_training_rows

    memory = find_memory(config.memory)

    def fresh() -> SimulatedEngine:
        engine, _ = _simulated_engine(config)
        if memory.hands_over:
            engine.tear_down_pool()
        return engine

    assert ran.last_shape is not None  # the caller checked
    return largest_training_rows(fresh, ran.last_shape, max(part_rows, 1))


class _UpstreamCalls:
    """Counts calls of cudaMalloc or cudaMallocManaged in each stage; a `StageObserver`."""

    def __init__(self, chain: Chain) -> None:
        self.by_stage: dict[str, int] = {}
        self._chain = chain
        self._before = 0

    def begin(self, name: str) -> None:
        del name
        self._before = self._chain.upstream_allocations

    def end(self, name: str) -> None:
        calls = self._chain.upstream_allocations - self._before
        self.by_stage[name] = self.by_stage.get(name, 0) + calls


def check_libraries() -> None:
    """Raise AvailabilityError when a library that every run needs is missing."""
    for name in ("numpy", "pandas", "pyarrow", "xgboost"):
        try:
            __import__(name)
        except ImportError as error:
            raise AvailabilityError(
                f"rmm-uvm mortgage needs {name}: pip install 'rmm-uvm-mortgage[cpu]'"
            ) from error
    for extra, packages in (
        ("cpu", ("numpy", "pandas", "pyarrow", "xgboost-cpu")),
        ("gpu", ("xgboost",)),  # which does as well
    ):
        if problem := too_old(extra, *packages, distribution=DISTRIBUTION):
            raise AvailabilityError(f"rmm-uvm mortgage: {problem}")


def quiet_rmm() -> None:
    """Keep RMM from logging that a pool is full: here that is a result, and reported as one."""
    import rmm

    rmm.set_logging_level(rmm.level_enum.off)
