# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a worker during a run of the pipeline: its engine, and who uses it now.

A Dask plugin holds it, so that it comes and goes with the run, and a worker that Dask starts anew
in mid-run gets it too.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from distributed import WorkerPlugin, get_worker

from rmm_uvm.errors import AvailabilityError, UvmError
from rmm_uvm_mortgage.cluster.account import Account, WorkerOutOfMemory
from rmm_uvm_mortgage.cluster.console_log import claim_messages, output_logged
from rmm_uvm_mortgage.cluster.worker_engine import WorkerEngine, worker_engine
from rmm_uvm_mortgage.fit import is_out_of_memory
from rmm_uvm_mortgage.run_report import StageTotals, merge_stages
from rmm_uvm_mortgage.shadow.stages import StageMeter
from rmm_uvm_mortgage.stage_clock import StageClock

_T = TypeVar("_T")


class MortgageWorker(WorkerPlugin):  # type: ignore[misc] # Dask's classes are not typed here
    """A worker's part in one run.

    Parameters
    ----------
    name : str
        Of the run; tasks find the plugin by it.
    own_pool : bool
        See `rmm_uvm_mortgage.cluster.worker_engine.worker_engine`.

    Notes
    -----
    Thread-safe: tasks of the run wait for each other, since a device does one part at a time.
    """

    def __init__(self, name: str, *, own_pool: bool = True) -> None:
        self.name = name
        self._own_pool = own_pool

    def setup(self, worker: Any) -> None:
        """Remember the worker; the engine is made by the first task."""
        self._worker = worker
        self._lock = threading.Lock()
        self._engine: WorkerEngine | None = None
        self._training: _Meter | None = None
        self._errors: list[str] = []

    def teardown(self, worker: Any) -> None:
        """Free what training left, and let go of the pool.

        Does not wait for a part that is being computed, since the worker's event loop calls it.
        """
        del worker
        self._end_training()
        self._engine = None

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Note the errors of tasks that are not ours: XGBoost's, when training fails."""
        del start
        if finish == "error" and (task := self._worker.state.tasks.get(key)) is not None:
            self._errors.append(str(task.exception_text))

    @property
    def address(self) -> str:
        """Address of the worker."""
        return str(self._worker.address)

    def take_errors(self) -> list[str]:
        """Return the errors of tasks since the last call, as text."""
        errors, self._errors = self._errors, []
        return errors

    def measure(
        self, work: Callable[[WorkerEngine], _T], part: str | None = None
    ) -> tuple[_T | None, Account]:
        """Do some work alone on the device, and measure its stages.

        Parameters
        ----------
        work : callable
            Gets the engine.
        part : str or None
            Title of the part that it is about.

        Returns
        -------
        tuple
            What the work returned, or None if memory ran out or it was refused; and its account.
        """
        with self._lock:
            begun_seconds = time.perf_counter()
            result: _T | None = None
            ended: WorkerOutOfMemory | None = None
            refused: UvmError | None = None
            meter: _Meter | None = None
            try:
                meter = _Meter(self._get_engine())
                with meter:
                    result = work(meter.engine)
            except UvmError as error:
                refused = error
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                ended = self._out_of_memory(meter, part, error)
            return result, Account(
                self.address,
                meter.stages() if meter is not None else (),
                time.perf_counter() - begun_seconds,
                ended,
                refused,
            )

    def begin_training(self, features: Any) -> Account:
        """Begin the stage ``train``, and take XGBoost's memory where XGBoost itself does not.

        The stage goes on until `end_training`, whoever trains meanwhile.
        """
        with self._lock:
            ended: WorkerOutOfMemory | None = None
            if self._training is None:
                self._training = _Meter(self._get_engine())
                self._training.enter_stage("train")
            try:
                self._training.engine.take_training_memory(features)
            except MemoryError as error:
                ended = self._out_of_memory(self._training, None, error)
            return Account(self.address, (), 0.0, ended)

    def end_training(self) -> Account | None:
        """End the stage ``train``; return its account, or None if it had not begun."""
        with self._lock:
            return self._end_training()

    def _end_training(self) -> Account | None:
        meter, self._training = self._training, None
        if meter is None:
            return None
        meter.__exit__()
        meter.engine.free_training_memory()
        stages = meter.stages()
        return Account(self.address, stages, sum(stage.wall_seconds for stage in stages))

    def _get_engine(self) -> WorkerEngine:
        if self._engine is None:
            claim_messages()
            try:
                self._engine = worker_engine(own_pool=self._own_pool)
            except AvailabilityError as error:
                text = str(error).replace("this process", f"worker {self._worker.name}", 1)
                raise AvailabilityError(text) from error
        return self._engine

    def _out_of_memory(
        self, meter: _Meter | None, part: str | None, error: Exception
    ) -> WorkerOutOfMemory:
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        stage = "" if meter is None else meter.stage
        return WorkerOutOfMemory(str(self._worker.name), stage, part, message)


class _Meter:
    """Measures the stages of an engine from entering to leaving it."""

    def __init__(self, engine: WorkerEngine) -> None:
        self.engine = engine
        self._clock = StageClock(0, None)
        self._meter = StageMeter(engine.footprint, engine.counters)
        self._stack = contextlib.ExitStack()
        self._xgboost_peak_bytes: dict[str, int] = {}

    def __enter__(self) -> _Meter:
        self.engine.xgboost_peak_bytes()  # what came before does not count
        self._stack.enter_context(self.engine.engine.observed_by(self._clock, self._meter))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._xgboost_peak_bytes.update(self.engine.xgboost_peak_bytes())

    def enter_stage(self, name: str) -> None:
        """Begin a stage that ends when the meter is left."""
        self.__enter__()
        self._stack.enter_context(self.engine.engine.stage(name))
        self._stack.enter_context(output_logged())

    @property
    def stage(self) -> str:
        """The stage that began last."""
        return self._clock.stage

    def stages(self) -> tuple[StageTotals, ...]:
        """Return what was measured."""
        return merge_stages(
            self._clock.results(),
            self._meter.reports,
            xgboost_peak_bytes=self._xgboost_peak_bytes,
        )


def state(name: str, worker: Any = None) -> MortgageWorker:
    """Return the state of a run on a worker.

    Parameters
    ----------
    name : str
        Of the run.
    worker : distributed.Worker or None
        None for the one that this task runs on.

    Raises
    ------
    AvailabilityError
        The run has ended, or this is no task of a worker.
    """
    plugin = (worker or get_worker()).plugins.get(name)
    if not isinstance(plugin, MortgageWorker):
        raise AvailabilityError(f"the run {name} of the mortgage pipeline has ended")
    return plugin
