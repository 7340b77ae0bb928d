# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A run on a cluster as text for a terminal; legible at 80 columns, without colour."""

from __future__ import annotations

from rmm_uvm.report.document import Block, Document, Paragraph, Section, Span
from rmm_uvm.support.units import format_bytes
from rmm_uvm_mortgage.cluster.report import ClusterRunReport, WorkerTotals
from rmm_uvm_mortgage.report import (
    SIMULATED_LINES,
    SizeUnit,
    against_pandas,
    indented,
    lines,
    plain_table,
    short_message,
)

_LEGEND = (
    "ETL: seconds of its tasks; peak: most allocated; factor: peak / device memory;\n"
    "in, out: bytes migrated"
)


def simulated_lines(capacity_bytes: int, why: str) -> Document:
    """Return what stands below the first line of a run on simulated devices.

    Parameters
    ----------
    capacity_bytes : int
        Memory of each worker's device.
    why : str
        Why it is so much.
    """
    return indented(
        (
            *SIMULATED_LINES,
            "also real: worker processes, Dask, XGBoost's training across the workers",
            f"each device: {format_bytes(capacity_bytes)}, {why}",
        )
    )


def cluster_page(report: ClusterRunReport) -> Document:
    """Return everything about one run."""
    workers, parts = len(report.workers), len(report.parts)
    ended = report.out_of_memory
    outcome = "completes" if ended is None else f"stops in {ended.stage}"
    told = f"{_count(parts, 'part')}, {outcome}; data between workers over {report.protocol}"
    return Document(
        (
            Section(f"{_count(workers, 'worker')}: {report.chain}", (Paragraph(told),)),
            Section("", workers_table(report)),
            lines(_summary(report)),
        )
    )


def workers_table(report: ClusterRunReport) -> tuple[Block, ...]:
    """Return a row for each worker, and one for all; and what the columns are."""
    largest = max((worker.peak_bytes for worker in report.workers), default=0)
    unit = SizeUnit.that_suits(max(largest, *report.migrated_bytes))
    modelled = ["modelled\ns"] if report.simulated else []
    sizes = [f"{title}\n{unit.name}" for title in ("in", "out")]

    def seconds(etl_seconds: float, modelled_seconds: float) -> list[str]:
        shown = [f"{etl_seconds:.2f}"]
        return [*shown, f"{modelled_seconds:.3f}"] if report.simulated else shown

    rows = [
        (
            worker.name,
            str(len(worker.parts)),
            *seconds(worker.etl_seconds, worker.modelled_seconds),
            unit.text(worker.peak_bytes),
            f"{worker.oversubscription_factor:.2f}" if worker.peak_bytes else "-",
            unit.text(worker.host_to_device_bytes),
            unit.text(worker.device_to_host_bytes),
        )
        for worker in report.workers
    ]
    in_all = (
        "all",
        str(sum(len(worker.parts) for worker in report.workers)),
        *seconds(
            sum(worker.etl_seconds for worker in report.workers),
            sum(worker.modelled_seconds for worker in report.workers),
        ),
        "",
        "",
        *map(unit.text, report.migrated_bytes),
    )
    titles = ["worker\n", "parts\n", "ETL\ns", *modelled, f"peak\n{unit.name}", "factor\n", *sizes]
    return plain_table(titles, [*rows, in_all]), Paragraph(Span(_LEGEND, "faint"))


def _summary(report: ClusterRunReport) -> list[str]:
    """Return the lines below the table."""
    lines = []
    if report.out_of_memory is not None:
        ended = report.out_of_memory
        where = f" of part {ended.part}" if ended.part else ""
        message = short_message(ended.message)
        lines.append(f"Out of memory on worker {ended.worker} in {ended.stage}{where}: {message}")
    if report.lost_workers:
        lost = _count(len(report.lost_workers), "worker")
        lines.append(f"Lost on the way: {lost}; others did that work again")
    lines.append(_clock(report))
    if report.features_against_pandas:
        how = against_pandas(report.features_against_pandas)
        lines.append(f"Features: {report.feature_rows:,} rows, {how}")
    if report.quality is not None and report.quality.auc is not None:
        lines.append(
            f"Model: {report.training_rows:,} rows of "
            f"{_count(report.training_parts, 'part')} on "
            f"{_count(report.training_workers, 'worker')}; "
            f"AUC {report.quality.auc:.4f} on {report.quality.rows:,} others"
        )
    if xgboost := _xgboost(report.workers):
        lines.append(xgboost)
    prep = next((stage for stage in report.stages if stage.name == "prep"), None)
    if prep is not None:
        lines.append(
            f"PREP: no pool torn down; {format_bytes(prep.host_to_device_bytes)} in, "
            f"{format_bytes(prep.device_to_host_bytes)} out"
        )
    return lines


def _clock(report: ClusterRunReport) -> str:
    named = (
        ("ETL", report.etl_seconds),
        ("PREP", report.prep_seconds),
        ("TRAIN", report.train_seconds),
    )
    shown = [f"{name} {seconds:.2f} s" for name, seconds in named if seconds]
    return f"By the clock: {', '.join(shown)}"


def _xgboost(workers: tuple[WorkerTotals, ...]) -> str:
    most = max((worker.xgboost_peak_bytes for worker in workers), default=0)
    if not most:
        return ""
    return f"XGBoost's cudaMalloc, not in the footprint: at most {format_bytes(most)} on a worker"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
