# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""RMM's own logs as traces: what `rmm.mr.LoggingResourceAdaptor` writes.

A log is text with one line for each allocation, free and failed allocation. Times are times of the
day; a log may run past midnight, though not stand still for half a day.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.trace.contents import Trace
from rmm_uvm.trace.events import EVENT_DTYPE, EventKind
from rmm_uvm.trace.log_parts import log_files, open_log

__all__ = ["read_rmm_log"]


def read_rmm_log(path: str | os.PathLike[str]) -> Trace:
    """Read a log of `rmm.mr.LoggingResourceAdaptor`.

    Parameters
    ----------
    path : str or path-like
        One file; the device is the number in ".dev0." of its name, else 0. Or the name that RMM
        was given, to which it added that: then the logs of all devices are read. Gzip may have
        compressed them.

    Returns
    -------
    Trace
        Without samples and stages. `Trace.damaged` counts lines that were not understood and
        passed over; a line cut off at the end makes it `Trace.truncated`.

    Raises
    ------
    DataError
        If there is no such file, it cannot be read, or is no such log.

    Notes
    -----
    The file may come from anybody.

    References
    ----------
    librmm 26.10, ``rmm/mr/logging_resource_adaptor.hpp``: the columns; actions and the format of
    time and pointers as RMM 26.10 writes them.
    """
    logs = [_Log(one) for one in log_files(path)]
    events = np.concatenate([log.events for log in logs])
    if len(logs) > 1:
        _number_anew(logs, events)
        events = events[events["time_ns"].argsort(kind="stable")]
    if len(events):
        events["time_ns"] -= events["time_ns"].min()
    return Trace(
        events=events,
        samples=np.empty(0, SAMPLE_DTYPE),
        facts={"source": "RMM", "files": [log.path.name for log in logs]},
        truncated=any(log.truncated for log in logs),
        damaged="; ".join(log.damaged for log in logs if log.damaged),
    )


def _number_anew(logs: list[_Log], events: np.ndarray[Any, np.dtype[np.void]]) -> None:
    """Let allocations be counted over all logs, one log after the other."""
    begin = base = 0
    for log in logs:
        part = events[begin : begin + len(log.events)]
        part["id"] += np.where(part["id"] >= 0, base, 0)
        begin += len(part)
        base += log.allocations


class _Log:
    """One file, whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_log(path) as parts:
            found = [part.events for part in parts]
        self.events = np.concatenate(found) if found else np.empty(0, EVENT_DTYPE)
        self.truncated, self.damaged = parts.truncated, parts.damaged
        self.allocations = int((self.events["kind"] == EventKind.ALLOCATE).sum())
