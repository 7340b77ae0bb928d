# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The whole mortgage pipeline on a Dask cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.support.output import written_whole
from rmm_uvm_mortgage.cluster.connect import check_dask
from rmm_uvm_mortgage.cluster.etl import Etl, finish_etl, start_etl
from rmm_uvm_mortgage.cluster.report import ClusterRunReport, worker_totals
from rmm_uvm_mortgage.cluster.training import Trainer, Training
from rmm_uvm_mortgage.cluster.waiting import completed, result_of, worker_addresses
from rmm_uvm_mortgage.cluster.workers import WorkerInfo, find_workers
from rmm_uvm_mortgage.compare import combined_digest
from rmm_uvm_mortgage.dictionary import load_domains
from rmm_uvm_mortgage.files import Part, find_files, make_parts
from rmm_uvm_mortgage.memory import find_memory
from rmm_uvm_mortgage.pipeline import PipelineConfig
from rmm_uvm_mortgage.stage_clock import PipelineProgress
from rmm_uvm_mortgage.train import check_xgboost

if TYPE_CHECKING:
    from distributed import Client

Progress = Callable[[PipelineProgress], None]


class ClusterRun:
    """One run of the pipeline on a cluster's workers; a context manager.

    The features stay on the workers until it is left, and whatever pool they have installed stays
    as it is.

    Parameters
    ----------
    client : distributed.Client
        Connected.
    config : PipelineConfig
        What to run; `train_parts` cannot be "max", and `features_path` is not used.
    own_pool : bool
        Whether every worker must have a pool that `rmm_uvm.reinitialize` installed. False takes
        whatever resource GPU workers have, and knows no footprint: for comparisons.

    Attributes
    ----------
    workers : tuple of WorkerInfo
        Those that were there when the context was entered.

    Raises
    ------
    ConfigurationError
        The configuration is not for a cluster.
    AvailabilityError
        Dask or XGBoost is missing here.

    Notes
    -----
    Not thread-safe. Several runs on one cluster do not see each other, apart from using the same
    pools.
    """

    def __init__(self, client: Client, config: PipelineConfig, *, own_pool: bool = True) -> None:
        if config.train_parts == "max":
            raise ConfigurationError(
                "the largest training set is searched for by one process: on a cluster, give "
                "--train-parts a number"
            )
        check_dask()
        if config.train_parts != 0:
            check_xgboost()
        self._client = client
        self._config = config
        self._own_pool = own_pool
        self._name = f"rmm-uvm-mortgage-{uuid.uuid4().hex[:8]}"
        self._etl: Etl | None = None
        self.workers: tuple[WorkerInfo, ...] = ()

    def __enter__(self) -> ClusterRun:
        from rmm_uvm_mortgage.cluster.state import MortgageWorker

        self.workers = find_workers(
            self._client,
            self._config.data.absolute(),
            trains=self._config.train_parts != 0,
            own_pool=self._own_pool,
        )
        self._client.register_plugin(MortgageWorker(self._name, own_pool=self._own_pool))
        return self

    def __exit__(self, *_: object) -> None:
        if self._etl is not None:
            self._etl.parts.clear()  # what nobody wants is neither kept nor computed any more
        if self._client.status == "running":
            self._client.unregister_worker_plugin(self._name)

    def run(self, progress: Progress | None = None) -> ClusterRunReport:
        """Run ETL, PREP and TRAIN.

        Parameters
        ----------
        progress : callable or None
            Called whenever a part is complete, and at the begin of PREP and TRAIN.

        Returns
        -------
        ClusterRunReport
            Also when memory was exhausted.

        Raises
        ------
        ConfigurationError, DataError
            The data cannot be read or divided as asked.
        AvailabilityError
            A worker cannot do its work, or the cluster was lost.
        """
        parts = self._parts()
        steps = _Steps(len(parts), progress)
        before = worker_addresses(self._client)
        etl = self._etl = start_etl(self._client, self._name, parts)
        steps.parts_done(0)
        finish_etl(self._client, etl, parts, steps.parts_done)
        training = Training()
        count = len(parts) if self._config.train_parts is None else self._config.train_parts
        assert isinstance(count, int)  # __init__ refused "max"
        if etl.out_of_memory is None and count:
            simulated = self.workers[0].simulated
            trainer = Trainer(
                self._client, self._name, self._config.rounds, steps.begin, simulated=simulated
            )
            training = trainer.train(etl.parts[:count])
        lost = tuple(sorted(before - worker_addresses(self._client)))
        if lost and etl.out_of_memory is None:
            etl.read(self._client, [part.title for part in parts], lambda _: None)
        return self._report(parts, etl, training, count, lost)

    def write_features(self, path: Path) -> None:
        """Fetch the features of all parts, one after the other, into an Arrow file.

        Parameters
        ----------
        path : Path
            Replaced.

        Raises
        ------
        ConfigurationError
            The run has not made any.
        DataError
            The file cannot be written.
        """
        import pyarrow as pa

        if self._etl is None or self._etl.out_of_memory is not None:
            raise ConfigurationError("no features to write: the run did not complete its ETL")
        writer: Any = None
        with written_whole(path, "the features") as target, pa.OSFile(str(target), "wb") as sink:
            for part in self._etl.parts:
                (done,) = completed(self._client, [part])
                table = result_of(done)[0]
                writer = writer or pa.ipc.new_file(sink, table.schema)
                writer.write_table(table)
            writer.close()

    def _parts(self) -> list[Part]:
        files = find_files(self._config.data.absolute())
        parts = make_parts(files, load_domains(files), self._config.parts)
        wanted = self._config.train_parts
        if isinstance(wanted, int) and wanted > len(parts):
            raise ConfigurationError(
                f"train_parts is {wanted}, but there are only {len(parts)} parts: "
                "give that or less, or more parts"
            )
        return parts

    def _report(
        self, parts: list[Part], etl: Etl, training: Training, count: int, lost: tuple[str, ...]
    ) -> ClusterRunReport:
        from rmm_uvm_mortgage.cluster.account import merged_stages

        simulated = self.workers[0].simulated
        memory = find_memory("managed")
        chain = memory.simulated_chain if simulated else memory.gpu_chain
        summaries = etl.summaries.values()
        rows = sum(summary.rows for summary in summaries)
        complete = etl.out_of_memory is None
        workers = self.workers
        if lost:  # those that came instead
            workers = find_workers(
                self._client, self._config.data.absolute(), trains=False, own_pool=self._own_pool
            )
        return ClusterRunReport(
            chain=chain if self._own_pool else "as installed",
            simulated=simulated,
            protocol=self._client.scheduler.address.partition("://")[0],
            workers=worker_totals(workers, list(etl.accounts.items()), training.accounts),
            lost_workers=lost,
            stages=merged_stages([*etl.accounts.values(), *training.accounts]),
            parts=tuple(part.title for part in parts),
            performance_bytes=sum(part.performance.size_bytes for part in parts),
            etl_seconds=etl.seconds,
            prep_seconds=training.prep_seconds,
            train_seconds=training.train_seconds,
            feature_rows=rows,
            feature_digest=combined_digest(s.digest for s in summaries) if complete else None,
            label_fraction=sum(s.ones for s in summaries) / rows if rows and complete else None,
            training_parts=count if training.workers else 0,
            training_rows=training.rows,
            training_workers=training.workers,
            quality=training.quality,
            out_of_memory=etl.out_of_memory or training.out_of_memory,
        )


class _Steps:
    """Tells how far a run is: parts done, then PREP and TRAIN."""

    def __init__(self, parts: int, progress: Progress | None) -> None:
        self._parts = parts
        self._progress = progress
        self._begun = 0

    def parts_done(self, count: int) -> None:
        self._begun = count + 1
        self._tell("ETL", f"{count} of {self._parts} parts")

    def begin(self, stage: str) -> None:
        self._begun = self._parts + (1 if stage == "prep" else 2)
        self._tell(stage, None)

    def _tell(self, stage: str, part: str | None) -> None:
        if self._progress is not None:
            self._progress(PipelineProgress(self._begun, self._parts + 2, stage, part))
