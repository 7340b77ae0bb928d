# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Clusters made up for tests: what their workers sent."""

from __future__ import annotations

import dataclasses
from typing import Any

from rmm_uvm.dask.reports.worker_recording import WorkerRecording
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report.lighter import lighter

from ...report import recordings

GIB = 1 << 30


def worker(name: str = "0", recording: Recording | None = None, **more: Any) -> WorkerRecording:
    """Return a worker; its address ends in its name."""
    given: dict[str, Any] = {"ipc_pool_bytes": GIB // 4, "comm": {}, "host": "10.0.0.1"}
    given |= {} if recording is not None else {"reason": "it left"}
    return WorkerRecording(f"tcp://10.0.0.1:{name}", name, recording=recording, **(given | more))


def run(most_factor: float, n_samples: int = 300, **more: Any) -> Recording:
    """Return a run on one device whose footprint swells to some factor of its capacity."""
    one = recordings.device()
    samples = recordings.samples_of(one, n_samples, 0.1, most_factor=most_factor)
    return recordings._recording((one,), samples, **more)


def even(n_workers: int = 3, most_factor: float = 0.6) -> list[WorkerRecording]:
    return [worker(str(number), run(most_factor)) for number in range(n_workers)]


def hour(n_workers: int = 16) -> list[WorkerRecording]:
    """Return workers that were watched for an hour, ten samples a second."""
    whole = dataclasses.replace(
        run(1.5, 36_000), findings=recordings.findings_of(), stages=recordings.stages_of(3600.0)
    )
    light = lighter(whole)
    return [worker(str(n), light, samples_total=len(whole.samples)) for n in range(n_workers)]


def hostile() -> list[WorkerRecording]:
    """Return workers whose names and reasons want to be something else than text."""
    names = recordings.HOSTILE
    told = [worker(name, recordings.hostile()) for name in names[:4]]
    return told + [worker(name, reason=name) for name in names]
