# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One run of the mortgage pipeline on one memory, and everything that was seen meanwhile.

Covers a simulated device and a GPU. Does not cover several memories, see `compare_memory`, nor
printing, see `report` and `picture`.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.mortgage.memory import Chain, find_memory, gpu_chain, simulated_chain, tear_down_pool
from rmm_uvm.mortgage.pipeline import PipelineConfig, PipelineProgress, run_pipeline
from rmm_uvm.mortgage.run_report import RunReport, StageFigures, merge_stages
from rmm_uvm.mortgage.timeline import (
    Sampler,
    Timeline,
    simulated_levels,
    wall_clock,
)

if TYPE_CHECKING:
    from rmm_uvm.drivers import UvmDriver
    from rmm_uvm.mortgage.engines.base import Engine
    from rmm_uvm.mortgage.simulated_engine import SimulatedEngine

Progress = Callable[[PipelineProgress], None]


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What to run, and on which memory.

    Parameters
    ----------
    pipeline : PipelineConfig
        Data, parts, training.
    memory : str
        A name of `rmm_uvm.mortgage.memory.MEMORIES`.
    device_bytes : int or None
        Memory of the simulated device, a multiple of 2 MiB; None for a GPU.
    pool_bytes : int or None
        See `simulated_chain` and `gpu_chain`.
    find_training_set : bool
        Look for the largest training set that the memory could hold; simulated device only.
    """

    pipeline: PipelineConfig
    memory: str = "managed"
    device_bytes: int | None = None
    pool_bytes: int | None = None
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
    return _run_simulated(config, progress) if config.device_bytes else _run_gpu(config, progress)


def default_device_bytes(data: Path) -> int:
    """Return the memory of the simulated device for a data set, in bytes.

    Five times the largest performance file, in whole blocks of 2 MiB. On this project's data the
    ETL of an unsplit file needs 10.7 times its text, and in four parts 2.7 times: so the whole
    does not fit, and a quarter does.
    """
    from rmm_uvm.mortgage.files import find_files

    files = find_files(data)
    largest_bytes = max(p.stat().st_size for q in files.quarters for p in q.performance)
    block_bytes = 2 << 20
    return max(-(-5 * largest_bytes // block_bytes), 4) * block_bytes


# -- a simulated device -----------------------------------------------------------------------


def _run_simulated(config: RunConfig, progress: Progress | None) -> RunReport:
    from rmm_uvm.mortgage.shadow.stages import StageMeter

    import rmm

    rmm.set_logging_level(rmm.level_enum.off)  # a full pool is a result, reported here
    memory = find_memory(config.memory)
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
    if config.find_training_set and engine.last_shape is not None and result.feature_rows:
        rows = _largest_training_rows(config, engine, result.feature_rows // len(result.parts))
    return RunReport(
        memory=memory.name,
        chain=memory.simulated_chain,
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


def _simulated_engine(config: RunConfig) -> tuple[SimulatedEngine, Timeline]:
    """Build a fresh device, a chain on it, and an engine that allocates from the chain."""
    from rmm_uvm.drivers import simulated_device
    from rmm_uvm.mortgage.simulated_engine import SimulatedEngine

    memory = find_memory(config.memory)
    device = simulated_device(config.device_bytes or 0)
    if config.pool_bytes and not memory.managed and config.pool_bytes > device.memory()[0]:
        raise ConfigurationError(
            f"the pool is {config.pool_bytes} bytes and cannot be larger than the device, "
            f"which has {device.memory()[0]}"
        )
    chain = simulated_chain(memory, device, config.pool_bytes)
    timeline = Timeline(lambda: simulated_levels(device, engine.footprint))
    engine = SimulatedEngine(chain, timeline.sample)
    return engine, timeline


def _largest_training_rows(config: RunConfig, ran: SimulatedEngine, part_rows: int) -> int:
    from rmm_uvm.mortgage.training_set import largest_training_rows

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


# -- a GPU ------------------------------------------------------------------------------------


def gpu_reason() -> str:
    """Return why the cuDF engine cannot run on a GPU here; empty if it can."""
    import os

    from rmm_uvm.drivers import cuda_driver
    from rmm_uvm.errors import DriverError

    name = os.environ.get("RMM_UVM_DRIVER", "").strip()
    if name.startswith("simulated"):
        return f"RMM_UVM_DRIVER is {name}"
    try:
        cuda_driver()
    except DriverError as error:
        return str(error).splitlines()[0]
    try:
        import cudf  # noqa: F401
    except ImportError as error:
        return f"there is a GPU, but not {error.name}: pip install 'rmm-uvm[mortgage-gpu]'"
    return ""


def _run_gpu(config: RunConfig, progress: Progress | None) -> RunReport:
    from rmm_uvm.drivers import cuda_driver
    from rmm_uvm.mortgage.engines import make_engine

    memory = find_memory(config.memory)
    driver = cuda_driver()
    chain = gpu_chain(memory, driver, config.pool_bytes)
    return measure_gpu(config, chain, make_engine("cudf"), progress)


def measure_gpu(
    config: RunConfig,
    chain: Chain,
    engine: Engine[Any, Any],
    progress: Progress | None = None,
    *,
    teardown: Literal["as the memory does", "always", "never"] = "as the memory does",
) -> RunReport:
    """Run the pipeline on a GPU, with a chain as the current resource.

    Parameters
    ----------
    config : RunConfig
        What to run; `memory` and sizes are those of the chain already.
    chain : Chain
        From `gpu_chain`.
    engine : Engine
        The cuDF engine.
    progress : callable or None
        Called at the begin of every stage.
    teardown : str
        Whether the pool is torn down before PREP.

    Notes
    -----
    Afterwards the resource that was current before is current again.
    """
    from rmm_uvm.mortgage.shadow.stages import ResourceFootprint, StageMeter

    driver = chain.driver
    with _installed(chain) as statistics:
        footprint = ResourceFootprint(statistics)
        meter = StageMeter(footprint, _MigrationCounters(driver))
        timeline = Timeline(lambda: _gpu_levels(driver, footprint), wall_clock)
        engine.observers += [meter, timeline]
        hands_over = chain.memory.hands_over if teardown.startswith("as") else teardown == "always"
        try:
            with Sampler(timeline):
                result = run_pipeline(
                    config.pipeline,
                    engine,
                    teardown_pool=(lambda: _hand_over(chain)) if hands_over else None,
                    progress=progress,
                )
        finally:
            engine.observers.remove(meter)
            engine.observers.remove(timeline)
    return RunReport(
        memory=chain.memory.name,
        chain=chain.memory.gpu_chain,
        simulated=False,
        device_name=str(driver.info.name),
        capacity_bytes=int(driver.info.total_bytes),
        stages=merge_stages(result.stages, meter.reports),
        pipeline=result,
        timeline=timeline.to_json(),
    )


@contextlib.contextmanager
def _installed(chain: Chain) -> Iterator[Any]:
    """Make the chain, under a statistics adaptor, the current resource."""
    import rmm

    before = rmm.mr.get_current_device_resource()
    statistics = rmm.mr.StatisticsResourceAdaptor(chain.resource)
    rmm.mr.set_current_device_resource(statistics)
    try:
        yield statistics
    finally:
        gc.collect()
        rmm.mr.set_current_device_resource(before)


def _hand_over(chain: Chain) -> None:
    """Free the pool: nothing of it is alive once it is not the current resource any more."""
    import rmm

    tear_down_pool(chain)
    rmm.mr.set_current_device_resource(chain.resource)
    gc.collect()


class _MigrationCounters:
    """Gives a GPU's counters the shape that `StageMeter` reads."""

    def __init__(self, driver: UvmDriver) -> None:
        self._driver = driver

    def statistics(self) -> dict[str, int]:
        host_to_device, device_to_host = self._driver.migrated_bytes()
        return {"host_to_device_bytes": host_to_device, "device_to_host_bytes": device_to_host}


def _gpu_levels(driver: UvmDriver, footprint: Any) -> tuple[int, int, int]:
    free_bytes, total_bytes = driver.memory()
    return footprint.now_bytes, total_bytes - free_bytes, 0


def check_libraries() -> None:
    """Raise AvailabilityError when a library that every run needs is missing."""
    for name in ("numpy", "pandas", "pyarrow", "xgboost"):
        try:
            __import__(name)
        except ImportError as error:
            raise AvailabilityError(
                f"rmm-uvm mortgage needs {name}: pip install 'rmm-uvm[mortgage]'"
            ) from error


__all__ = [
    "RunConfig",
    "RunReport",
    "StageFigures",
    "check_libraries",
    "default_device_bytes",
    "gpu_reason",
    "measure_gpu",
    "run",
]
