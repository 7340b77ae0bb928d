# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the board on which processes of one host agree about idle memory of devices.

A process that runs on a device offers what others may hold of it; others claim, and give back when
the offer falls. `read_board` shows all of it, to whoever may read the file; `HarvestBoard` is a
place of one's own, for a program that wants to offer or claim by hand. Does not cover moving
memory: see `rmm_uvm.residency`.

See Also
--------
docs/understand/decisions/0017-harvest-board.md : why a file with locks.
"""

from __future__ import annotations

import dataclasses
import os

from rmm_uvm._lib.harvest import USUAL_DIRECTORY, HarvestBoard, look

__all__ = [
    "USUAL_DIRECTORY",
    "BoardView",
    "Claim",
    "DeviceHarvest",
    "HarvestBoard",
    "Offer",
    "read_board",
]


@dataclasses.dataclass(frozen=True)
class Offer:
    """The memory that a process lets others hold of a device on which it runs.

    Parameters
    ----------
    process : int
        Its id, as it sees itself: in a container another than outside.
    offered_bytes : int or None
        So much, together; none where it only says whether links are busy.
    busy : bool
        It wants the device's links for itself.
    """

    process: int
    offered_bytes: int | None
    busy: bool


@dataclasses.dataclass(frozen=True)
class Claim:
    """The memory that a process holds of a device on which another one runs.

    Parameters
    ----------
    process : int
        Its id, as it sees itself.
    claimed_bytes : int
        Granted and not given back.
    coming_bytes : int
        Of these, not there yet.
    """

    process: int
    claimed_bytes: int
    coming_bytes: int


@dataclasses.dataclass(frozen=True)
class DeviceHarvest:
    """The agreement about one device.

    Parameters
    ----------
    uuid : str
        In the notation of nvidia-smi.
    offers : tuple of Offer
        Of those that run there.
    claims : tuple of Claim
        Of those that hold its memory.
    """

    uuid: str
    offers: tuple[Offer, ...]
    claims: tuple[Claim, ...]

    @property
    def offered_bytes(self) -> int | None:
        """The most that all claimants may hold together, the least of the offers; 0 without any."""
        offered = [each.offered_bytes for each in self.offers if each.offered_bytes is not None]
        return min(offered, default=None)

    @property
    def claimed_bytes(self) -> int:
        """The bytes that all claimants hold."""
        return sum(each.claimed_bytes for each in self.claims)

    @property
    def busy(self) -> bool:
        """Whether a process there wants the links for itself."""
        return any(each.busy for each in self.offers)


@dataclasses.dataclass(frozen=True)
class BoardView:
    """A board at one moment.

    Parameters
    ----------
    available : bool
        There is a board, and it can be read.
    reason : str
        Why not, one sentence; empty when available.
    path : str
        Its file.
    processes : tuple of int
        Those that have joined, of at most 64.
    devices : tuple of DeviceHarvest
        Those that anything is said of, by UUID.
    """

    available: bool
    reason: str
    path: str
    processes: tuple[int, ...]
    devices: tuple[DeviceHarvest, ...]


def read_board(directory: str | os.PathLike[str] | None = None) -> BoardView:
    """Read the board of this user; makes none, and disturbs nobody.

    Parameters
    ----------
    directory : path-like, optional
        Where it is; ``/dev/shm`` if none.

    Returns
    -------
    BoardView
        Not available, with the reason, where there is none.

    Notes
    -----
    Thread-safe. Each process' word about a device is whole; two of them may be of different
    moments.

    Examples
    --------
    >>> import tempfile
    >>> from rmm_uvm import harvest
    >>> directory = tempfile.TemporaryDirectory()
    >>> harvest.read_board(directory.name).available
    False
    >>> owner = harvest.HarvestBoard(directory.name)
    >>> owner.offer("GPU-00000000-0000-0000-0000-000000000001", 64 << 20)
    True
    >>> [(each.offered_bytes >> 20, each.claimed_bytes)
    ...  for each in harvest.read_board(directory.name).devices]
    [(64, 0)]
    >>> directory.cleanup()
    """
    readable, path, processes, entries = look(directory)
    offers: dict[str, list[Offer]] = {}
    claims: dict[str, list[Claim]] = {}
    for process, uuid, offered_bytes, busy, claimed_bytes, coming_bytes in entries:
        if offered_bytes is not None or busy:
            offers.setdefault(uuid, []).append(Offer(process, offered_bytes, busy))
        if claimed_bytes:
            claims.setdefault(uuid, []).append(Claim(process, claimed_bytes, coming_bytes))
    devices = tuple(
        DeviceHarvest(uuid, tuple(offers.get(uuid, ())), tuple(claims.get(uuid, ())))
        for uuid in sorted({*offers, *claims})
    )
    return BoardView(readable.available, readable.reason, path, processes, devices)
