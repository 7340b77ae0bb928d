# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The UVM kernel driver's byte counters for this process, read from a shared page.

Interface: ``kernel-open/nvidia-uvm/uvm_ioctl.h`` and ``uvm_types.h`` of NVIDIA's
open-gpu-kernel-modules (580 and 595 alike): ``UVM_TOOLS_INIT_EVENT_TRACKER`` (56) and
``UVM_TOOLS_ENABLE_COUNTERS`` (60). Both structures end in a status that the ioctl fills in.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from pathlib import Path
from typing import NamedTuple

INIT_EVENT_TRACKER, ENABLE_COUNTERS = 56, 60
HTOD_BYTES, DTOH_BYTES = 0, 1
BYTES_ONLY_FLAGS = (1 << HTOD_BYTES) | (1 << DTOH_BYTES)
_WORDS = 10


class InitEventTracker(ctypes.Structure):
    """``UVM_TOOLS_INIT_EVENT_TRACKER_PARAMS``; 56 bytes."""

    _fields_ = (
        ("queue_buffer", ctypes.c_uint64),
        ("queue_buffer_size", ctypes.c_uint64),
        ("control_buffer", ctypes.c_uint64),
        ("processor", ctypes.c_ubyte * 16),
        ("all_processors", ctypes.c_uint32),
        ("uvm_fd", ctypes.c_uint32),
        ("rm_status", ctypes.c_uint32),
    )


class EnableCounters(ctypes.Structure):
    """``UVM_TOOLS_ENABLE_COUNTERS_PARAMS``; 16 bytes."""

    _fields_ = (("counter_type_flags", ctypes.c_uint64), ("rm_status", ctypes.c_uint32))


class Moved(NamedTuple):
    """Bytes that the UVM kernel driver copied each way."""

    htod_bytes: int
    dtoh_bytes: int

    def since(self, earlier: Moved) -> Moved:
        """Return what was moved after `earlier` was read."""
        return Moved(self.htod_bytes - earlier.htod_bytes, self.dtoh_bytes - earlier.dtoh_bytes)


class CounterError(RuntimeError):
    """The counters could not be opened."""


def uvm_descriptors() -> list[int]:
    """Return this process's open descriptors of ``/dev/nvidia-uvm``, lowest first."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if str(entry.readlink()) == "/dev/nvidia-uvm":
                found.append(int(entry.name))
        except FileNotFoundError:  # the listing's own descriptor
            continue
    return sorted(found)


class Tracker:
    """Live byte counters of one GPU, or of all processors together.

    Parameters
    ----------
    uvm_fd : int
        This process's descriptor of ``/dev/nvidia-uvm``.
    uuid : bytes, optional
        The 16 bytes of one GPU's UUID; all processors when left out.

    Raises
    ------
    CounterError
        When the kernel driver refuses.
    OSError
        When ``/dev/nvidia-uvm-tools`` cannot be opened or an ioctl is not known.
    """

    def __init__(self, uvm_fd: int, uuid: bytes | None = None) -> None:
        # Shared and touched first: the kernel driver pins this very page and writes to it.
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self._page[0] = 0
        self.uvm_fd = uvm_fd
        self._words = (ctypes.c_uint64 * _WORDS).from_buffer(self._page)
        self._tools_fd = os.open("/dev/nvidia-uvm-tools", os.O_RDWR | os.O_CLOEXEC)
        request = InitEventTracker(
            control_buffer=ctypes.addressof(self._words),
            processor=(ctypes.c_ubyte * 16)(*(uuid or bytes(16))),
            all_processors=int(uuid is None),
            uvm_fd=uvm_fd,
        )
        enable = EnableCounters(counter_type_flags=BYTES_ONLY_FLAGS)
        try:
            self._ioctl(INIT_EVENT_TRACKER, request)
            self._ioctl(ENABLE_COUNTERS, enable)
        except BaseException:
            self.close()
            raise

    def _ioctl(self, number: int, request: InitEventTracker | EnableCounters) -> None:
        fcntl.ioctl(self._tools_fd, number, request)
        if request.rm_status:
            message = f"UVM ioctl {number} answered status {request.rm_status:#x}"
            raise CounterError(message)

    def read(self) -> Moved:
        """Return the counters as they stand."""
        return Moved(self._words[HTOD_BYTES], self._words[DTOH_BYTES])

    def close(self) -> None:
        """Stop counting; the page stays readable."""
        if self._tools_fd >= 0:
            os.close(self._tools_fd)
            self._tools_fd = -1
