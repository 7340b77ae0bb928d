# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What kernels touch on a simulated device, held against what was announced before them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import rmm

from rmm_uvm.integrations.seen.announcer import Announcer

Range = tuple[int, int]
"""Address, and the address behind the last byte."""

_WORD_BYTES = 8  # kernels read whole words: the rest of one lies on the same page


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in order, each byte once."""
    found: list[Range] = []
    for begin, end in sorted(each for each in ranges if each[0] < each[1]):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def without(ranges: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """Return what of the ranges is in none of the others."""
    left = joined(ranges)
    for begin, end in joined(others):
        left = [
            part
            for one in left
            for part in ((one[0], min(one[1], begin)), (max(one[0], end), one[1]))
            if part[0] < part[1]
        ]
    return left


def bytes_of(ranges: Iterable[Range]) -> int:
    """Return how many bytes ranges have that do not overlap."""
    return sum(end - begin for begin, end in ranges)


@dataclass(frozen=True)
class Kernel:
    """One kernel: bytes of memory that was there before its call, and what was said of it."""

    name: str
    touched_bytes: int
    announced_bytes: int
    unannounced_bytes: int


class TouchedMemory:
    """A pool whose kernels touch a simulated device; keeps what they touch and what was announced.

    A stand-in of a library's function touches in a block of `kernel`, with `read` and `write`, what
    the true function's kernels do. What was announced since the block before counts for it.

    Parameters
    ----------
    mr : UvmResourceAdaptor
        A managed pool on a simulated device.

    Attributes
    ----------
    kernels : list of Kernel
        In order.
    fetched_bytes : int
        What announcements brought in.
    faulted_bytes : int
        What page faults brought in of memory that was there before the call.
    """

    def __init__(self, mr: Any) -> None:
        self.mr = mr
        self.device = mr.managed_mr.driver
        self.kernels: list[Kernel] = []
        self.fetched_bytes = self.faulted_bytes = 0
        self._kept: list[rmm.DeviceBuffer] = []
        self._touched: list[Range] = []
        self._announced: list[Range] = []
        self._new: list[Range] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear what all announcers tell in this block."""
        tell = Announcer.tell

        def heard(this: Announcer, uses: Any, stream: int, **more: Any) -> None:
            uses = list(uses)
            self._announced += [(address, address + nbytes) for address, nbytes, _ in uses]
            before = self._came_bytes()
            tell(this, uses, stream, **more)
            self.fetched_bytes += self._came_bytes() - before

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Announcer, "tell", heard)
            yield

    def allocate(self, nbytes: int) -> rmm.DeviceBuffer:
        """Allocate; the next kernel may touch that unannounced."""
        buffer = rmm.DeviceBuffer(size=nbytes, mr=self.mr)
        self._new.append((buffer.ptr, buffer.ptr + nbytes))
        return buffer

    @contextmanager
    def kernel(self, name: str) -> Iterator[None]:
        """Let a kernel touch memory in this block."""
        yield
        touched = without(self._touched, self._new)
        # What was allocated for this very call is announced by its allocation.
        announced = without(self._announced, self._new)
        words = [
            (begin // _WORD_BYTES * _WORD_BYTES, -(-end // _WORD_BYTES) * _WORD_BYTES)
            for begin, end in announced
        ]
        unannounced = without(touched, words)
        self.kernels.append(
            Kernel(name, bytes_of(touched), bytes_of(announced), bytes_of(unannounced))
        )
        self.forget()

    def forget(self) -> None:
        """Leave out what was touched and announced since the last kernel."""
        self._touched, self._announced, self._new = [], [], []

    def read(self, address: int, nbytes: int) -> None:
        """Touch."""
        self._touch(address, nbytes, write=False)

    def write(self, address: int, nbytes: int) -> None:
        """Touch, and change what is there."""
        self._touch(address, nbytes, write=True)

    def made(self, nbytes: int) -> rmm.DeviceBuffer:
        """Return memory that has contents, as from a file."""
        buffer = self.allocate(nbytes)
        self.device.touch(buffer.ptr, nbytes, True)
        self.forget()
        return buffer

    def keep(self, *buffers: rmm.DeviceBuffer) -> None:
        """Keep memory that no kernel touches."""
        self._kept += buffers

    def problems(self, most: float = 1.1) -> list[str]:
        """Return which kernels touched what nobody had announced, and for which too much was.

        Parameters
        ----------
        most : float
            Announced bytes over touched ones, of each kernel and of all together.
        """
        found = [
            f"{one.name}: {one.unannounced_bytes} of {one.touched_bytes} bytes were not announced"
            for one in self.kernels
            if one.unannounced_bytes
        ]
        together = Kernel(
            "all kernels",
            sum(one.touched_bytes for one in self.kernels),
            sum(one.announced_bytes for one in self.kernels),
            0,
        )
        return found + [
            f"{one.name}: {one.announced_bytes} bytes were announced for {one.touched_bytes}"
            for one in (*self.kernels, together)
            if one.announced_bytes > most * one.touched_bytes
        ]

    def _touch(self, address: int, nbytes: int, *, write: bool) -> None:
        if not nbytes:
            return
        touched = address, address + nbytes
        self._touched.append(touched)
        before = self._came_bytes()
        self.device.touch(address, nbytes, write)
        if without([touched], self._new):
            self.faulted_bytes += self._came_bytes() - before

    def _came_bytes(self) -> int:
        return int(self.device.statistics()["host_to_device_bytes"])
