# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces and RMM's logs alike: events in parts, each with the number of its record or line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.errors import DataError
from rmm_uvm.trace.chunks import MAGIC, open_regular
from rmm_uvm.trace.log_lines import HEADER
from rmm_uvm.trace.reader import RawMark, TraceParts, open_parts
from rmm_uvm.trace.rmm_log import LogParts, device_of, log_files, open_log

__all__ = ["RecordedPart", "RecordingReader", "open_recording"]

Kind: TypeAlias = Literal["trace", "rmm-log"]


class RecordedPart(NamedTuple):
    """Some events of a recording.

    Attributes
    ----------
    events : ndarray, dtype `rmm_uvm.trace.EVENT_DTYPE`
        In the order in which they happened.
    numbers : ndarray
        Number of each one's record or line, from 1.
    marks : sequence
        Begins and ends of stages of the same time.
    sampled_ns : int
        Time of the latest sample among them; 0 without any.
    """

    events: np.ndarray[Any, np.dtype[np.void]]
    numbers: NDArray[np.int64]
    marks: Sequence[RawMark]
    sampled_ns: int = 0


class RecordingReader(Protocol):
    """Reads a recording from its begin to its end, once."""

    kind: Kind
    unit: str
    """What numbers count: records or lines."""
    facts: Mapping[str, Any]

    def __iter__(self) -> Iterator[RecordedPart]:
        """Yield the parts."""

    @property
    def position(self) -> tuple[int, int]:
        """How many bytes of the file have been read, and how many it has."""

    @property
    def cut_off(self) -> str:
        """After the last part: why the recording ends early; empty if it does not."""

    @property
    def remarks(self) -> list[str]:
        """After the last part: what was passed over or mended."""


class _TraceReader:
    kind: Kind = "trace"
    unit = "record"

    def __init__(self, parts: TraceParts) -> None:
        self._parts = parts
        self.facts = parts.facts

    def __iter__(self) -> Iterator[RecordedPart]:
        number = 1
        for part in self._parts:
            end = number + len(part.events)
            sampled_ns = int(part.samples["time_ns"].max(initial=0))
            yield RecordedPart(part.events, np.arange(number, end), part.marks, sampled_ns)
            number = end

    @property
    def position(self) -> tuple[int, int]:
        return self._parts.position

    @property
    def cut_off(self) -> str:
        if self._parts.damaged:
            return f"the trace is damaged: {self._parts.damaged}"
        unfinished = "the trace has no end: its program was killed, or is still running"
        return unfinished if self._parts.truncated else ""

    @property
    def remarks(self) -> list[str]:
        dropped = self._parts.dropped
        return [f"events that the writer had to drop: {dropped}"] if dropped else []


class _LogReader:
    kind: Kind = "rmm-log"
    unit = "line"

    def __init__(self, parts: LogParts) -> None:
        self._parts = parts
        self.facts: Mapping[str, Any] = {}

    def __iter__(self) -> Iterator[RecordedPart]:
        for part in self._parts:
            yield RecordedPart(part.events, part.lines, ())

    @property
    def position(self) -> tuple[int, int]:
        return self._parts.position

    @property
    def cut_off(self) -> str:
        if self._parts.packing_wrong:
            return self._parts.packing_wrong
        return "the last line is cut off" if self._parts.truncated else ""

    @property
    def remarks(self) -> list[str]:
        set_back = self._parts.times_set_back
        late = f"times more than a second before the line above: {set_back}"
        bad = self._parts.bad_lines
        return [*([bad] if bad else []), *([late] if set_back else [])]


@contextlib.contextmanager
def open_recording(
    path: str | os.PathLike[str], device: int | None = None
) -> Iterator[RecordingReader]:
    """Open a trace or a log, whichever it is; gzip may have compressed it.

    Parameters
    ----------
    path : str or path-like
        Or, of a log, the name that RMM was given and to which it added the device.
    device : int, optional
        Which of several logs.

    Raises
    ------
    DataError
        If it cannot be read, is neither, or there are logs of several devices and `device` is not
        one of them.
    """
    file = _chosen(log_files(path), device)
    with open_regular(file, "the file") as opened:
        begin = opened.read(len(HEADER))
        wrong = opened.wrong
    if not begin:
        raise DataError(f"{file} cannot be read: {wrong}" if wrong else f"{file} is empty")
    if MAGIC.startswith(begin[: len(MAGIC)]):
        with open_parts(file) as trace:
            yield _TraceReader(trace)
    elif HEADER.startswith(begin):
        with open_log(file) as log:
            yield _LogReader(log)
    else:
        raise DataError(
            f"{file} is neither a trace of rmm_uvm nor a log of RMM's LoggingResourceAdaptor: "
            "record a run with `rmm-uvm run --trace FILE`"
        )


def _chosen(files: list[Path], device: int | None) -> Path:
    if len(files) == 1:
        return files[0]
    for file in files:
        if device_of(file) == device:
            return file
    there = ", ".join(str(device_of(file)) for file in files)
    raise DataError(
        f"there are logs of the devices {there} beside {files[0]}: choose one with device="
        + ("" if device is None else f"; {device} is none of them")
    )
