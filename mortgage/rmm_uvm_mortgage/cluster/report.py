# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The results of a run on a cluster: plain values, ready for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rmm_uvm_mortgage.cluster.account import Account, WorkerOutOfMemory, merged_stages
from rmm_uvm_mortgage.cluster.workers import WorkerInfo
from rmm_uvm_mortgage.run_report import StageTotals
from rmm_uvm_mortgage.train import ModelQuality


@dataclass(frozen=True, slots=True)
class WorkerTotals:
    """One worker over the whole run.

    Parameters
    ----------
    name, address, host, device_name : str
        As the worker says itself.
    capacity_bytes : int
        Memory of its device.
    parts : tuple of str
        Titles of the parts that it computed, those left out whose results were lost with a worker.
    etl_seconds : float
        Wall time of its ETL tasks together.
    modelled_seconds : float
        Modelled time of migration and faults, all stages; 0.0 on a GPU.
    peak_bytes : int
        Largest footprint of any stage.
    host_to_device_bytes, device_to_host_bytes : int
        Bytes that migrated in all stages.
    xgboost_peak_bytes : int
        Most that XGBoost held by cudaMalloc, beside the footprint; 0 on a GPU, not counted there.
    """

    name: str
    address: str
    host: str
    device_name: str
    capacity_bytes: int
    parts: tuple[str, ...]
    etl_seconds: float
    modelled_seconds: float
    peak_bytes: int
    host_to_device_bytes: int
    device_to_host_bytes: int
    xgboost_peak_bytes: int

    @property
    def oversubscription_factor(self) -> float:
        """Largest footprint over capacity."""
        return self.peak_bytes / self.capacity_bytes if self.capacity_bytes else 0.0


@dataclass(frozen=True, slots=True)
class ClusterRunReport:
    """One run on a cluster.

    Parameters
    ----------
    chain : str
        The resources of each worker's pool, outermost first.
    simulated : bool
        Whether the workers' devices are simulated.
    protocol : str
        By which the workers exchange data.
    workers : tuple of WorkerTotals
        In order of their names; of a worker that was lost, what it did before is left out.
    lost_workers : tuple of str
        Addresses of workers that were lost meanwhile; their work was done again by others.
    stages : tuple of StageTotals
        Over all workers, in order of their first run.
    parts : tuple of str
        Titles of all parts.
    performance_bytes : int
        Text read, in bytes.
    etl_seconds, prep_seconds, train_seconds : float
        By the client's clock.
    feature_rows : int
        Rows that the ETL made.
    feature_digest : str or None
        Independent of the order of rows and the number of parts; None without all parts.
    label_fraction : float or None
        Share of rows with label 1.
    training_parts, training_rows, training_workers : int
        What the model was trained on, and by how many workers.
    quality : ModelQuality or None
        None without a model or held-out rows.
    out_of_memory : WorkerOutOfMemory or None
        Where the run ended early; None when it completed.
    features_against_pandas : str or None
        As in `rmm_uvm_mortgage.run_report.RunReport`.
    """

    chain: str
    simulated: bool
    protocol: str
    workers: tuple[WorkerTotals, ...]
    lost_workers: tuple[str, ...]
    stages: tuple[StageTotals, ...]
    parts: tuple[str, ...]
    performance_bytes: int
    etl_seconds: float
    prep_seconds: float
    train_seconds: float
    feature_rows: int = 0
    feature_digest: str | None = None
    label_fraction: float | None = None
    training_parts: int = 0
    training_rows: int = 0
    training_workers: int = 0
    quality: ModelQuality | None = None
    out_of_memory: WorkerOutOfMemory | None = None
    features_against_pandas: str | None = None

    @property
    def migrated_bytes(self) -> tuple[int, int]:
        """Bytes that migrated on all workers: host to device, device to host."""
        return (
            sum(worker.host_to_device_bytes for worker in self.workers),
            sum(worker.device_to_host_bytes for worker in self.workers),
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists, strings and numbers, derived figures included."""
        plain = dataclasses.asdict(self)
        for worker, figures in zip(plain["workers"], self.workers, strict=True):
            worker["oversubscription_factor"] = round(figures.oversubscription_factor, 4)
        return plain


def worker_totals(
    workers: Iterable[WorkerInfo], parts: Sequence[tuple[str, Account]], others: Iterable[Account]
) -> tuple[WorkerTotals, ...]:
    """Put together what each worker did.

    Parameters
    ----------
    workers : iterable of WorkerInfo
        All of them; one that did nothing has a row too.
    parts : sequence of (str, Account)
        Titles of parts, and who computed them.
    others : iterable of Account
        Of PREP and TRAIN.
    """
    rest = list(others)
    return tuple(
        _totals(
            worker,
            [(title, account) for title, account in parts if account.address == worker.address],
            [account for account in rest if account.address == worker.address],
        )
        for worker in workers
    )


def _totals(
    worker: WorkerInfo, parts: Sequence[tuple[str, Account]], others: Sequence[Account]
) -> WorkerTotals:
    computed = [account for _, account in parts]
    stages = merged_stages([*computed, *others])
    return WorkerTotals(
        name=worker.name,
        address=worker.address,
        host=worker.host,
        device_name=worker.device_name,
        capacity_bytes=worker.capacity_bytes,
        parts=tuple(title for title, account in parts if account.out_of_memory is None),
        etl_seconds=sum(account.seconds for account in computed),
        modelled_seconds=sum(stage.modelled_seconds for stage in stages),
        peak_bytes=max((stage.peak_bytes for stage in stages), default=0),
        host_to_device_bytes=sum(stage.host_to_device_bytes for stage in stages),
        device_to_host_bytes=sum(stage.device_to_host_bytes for stage in stages),
        xgboost_peak_bytes=max((stage.xgboost_peak_bytes for stage in stages), default=0),
    )
