# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reading traces: whole, or chunk by chunk where they are too large for that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from rmm_uvm.errors import DataError
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.trace.contents import Trace
from rmm_uvm.trace.events import EVENT_DTYPE
from rmm_uvm.trace.marks import Marks
from rmm_uvm.trace.parts import TraceParts, open_parts

__all__ = ["iter_events", "read"]

Rows = np.ndarray[Any, np.dtype[np.void]]


def read(path: str | os.PathLike[str], *, most_events: int = 50_000_000) -> Trace:
    """Read a trace: up to its end, to where it is cut off, or to the first damage.

    Parameters
    ----------
    path : str or path-like
        A file that `rmm_uvm._lib.trace.TraceWriter` wrote or is still writing; gzip may have
        compressed it.
    most_events : int
        Events to read at most, >= 0, 48 bytes of memory each; more count as damage.

    Returns
    -------
    Trace
        `Trace.truncated` and `Trace.damaged` say whether something is missing.

    Raises
    ------
    DataError
        If there is no such file, it cannot be read, it is no trace or of another version, or
        memory does not suffice.

    Notes
    -----
    The file may come from anybody. Reads about a million events a second.

    Examples
    --------
    >>> read("/dev/null")
    Traceback (most recent call last):
    ...
    rmm_uvm.errors.DataError: the trace /dev/null is not a file
    """
    try:
        with open_parts(path) as parts:
            return _read(parts, most_events)
    except MemoryError:
        raise DataError(
            f"the trace {os.fspath(path)} does not fit into memory: use rmm_uvm.trace.iter_events"
        ) from None


def iter_events(path: str | os.PathLike[str]) -> Iterator[Rows]:
    """Read the events of a trace of any length, one chunk at a time.

    Stops where the trace is cut off, like `read`. Memory is that of one chunk and of what is live.

    Yields
    ------
    ndarray, shape (n_events,), dtype `EVENT_DTYPE`
        In order of time.

    Raises
    ------
    DataError
        As `read`; at damage too, after everything before it.
    """
    with open_parts(path) as parts:
        for part in parts:
            if len(part.events):
                yield part.events
        if parts.damaged:
            raise DataError(f"the trace {os.fspath(path)} is damaged: {parts.damaged}")


def _read(parts: TraceParts, most_events: int) -> Trace:
    marks = Marks()
    events, samples, count = [], [], 0
    for part in parts:
        events.append(part.events[: most_events - count])
        samples.append(part.samples)
        marks.add(part.marks)
        count += len(part.events)
        if count > most_events:
            parts.damage(f"there are more than {most_events} events; iter_events has no limit")
            break
    return Trace(
        events=np.concatenate(events) if events else np.empty(0, EVENT_DTYPE),
        samples=np.concatenate(samples) if samples else np.empty(0, SAMPLE_DTYPE),
        stages=marks.stages(),
        annotations=tuple(marks.annotations),
        facts=parts.facts,
        truncated=parts.truncated,
        damaged=parts.damaged,
        dropped=parts.dropped,
    )
