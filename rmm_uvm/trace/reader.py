# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reading traces: whole, or chunk by chunk where they are too large for that."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rmm_uvm._lib.trace import ChunkDecoder
from rmm_uvm.errors import DataError
from rmm_uvm.recording.recorded import Stage
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.trace.chunks import ChunkKind, Chunks, open_regular
from rmm_uvm.trace.compressed import Bytes
from rmm_uvm.trace.contents import Trace
from rmm_uvm.trace.events import EVENT_DTYPE, joined, on_its_own

__all__ = ["Marks", "RawMark", "TracePart", "TraceParts", "iter_events", "open_parts", "read"]

_BEGIN, _END, _ANNOTATION, _KERNEL = range(4)


class Marks:
    """Puts begins and ends together, thread by thread; an end without a begin is passed over.

    Attributes
    ----------
    annotations : list of (float, str)
        Seconds since the trace began, and text.
    kernels : list of (float, str)
        Seconds since the trace began, and names.
    """

    def __init__(self) -> None:
        self.annotations: list[tuple[float, str]] = []
        self.kernels: list[tuple[float, str]] = []
        self._begun: list[tuple[float, str, int, str]] = []
        self._ends: dict[int, float] = {}  # by index in _begun
        self._open: dict[int, list[int]] = {}  # indices, by thread

    def add(self, marks: Iterable[tuple[int, int, int, str, str]]) -> None:
        """Take marks in order of time: time_ns, thread, kind, name, name of the thread."""
        for time_ns, thread, kind, name, thread_name in marks:
            seconds = time_ns / 1e9
            running = self._open.setdefault(thread, [])
            if kind == _BEGIN:
                running.append(len(self._begun))
                self._begun.append((seconds, name, len(running) - 1, thread_name or str(thread)))
            elif kind == _END and running:
                self._ends[running.pop()] = seconds
            elif kind == _ANNOTATION:
                self.annotations.append((seconds, name))
            elif kind == _KERNEL:
                self.kernels.append((seconds, name))

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages in order of their begin; the end of one that runs on is NaN."""
        return tuple(
            Stage(name, begin, self._ends.get(index, math.nan), depth, thread)
            for index, (begin, name, depth, thread) in enumerate(self._begun)
        )


Rows: TypeAlias = np.ndarray[Any, np.dtype[np.void]]
RawMark: TypeAlias = tuple[int, int, int, str, str]
"""time_ns, thread, kind, name, name of the thread."""

_NO_EVENTS = np.empty(0, EVENT_DTYPE)
_NO_SAMPLES = np.empty(0, SAMPLE_DTYPE)


class TracePart(NamedTuple):
    """The contents of one chunk, each in order of time."""

    events: Rows
    marks: list[RawMark]
    samples: Rows


class TraceParts:
    """Decodes an open trace; ends where it is cut off, and at the first damage.

    Attributes
    ----------
    facts, truncated, damaged, dropped
        As of `rmm_uvm.trace.Trace`; all but the first are known after iterating.
    """

    def __init__(self, file: Bytes, path: str | os.PathLike[str]) -> None:
        self._file = file
        self._chunks = Chunks(file, path)
        self.facts: Mapping[str, Any] = self._chunks.facts

    def __iter__(self) -> Iterator[TracePart]:
        decoder = ChunkDecoder()
        for kind, payload in self._chunks:
            wrong = None
            if kind == ChunkKind.EVENTS:
                raw, marks, wrong = decoder.events(payload)
                yield TracePart(np.frombuffer(raw, EVENT_DTYPE), marks, _NO_SAMPLES)
            elif kind == ChunkKind.SAMPLES:
                raw, wrong = decoder.samples(payload)
                yield TracePart(_NO_EVENTS, [], np.frombuffer(raw, SAMPLE_DTYPE))
            if wrong is not None:
                self.damage(wrong)
                return

    def damage(self, reason: str) -> None:
        """Note what is wrong with the latest part."""
        self._chunks.damage(reason)

    @property
    def position(self) -> tuple[int, int]:
        """How many bytes of the file have been read, and how many it has."""
        return self._file.file_position, self._file.file_bytes

    @property
    def truncated(self) -> bool:
        """The end is missing."""
        return self._chunks.truncated

    @property
    def damaged(self) -> str:
        """The damage, and where it is."""
        return self._chunks.damaged

    @property
    def dropped(self) -> int:
        """Events that the writer could not record."""
        return self._chunks.dropped


@contextlib.contextmanager
def open_parts(path: str | os.PathLike[str]) -> Iterator[TraceParts]:
    """Open a trace, compressed or not. Raises as `rmm_uvm.trace.read`."""
    with open_regular(path, "the trace") as file:
        yield TraceParts(file, path)


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
        events.append(on_its_own(part.events[: most_events - count]))
        samples.append(part.samples)
        marks.add(part.marks)
        count += len(part.events)
        if count > most_events:
            parts.damage(f"there are more than {most_events} events; iter_events has no limit")
            break
    return Trace(
        events=joined(events, EVENT_DTYPE),
        samples=joined(samples, SAMPLE_DTYPE),
        stages=marks.stages(),
        annotations=tuple(marks.annotations),
        kernels=tuple(marks.kernels),
        facts=parts.facts,
        truncated=parts.truncated,
        damaged=parts.damaged,
        dropped=parts.dropped,
    )
