# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reading traces: whole, or chunk by chunk where they are too large for that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from rmm_uvm._lib.trace import ChunkDecoder
from rmm_uvm.errors import DataError
from rmm_uvm.trace.chunks import ChunkKind, Chunks, open_regular
from rmm_uvm.trace.events import EVENT_DTYPE
from rmm_uvm.trace.marks import Marks
from rmm_uvm.trace.trace import Trace
from rmm_uvm.watch.sample import SAMPLE_DTYPE

__all__ = ["iter_events", "read"]

Rows = np.ndarray[Any, np.dtype[np.void]]


def read(path: str | os.PathLike[str], *, most_events: int = 50_000_000) -> Trace:
    """Read a trace: up to its end, to where it is cut off, or to the first damage.

    Parameters
    ----------
    path : str or path-like
        A file that `rmm_uvm._lib.trace.TraceWriter` wrote or is still writing.
    most_events : int
        Events to read at most, 48 bytes of memory each; more count as damage.

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
        with open_regular(path, "the trace") as file:
            return _read(Chunks(file, path), most_events)
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
    decoder = ChunkDecoder()
    with open_regular(path, "the trace") as file:
        chunks = Chunks(file, path)
        for kind, payload in chunks:
            if kind != ChunkKind.EVENTS:
                continue
            raw, _, wrong = decoder.events(payload)
            if raw:
                yield np.frombuffer(raw, EVENT_DTYPE)
            if wrong is not None:
                chunks.damage(wrong)
                break
        if chunks.damaged:
            raise DataError(f"the trace {os.fspath(path)} is damaged: {chunks.damaged}")


def _read(chunks: Chunks, most_events: int) -> Trace:
    decoder, marks = ChunkDecoder(), Marks()
    events, samples, count = [], [], 0
    for kind, payload in chunks:
        wrong = None
        if kind == ChunkKind.EVENTS:
            raw, found, wrong = decoder.events(payload)
            events.append(np.frombuffer(raw, EVENT_DTYPE))
            count += len(events[-1])
            marks.add(found)
        elif kind == ChunkKind.SAMPLES:
            raw, wrong = decoder.samples(payload)
            samples.append(np.frombuffer(raw, SAMPLE_DTYPE))
        if wrong is None and count > most_events:
            wrong = f"there are more than {most_events} events; iter_events has no limit"
        if wrong is not None:
            chunks.damage(wrong)
            break
    return Trace(
        events=np.concatenate(events) if events else np.empty(0, EVENT_DTYPE),
        samples=np.concatenate(samples) if samples else np.empty(0, SAMPLE_DTYPE),
        stages=marks.stages(),
        annotations=tuple(marks.annotations),
        facts=chunks.facts,
        truncated=chunks.truncated,
        damaged=chunks.damaged,
        dropped=chunks.dropped,
    )
