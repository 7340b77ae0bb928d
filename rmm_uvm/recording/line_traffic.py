# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic by the lines of the program that allocated what moved."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

__all__ = [
    "CallPath",
    "LineSum",
    "LineTraffic",
    "LineWindows",
    "MovedBytes",
    "MovedObject",
    "ProgramLine",
]


@dataclasses.dataclass(frozen=True)
class ProgramLine:
    """A line of code.

    Parameters
    ----------
    file : str
        Its file, as tracebacks show it.
    number : int
        From 1 on.
    function : str
        The function that it is in, by its qualified name.
    text : str
        The line itself, stripped; empty where the source is not there.
    """

    file: str
    number: int
    function: str
    text: str = ""


@dataclasses.dataclass(frozen=True)
class MovedBytes:
    """Bytes that moved of some memory.

    Parameters
    ----------
    brought_bytes : int
        Copied to the device because the budget, a prefetch or a hint asked for it. What a new
        allocation gets first is not among them: it has no contents.
    faulted_bytes : int
        Copied to the device by page faults, as far as they are known; where there are windows,
        an estimate.
    evicted_bytes : int
        Left the device to make room.
    read_back_bytes : int
        Went to the host because the CPU used it; known on simulated devices, and estimated where
        there are windows.
    dropped_bytes : int
        Given up without a copy, after the program had freed it.
    returned_bytes : int
        Of what came to the device: what had been there before, and would not have had to come
        again if all had fitted.
    """

    brought_bytes: int = 0
    faulted_bytes: int = 0
    evicted_bytes: int = 0
    read_back_bytes: int = 0
    dropped_bytes: int = 0
    returned_bytes: int = 0

    @property
    def to_device_bytes(self) -> int:
        """Bytes that came to the device, asked for or by page faults."""
        return self.brought_bytes + self.faulted_bytes

    @property
    def copied_bytes(self) -> int:
        """Bytes that were copied, either way."""
        return self.to_device_bytes + self.evicted_bytes + self.read_back_bytes

    @property
    def avoidable_bytes(self) -> int:
        """Bytes that would not have been copied if all had fitted, and only the device used it."""
        return self.evicted_bytes + self.returned_bytes


@dataclasses.dataclass(frozen=True)
class CallPath:
    """The allocations of one path of calls.

    Parameters
    ----------
    lines : tuple of int
        Numbers of the lines, the innermost first; empty where it is not known.
    users : int or None
        Which of `lines` is the program's own: its innermost.
    allocations : int
        How many.
    live_bytes, peak_bytes : int
        Not freed now, and most at a time.
    moved : MovedBytes
        What moved of it.
    allocated, held, at_top : tuple of int
        Bytes of all allocations together, of the path's peak, and of those live at the run's peak,
        by when they were allocated: in which of up to 16 stretches of the run, equal by what was
        allocated and copied in them.
    """

    lines: tuple[int, ...]
    users: int | None
    allocations: int
    live_bytes: int
    peak_bytes: int
    moved: MovedBytes
    allocated: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    at_top: tuple[int, ...] = ()

    def joined(self, *others: CallPath) -> CallPath:
        """Return what all of them allocated, on the lines of this one.

        When each had its peak is not known. So the peak is what they had at the run's, or that of
        one alone if it is more. Together they may have had more at another time.
        """
        paths = (self, *others)
        at_top = _added(path.at_top for path in paths)
        most = max(paths, key=lambda path: path.peak_bytes)
        alone = most.peak_bytes >= sum(at_top)
        return CallPath(
            self.lines,
            self.users,
            sum(path.allocations for path in paths),
            sum(path.live_bytes for path in paths),
            most.peak_bytes if alone else sum(at_top),
            _sum(path.moved for path in paths),
            _added(path.allocated for path in paths),
            most.held if alone else at_top,
            at_top,
        )


@dataclasses.dataclass(frozen=True)
class MovedObject:
    """One allocation.

    Parameters
    ----------
    number : int
        The how-manyth it was, from 1 on.
    path : int
        Number of its call path.
    nbytes : int
        Its size.
    live : bool
        Whether it was not freed yet.
    moved : MovedBytes
        What moved of it while it was live.
    """

    number: int
    path: int
    nbytes: int
    live: bool
    moved: MovedBytes


@dataclasses.dataclass(frozen=True)
class LineSum:
    """Traffic of everything that one line of the program allocated.

    Parameters
    ----------
    line : ProgramLine or None
        None: allocated before anybody watched, or by a thread without Python.
    allocations, live_bytes, peak_bytes, moved, allocated, held, at_top
        As of `CallPath`, of all paths through the line together.
    """

    line: ProgramLine | None
    allocations: int
    live_bytes: int
    peak_bytes: int
    moved: MovedBytes
    allocated: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    at_top: tuple[int, ...] = ()

    @property
    def times(self) -> float:
        """How often its memory came back: bytes, divided by all that the line allocated."""
        allocated_bytes = sum(self.allocated)
        return self.moved.returned_bytes / allocated_bytes if allocated_bytes else 0.0


@dataclasses.dataclass(frozen=True)
class LineWindows:
    """The windows of a kernel driver's event queue, of which page faults are estimated.

    Parameters
    ----------
    windows : int
        How many.
    open_seconds, run_seconds : float
        How long they were open, all together, and how long they could be.
    faulted_bytes, seen_bytes : int
        That came by page faults in that time, about, and those of them that windows saw.
    lost_moves : int
        That the queue had no room for.
    """

    windows: int
    open_seconds: float
    run_seconds: float
    faulted_bytes: int
    seen_bytes: int
    lost_moves: int = 0

    @property
    def told(self) -> str:
        """How good the estimate is, in a few words.

        Examples
        --------
        >>> LineWindows(12, 0.05, 2.5, 1 << 30, 1 << 25).told
        '12 windows, 2.0 % of the run, which saw 3 % of the faulted bytes'
        """
        number = f"{self.windows} window" + "s" * (self.windows != 1)
        open_percent = 100 * self.open_seconds / max(self.run_seconds, 1e-9)
        seen_percent = 100 * self.seen_bytes / max(self.faulted_bytes, 1)
        lost = f"; {self.lost_moves} moves were lost" if self.lost_moves else ""
        return (
            f"{number}, {open_percent:.1f} % of the run, which saw {seen_percent:.0f} % of the "
            f"faulted bytes{lost}"
        )


@dataclasses.dataclass(frozen=True)
class LineTraffic:
    """Traffic by lines, call paths and allocations.

    Parameters
    ----------
    how : str
        How that is known, for people.
    lines : tuple of ProgramLine
        All lines of all paths.
    paths : tuple of CallPath
        All paths on which something was allocated.
    objects : tuple of MovedObject
        The allocations that moved most, the busiest first.
    peak_bytes : int
        What was allocated at the run's peak: the first time at which there was at most a sixteenth
        less than ever.
    peak_stretch : int or None
        In which stretch of the run, from 0 on, that was; None: earlier than what is told of.
    windows : LineWindows or None
        Of which page faults and evictions are estimated; None where they are not.
    """

    how: str = ""
    lines: tuple[ProgramLine, ...] = ()
    paths: tuple[CallPath, ...] = ()
    objects: tuple[MovedObject, ...] = ()
    peak_bytes: int = 0
    peak_stretch: int | None = 0
    windows: LineWindows | None = None

    @property
    def holds_together(self) -> bool:
        """Whether every number names something that is there."""
        n_lines, n_paths = range(len(self.lines)), range(len(self.paths))
        return all(one.path in n_paths for one in self.objects) and all(
            all(number in n_lines for number in path.lines)
            and (path.users is None or path.users in range(len(path.lines)))
            for path in self.paths
        )

    def users_line(self, path: CallPath) -> ProgramLine | None:
        """Return the program's own line of a path; None where it is not known."""
        return None if path.users is None else self.lines[path.lines[path.users]]

    def paths_of(self, line: ProgramLine | None) -> tuple[CallPath, ...]:
        """Return the paths of one of the program's own lines."""
        return tuple(path for path in self.paths if self.users_line(path) == line)

    def sum_of(self, paths: Sequence[CallPath]) -> LineSum:
        """Return the sums of some paths of one line."""
        one, *others = paths
        return _line_sum(self.users_line(one), one.joined(*others))

    def since(self, before: LineTraffic | None) -> LineTraffic:
        """Return what moved since an earlier value of the same monitor; without allocations.

        Allocations, live bytes and peaks are those of the whole time.
        """
        if before is None:
            return self
        earlier = [path.moved for path in before.paths]
        earlier += [MovedBytes()] * (len(self.paths) - len(earlier))
        paths = tuple(
            dataclasses.replace(path, moved=_difference(path.moved, moved))
            for path, moved in zip(self.paths, earlier, strict=True)
        )
        peak_stretch = self.peak_stretch if self.peak_bytes > before.peak_bytes else None
        return dataclasses.replace(self, paths=paths, objects=(), peak_stretch=peak_stretch)

    def by_line(self) -> tuple[LineSum, ...]:
        """Return the sums of the program's own lines, those first of which most was copied."""
        of_line: dict[ProgramLine | None, list[CallPath]] = {}
        for path in self.paths:
            of_line.setdefault(self.users_line(path), []).append(path)
        sums = [self.sum_of(paths) for paths in of_line.values()]
        kept = [one for one in sums if one.allocations or one.moved != MovedBytes()]
        return tuple(sorted(kept, key=lambda one: (-one.moved.copied_bytes, -one.peak_bytes)))


def _line_sum(line: ProgramLine | None, path: CallPath) -> LineSum:
    return LineSum(
        line,
        path.allocations,
        path.live_bytes,
        path.peak_bytes,
        path.moved,
        path.allocated,
        path.held,
        path.at_top,
    )


def _sum(moved: Iterable[MovedBytes]) -> MovedBytes:
    parts = [dataclasses.astuple(one) for one in moved]
    return MovedBytes(*map(sum, zip(*parts, strict=True)))


def _added(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, itertools.zip_longest(*parts, fillvalue=0)))


def _difference(now: MovedBytes, before: MovedBytes) -> MovedBytes:
    pairs = zip(dataclasses.astuple(now), dataclasses.astuple(before), strict=True)
    return MovedBytes(*(later - earlier for later, earlier in pairs))
