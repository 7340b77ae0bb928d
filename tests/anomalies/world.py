# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A small simulated machine with contents, and what of it, and of this process, has to add up."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rmm_uvm
from rmm_uvm._lib import limits
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.harvest import read_board

from ..leftovers import _open_files
from ..named_threads import PATIENCE_SECONDS, thread_ids
from ..support.known_contents import Buffer

MIB = 1 << 20
DEVICE_BYTES = 32 * MIB
PART_BYTES = 2 * MIB
# So much was asked for: behind it is a file, and none of the program's.
SIMULATED = "bytes of simulated device memory"
_SETTLED_SECONDS = 0.01


# Every thread of Python that there was, by the kernel's number.
_pythons: set[int] = set()
_set_native_id = threading.Thread._set_native_id  # type: ignore[attr-defined]


def _noted(thread: threading.Thread) -> None:
    _set_native_id(thread)
    # A dummy stands for a thread of C++ while it runs Python, and need not last as long.
    if not isinstance(thread, threading._DummyThread):
        assert thread.native_id is not None
        _pythons.add(thread.native_id)


threading.Thread._set_native_id = _noted  # type: ignore[attr-defined]


def threads(at_most: int | None = None) -> int:
    """Return how many threads the kernel has of this process, of Python and of C++.

    One that was joined may be there for a moment: of C++ hardly ever, of Python on a busy machine
    for as long as it gets no turn.

    Parameters
    ----------
    at_most : int, optional
        How many there may be: more get time to end. By default it is waited until none ends.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    found = thread_ids()
    same_since = time.monotonic()
    while time.monotonic() < until:
        if at_most is not None:
            if len(found) <= at_most:
                break
        elif time.monotonic() - same_since > _SETTLED_SECONDS:
            running = {thread.native_id for thread in threading.enumerate()}
            if not found & _pythons - running:
                break
        time.sleep(0.001)
        before, found = found, thread_ids()
        if found != before:
            same_since = time.monotonic()
    return len(found)


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


def device_with(features: Mapping[str, Any]) -> SimulatedDevice:
    """Return a small device with one neighbour, and with features that not every one has."""
    return rmm_uvm.simulated_device(DEVICE_BYTES, backing=True, neighbors=1, **features)


@dataclass
class World:
    """A device with one neighbour, a folder for files, and buffers whose contents are known."""

    folder: Path
    device: SimulatedDevice = field(default_factory=lambda: device_with({}))
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

    def state(self, most_threads: int | None = None) -> State:
        """Return what there is now, garbage aside, and threads that end: see `threads`."""
        gc.collect()
        statistics = self.device.statistics()
        board = read_board(self.folder)
        return State(
            managed_bytes=statistics["managed_bytes"],
            counted_bytes=limits._account.used_bytes - self._counted_before,
            device_bytes=statistics["device_bytes"],
            threads=threads(most_threads),
            files=len(_open_files()),
            places=len(board.processes),
            claimed=any(device.claimed_bytes for device in board.devices),
            partial_files=len(list(self.folder.glob(".partial-*"))),
            installed=rmm_uvm.current_installation() is not None,
        )
