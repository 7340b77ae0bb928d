# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A small simulated machine with contents, and what of it, and of this process, has to add up."""

from __future__ import annotations

import gc
import threading
from dataclasses import dataclass, field
from pathlib import Path

import rmm_uvm
from rmm_uvm import limits
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.harvest import read_board

from ..leftovers import _open_files
from ..support.known_contents import Buffer

MIB = 1 << 20
DEVICE_BYTES = 32 * MIB
PART_BYTES = 2 * MIB


@dataclass(frozen=True)
class State:
    """What an operation may have changed, and has to leave as before, or as when it succeeds."""

    managed_bytes: int
    counted_bytes: int
    device_bytes: int
    threads: int
    files: int
    places: int
    claimed: bool
    partial_files: int
    installed: bool


@dataclass
class World:
    """A device with one neighbour, a folder for files, and buffers whose contents are known."""

    folder: Path
    device: SimulatedDevice = field(
        default_factory=lambda: rmm_uvm.simulated_device(DEVICE_BYTES, backing=True, neighbors=1)
    )
    written: dict[int, Buffer] = field(default_factory=dict)  # by address
    _counted_before: int = field(default_factory=lambda: limits._account.used_bytes)

    def fill(self, address: int, nbytes: int = PART_BYTES) -> None:
        """Write a value of its own to every page of a buffer."""
        self.device.touch(address, nbytes, write=True)
        self.written[address] = buffer = Buffer(None, address, nbytes)
        buffer.write(len(self.written))

    def changed(self) -> list[int]:
        """Return the buffers that do not hold what was written to them."""
        return [address for address, buffer in self.written.items() if buffer.changed]

    def state(self) -> State:
        """Return what there is now, garbage aside."""
        gc.collect()
        statistics = self.device.statistics()
        board = read_board(self.folder)
        return State(
            managed_bytes=statistics["managed_bytes"],
            counted_bytes=limits._account.used_bytes - self._counted_before,
            device_bytes=statistics["device_bytes"],
            threads=threading.active_count(),
            files=len(_open_files()),
            places=len(board.processes),
            claimed=any(device.claimed_bytes for device in board.devices),
            partial_files=len(list(self.folder.glob(".partial-*"))),
            installed=rmm_uvm.current_installation() is not None,
        )
