# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""PREP and TRAIN on the workers that hold the features, by XGBoost's Dask interface.

Each worker puts its parts together in its own pool, which stays as it is, and trains on them. A
worker that is lost meanwhile costs another attempt: Dask computes its features again elsewhere.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import DataError, UvmError
from rmm_uvm_mortgage.cluster import tasks
from rmm_uvm_mortgage.cluster.account import Account, PreparedSummary, WorkerOutOfMemory
from rmm_uvm_mortgage.cluster.etl import raise_refused
from rmm_uvm_mortgage.cluster.quality import quality_of
from rmm_uvm_mortgage.cluster.waiting import completed, result_of, worker_addresses
from rmm_uvm_mortgage.fit import is_out_of_memory, says_out_of_memory
from rmm_uvm_mortgage.prep import MISSING
from rmm_uvm_mortgage.steps.final import LABEL
from rmm_uvm_mortgage.train import PARAMETERS, ModelQuality

if TYPE_CHECKING:
    import xgboost as xgb
    from distributed import Client, Future

_ATTEMPTS = 3
_LOSS_SECONDS = 3.0
# Within this time of each other all workers must begin to train. Without a limit those that wait
# for a worker which was lost just then would wait for minutes.
_MEETING_SECONDS = 60
_LOOK_EVERY_SECONDS = 0.1


@dataclass(slots=True)
class Training:
    """A trained model's origin and quality, and what it took.

    Parameters
    ----------
    accounts : list of Account
        Of PREP and TRAIN on each worker.
    prep_seconds, train_seconds : float
        By the client's clock; attempts that a lost worker spoiled included.
    rows, workers : int
        What the model was trained on, and by how many workers.
    quality : ModelQuality or None
        None without a model or held-out rows.
    out_of_memory : WorkerOutOfMemory or None
        Where it ended early.
    """

    accounts: list[Account] = field(default_factory=list)
    prep_seconds: float = 0.0
    train_seconds: float = 0.0
    rows: int = 0
    workers: int = 0
    quality: ModelQuality | None = None
    out_of_memory: WorkerOutOfMemory | None = None


class _WorkerLostError(Exception):
    """A worker has gone while it was needed."""


class Trainer:
    """Trains on features that lie on workers.

    Parameters
    ----------
    client : distributed.Client
        Connected; its workers have the run's state.
    run : str
        Name of the run.
    rounds : int
        Trees of the model; >= 1.
    simulated : bool
        Whether the workers' devices are; then XGBoost trains on their CPUs.
    step : callable
        Told the name of each stage as it begins.
    """

    def __init__(
        self, client: Client, run: str, rounds: int, step: Callable[[str], None], *, simulated: bool
    ) -> None:
        import xgboost.dask  # noqa: F401 - takes a second, which is no part of TRAIN

        self._client = client
        self._run = run
        self._rounds = rounds
        self._simulated = simulated
        self._step = step
        self._before: set[str] = set()

    def train(self, parts: Sequence[Future[Any]]) -> Training:
        """Run PREP and TRAIN, again when a worker is lost meanwhile.

        Parameters
        ----------
        parts : sequence of distributed.Future
            Features to train on.

        Returns
        -------
        Training
            Also when memory was exhausted.

        Raises
        ------
        DataError
            There are no rows to train on.
        UvmError
            What a worker raised, or the cluster lost.
        """
        training = Training()
        attempts = 1
        while not self._attempt_or_lose(training, parts, last=attempts == _ATTEMPTS):
            attempts += 1
        return training

    def _attempt_or_lose(
        self, training: Training, parts: Sequence[Future[Any]], *, last: bool
    ) -> bool:
        """Return False where a lost worker asks for another attempt."""
        self._before = worker_addresses(self._client)
        training.accounts, training.out_of_memory = [], None
        try:
            self._attempt(training, parts)
        except UvmError:
            raise
        except Exception as error:
            training.out_of_memory = self._out_of_memory(error)
            if training.out_of_memory is not None:
                return True
            if last or not self._lost_soon():
                raise
            return False
        else:
            return True
        finally:
            # Cycles in XGBoost's Dask interface hold the frames on the workers.
            gc.collect()

    def _attempt(self, training: Training, parts: Sequence[Future[Any]]) -> None:
        self._step("prep")
        begun_seconds = time.perf_counter()
        try:
            prepared = self._prepare(training, parts)
        finally:
            training.prep_seconds += time.perf_counter() - begun_seconds
        if training.out_of_memory is not None:
            return
        self._check_for_losses()
        training.rows = sum(summary.training_rows for _, summary in prepared)
        trainable = [each for each in prepared if each[1].training_rows]
        if not trainable:
            raise DataError(
                "no rows to train on, all loans of these parts are held out: use more loans"
            )
        self._step("train")
        begun_seconds = time.perf_counter()
        try:
            model = self._train(training, trainable)
        finally:
            training.train_seconds += time.perf_counter() - begun_seconds
        if model is not None:
            training.quality = self._judge(model, [future for future, _ in prepared])

    def _prepare(
        self, training: Training, parts: Sequence[Future[Any]]
    ) -> list[tuple[Future[Any], PreparedSummary]]:
        """Have every worker put its parts together; return what each made."""
        client = self._client
        prepared = [
            client.submit(
                tasks.prepare,
                self._run,
                futures,
                key=f"prep-{self._run}-{time.monotonic_ns()}-{number}",
                workers=[address],
                allow_other_workers=True,
                pure=False,
            )
            for number, (address, futures) in enumerate(self._by_worker(parts).items())
        ]
        figures = [client.submit(tasks.prepared_figures, each, pure=False) for each in prepared]
        summaries: dict[str, PreparedSummary] = {}
        for future in completed(client, figures):
            account, summary = result_of(future)
            raise_refused([account])
            training.accounts.append(account)
            if account.out_of_memory is not None:
                training.out_of_memory = account.out_of_memory
                return []
            summaries[future.key] = summary
        return [
            (each, summaries[figure.key]) for each, figure in zip(prepared, figures, strict=True)
        ]

    def _by_worker(self, parts: Sequence[Future[Any]]) -> dict[str, list[Future[Any]]]:
        """Return the parts by the worker that holds them."""
        while True:
            for part in completed(self._client, parts):
                if part.status == "error":
                    result_of(part)
            holders = self._client.who_has(list(parts))
            if all(holders.get(part.key) for part in parts):
                break  # else one was lost just now, and is computed again
        grouped: dict[str, list[Future[Any]]] = {}
        for part in parts:
            grouped.setdefault(min(holders[part.key]), []).append(part)
        return dict(sorted(grouped.items()))

    def _train(
        self, training: Training, prepared: Sequence[tuple[Future[Any], PreparedSummary]]
    ) -> xgb.Booster | None:
        """Return the model; None if a worker has not the memory for it."""
        import xgboost as xgb

        matrix = self._matrix(prepared)
        training.workers = len(matrix.worker_map)
        try:
            begun = [
                self._client.submit(tasks.begin_training, self._run, future, pure=False)
                for future, _ in prepared
            ]
            for future in completed(self._client, begun):
                account = result_of(future)
                training.out_of_memory = training.out_of_memory or account.out_of_memory
            if training.out_of_memory is not None:
                return None
            self._check_for_losses()
            with xgb.config_context(verbosity=0):  # workers take it over
                trained = xgb.dask.train(
                    self._client,
                    {**PARAMETERS, "device": "cpu" if self._simulated else "cuda"},
                    matrix,
                    num_boost_round=self._rounds,
                    coll_cfg=xgb.collective.Config(tracker_timeout=_MEETING_SECONDS),
                )
        finally:
            ended = self._client.run(tasks.end_training, self._run, on_error="ignore")
            training.accounts += [account for account in ended.values() if account is not None]
        model: xgb.Booster = trained["booster"]
        return model

    def _matrix(
        self, prepared: Sequence[tuple[Future[Any], PreparedSummary]]
    ) -> xgb.dask.DaskDMatrix:
        """Return what PREP made as XGBoost's matrix, which each worker builds when it trains."""
        import xgboost as xgb
        from dask import dataframe as dd

        futures = [future for future, _ in prepared]
        features = self._frames(dd, futures, "features", prepared[0][1].features, "float32")
        label = self._frames(dd, futures, "label", [LABEL], "int32")
        return xgb.dask.DaskDMatrix(self._client, features, label, missing=MISSING)

    def _frames(
        self,
        dd: Any,
        prepared: Sequence[Future[Any]],
        what: str,
        columns: Sequence[str],
        dtype: str,
    ) -> Any:
        """Return one frame of what lies on the workers, partition by partition.

        Dask is told of pandas frames; on GPUs they are cuDF's. XGBoost looks at each where it is,
        so that the client needs no cuDF.
        """
        import pandas as pd

        pieces = [self._client.submit(tasks.pick, each, what, pure=False) for each in prepared]
        meta = pd.DataFrame({name: pd.Series(dtype=dtype) for name in columns})
        return dd.from_delayed(pieces, meta=meta, verify_meta=False)

    def _judge(self, model: xgb.Booster, prepared: Sequence[Future[Any]]) -> ModelQuality | None:
        """Have every worker predict the rows that it held out."""
        raw = bytes(model.save_raw("ubj"))
        predictions = [
            self._client.submit(tasks.predict, each, raw, pure=False) for each in prepared
        ]
        return quality_of([result_of(each) for each in completed(self._client, predictions)])

    def _check_for_losses(self) -> None:
        """Begin anew where a worker has gone: Dask would go on, but measured would be a mixture."""
        if lost := self._before - worker_addresses(self._client):
            raise _WorkerLostError(f"lost {', '.join(sorted(lost))}")

    def _lost_soon(self) -> bool:
        """Return whether a worker has gone; the scheduler may notice only now."""
        deadline_seconds = time.monotonic() + _LOSS_SECONDS
        while not self._before - worker_addresses(self._client):
            if time.monotonic() > deadline_seconds:
                return False
            time.sleep(_LOOK_EVERY_SECONDS)
        return True

    def _out_of_memory(self, error: Exception) -> WorkerOutOfMemory | None:
        """Return which worker ran out of memory while XGBoost trained, if one did.

        What XGBoost raises here may come from another worker, which only lost its peer.
        """
        names = {
            address: str(worker["name"])
            for address, worker in self._client.scheduler_info(n_workers=-1)["workers"].items()
        }
        errors = self._client.run(tasks.take_errors, self._run, on_error="ignore")
        for address, texts in errors.items():
            for text in texts:
                if text.startswith("MemoryError") or says_out_of_memory(text):
                    return WorkerOutOfMemory(
                        names.get(address, address), "train", None, _telling_line(text)
                    )
        if is_out_of_memory(error):
            return WorkerOutOfMemory("unknown", "train", None, _telling_line(str(error)))
        return None


def _telling_line(text: str) -> str:
    """Return the line of XGBoost's message that says that memory is exhausted."""
    lines = [line.strip(" -'\"") for line in text.replace("\\n", "\n").splitlines()]
    return next((line for line in lines if says_out_of_memory(line)), lines[0] if lines else "")
