# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The board: where watching processes let `rmm-uvm top` of the same user see their figures.

Each monitor has one small JSON file in a directory that only the user can read, replaced as a whole
about once a second and removed when it stops. What processes left behind that were killed goes when
a monitor starts or somebody reads. Does not cover processes that publish nothing: those
are attached to; see `rmm_uvm.watch.sampling.process`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.machine.process_facts import MOST_CHARACTERS, command_line
from rmm_uvm.recording.finding import Finding
from rmm_uvm.recording.recorded import RecordedDevice
from rmm_uvm.watch.snapshot import Snapshot

__all__ = [
    "Board",
    "Published",
    "Publisher",
    "board_directories",
    "read_board",
    "tell_command",
    "told_command",
]

_VERSION = 1
_MOST_BYTES = 1 << 20  # of one file; a real one has a few KiB


@dataclasses.dataclass(frozen=True)
class Published:
    """The figures that one monitor published last.

    Parameters
    ----------
    pid : int
        The process.
    command : str
        Its command line, quoted as a shell's.
    published_seconds : float
        When, seconds since the epoch.
    interval_seconds : float
        Between two of its samples.
    devices : tuple of mapping
        One for each watched device, with the fields of `RecordedDevice`.
    snapshots : tuple of mapping
        One for each watched device: `Snapshot.to_dict`.
    sources : mapping of str to str
        Sources that there are not, with the reason; an empty reason: there is.
    findings : tuple of str
        The latest findings, the newest last.
    age_seconds : float
        How old it is, now that it was read.
    """

    pid: int
    command: str
    published_seconds: float
    interval_seconds: float
    devices: tuple[Mapping[str, Any], ...]
    snapshots: tuple[Mapping[str, Any], ...]
    sources: Mapping[str, str]
    findings: tuple[str, ...]
    age_seconds: float = 0.0


def board_directories() -> tuple[Path, ...]:
    """Return the directories in which a board of this user can be, the preferred one first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    shared = Path("/tmp") / f"rmm-uvm-{os.geteuid()}"
    return (Path(runtime) / "rmm-uvm", shared) if runtime.startswith("/") else (shared,)


class Board:
    """One monitor's place on the board.

    Parameters
    ----------
    directories : sequence of Path or None
        Where; the first that can be used is. None: `board_directories`.

    Raises
    ------
    AvailabilityError
        If none of the directories can be used, or this process can open no more files.

    Notes
    -----
    Not thread-safe. A child of a fork has no place on the board: it publishes and removes nothing.
    """

    def __init__(self, directories: Sequence[Path] | None = None) -> None:
        self._directory = _usable(board_directories() if directories is None else directories)
        self._pid = os.getpid()
        name = f"{self._pid}-{id(self):x}"
        self._path = self._directory / f"{name}.json"
        self._new = self._directory / f"{name}-{_digits(_namespace())}.new"
        try:
            started = _start_of(self._pid)
        except OSError as error:  # without it others would take this process for one that ended
            raise AvailabilityError(
                f"figures cannot be published: /proc/{self._pid}/stat cannot be read: "
                f"{error.strerror}"
            ) from error
        self._fixed = {
            "version": _VERSION,
            "pid": self._pid,
            "started": started,
            "namespace": _namespace(),
            "command": told_command(),
        }
        read_board(directories)  # removes what dead processes left

    def publish(self, figures: Mapping[str, Any]) -> None:
        """Replace what is on the board.

        Parameters
        ----------
        figures : mapping
            Fields of `Published` besides the process' own, as values that JSON can hold.

        Raises
        ------
        AvailabilityError
            If it cannot be written: the disk is full, the directory was removed.
        """
        if os.getpid() != self._pid:
            return
        text = json.dumps({**self._fixed, "published_seconds": time.time(), **figures})
        try:
            descriptor = os.open(
                self._new,
                os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
            )
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
                file.write(text)
            self._new.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._new.unlink()
            raise AvailabilityError(
                f"figures cannot be published in {self._directory}: {error.strerror}"
            ) from error

    def remove(self) -> None:
        """Take it off the board; nothing if it is not there."""
        if os.getpid() == self._pid:
            with contextlib.suppress(OSError):
                self._path.unlink()


def read_board(directories: Sequence[Path] | None = None) -> list[Published]:
    """Return what living processes of this user publish, by process.

    What dead processes left behind is removed, also what they had not finished. Files that are no
    publications are skipped.

    Parameters
    ----------
    directories : sequence of Path or None
        Where to look; None: `board_directories`.

    Raises
    ------
    AvailabilityError
        If a directory cannot be listed, such as where this process can open no more files.
    """
    found = []
    for directory in board_directories() if directories is None else directories:
        if _refusal(directory):
            continue
        try:
            publications, unfinished = (list(directory.glob(f"*.{end}")) for end in ("json", "new"))
        except OSError as error:
            raise AvailabilityError(
                f"{directory}, where figures are published, cannot be read: {error.strerror}"
            ) from error
        found += [published for path in sorted(publications) if (published := _read(path))]
        for path in unfinished:
            _remove_unfinished(path)
    return sorted(found, key=lambda published: published.pid)


def _read(path: Path) -> Published | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            if not _is_private(os.fstat(descriptor)):
                return None
            raw = json.loads(file.read(_MOST_BYTES))
        if raw["version"] != _VERSION or raw["namespace"] != _namespace():
            return None  # of another version, or of a container whose processes we cannot see
        if _start_of(int(raw["pid"])) != raw["started"]:
            path.unlink(missing_ok=True)
            return None
        published_seconds = _seconds(raw["published_seconds"])
        return Published(
            pid=int(raw["pid"]),
            command=str(raw["command"]),
            published_seconds=published_seconds,
            interval_seconds=_seconds(raw["interval_seconds"]),
            devices=_mappings(raw["devices"]),
            snapshots=_mappings(raw["snapshots"]),
            sources={str(name): str(reason) for name, reason in dict(raw["sources"]).items()},
            findings=tuple(map(str, raw["findings"])),
            age_seconds=max(time.time() - published_seconds, 0.0),
        )
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _remove_unfinished(path: Path) -> None:
    """Remove what a process was writing when it died: its name says whose it is, as in `Board`."""
    pid, _, namespace = path.stem.partition("-")
    ours = _digits(_namespace())
    if not ours or namespace.rpartition("-")[2] != ours or not pid.isdecimal():
        return  # of a container whose processes we cannot see, or none of ours
    with contextlib.suppress(OSError):
        if not _start_of(int(pid[:20])):
            path.unlink()


def _digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))


def _seconds(value: Any) -> float:
    found = float(value)
    if not math.isfinite(found):  # JSON of Python's has NaN
        raise ValueError(f"{found} seconds")
    return found


def _mappings(values: Any) -> tuple[Mapping[str, Any], ...]:
    return tuple(value for value in values if isinstance(value, dict))


def _usable(directories: Sequence[Path]) -> Path:
    reasons = []
    for directory in directories:
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            reasons.append(f"{directory}: {error.strerror}")
            continue
        reason = _refusal(directory)
        if not reason and not os.access(directory, os.W_OK | os.X_OK):
            reason = "not writable"
        if not reason:
            return directory
        reasons.append(f"{directory}: {reason}")
    raise AvailabilityError(f"nowhere to publish figures: {'; '.join(reasons)}")


def _refusal(directory: Path) -> str:
    """Return why a directory is not to be trusted; empty if it is."""
    try:
        status = directory.lstat()
    except OSError as error:
        return error.strerror or "cannot be read"
    if not stat.S_ISDIR(status.st_mode):
        return "not a directory"
    if status.st_uid != os.geteuid():
        return f"belongs to another user ({status.st_uid})"
    if status.st_mode & 0o077:
        return f"open to others (mode {stat.S_IMODE(status.st_mode):o}, not 700)"
    return ""


def _is_private(status: os.stat_result) -> bool:
    """Return whether an open file is one of this user's, and of nobody else."""
    mine = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    return mine and not status.st_mode & 0o077


def _start_of(pid: int) -> str:
    """Return when a process started, in the kernel's ticks; empty if there is no such process.

    Raises OSError where it cannot be told: what a process publishes is not removed for that.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    fields = text.rpartition(")")[2].split()  # a command may contain spaces and parentheses
    return "" if fields[0] in "ZX" else fields[19]


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def tell_command(words: Sequence[str]) -> None:
    """Have this process publish another command line than its own from now on.

    That of a launcher is the same for all the programs that it runs in its own process.
    """
    _told[:] = words


_told: list[str] = []


def told_command() -> str:
    """Return this process' command line, or what `tell_command` was told, cut where it is long."""
    return command_line(_told or sys.orig_argv, MOST_CHARACTERS)


_EVERY_SECONDS = 1.0
_MOST_FINDINGS = 5


class Publisher:
    """A place on the board, if there is one to be had.

    Parameters
    ----------
    make_board : callable
        Makes the place.
    clock : callable
        Returns seconds.

    Attributes
    ----------
    available : Availability
        Whether figures are published.
    """

    def __init__(
        self,
        make_board: Callable[[], Board] = Board,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._last_seconds: float | None = None
        self._board: Board | None = None
        self.available = Availability(available=True)
        try:
            self._board = make_board()
        except AvailabilityError as error:
            self.available = Availability(available=False, reason=str(error))

    @property
    def due(self) -> bool:
        """Whether it is time to publish again."""
        last = self._last_seconds
        return self._board is not None and (last is None or self._clock() - last >= _EVERY_SECONDS)

    def publish(
        self,
        *,
        interval_seconds: float,
        devices: Sequence[RecordedDevice],
        snapshots: Sequence[Snapshot],
        sources: Mapping[str, Availability],
        findings: Sequence[Finding],
    ) -> None:
        """Replace what is on the board. What goes wrong is said by `available`."""
        if self._board is None:
            return
        self._last_seconds = self._clock()
        figures: dict[str, Any] = {
            "interval_seconds": interval_seconds,
            "devices": [dataclasses.asdict(facts) for facts in devices],
            "snapshots": [snapshot.to_dict() for snapshot in snapshots],
            "sources": {name: source.reason for name, source in sources.items()},
            "findings": [str(finding) for finding in findings[-_MOST_FINDINGS:]],
        }
        try:
            self._board.publish(figures)
        except AvailabilityError as error:
            self.available = Availability(available=False, reason=str(error))
        else:
            self.available = Availability(available=True)

    def close(self) -> None:
        """Take it off the board."""
        if self._board is not None:
            self._board.remove()
        self._board = None
