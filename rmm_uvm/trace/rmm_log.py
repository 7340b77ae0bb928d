# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""RMM's own logs as traces: what `rmm.mr.LoggingResourceAdaptor` writes.

A log is text with one line for each allocation, free and failed allocation. Times are times of the
day; a log may run past midnight, though not stand still for half a day.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmm_uvm._lib.trace import LiveRanges
from rmm_uvm.errors import DataError
from rmm_uvm.recording.sample import SAMPLE_DTYPE
from rmm_uvm.trace.chunks import open_regular
from rmm_uvm.trace.compressed import Bytes
from rmm_uvm.trace.contents import Trace
from rmm_uvm.trace.events import EVENT_DTYPE, EventKind, joined, on_its_own
from rmm_uvm.trace.log_lines import HEADER, Lines, parse_lines, why_bad

__all__ = ["LogPart", "LogParts", "device_of", "log_files", "open_log", "read_rmm_log"]

_DEVICE = re.compile(r"\.dev(\d{1,4})(?=\.|$)")
_LONGEST_LINE_BYTES = 512
_BLOCK_BYTES = 1 << 20
_SECOND_NS = 10**9
_DAY_NS = 24 * 3600 * _SECOND_NS
_LONGEST_NS = 3650 * _DAY_NS  # later midnights are not believed: numbers stay inside 64 bits


class LogPart(NamedTuple):
    """The contents of one block of lines.

    Attributes
    ----------
    events : ndarray, dtype `rmm_uvm.trace.EVENT_DTYPE`
        In the order of the lines; times never go back and count from the first day's midnight.
    lines : ndarray
        The line of each, counted from 1.
    """

    events: np.ndarray[Any, np.dtype[np.void]]
    lines: NDArray[np.int64]


class LogParts:
    """Reads an open log.

    Attributes
    ----------
    truncated : bool
        After iterating: the last line is cut off.
    times_set_back : int
        After iterating: lines whose time was more than a second before that of the line above.
        Threads write out of order, but by microseconds; the order of lines is right all the same.

    Raises
    ------
    DataError
        If it is no such log.
    """

    def __init__(self, file: Bytes, path: Path) -> None:
        self._file = file
        self._path = path
        self.truncated = False
        self.times_set_back = 0
        self._latest_ns = self._day_ns = 0
        self._bad = self._first_bad = 0
        self._why_bad = ""
        self._device_id = device_of(path)
        self._live = LiveRanges()
        begin = file.read(len(HEADER) + 2)
        rest = begin.removeprefix(HEADER).lstrip(b"\r")
        if not begin.startswith(HEADER) or rest[:1] not in (b"", b"\n"):
            raise DataError(
                f"{path} is not a log of RMM's LoggingResourceAdaptor: its first line is not "
                f"{HEADER.decode()}"
            )
        self._rest = rest[1:]

    def __iter__(self) -> Iterator[LogPart]:
        begin = 2
        while block := self._file.read(_BLOCK_BYTES):
            whole, feed, rest = (self._rest + block).rpartition(b"\n")
            # Of a line that is too long the begin suffices to see that it makes no sense.
            self._rest = rest[: _LONGEST_LINE_BYTES + 1]
            lines = parse_lines(whole + feed)
            self._count_bad(lines.bad, begin, whole)
            yield self._part(lines, begin)
            begin += lines.total
        if self._rest:
            lines = parse_lines(self._rest + b"\n")
            self.truncated = len(lines.bad) > 0
            yield self._part(lines, begin)
        self.truncated |= bool(self._file.wrong)

    @property
    def bad_lines(self) -> str:
        """Which lines were not understood and passed over; empty if none."""
        first = f"line {self._first_bad}"
        if self._bad > 1:
            return f"{self._bad} lines were not understood, the first is {first} ({self._why_bad})"
        return f"{first} was not understood ({self._why_bad})" if self._bad else ""

    @property
    def packing_wrong(self) -> str:
        """The fault of the compressed file; empty if there is none."""
        return self._file.wrong

    @property
    def damaged(self) -> str:
        """All that is wrong, with the name of the file; empty if nothing."""
        reasons = [reason for reason in (self.bad_lines, self.packing_wrong) if reason]
        return "; ".join(f"{self._path.name}: {reason}" for reason in reasons)

    @property
    def position(self) -> tuple[int, int]:
        """How many bytes of the file have been read, and how many it has."""
        return self._file.file_position, self._file.file_bytes

    def _part(self, lines: Lines, begin: int) -> LogPart:
        events = lines.events
        events["time_ns"] = self._times(events["time_ns"].astype(np.int64))
        events["device_id"] = self._device_id
        followed = np.frombuffer(self._live.follow(events.tobytes()), EVENT_DTYPE)
        return LogPart(followed, lines.numbers + begin)

    def _times(self, times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return times that go on past midnight, and never back."""
        times_ns += self._day_ns
        while True:
            latest = np.maximum.accumulate(np.concatenate(([self._latest_ns], times_ns)))
            midnights = np.flatnonzero(times_ns < latest[:-1] - _DAY_NS // 2)
            if not len(midnights) or self._day_ns >= _LONGEST_NS:
                break
            times_ns[midnights[0] :] += _DAY_NS
            self._day_ns += _DAY_NS
        self.times_set_back += int((times_ns < latest[:-1] - _SECOND_NS).sum())
        self._latest_ns = int(latest[-1])
        return latest[1:]

    def _count_bad(self, lines: NDArray[np.int64], begin: int, text: bytes) -> None:
        if len(lines) and not self._bad:
            self._first_bad = int(lines[0]) + begin
            line = text.split(b"\n")[lines[0]]
            self._why_bad = why_bad(line[:_LONGEST_LINE_BYTES])
        self._bad += len(lines)


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[LogParts]:
    """Open one log, compressed or not. Raises as `rmm_uvm.trace.read_rmm_log`."""
    with open_regular(path, "the log") as file:
        yield LogParts(file, path)


def device_of(path: Path) -> int:
    """Return the device that RMM put into the name of a log; 0 if there is none."""
    match = _DEVICE.search(path.name)
    return int(match[1]) if match else 0


def log_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the file itself or, if there is none, those of all devices that RMM made for it.

    Raises
    ------
    DataError
        If that is not the name of a file.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise DataError(f"the log {path!r} cannot be read: the name of a file is needed")
    wanted = Path(path)
    with contextlib.suppress(OSError, ValueError):  # opening says why
        if not wanted.exists():
            pattern = re.compile(
                f"{re.escape(wanted.stem)}{_DEVICE.pattern}{re.escape(wanted.suffix)}$"
            )
            return sorted(one for one in wanted.parent.iterdir() if pattern.match(one.name)) or [
                wanted
            ]
    return [wanted]


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
    events = logs[0].events
    if len(logs) > 1:
        events = np.concatenate([log.events for log in logs])
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
            self.events = joined([on_its_own(part.events) for part in parts], EVENT_DTYPE)
        self.truncated, self.damaged = parts.truncated, parts.damaged
        self.allocations = int((self.events["kind"] == EventKind.ALLOCATE).sum())
