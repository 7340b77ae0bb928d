# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The lease table of a pool: a file that exporter and readers share, from both sides.

A lease is a slot of the table. The file tells how often it was opened; locks on it tell who has it
open and whether the exporter lives, since the kernel lets go of them when a process ends. A forked
child has neither the file nor a lock on it. Covers making, finding and removing the file, and what
its answers mean. Does not cover the file's content and its locks, which are
`rmm_uvm._lib.leases.LeaseFile`; nor what a lease is of, see `rmm_uvm.ipc.pool` and
`rmm_uvm.ipc.slabs`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import struct
import weakref
from pathlib import Path
from typing import NoReturn

from rmm_uvm._lib.leases import LeaseFile, lease_answer, lease_file_bytes
from rmm_uvm.errors import AvailabilityError, DataError

__all__ = ["SLOTS", "LeaseTable", "RemoteTable", "is_own"]

# Leases of one pool at a time: a file of 8 KiB. Each has an event of CUDA's, of which a process can
# share about a thousand.
SLOTS = 508

_FOLDER = Path("/dev/shm")
_PREFIX = "rmm-uvm-ipc-"
_HEADER = struct.Struct("<8sHHI")  # magic, version, reserved, process
_MAGIC = b"rmmuvmLT"
_VERSION = 1
_FILE_BYTES = lease_file_bytes(SLOTS)


class LeaseTable:
    """The exporter's side: makes the file, which is removed with this object.

    Attributes
    ----------
    name : bytes
        16 random bytes, which handles carry.
    file : LeaseFile
        What is in it.

    Raises
    ------
    AvailabilityError
        If there is no room for it in ``/dev/shm``.
    """

    def __init__(self) -> None:
        self.name = secrets.token_bytes(16)
        path = _path_of(self.name)
        try:
            _remove_abandoned()
            descriptor = os.open(_FOLDER, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
            link = f"/proc/self/fd/{descriptor}"
            try:
                # Reserved, so that a full /dev/shm is an error here and no SIGBUS later.
                os.posix_fallocate(descriptor, 0, _FILE_BYTES)
                os.pwrite(descriptor, _HEADER.pack(_MAGIC, _VERSION, 0, os.getpid()), 0)
            except OSError:
                os.close(descriptor)
                raise
            self.file = LeaseFile(descriptor, SLOTS)
            self.file.try_be_exporter()
            # Named only now: whoever finds a table without an exporter may remove it. With
            # src_dir_fd, which an absolute path makes nothing of, Python follows the link.
            os.link(link, path, src_dir_fd=descriptor)
        except OSError as error:
            raise AvailabilityError(
                f"a lease table needs {_FILE_BYTES >> 10} KiB in {_FOLDER}, and locks on it: "
                f"{error}"
            ) from None
        self.forget = weakref.finalize(self, _remove, path, os.getpid())
        _made.add(self)


class RemoteTable:
    """A reader's side: the table of another process.

    Parameters
    ----------
    name : bytes
        16 bytes, from a handle.

    Attributes
    ----------
    name : bytes
        The same.
    process : int
        Who exports, as its own system numbers processes.

    Raises
    ------
    AvailabilityError
        If it is not there, or of another user, or open to others: the exporter has ended, or
        shares no ``/dev/shm`` with this process.
    DataError
        If the file is no lease table.

    Notes
    -----
    Not thread-safe: the cache of slabs has a lock.
    """

    def __init__(self, name: bytes) -> None:
        self.name = name
        path = _path_of(name)
        try:
            descriptor = _opened(path)
        except FileNotFoundError:
            raise AvailabilityError(
                "the exporter of this handle has ended or dropped its pool, "
                "or this process has another /dev/shm (see docs/use/ipc.md, containers)"
            ) from None
        except OSError as error:
            raise AvailabilityError(f"the exporter's {path} cannot be opened: {error}") from None
        header = os.pread(descriptor, _HEADER.size, 0).ljust(_HEADER.size, b"\0")
        magic, version, _, self.process = _HEADER.unpack(header)
        try:
            self._file = LeaseFile(descriptor, SLOTS)
        except OSError:
            magic = b""
        if magic != _MAGIC or version != _VERSION:
            raise DataError(f"{path} is not a lease table of this version of rmm_uvm")
        self._openings: dict[int, int] = {}  # by slot: all of them are one to the kernel

    @property
    def exporter_alive(self) -> bool:
        """Whether the exporter's process lives and has its pool."""
        return not self._file.closed and self._file.exporter_alive

    @property
    def in_use(self) -> bool:
        """Whether this process has a lease of it open."""
        return bool(self._openings)

    def acquire(self, slot: int, generation: int) -> None:
        """Count one opening of a lease, and keep it from ending until `release`.

        Raises
        ------
        AvailabilityError
            If the exporter is gone, the lease has ended, or was opened as often as it may.
        DataError
            If no table has such a slot.
        """
        if slot >= SLOTS:
            raise DataError(f"the handle names lease {slot}: a pool has {SLOTS}")
        held = self._openings.get(slot, 0)
        answer = self._file.open_lease(slot, generation, again=held > 0)
        if answer != lease_answer.opened:
            self._refuse(answer, slot)
        self._openings[slot] = held + 1

    def _refuse(self, answer: lease_answer, slot: int) -> NoReturn:
        if answer == lease_answer.exporter_gone:
            raise AvailabilityError(
                f"the exporter of this handle, process {self.process}, has ended or dropped its "
                "pool: its memory is gone"
            )
        if answer == lease_answer.ended:
            raise AvailabilityError(
                "the lease of this handle has ended, and its memory may be in other use: open a "
                "handle in time, and as often as it may be"
            )
        if answer == lease_answer.exhausted:
            _, opened, _ = self._file.read(slot)
            times = "once" if opened == 1 else f"{opened} times"
            raise AvailabilityError(
                f"this handle was opened {times}, as often as it may: export with "
                f"readers={opened + 1} or more"
            )
        raise AvailabilityError(f"the kernel refuses locks on {_path_of(self.name)}")

    def cancel(self, slot: int) -> None:
        """Let go of an opening that came to nothing, and let it be tried again."""
        self._file.uncount(slot)
        self.release(slot)

    def release(self, slot: int) -> None:
        """Let go of one opening; after the last one the exporter may end the lease."""
        left = self._openings.get(slot, 0) - 1
        if left < 0 or self._file.closed:  # closed: a forked child has nothing open
            return
        if left:
            self._openings[slot] = left
        else:
            del self._openings[slot]
            self._file.close_lease(slot)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


_made: weakref.WeakSet[LeaseTable] = weakref.WeakSet()


def is_own(name: bytes) -> bool:
    """Whether a table of that name was made by this process."""
    return any(table.name == name and not table.file.closed for table in list(_made))


def _path_of(name: bytes) -> Path:
    return _FOLDER / f"{_PREFIX}{name.hex()}"


def _opened(path: Path) -> int:
    """Open a table; raise OSError if it is not a file of this user, and of nobody else."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    reason = ""
    if not stat.S_ISREG(status.st_mode):
        reason = "it is not a file"
    elif status.st_uid != os.geteuid():
        reason = f"it belongs to another user ({status.st_uid})"
    elif status.st_mode & 0o077:
        reason = f"it is open to others (mode {stat.S_IMODE(status.st_mode):o}, not 600)"
    if reason:
        os.close(descriptor)
        raise PermissionError(reason)
    return descriptor


def _remove(path: Path, maker: int) -> None:
    if os.getpid() == maker:  # and not a forked child, whose parent has the file still
        with contextlib.suppress(OSError):
            path.unlink()


def _remove_abandoned() -> None:
    """Remove tables of this user whose exporter was killed before it could."""
    for path in _FOLDER.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            file = LeaseFile(_opened(path), SLOTS)
            if file.try_be_exporter():
                path.unlink()
            file.close()
