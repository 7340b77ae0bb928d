# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a whole cluster: advice across its workers, then each worker's own report.

See Also
--------
rmm_uvm.report.Report : the same of one process.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any

from distributed import Client

from rmm_uvm.dask.reports.advice import cluster_advice, cluster_verdict, sums_of
from rmm_uvm.dask.reports.documents import page, summary
from rmm_uvm.dask.reports.worker_recording import WorkerRecording, gathered
from rmm_uvm.errors import ConfigurationError
from rmm_uvm.report.as_dict import as_dict
from rmm_uvm.report.document import Document
from rmm_uvm.report.presented import Presented
from rmm_uvm.support.messages import shown

__all__ = ["FORMAT_VERSION", "ClusterReport", "report"]

FORMAT_VERSION = 1
"""Grows when a key changes its meaning or goes away, not when one is added."""


def report(client: Any, *, timeout_seconds: float = 60.0) -> Any:
    """Gather what every worker's monitor recorded, and return the report of the cluster.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster. With an asynchronous one, await what is returned.
    timeout_seconds : float
        How long a worker may take to answer, > 0. One that does not, that left, or that has no
        monitor is listed with the reason.

    Returns
    -------
    ClusterReport
        For people and programs.

    Raises
    ------
    ConfigurationError
        If `timeout_seconds` is no number above 0, or `client` no client.

    Notes
    -----
    A worker makes its recording lighter before it sends it, at most about 1 MB, in a thread of its
    own. Neither scheduler nor client needs RMM or a GPU.

    Examples
    --------
    >>> import rmm_uvm.dask
    >>> def after_the_work(client):
    ...     found = rmm_uvm.dask.report(client)
    ...     print(found)
    ...     found.save_html("cluster.html")
    """
    if isinstance(timeout_seconds, bool) or not (
        isinstance(timeout_seconds, int | float) and timeout_seconds > 0
    ):
        raise ConfigurationError(f"timeout_seconds={shown(timeout_seconds)}: seconds above 0")
    if not isinstance(client, Client):
        raise ConfigurationError(
            f"a report is made through a client, not {type(client).__name__}: "
            "rmm_uvm.dask.report(Client(cluster))"
        )
    return client.sync(_report, client, float(timeout_seconds))


async def _report(client: Any, timeout_seconds: float) -> ClusterReport:
    workers = await gathered(client, timeout_seconds)
    made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return ClusterReport(workers, made, client.scheduler.address)


class ClusterReport(Presented):
    """A report of what the monitors of a cluster's workers saw.

    Parameters
    ----------
    workers : sequence of WorkerRecording
        In the order in which they are shown.
    made : str
        Date and time, ISO 8601, UTC.
    scheduler : str
        Its address.

    Notes
    -----
    ``str(report)`` is the summary for a terminal. Thread-safe: recordings do not change.

    Examples
    --------
    >>> print(ClusterReport([WorkerRecording("tcp://10.0.0.1:5", "0", "", reason="it left")]))
    rmm_uvm: cluster of 1 worker, 1 without figures
    <BLANKLINE>
    no advice: no worker could be watched
    <BLANKLINE>
    worker 0: no figures: it left
    """

    def __init__(
        self, workers: Sequence[WorkerRecording], made: str = "", scheduler: str = ""
    ) -> None:
        self.workers = tuple(workers)
        self.made = made
        self.scheduler = scheduler

    def _summary(self) -> Document:
        return summary(self.workers)

    def _page(self) -> Document:
        return page(self.workers, self.made, self.scheduler)

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values; None for what is not known.

        Under ``"workers"`` each has its ``"report"`` as `rmm_uvm.report.Report.to_dict` makes it.
        """
        advice = cluster_advice(self.workers)
        return {
            "format": "rmm_uvm cluster report",
            "format_version": FORMAT_VERSION,
            "made": self.made,
            "scheduler": self.scheduler,
            "verdict": "" if advice else cluster_verdict(self.workers),
            "advice": [dataclasses.asdict(one) for one in advice],
            "workers": [_worker(worker) for worker in self.workers],
        }


def _worker(worker: WorkerRecording) -> dict[str, Any]:
    sums = sums_of(worker)
    return {
        "address": worker.address,
        "name": worker.name,
        "host": worker.host,
        "reason": worker.reason,
        "ipc_pool_bytes": worker.ipc_pool_bytes,
        "comm": dict(worker.comm),
        "samples_total": worker.samples_total,
        "moved_bytes": sums.moved_bytes,
        "peak_oversubscription_factor": None if sums.factor is None else round(sums.factor, 6),
        "report": None if worker.recording is None else as_dict(worker.recording),
    }
