# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A workload as the planner replays it: an array of events, and what is known of the recording.

Does not cover: reading it from a file (`rmm_uvm.planner.workload.loading`) and replaying it
(`rmm_uvm.planner.trials.replaying`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ALLOCATE",
    "BY_THE_CPU",
    "FREE",
    "REPLAY_DTYPE",
    "TOUCH",
    "WRITES",
    "EventRows",
    "Launch",
    "Progress",
    "Slab",
    "Workload",
]

ALLOCATE, FREE, TOUCH = 0, 1, 2
"""Kinds of events."""

WRITES, BY_THE_CPU = 1, 2
"""Flags of a touch, added up."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is: bytes read, or events replayed."""

REPLAY_DTYPE = np.dtype(
    [
        ("kind", "u1"),
        ("flags", "u1"),
        ("stage", "u2"),
        ("reserved", "u4"),
        ("address", "u8"),
        ("nbytes", "u8"),
        ("time_ns", "u8"),
    ]
)
"""One event: 32 bytes, as C++ reads it. A free has its bytes too; ``time_ns`` counts from the
start of the recording."""


class Slab(NamedTuple):
    """A region of recorded addresses, 2 MiB aligned, that one slab of memory stands for."""

    address: int
    nbytes: int


class Launch(NamedTuple):
    """A kernel: when it began, in which stage, and its name. Touches at that time are its uses."""

    time_ns: int
    stage: int
    name: str


@dataclass(frozen=True)
class Workload:
    """A recorded workload. Immutable; the array is not written to after it was made.

    Attributes
    ----------
    events : numpy.ndarray
        Of `REPLAY_DTYPE`, in the order in which they happened.
    slabs : tuple of Slab
        Regions that cover all recorded addresses, in ascending order, apart from each other.
    stages : tuple of str
        Names of the stages; index 0 is what ran outside any.
    source : pathlib.Path
        File that it was read from.
    kind : str
        "trace" (of rmm-uvm) or "rmm-log".
    touches_assumed : bool
        The recording says nothing of what was touched: every allocation counts as written when it
        is made and as read just before it is freed.
    uses_announced : bool
        What was touched is known from announcements. So every allocation counts as written when it
        is made.
    peak_live_bytes, allocated_bytes : int
        Most bytes allocated at a time, and all bytes ever allocated.
    allocations : int
        Allocations made.
    seconds : float
        Recorded wall time, to the last event or mark of a stage. Predicted times rest on it.
    device_name : str
        GPU of the recording; "" if unknown.
    device_bytes : int or None
        Its memory, in bytes; None if unknown.
    settings : mapping
        Settings of the installation that recorded, as a trace keeps them; empty for a log.
    cut_off : str
        Why the recording ends early; "" if it does not.
    remarks : tuple of str
        What was passed over or mended while it was read, a line each with a count.
    trailing_seconds : float
        How long the recording went on after that, as its samples tell; 0 without any.
    kernels : tuple of Launch
        In order of time, where the trace tells kernels apart. Its time is then that of kernels
        alone: no work of the kernel driver is in it.
    """

    events: NDArray[np.void]
    slabs: tuple[Slab, ...]
    stages: tuple[str, ...]
    source: Path
    kind: Literal["trace", "rmm-log"]
    touches_assumed: bool
    peak_live_bytes: int
    allocated_bytes: int
    allocations: int
    seconds: float
    device_name: str = ""
    device_bytes: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    cut_off: str = ""
    remarks: tuple[str, ...] = ()
    trailing_seconds: float = 0.0
    uses_announced: bool = False
    kernels: tuple[Launch, ...] = ()

    @property
    def whole_seconds(self) -> float:
        """Wall time of the whole recording."""
        return self.seconds + self.trailing_seconds


_LARGEST_STEP = 1 << 21  # rows, 64 MiB: the allocator moves pages then, not bytes


class EventRows:
    """Events in order, 32 bytes each and at most 64 MiB more.

    Examples
    --------
    >>> rows = EventRows()
    >>> rows.extend(np.zeros(3, REPLAY_DTYPE))
    >>> len(rows), len(rows.finished())
    (3, 3)
    """

    def __init__(self) -> None:
        self._rows = np.empty(1024, REPLAY_DTYPE)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def extend(self, rows: NDArray[np.void]) -> None:
        """Append events."""
        end = self._count + len(rows)
        if end > len(self._rows):
            step = min(len(self._rows), _LARGEST_STEP)
            # Nobody else has seen the array, so that it may move.
            self._rows.resize(max(end, len(self._rows) + step), refcheck=False)
        self._rows[self._count : end] = rows
        self._count = end

    def drop_kind(self, kind: int, but_flags: int | None = None) -> None:
        """Take out all events of one kind, in place, but those with these flags."""
        kept = 0
        for begin in range(0, self._count, _LARGEST_STEP):
            part = self._rows[begin : min(begin + _LARGEST_STEP, self._count)]
            kept_here = part["kind"] != kind
            if but_flags is not None:
                kept_here |= part["flags"] == but_flags
            part = part[kept_here]
            self._rows[kept : kept + len(part)] = part
            kept += len(part)
        self._count = kept

    def finished(self) -> NDArray[np.void]:
        """Return the events, which nobody may write to from now on; call it once, at the end."""
        self._rows.resize(self._count, refcheck=False)
        self._rows.flags.writeable = False
        return self._rows
