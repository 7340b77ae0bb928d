# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a workload: from a trace of rmm-uvm, or from a log of RMM's.

Works through the file part by part. Memory is that of the workload, 32 bytes an event, and of what
is live; not that of the file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rmm_uvm.errors import DataError
from rmm_uvm.planner.workload.events import (
    ALLOCATE,
    BY_THE_CPU,
    FREE,
    REPLAY_DTYPE,
    TOUCH,
    WRITES,
    EventRows,
    Progress,
    Workload,
)
from rmm_uvm.planner.workload.live_ranges import TouchedRanges
from rmm_uvm.planner.workload.recordings import RecordedPart, RecordingReader, open_recording
from rmm_uvm.planner.workload.sifting import Sieve
from rmm_uvm.planner.workload.slabs import CoverageError, CoveredBlocks
from rmm_uvm.planner.workload.stages import StageNumbers
from rmm_uvm.trace.contents import as_texts, devices_of
from rmm_uvm.trace.events import EventKind

__all__ = ["MOST_EVENTS", "load_workload", "with_touches"]


def with_touches(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Return allocations and frees with a touch each: twice as many events.

    Every allocation is written when it is made, and read just before it is freed; nothing is
    touched in between. Few programs do less than that, since memory is allocated to be filled and
    used; those that use it often move more.

    Examples
    --------
    >>> from rmm_uvm.planner.workload.events import REPLAY_DTYPE
    >>> rows = np.zeros(2, REPLAY_DTYPE)
    >>> rows["kind"] = [ALLOCATE, FREE]
    >>> with_touches(rows)["kind"].tolist()
    [0, 2, 2, 1]
    """
    touched = np.repeat(rows, 2)
    kinds, flags = touched["kind"], touched["flags"]
    # Views of every second event; where they are written to, the other one stays what it was.
    kinds[1::2][rows["kind"] == ALLOCATE] = TOUCH
    flags[1::2][rows["kind"] == ALLOCATE] = WRITES
    kinds[0::2][rows["kind"] == FREE] = TOUCH
    return touched


def with_first_writes(rows: NDArray[np.void]) -> NDArray[np.void]:
    """Return events in which every allocation is written when it is made.

    Examples
    --------
    >>> from rmm_uvm.planner.workload.events import REPLAY_DTYPE
    >>> rows = np.zeros(3, REPLAY_DTYPE)
    >>> rows["kind"] = [ALLOCATE, TOUCH, FREE]
    >>> with_first_writes(rows)["kind"].tolist()
    [0, 2, 2, 1]
    """
    allocated = rows["kind"] == ALLOCATE
    written = np.repeat(rows, 1 + allocated)
    writes = (np.cumsum(1 + allocated) - 1)[allocated]
    written["kind"][writes], written["flags"][writes] = TOUCH, WRITES
    return written


Rows: TypeAlias = np.ndarray[Any, np.dtype[np.void]]

MOST_EVENTS = 1 << 28
"""Events of a workload, assumed touches included: 8 GiB."""

_KINDS = np.zeros(256, np.uint8)
_KINDS[EventKind.ALLOCATE], _KINDS[EventKind.FREE] = ALLOCATE, FREE
_FLAGS = np.zeros(256, np.uint8)
for _kind, _flags in (
    (EventKind.READ, 0),
    (EventKind.WRITE, WRITES),
    (EventKind.CPU_READ, BY_THE_CPU),
    (EventKind.CPU_WRITE, BY_THE_CPU | WRITES),
):
    _KINDS[_kind], _FLAGS[_kind] = TOUCH, _flags


def load_workload(
    path: str | os.PathLike[str],
    *,
    device: int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
    most_events: int = MOST_EVENTS,
) -> Workload:
    """Read what a program allocated, freed and touched.

    Parameters
    ----------
    path : str or path-like
        A trace of ``rmm-uvm run --trace`` or a log of RMM's `LoggingResourceAdaptor`, compressed
        with gzip or not. Of logs also the name that RMM was given, to which it added the device.
    device : int, optional
        CUDA ordinal, >= 0; needed if the recording is of several devices.
    strict : bool
        Refuse what is otherwise passed over or mended and told in `Workload.remarks`: a recording
        that is cut off, frees and touches of what is not live, lines that were not understood,
        failed allocations, times that go back.
    progress : callable, optional
        Called with bytes read and bytes of the file, every MiB or so.
    most_events : int
        Events of the workload at most, assumed touches included; 32 bytes of memory each.

    Returns
    -------
    Workload
        `Workload.touches_assumed` says whether the recording has touches of its own.

    Raises
    ------
    DataError
        If the file cannot be read, is no recording or of another version, has no allocation or
        none of `device`, is of several devices and `device` is not given, is larger than
        `most_events` or memory, or contradicts itself; with the number of the record or line.

    Notes
    -----
    Thread-safe. The file may come from anybody. Allocations of no bytes are left out.
    """
    source = Path(path) if isinstance(path, (str, os.PathLike)) else path
    try:
        with open_recording(source, device) as reader:
            building = _Building(source, reader, device, most_events)
            for part in reader:
                building.add(part)
                if progress is not None:
                    progress(*reader.position)
            return building.finished(strict=strict)
    except MemoryError:
        raise DataError(f"{source} does not fit into memory: record a shorter run") from None


class _Building:
    """A workload while its recording is read."""

    def __init__(
        self, path: Path, reader: RecordingReader, device: int | None, most_events: int
    ) -> None:
        self._path = path
        self._reader = reader
        self._device = device
        self._chosen = device is not None
        self._most_events = most_events
        self._others: set[int] = set()  # devices that were not asked for
        self._sieve = Sieve(path, reader.unit)
        self._stages = StageNumbers()
        self._touched = TouchedRanges()
        self._covered = CoveredBlocks()
        self._rows = EventRows()
        self._touches_assumed = True
        self._announced = False  # touches are those that a program announced
        self._begin_ns: int | None = 0 if reader.kind == "trace" else None
        self._marks_ns = self._sampled_ns = 0
        self._live_bytes = self._peak_live_bytes = self._allocated_bytes = self._allocations = 0

    def add(self, part: RecordedPart) -> None:
        """Take some events."""
        events, numbers = self._of_device(part)
        times_ns = self._sieve.times(events["time_ns"], numbers)
        stages = self._stages.of(times_ns, events["thread"], part.marks)
        if part.marks:
            self._marks_ns = max(self._marks_ns, part.marks[-1][0])
        self._sampled_ns = max(self._sampled_ns, part.sampled_ns)
        if self._begin_ns is None and len(events):
            self._begin_ns = int(times_ns[0])
        kept = self._sieve.kept(events, numbers)
        events, numbers = events[kept], numbers[kept]
        rows = np.zeros(len(events), REPLAY_DTYPE)
        rows["kind"], rows["flags"] = _KINDS[events["kind"]], _FLAGS[events["kind"]]
        rows["stage"] = stages[kept]
        rows["time_ns"] = times_ns[kept] - np.uint64(self._begin_ns or 0)
        rows["address"], rows["nbytes"] = self._touched.follow(events)
        if (rows["kind"] == TOUCH).any():
            self._sieve.add_strays(numbers[rows["nbytes"] != events["bytes"]])
            if self._touches_assumed:
                self._touches_assumed = False
                self._announced = self._reader.facts.get("uses") == "announced"
                # Those that were assumed; what announcements tell of are uses, and no first writes.
                self._rows.drop_kind(TOUCH, but_flags=WRITES if self._announced else None)
            live = rows["nbytes"] > 0
            rows, numbers = rows[live], numbers[live]
        self._count(rows, numbers)
        self._append(rows)

    def finished(self, *, strict: bool) -> Workload:
        """Return the workload."""
        remarks = [*self._reader.remarks, *self._sieve.remarks]
        if strict and (self._reader.cut_off or remarks):
            raise DataError(f"{self._path}: {self._reader.cut_off or remarks[0]}")
        if not self._allocations:
            raise DataError(self._why_empty(remarks))
        name, device_bytes = self._machine()
        latest_ns = max(self._sieve.latest_ns, self._marks_ns) - (self._begin_ns or 0)
        return Workload(
            events=self._rows.finished(),
            slabs=self._covered.slabs(),
            stages=tuple(self._stages.names),
            source=self._path,
            kind=self._reader.kind,
            touches_assumed=self._touches_assumed,
            uses_announced=self._announced,
            peak_live_bytes=self._peak_live_bytes,
            allocated_bytes=self._allocated_bytes,
            allocations=self._allocations,
            seconds=latest_ns / 1e9,
            trailing_seconds=max(self._sampled_ns - (self._begin_ns or 0) - latest_ns, 0) / 1e9,
            device_name=name,
            device_bytes=device_bytes,
            settings=as_texts(self._reader.facts.get("settings")),
            cut_off=self._reader.cut_off,
            remarks=tuple(remarks),
            kernels=tuple(self._stages.kernels),
        )

    def _of_device(self, part: RecordedPart) -> tuple[Rows, NDArray[np.int64]]:
        """Return the events of the device, which is the first there is if none was asked for."""
        devices = part.events["device_id"]
        if self._device is None and (devices >= 0).any():
            self._device = int(devices[devices >= 0][0])
        here = devices == self._device
        if here.all():
            return part.events, part.numbers
        others = np.unique(devices[~here & (devices >= 0)])
        if not self._chosen and len(others):
            raise DataError(
                f"{self._path} is of several devices, {self._device} and {others[0]} among them: "
                "choose one with device="
            )
        self._others.update(others.tolist())
        return part.events[here], part.numbers[here]

    def _count(self, rows: NDArray[np.void], numbers: NDArray[np.int64]) -> None:
        """Add up what is allocated; ranges are small enough for a part's sums."""
        allocated, freed = rows["kind"] == ALLOCATE, rows["kind"] == FREE
        sizes = rows["nbytes"].astype(np.int64)
        live = self._live_bytes + np.cumsum(sizes * allocated - sizes * freed)
        if len(live):
            self._peak_live_bytes = max(self._peak_live_bytes, int(live.max()))
            self._live_bytes = int(live[-1])
        self._allocated_bytes += int(rows["nbytes"][allocated].sum())
        self._allocations += int(allocated.sum())
        try:
            self._covered.add(rows["address"], rows["nbytes"])
        except CoverageError as error:
            at = f"{self._reader.unit} {numbers[error.place]}"
            raise DataError(f"{self._path} cannot be replayed: as of {at} {error}") from None

    def _append(self, rows: NDArray[np.void]) -> None:
        if self._touches_assumed:
            rows = with_touches(rows)
        elif self._announced:
            rows = with_first_writes(rows)
        self._rows.extend(rows)
        if len(self._rows) > self._most_events:
            raise DataError(
                f"{self._path} has more than {self._most_events} events, assumed touches included, "
                f"of {REPLAY_DTYPE.itemsize} bytes of memory each: record a shorter run"
            )

    def _machine(self) -> tuple[str, int | None]:
        for one in devices_of(self._reader.facts):
            if one.device_id == self._device:
                return one.name, one.total_bytes or None
        return "", None

    def _why_empty(self, remarks: Sequence[str]) -> str:
        why = "; ".join([*([self._reader.cut_off] if self._reader.cut_off else []), *remarks])
        reason = f" ({why})" if why else ""
        if self._others:
            there = ", ".join(map(str, sorted(self._others)))
            return (
                f"{self._path} has no allocation on device {self._device}, but on {there}{reason}"
            )
        return f"{self._path} has no allocation{reason}: there is nothing to replay"
