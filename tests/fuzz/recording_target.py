# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of other processes: of what is accepted every report can be made."""

from __future__ import annotations

import json
import struct
import tempfile
from pathlib import Path
from typing import Any

from rmm_uvm.dask.reports.gathered import ClusterReport
from rmm_uvm.dask.reports.worker_recording import WorkerRecording, unpacked
from rmm_uvm.recording.as_json import plain, restored
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.report import Report
from rmm_uvm.run import handover, summary

from .promises import FOLDER, Finding, attempted, check_shown

_LAYOUT = str(SAMPLE_DTYPE)


def recording(data: bytes) -> None:
    """Read a recording, as a watched program leaves it or as a worker sends it.

    The first byte says which: "r" or, with its page, "h"; "w" or, with the page of the cluster,
    "c". Then come facts as JSON, a byte of zero, and raw samples.
    """
    kind = data[:1]
    facts, _, samples = data[1:].partition(b"\0")
    if kind in (b"w", b"c"):
        facts = _with_layout(facts, "recording")
        told = attempted(lambda: unpacked(struct.pack("<Q", len(facts)) + facts + samples))
        if told is not None:
            worker = WorkerRecording("tcp://10.0.0.1:5", "0", "10.0.0.1", **told)
            silent = WorkerRecording("tcp://10.0.0.2:5", "1", "10.0.0.2", reason="it left")
            _check(ClusterReport([worker, silent, worker]), page=kind == b"c")
        return
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        (folder / "recording.json").write_bytes(_with_layout(facts))
        (folder / "samples.raw").write_bytes(samples)
        found = attempted(lambda: handover.load(folder))
    if found is None:
        return
    _check_same(found)
    check_shown(summary.most_allocated(found))
    _check(Report(found), page=kind == b"h")


def _with_layout(facts: bytes, within: str = "") -> bytes:
    """Return facts that name the right layout, where none is named: chance would never find it."""
    try:
        told = json.loads(facts)
        (told[within] if within else told).setdefault("layout", _LAYOUT)
        return json.dumps(told).encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return facts


def _check_same(found: Recording) -> None:
    values: dict[str, Any] = json.loads(json.dumps(plain(found)))
    again = restored(values, found.samples.tobytes())
    if json.dumps(plain(again)) != json.dumps(plain(found)):
        raise Finding(f"{found} is another recording after it was handed over")


def _check(report: Report | ClusterReport, *, page: bool) -> None:
    check_shown(str(report))
    json.loads(report.to_json())
    if page:
        report.html().encode()
