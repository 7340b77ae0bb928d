# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""``rmm-uvm mortgage --workers`` and ``--scheduler``: the mortgage pipeline on Dask workers."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rmm_uvm.cli.console import make_console
from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm.report.as_text import Printed
from rmm_uvm.run.tidying import temporary_folder
from rmm_uvm_mortgage.cli.request import Request, data_of, simulated_because, write_json

if TYPE_CHECKING:
    from distributed import Client

    from rmm_uvm_mortgage.cluster.report import ClusterRunReport
    from rmm_uvm_mortgage.cluster.run import ClusterRun
    from rmm_uvm_mortgage.cluster.workers import WorkerInfo

__all__ = ["run_on_cluster"]

_ROUNDS = 100
_FIRST_LINE = "SIMULATED DEVICES: no GPU is used"


def run_on_cluster(request: Request) -> int:
    """Do what a user asked for; return the exit status."""
    from rmm_uvm_mortgage.cluster.connect import check_dask
    from rmm_uvm_mortgage.run import check_libraries, quiet_rmm

    console = make_console()
    check_libraries()
    check_dask()
    quiet_rmm()
    if request.scheduler is not None:
        return _on_existing(request, request.scheduler, console)
    assert request.workers is not None  # the caller looked
    return _on_own(request, request.workers, console)


def _on_own(request: Request, workers: int, console: Console) -> int:
    """Start workers, and end them."""
    from rmm_uvm_mortgage.cluster.connect import local_workers, no_gpu_reason
    from rmm_uvm_mortgage.cluster.device_size import default_worker_device

    because = simulated_because(request, no_gpu_reason)
    if because:
        console.print(_FIRST_LINE, style="bold")
        console.print(f"  why: {because}")
    elif request.device_memory is not None:
        raise ConfigurationError("--device-memory is for simulated devices; add --engine pandas")
    data = data_of(request)
    device_bytes = None
    if because:
        from rmm_uvm_mortgage.cluster.page import simulated_lines

        device_bytes, why = request.device_memory, "as asked"
        if device_bytes is None:
            device_bytes, why = default_worker_device(data, request.parts, workers)
        console.print(Printed(simulated_lines(device_bytes, why)))
    with (
        _dask_says_only_errors() if because else contextlib.nullcontext(),
        local_workers(
            workers,
            device_bytes,
            request.initial_pool_size,
            request.device_budget,
            request.eviction,
        ) as client,
        _make_run(request, data, client) as run,
    ):
        return _run_and_print(request, run, data, console)


@contextlib.contextmanager
def _dask_says_only_errors() -> Iterator[None]:
    """Keep back what Dask says about simulated devices: it stands on the page already."""
    logger = logging.getLogger("rmm_uvm.dask")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _on_existing(request: Request, address: str, console: Console) -> int:
    """Use workers that are there, and leave them."""
    from rmm_uvm_mortgage.cluster.connect import existing_workers

    with existing_workers(address) as client:
        data = data_of(request)
        with _make_run(request, data, client) as run:
            first = run.workers[0]
            if first.simulated:
                from rmm_uvm_mortgage.cluster.page import simulated_lines

                console.print(_FIRST_LINE, style="bold")
                console.print(f"  why: the workers at {address} have simulated devices")
                console.print(Printed(simulated_lines(first.capacity_bytes, "as it was started")))
            _check_engine(request, first)
            return _run_and_print(request, run, data, console)


def _make_run(request: Request, data: Path, client: Client) -> ClusterRun:
    from rmm_uvm_mortgage.cluster.run import ClusterRun
    from rmm_uvm_mortgage.pipeline import PipelineConfig

    config = PipelineConfig(data, request.parts, request.train_parts, request.rounds or _ROUNDS)
    return ClusterRun(client, config)


def _check_engine(request: Request, worker: WorkerInfo) -> None:
    """Refuse an engine that the workers do not have."""
    if request.engine == "cudf" and worker.simulated:
        raise AvailabilityError("--engine cudf needs GPUs, and those workers' are simulated")
    if request.engine == "pandas" and not worker.simulated:
        raise ConfigurationError(
            "--engine pandas is for simulated devices: those workers have GPUs"
        )


def _run_and_print(request: Request, run: ClusterRun, data: Path, console: Console) -> int:
    """Run once, compare the features with plain pandas, print."""
    from rmm_uvm_mortgage.cli.bars import stage_bar
    from rmm_uvm_mortgage.cluster.page import cluster_page

    count = len(run.workers)
    with stage_bar(f"{count} worker{'' if count == 1 else 's'}") as progress:
        report = run.run(progress)
    if report.feature_digest is not None:
        how = _against_pandas(request, run, report.feature_digest, data)
        report = dataclasses.replace(report, features_against_pandas=how)
    console.print("", Printed(cluster_page(report)), sep="\n")
    write_json(request.json_file, report.to_json())
    return _exit_status(report)


def _against_pandas(request: Request, run: ClusterRun, digest: str, data: Path) -> str | None:
    """Compare; the features are fetched only when they are asked for or their digests differ."""
    from rmm_uvm_mortgage.cli.bars import stage_bar
    from rmm_uvm_mortgage.reference import make_reference

    with temporary_folder("rmm-uvm-mortgage-") as folder:
        with stage_bar("plain pandas, to compare") as progress:
            reference = make_reference(data, folder / "pandas.arrow", progress)
        features = request.features or folder / "features.arrow"
        if request.features is not None or digest != reference.digest:
            run.write_features(features)
        return reference.describe(digest, features)


def _exit_status(report: ClusterRunReport) -> int:
    differs = (report.features_against_pandas or "").startswith("different")
    return 1 if differs or report.out_of_memory is not None else 0
