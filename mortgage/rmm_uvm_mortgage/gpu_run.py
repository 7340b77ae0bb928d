# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""One run of the mortgage pipeline by cuDF on a GPU, and everything that was seen meanwhile."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rmm_uvm.support.optional_packages import too_old
from rmm_uvm.support.variables import setting
from rmm_uvm_mortgage import DISTRIBUTION
from rmm_uvm_mortgage.memory import (
    Chain,
    Memory,
    asked_budget,
    budget_words,
    first_slab_bytes,
    gpu_chain,
    tear_down_pool,
)
from rmm_uvm_mortgage.pipeline import PipelineConfig, PipelineProgress, run_pipeline
from rmm_uvm_mortgage.run_report import RunReport, merge_stages
from rmm_uvm_mortgage.shadow.stages import MigrationCounters, ResourceFootprint, StageMeter
from rmm_uvm_mortgage.timeline import LevelSampler, RunTimeline, wall_clock

if TYPE_CHECKING:
    from rmm_uvm.drivers import UvmDriver
    from rmm_uvm_mortgage.engines.base import Engine


def gpu_reason() -> str:
    """Return why cuDF cannot run on a GPU here; empty if it can."""
    from rmm_uvm.drivers import cuda_driver
    from rmm_uvm.errors import DriverError

    name = setting("RMM_UVM_DRIVER")
    if name.startswith("simulated"):
        return f"RMM_UVM_DRIVER is {name}"
    try:
        cuda_driver()
    except DriverError as error:
        return str(error).splitlines()[0]
    try:
        import cudf  # noqa: F401
    except ImportError as error:
        return f"there is a GPU, but not {error.name}: pip install 'rmm-uvm-mortgage[gpu]'"
    if problem := too_old("gpu", "cudf-cu13", distribution=DISTRIBUTION):
        return f"there is a GPU, but {problem}"
    return ""


def run_on_gpu(
    pipeline: PipelineConfig,
    memory: Memory,
    pool_bytes: int | float | None = None,
    *,
    budget_bytes: int | float | str | None = None,
    eviction: str | None = None,
    progress: Callable[[PipelineProgress], None] | None = None,
) -> RunReport:
    """Run the pipeline once on the first GPU.

    Parameters
    ----------
    pipeline : PipelineConfig
        What to run.
    memory : Memory
        What to allocate from; it is the current resource meanwhile.
    pool_bytes : int, float or None
        See `rmm_uvm_mortgage.memory.gpu_chain`.
    budget_bytes, eviction : int or float, and str, or None
        ``device_budget`` and ``eviction`` of `rmm_uvm.managed_pool`.
    progress : callable or None
        Called at the begin of every stage.

    Raises
    ------
    ConfigurationError, DataError, AvailabilityError, DriverError
        The run cannot be done as asked.
    """
    from rmm_uvm._lib.current_device import current_device
    from rmm_uvm.drivers import cuda_driver
    from rmm_uvm_mortgage.engines import make_engine

    driver = cuda_driver()
    with current_device(driver):
        budget = asked_budget(memory, budget_bytes, eviction, driver.info.total_bytes)
        chain = gpu_chain(memory, driver, first_slab_bytes(pool_bytes, driver), budget)
        engine = make_engine("cudf")
        return measure(pipeline, chain, engine, tear_down=memory.hands_over, progress=progress)


def measure(
    pipeline: PipelineConfig,
    chain: Chain,
    engine: Engine[Any, Any],
    *,
    tear_down: bool,
    progress: Callable[[PipelineProgress], None] | None = None,
    sample_every_seconds: float | None = 0.02,
) -> RunReport:
    """Run the pipeline with a chain as the current resource, under RMM's statistics adaptor.

    Parameters
    ----------
    pipeline : PipelineConfig
        What to run.
    chain : Chain
        From `gpu_chain`. Torn down, its resource is plain cudaMalloc afterwards.
    engine : Engine
        The cuDF engine.
    tear_down : bool
        Whether the pool is torn down before PREP.
    progress : callable or None
        Called at the begin of every stage.
    sample_every_seconds : float or None
        How often levels of memory are sampled, for the picture; None for the ends of stages only.

    Notes
    -----
    Afterwards the resource that was current before is current again.
    """
    driver = chain.driver
    with _Installed(chain) as installed:
        meter = StageMeter(installed, MigrationCounters(driver))
        timeline = RunTimeline(lambda: _levels(driver, installed), wall_clock)
        sampler: Any = contextlib.nullcontext()
        if sample_every_seconds is not None:
            sampler = LevelSampler(timeline, sample_every_seconds)
        with engine.observed_by(meter, timeline), sampler:
            result = run_pipeline(
                pipeline,
                engine,
                teardown_pool=installed.tear_down if tear_down else None,
                progress=progress,
            )
    return RunReport(
        memory=chain.memory.name,
        chain=chain.memory.gpu_chain + budget_words(chain.budget),
        simulated=False,
        device_name=str(driver.info.name),
        capacity_bytes=int(driver.info.total_bytes),
        stages=merge_stages(result.stages, meter.reports),
        pipeline=result,
        timeline=timeline.to_json(),
    )


class _Installed:
    """Makes a chain the current resource, and is the footprint of what is allocated from it."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._before: Any = None
        self._footprint: ResourceFootprint

    def __enter__(self) -> _Installed:
        import rmm

        self._before = rmm.mr.get_current_device_resource()
        self._install()
        return self

    def __exit__(self, *_: object) -> None:
        import rmm

        gc.collect()
        rmm.mr.set_current_device_resource(self._before)

    def _install(self) -> None:
        import rmm

        statistics = rmm.mr.StatisticsResourceAdaptor(self._chain.resource)
        rmm.mr.set_current_device_resource(statistics)
        self._footprint = ResourceFootprint(statistics)

    def tear_down(self) -> None:
        """Go on with plain cudaMalloc; the pool is freed once no buffer is left in it."""
        tear_down_pool(self._chain)
        self._install()
        gc.collect()

    @property
    def now_bytes(self) -> int:
        """Live bytes."""
        return self._footprint.now_bytes

    @property
    def peak_bytes(self) -> int:
        """Largest sum of live bytes since `begin_stage`."""
        return self._footprint.peak_bytes

    def begin_stage(self) -> None:
        """Let the peak start from what is live now."""
        self._footprint.begin_stage()


def _levels(driver: UvmDriver, footprint: _Installed) -> tuple[int, int, int]:
    free_bytes, total_bytes = driver.memory()
    return footprint.now_bytes, total_bytes - free_bytes, 0
