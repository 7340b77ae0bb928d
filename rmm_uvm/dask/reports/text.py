# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The summary of a cluster for a terminal: 80 columns, advice first, a line for each worker."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from rmm_uvm.dask.reports.advice import (
    ClusterAdvice,
    WorkerSums,
    cluster_advice,
    cluster_verdict,
    sums_of,
)
from rmm_uvm.dask.reports.worker_recording import WorkerRecording
from rmm_uvm.report import words

__all__ = ["summary", "watched"]

_WIDTH = 80
_MOST_ADVICE = 5
_MOST_WORKERS = 16
_NAME_WIDTH = 14
_COLUMNS = (("footprint", 12), ("factor", 7), ("to device", 12), ("to host", 12), ("evicted", 12))
_OVERFLOW = ("overflow", 11)


def summary(workers: Sequence[WorkerRecording]) -> str:
    """Return the summary as text, without a newline at its end."""
    advice = cluster_advice(workers)
    lines = [*_head(workers), ""]
    if not advice:
        lines.append(cluster_verdict(workers))
    for number, one in enumerate(advice[:_MOST_ADVICE], start=1):
        lines += _one_advice(number, one)
    if more := len(advice) - _MOST_ADVICE:
        lines += [f"   and {more} more in the HTML report"] if more > 0 else []
    told = [sums_of(worker) for worker in workers if worker.recording is not None]
    if told:
        lines += ["", *_table(told)]
    silent = [worker for worker in workers if worker.recording is None]
    lines += [""] * bool(silent)
    for worker in silent[:_MOST_WORKERS]:
        reason = words.plain_name(worker.reason, 200)
        lines += _wrapped(f"worker {words.plain_name(worker.name, 40)}: no figures: {reason}", "  ")
    if more := len(silent) - _MOST_WORKERS:
        lines += [f"and {more} more workers without figures"] if more > 0 else []
    return "\n".join(line.rstrip() for line in lines)


def watched(workers: Sequence[WorkerRecording]) -> str:
    """Return how many workers there are, and for how long they were watched."""
    text = f"cluster of {len(workers)} worker{'s' * (len(workers) != 1)}"
    seconds = [w.recording.duration_seconds for w in workers if w.recording is not None]
    if silent := len(workers) - len(seconds):
        text += f", {silent} without figures"
    if seconds:
        least, most = words.clock_text(min(seconds)), words.clock_text(max(seconds))
        text += f", watched for {most}" if least == most else f", watched for {least} to {most}"
    return text


def _head(workers: Sequence[WorkerRecording]) -> list[str]:
    simulated = any(w.recording is not None and w.recording.simulated for w in workers)
    lines = ["rmm_uvm: simulated: residency is modelled, nothing ran on a GPU"]
    return [*lines[:simulated], f"rmm_uvm: {watched(workers)}"]


def _one_advice(number: int, advice: ClusterAdvice) -> list[str]:
    remedy = words.plain_name(advice.remedy, 200)
    message = words.plain_name(advice.message, 400)
    return [
        *_wrapped(f"{number}. {remedy}", "   "),
        *(f"   {line}" for line in textwrap.wrap(message, _WIDTH - 3)),
    ]


def _table(told: Sequence[WorkerSums]) -> list[str]:
    columns = _COLUMNS
    if any(one.overflow_bytes for one in told):
        columns = (*_COLUMNS[:-1], _OVERFLOW)  # what is evicted went to the host
    header = "".join(f"{name:>{width}}" for name, width in columns)
    lines = [set_cell_size("worker", _NAME_WIDTH) + header]
    for one in told[:_MOST_WORKERS]:
        figures = one.figures
        cells = {
            "footprint": words.size(one.peak_footprint_bytes),
            "factor": words.UNKNOWN if one.factor is None else f"{one.factor:.2f}",
            "to device": words.size(figures.host_to_device_bytes),
            "to host": words.size(figures.device_to_host_bytes),
            "evicted": words.size(figures.evicted_bytes_estimate),
            "overflow": words.size(int(one.overflow_bytes)),
        }
        name = words.plain_name(one.name, 40)
        if cell_len(name) > _NAME_WIDTH - 1:
            name = set_cell_size(name, _NAME_WIDTH - 2) + "…"
        row = "".join(f"{cells[column]:>{width}}" for column, width in columns)
        lines.append(set_cell_size(name, _NAME_WIDTH) + row)
    if more := len(told) - _MOST_WORKERS:
        lines += [f"and {more} more workers"] if more > 0 else []
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent)
