# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a cluster: one file; the workers' own charts are drawn when they are opened.

Drawing those of 16 workers at once takes a browser many seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rmm_uvm.dask.reports.advice import (
    ClusterAdvice,
    WorkerSums,
    cluster_advice,
    cluster_verdict,
    sums_of,
)
from rmm_uvm.dask.reports.text import watched
from rmm_uvm.dask.reports.worker_recording import WorkerRecording
from rmm_uvm.errors import AvailabilityError
from rmm_uvm.report import template, words
from rmm_uvm.report.contents import contents
from rmm_uvm.report.page import drawn, placed

__all__ = ["page"]

_HEADERS = (
    "Worker", "Peak footprint", "Of capacity", "To device", "To host", "Evicted", "IPC pool",
    "Between workers", "Overflow", "Waited",
)  # fmt: skip
_MOST_NAMED = 8

# Charts of a closed section have no width to be drawn in. One may be opened before they are there.
_OPENING = """
const rmmUvmCharts = {};
const rmmUvmChartsOf = (id, draw) => {
  if (document.getElementById(id).open) draw(); else rmmUvmCharts[id] = draw;
};
addEventListener("toggle", (event) => {
  const draw = rmmUvmCharts[event.target.id];
  if (!event.target.open || !draw) return;
  delete rmmUvmCharts[event.target.id];
  draw();
}, true);
addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  const section = link && document.getElementById(link.hash.slice(1));
  if (section) section.open = true;
});
const rmmUvmNamed = document.getElementById(location.hash.slice(1));
if (rmmUvmNamed instanceof HTMLDetailsElement) rmmUvmNamed.open = true;
"""


def page(workers: Sequence[WorkerRecording], made: str, scheduler: str) -> str:
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
        Bokeh is not installed.
    """
    from rmm_uvm.dask.reports.charts import charts

    sums = [sums_of(worker) for worker in workers]
    try:
        script, shown = placed({0: charts(sums)})
    except ImportError as error:
        raise AvailabilityError(template.INSTALL_HINT) from error
    n_devices = sum(len(w.recording.devices) for w in workers if w.recording is not None)
    scripts = [script]
    described = []
    for number, one in enumerate(sums):
        own, drawing = _own(one.worker, n_devices)
        described.append(_described(number, one, own))
        if drawing:
            scripts.append(f"rmmUvmChartsOf('worker-{number}', () => {{{drawing}}});")
    simulated = any(w.recording is not None and w.recording.simulated for w in workers)
    variables = {
        "title": "Cluster memory report" + (" (simulated)" if simulated else ""),
        "simulated": simulated,
        "watched": _watched(workers, made, scheduler),
        "advice": [_advice(one) for one in cluster_advice(workers)],
        "verdict": cluster_verdict(workers),
        "charts": shown[0],
        "headers": _HEADERS,
        "workers": described,
    }
    charted = [one for one in scripts if one]
    scripts = [_OPENING]
    if charted:  # the library is a million letters
        library, quiet, printing = template.library()
        scripts = [library, quiet, _OPENING, *charted, printing]
    return template.render("cluster_page.html", variables, scripts, package="rmm_uvm.dask.reports")


def _own(worker: WorkerRecording, n_devices: int) -> tuple[dict[str, Any] | None, str]:
    """Return what a worker's own section shows, and the script that draws its charts."""
    if worker.recording is None:
        return None, ""
    script, shown = placed(drawn(worker.recording, n_devices))
    return contents(worker.recording, shown), script


def _watched(workers: Sequence[WorkerRecording], made: str, scheduler: str) -> str:
    text = watched(workers)
    text = text[0].upper() + text[1:]
    at = f" at {words.plain_name(scheduler)}" if scheduler else ""
    when = f"; gathered {made}" if made else ""
    return f"{text}{at}{when}."


def _advice(one: ClusterAdvice) -> dict[str, str]:
    names = [words.plain_name(name, 40) for name in one.workers[:_MOST_NAMED]]
    more = f" and {len(one.workers) - len(names)} more" if len(one.workers) > len(names) else ""
    return {
        "remedy": words.plain_name(one.remedy, 300),
        "message": words.plain_name(one.message, 400),
        # The message names the worst.
        "when": f"workers {', '.join(names)}{more}" if len(one.workers) > 1 else "",
    }


def _described(number: int, one: WorkerSums, own: dict[str, Any] | None) -> dict[str, Any]:
    worker = one.worker
    devices = () if worker.recording is None else worker.recording.devices
    names = ", ".join(words.plain_name(device.name, 40) for device in devices)
    address = words.plain_name(worker.address, 100)
    kept = 0 if worker.recording is None else len(worker.recording.samples)
    return {
        "id": f"worker-{number}",
        "prefix": f"worker-{number}-",
        "name": words.plain_name(worker.name, 60),
        "where": f"{address}: {names}" if names else address,
        "reason": words.plain_name(worker.reason, 300) if worker.reason else "",
        "cells": _cells(one),
        "own": own,
        "lightened": f"{worker.samples_total:,}" if worker.samples_total > kept else "",
    }


def _cells(one: WorkerSums) -> list[tuple[str, bool]]:
    """Return the cells of a worker's row, each with whether it is alarming."""
    figures, pool = one.figures, one.worker.ipc_pool_bytes
    factor = words.UNKNOWN if one.factor is None else f"{one.factor:.2f}"
    return [
        (words.size(one.peak_footprint_bytes), False),
        (factor, (one.factor or 0.0) > 1.0),
        (words.size(figures.host_to_device_bytes), False),
        (words.size(figures.device_to_host_bytes), False),
        (words.size(figures.evicted_bytes_estimate), False),
        ("none" if pool == 0 else words.size(pool), False),
        (words.size(int(one.between_bytes)), False),
        (words.size(int(one.overflow_bytes)), bool(one.overflow_bytes)),
        (words.clock_text(one.waited_seconds), False),
    ]
