# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Shows a cluster: advice first, then a row for each worker.

A page has each worker's own report too, folded: drawing the charts of 16 workers at once takes a
browser many seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmm_uvm.dask.reports.advice import (
    ClusterAdvice,
    WorkerSums,
    cluster_advice,
    cluster_verdict,
    sums_of,
)
from rmm_uvm.dask.reports.charts import charts
from rmm_uvm.dask.reports.worker_recording import WorkerRecording
from rmm_uvm.report import words
from rmm_uvm.report.document import (
    Block,
    Document,
    Paragraph,
    Section,
    Span,
    Table,
    TableColumn,
    Task,
    Tasks,
    Words,
    titled,
)
from rmm_uvm.report.page import SIMULATED, advised, sections
from rmm_uvm.report.page import watched as watched_by_one
from rmm_uvm.report.summary import SIMULATED as SIMULATED_LINE

__all__ = ["page", "summary"]

_MOST_ADVICE = 5
_MOST_WORKERS = 16
_MOST_NAMED = 8
_NAME_WIDTH = 14
_COLUMNS = (("footprint", 11), ("factor", 6), ("to device", 11), ("to host", 11), ("evicted", 11))
_OVERFLOW = ("overflow", 10)
_TITLES = (
    "Worker", "Peak footprint", "Of capacity", "To device", "To host", "Evicted", "IPC pool",
    "Between workers", "Overflow", "Waited",
)  # fmt: skip
_HINT = (
    "Open a worker to see its memory over time. Drag a chart to move through time; hold Ctrl and "
    "turn the wheel to zoom."
)
_LIGHTENED = "The charts are drawn of a choice of {:,} samples: every peak and every low is in it."


def summary(workers: Sequence[WorkerRecording]) -> Document:
    """Return what a terminal shows: a line for each worker, and why others have none."""
    advice = cluster_advice(workers)
    blocks: list[Block] = [Paragraph(cluster_verdict(workers), fit="keep")]
    if advice:
        told = (
            Task(words.plain_name(one.remedy, 200), words.plain_name(one.message, 400))
            for one in advice[:_MOST_ADVICE]
        )
        blocks = [Tasks(tuple(told))]
    if (more := len(advice) - _MOST_ADVICE) > 0:
        blocks.append(Paragraph(f"and {more} more in the HTML report", lead="   "))
    simulated = [Paragraph(SIMULATED_LINE, fit="keep")] * _is_simulated(workers)
    opening = (*simulated, Paragraph(f"rmm_uvm: {_watched(workers)}", fit="keep"))
    parts = (Section("", tuple(part)) for part in (blocks, _table(workers), _silent(workers)))
    return Document(tuple(part for part in parts if part.blocks), opening)


def page(workers: Sequence[WorkerRecording], made: str, scheduler: str) -> Document:
    """Return the page.

    Parameters
    ----------
    workers : sequence of WorkerRecording
        In the order in which they are shown.
    made : str
        Date and time, ISO 8601, UTC; empty if not known.
    scheduler : str
        Its address; empty if not known.

    Raises
    ------
    AvailabilityError
        What charts need is not installed.
    """
    sums = [sums_of(worker) for worker in workers]
    n_devices = sum(len(w.recording.devices) for w in workers if w.recording is not None)
    at = f" at {words.plain_name(scheduler)}" if scheduler else ""
    when = f"; gathered {made}" if made else ""
    text = _watched(workers)
    simulated = _is_simulated(workers)
    advice = Tasks(tuple(_task(one) for one in cluster_advice(workers)))
    verdict = Paragraph(cluster_verdict(workers), "verdict")
    rows = tuple(_row(number, one) for number, one in enumerate(sums))
    table = Table(titled(_TITLES), rows, "Figures of every worker")
    each = (_worker(number, worker, n_devices) for number, worker in enumerate(workers))
    return Document(
        title="Cluster memory report" + (" (simulated)" if simulated else ""),
        opening=(
            *[SIMULATED] * simulated,
            Paragraph(f"{text[0].upper()}{text[1:]}{at}{when}."),
        ),
        sections=(
            Section("What to do", (advice if advice.items else verdict,), "advice"),
            Section("All workers", (*charts(sums), table), "workers"),
            Section("Each worker", (Paragraph(_HINT, "hint"), *each), "each"),
        ),
    )


def _watched(workers: Sequence[WorkerRecording]) -> str:
    """Return how many workers there are, and for how long they were watched."""
    text = f"cluster of {len(workers)} worker{'s' * (len(workers) != 1)}"
    seconds = [w.recording.duration_seconds for w in workers if w.recording is not None]
    if silent := len(workers) - len(seconds):
        text += f", {silent} without figures"
    if seconds:
        least, most = words.clock_text(min(seconds)), words.clock_text(max(seconds))
        text += f", watched for {most}" if least == most else f", watched for {least} to {most}"
    return text


def _is_simulated(workers: Sequence[WorkerRecording]) -> bool:
    return any(w.recording is not None and w.recording.simulated for w in workers)


def _table(workers: Sequence[WorkerRecording]) -> Iterator[Block]:
    told = [sums_of(worker) for worker in workers if worker.recording is not None]
    if not told:
        return
    columns = _COLUMNS
    if any(one.overflow_bytes for one in told):
        columns = (*_COLUMNS[:-1], _OVERFLOW)  # what is evicted went to the host
    rows = []
    for one in told[:_MOST_WORKERS]:
        cells = _cells(one)
        rows.append((words.plain_name(one.name, 40), *(cells[title] for title, _ in columns)))
    name = TableColumn("worker", right=False, width=_NAME_WIDTH, most=_NAME_WIDTH - 1)
    others = (TableColumn(title, width=width) for title, width in columns)
    yield Table((name, *others), tuple(rows))
    if (more := len(told) - _MOST_WORKERS) > 0:
        yield Paragraph(f"and {more} more workers")


def _silent(workers: Sequence[WorkerRecording]) -> Iterator[Paragraph]:
    silent = [worker for worker in workers if worker.recording is None]
    for worker in silent[:_MOST_WORKERS]:
        name, reason = words.plain_name(worker.name, 40), words.plain_name(worker.reason, 200)
        yield Paragraph(f"worker {name}: no figures: {reason}", indent="  ")
    if (more := len(silent) - _MOST_WORKERS) > 0:
        yield Paragraph(f"and {more} more workers without figures")


def _task(one: ClusterAdvice) -> Task:
    names = [words.plain_name(name, 40) for name in one.workers[:_MOST_NAMED]]
    more = f" and {len(one.workers) - len(names)} more" if len(one.workers) > len(names) else ""
    return Task(
        words.plain_name(one.remedy, 300),
        words.plain_name(one.message, 400),
        # The message names the worst.
        f"workers {', '.join(names)}{more}" if len(one.workers) > 1 else "",
    )


def _cells(one: WorkerSums) -> dict[str, str]:
    """Return the figures of a worker that every form of a report has, by their short titles."""
    return {
        "footprint": words.size(one.peak_footprint_bytes),
        "factor": words.factor(one.peak_footprint_bytes, one.capacity_bytes or 0),
        "to device": words.size(one.figures.host_to_device_bytes),
        "to host": words.size(one.figures.device_to_host_bytes),
        "evicted": words.size(one.figures.evicted_bytes_estimate),
        "overflow": words.size(int(one.overflow_bytes)),
    }


def _row(number: int, one: WorkerSums) -> tuple[Words, ...]:
    worker, pool, cells = one.worker, one.worker.ipc_pool_bytes, _cells(one)
    name = Span(words.plain_name(worker.name, 60), link=f"worker-{number}")
    if worker.reason:
        return name, f"no figures: {words.plain_name(worker.reason, 300)}"
    return (
        name,
        cells["footprint"],
        Span(cells["factor"], "alarming" if (one.factor or 0.0) > 1.0 else ""),
        *(cells[title] for title in ("to device", "to host", "evicted")),
        "none" if pool == 0 else words.size(pool),
        words.size(int(one.between_bytes)),
        Span(cells["overflow"], "alarming" if one.overflow_bytes else ""),
        words.clock_text(one.waited_seconds),
    )


def _worker(number: int, worker: WorkerRecording, n_devices: int) -> Section:
    """Return the folded section of one worker: its own report."""
    recording, name = worker.recording, f"worker-{number}"
    where = words.plain_name(worker.address, 100)
    blocks: tuple[Block, ...]
    if recording is None:
        blocks = (Paragraph(f"No figures: {words.plain_name(worker.reason, 300)}."),)
    else:
        if recording.devices:
            devices = (words.plain_name(device.name, 40) for device in recording.devices)
            where += f": {', '.join(devices)}"
        text = watched_by_one(recording)
        if worker.samples_total > len(recording.samples):
            text += f" {_LIGHTENED.format(worker.samples_total)}"
        own = sections(recording, n_devices, f"{name}-")
        blocks = (Paragraph(text), *advised(recording), *own)
    title = f"Worker {words.plain_name(worker.name, 60)}"
    return Section(title, blocks, name, where=where, is_folded=True)
