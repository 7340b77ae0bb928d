# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""RMM's own logs as traces: what `rmm.mr.LoggingResourceAdaptor` writes.

A log is text with one line for each allocation, free and failed allocation. Times are times of the
day; a log may run past midnight, though not stand still for half a day.
"""

from __future__ import annotations

import array
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rmm_uvm.errors import DataError
from rmm_uvm.trace.chunks import open_regular
from rmm_uvm.trace.events import EVENT_DTYPE, EventKind
from rmm_uvm.trace.trace import Trace
from rmm_uvm.watch.sample import SAMPLE_DTYPE

__all__ = ["read_rmm_log"]

_HEADER = b"Thread,Time,Action,Pointer,Size,Stream"
_KINDS = {
    b"allocate": EventKind.ALLOCATE,
    b"free": EventKind.FREE,
    b"allocate failure": EventKind.ALLOCATE_FAILED,
}
_DEVICE = re.compile(r"\.dev(\d{1,4})(?=\.|$)")
_LONGEST_LINE_BYTES = 512
_BLOCK_BYTES = 1 << 20
_DAY_NS = 24 * 3600 * 10**9


def read_rmm_log(path: str | os.PathLike[str]) -> Trace:
    """Read a log of RMM's `LoggingResourceAdaptor`.

    Parameters
    ----------
    path : str or path-like
        One file; the device is the number in ".dev0." of its name, else 0. Or the name that RMM
        was given, to which it added that: then the logs of all devices are read.

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
    if not isinstance(path, (str, os.PathLike)):
        raise DataError(f"the log {path!r} cannot be read: the name of a file is needed")
    logs = [_Log(one) for one in _files(Path(path))]
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


def _files(path: Path) -> list[Path]:
    try:
        if not path.exists():
            pattern = re.compile(
                f"{re.escape(path.stem)}{_DEVICE.pattern}{re.escape(path.suffix)}$"
            )
            named = sorted(one for one in path.parent.iterdir() if pattern.match(one.name))
            return named or [path]
    except OSError:
        pass  # opening says why
    return [path]


def _number_anew(logs: list[_Log], events: np.ndarray[Any, np.dtype[np.void]]) -> None:
    """Let allocations be counted over all logs, one log after the other."""
    begin = base = 0
    for log in logs:
        part = events[begin : begin + len(log.events)]
        part["id"] += np.where(part["id"] >= 0, base, 0)
        begin += len(part)
        base += log.allocations


class _Log:
    """One file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.truncated = False
        self.damaged = ""
        self.allocations = 0
        match = _DEVICE.search(path.name)
        self._device_id = int(match[1]) if match else 0
        self._columns = {name: array.array("Q") for name in ("time", "address", "bytes", "stream")}
        self._ids, self._threads, self._kinds = (array.array(code) for code in "qIB")
        self._live: dict[int, int] = {}
        self._time_ns = self._day_ns = 0
        with open_regular(path, "the log") as file:
            self._read(file)
        self.events = self._rows()

    def _read(self, file: BinaryIO) -> None:
        lines = _lines(file)
        if next(lines, (b"", True))[0] != _HEADER:
            raise DataError(
                f"{self.path} is not a log of RMM's LoggingResourceAdaptor: its first line is not "
                f"{_HEADER.decode()}"
            )
        bad, first_bad = 0, 0
        for number, (line, ended) in enumerate(lines, 2):
            try:
                self._take(line)
            except (ValueError, KeyError, OverflowError):
                if not ended:
                    self.truncated = True
                elif line:
                    bad += 1
                    first_bad = first_bad or number
        if bad:
            self.damaged = f"{self.path.name}: line {first_bad} was not understood"
            if bad > 1:
                self.damaged = (
                    f"{self.path.name}: {bad} lines were not understood, the first is line "
                    f"{first_bad}"
                )

    def _take(self, line: bytes) -> None:
        thread, time, action, pointer, size, stream = line.split(b",")
        kind = _KINDS[action]
        values = (_number(thread), _number(pointer), _number(size), _number(stream))
        if values[0] >= 1 << 32 or max(values) >= 1 << 64:
            raise OverflowError
        time_ns = self._time(time)
        self._columns["time"].append(time_ns)
        self._columns["address"].append(values[1])
        self._columns["bytes"].append(values[2])
        self._columns["stream"].append(values[3])
        self._threads.append(values[0])
        self._kinds.append(kind)
        self._ids.append(self._id(kind, values[1]))

    def _id(self, kind: EventKind, address: int) -> int:
        if kind == EventKind.FREE:
            return self._live.pop(address, -1)
        if kind == EventKind.ALLOCATE_FAILED:
            return -1
        self._live[address] = number = self.allocations
        self.allocations += 1
        return number

    def _time(self, text: bytes) -> int:
        # 11:36:33.123456; RMM before 0.15 wrote a colon before the microseconds.
        if len(text) != 15 or not text[9:].isdigit():
            raise ValueError(text)
        hours, minutes, seconds = int(text[0:2]), int(text[3:5]), int(text[6:8])
        if min(hours, minutes, seconds) < 0 or hours > 23 or minutes > 59 or seconds > 60:
            raise ValueError(text)
        found = (
            self._day_ns + (hours * 3600 + minutes * 60 + seconds) * 10**9 + int(text[9:]) * 1000
        )
        if found < self._time_ns - _DAY_NS // 2:
            self._day_ns += _DAY_NS
            found += _DAY_NS
        self._time_ns = max(found, self._time_ns)
        return self._time_ns

    def _rows(self) -> np.ndarray[Any, np.dtype[np.void]]:
        events = np.zeros(len(self._kinds), EVENT_DTYPE)
        for name, column in self._columns.items():
            events["time_ns" if name == "time" else name] = np.frombuffer(column, np.uint64)
        events["id"] = np.frombuffer(self._ids, np.int64)
        events["thread"] = np.frombuffer(self._threads, np.uint32)
        events["kind"] = np.frombuffer(self._kinds, np.uint8)
        events["device_id"] = self._device_id
        return events


def _number(text: bytes) -> int:
    if text.startswith(b"0x"):
        return int(text[2:], 16)
    if text == b"(nil)":
        return 0
    if not text.isdigit():  # int() takes signs, spaces and underscores
        raise ValueError(text)
    return int(text)


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield each line, and whether it ended; of one that is too long only the begin."""
    rest = b""
    while block := file.read(_BLOCK_BYTES):
        lines = (rest + block).split(b"\n")
        rest = lines.pop()[: _LONGEST_LINE_BYTES + 1]
        for line in lines:
            yield line[: _LONGEST_LINE_BYTES + 1].rstrip(b"\r"), True
    if rest:
        yield rest, False
