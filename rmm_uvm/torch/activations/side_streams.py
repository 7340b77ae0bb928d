# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of ours beside the program's: copies to pinned host memory and back, both at once.

They are the driver's and not torch's: torch hands its own out in turn, so that the program would
share ours, and takes several times as long for each copy and each wait.
"""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any, Protocol

import torch

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.marks import Mark
from rmm_uvm._lib.transfers import Transfers

__all__ = ["CudaSideStreams", "SideStreams", "staging_bytes_of"]

_STAGING_BYTES = 64 << 20  # most: pieces of 16 MiB hide what each of them costs
_STAGING_FRACTION = 1 / 32  # of the budget
_LEAST_STAGING_BYTES = 4 << 20
_TRIED_BYTES = 32 << 20  # to learn how long copies take


def staging_bytes_of(budget_bytes: int) -> int:
    """Return how much device memory copies go through, of both sides together; 0: too little.

    Examples
    --------
    >>> staging_bytes_of(8 << 30) >> 20, staging_bytes_of(1 << 30) >> 20, staging_bytes_of(1 << 26)
    (64, 32, 0)
    """
    nbytes = min(int(budget_bytes * _STAGING_FRACTION), _STAGING_BYTES)
    return nbytes if nbytes >= _LEAST_STAGING_BYTES else 0


class SideStreams(Protocol):
    """A device, as far as copies need it. Nothing but `host_buffer` and `finish` may wait for it.

    Streams of the program are handles. Copies of a side are in the order of the calls.

    Attributes
    ----------
    out, back : object
        The sides: copies to the host, and to the device.
    staging_bytes : int
        Of device memory that copies go through.
    """

    out: Any
    back: Any
    staging_bytes: int

    def current(self) -> int:
        """Return the stream of this thread."""

    def is_usual(self, stream: int) -> bool:
        """Whether it is the default stream, in which all work is unless several are in play."""

    def follow(self, side: Any, stream: int) -> None:
        """Have copies from now on come after the work of a stream so far."""

    def copy(
        self, side: Any, target: torch.UntypedStorage, source: torch.UntypedStorage, nbytes: int
    ) -> None:
        """Copy the first bytes of a storage. Both have to live until that is over."""

    def mark(self, side: Any) -> Any:
        """Return a mark that is passed after the copies so far."""

    def wait(self, stream: int, mark: Any) -> None:
        """Have what is given to a stream from now on come after a mark."""

    def passed(self, mark: Any) -> bool:
        """Whether a mark is passed."""

    def finish(self) -> None:
        """Wait until all copies are over."""

    def host_buffer(self, nbytes: int) -> torch.Tensor:
        """Return pinned host memory; RuntimeError if there is none."""


class CudaSideStreams:
    """Two streams of a device. See `SideStreams`.

    Parameters
    ----------
    driver : UvmDriver
        Of the device.
    staging_bytes : int
        Device memory to take for copies to go through, so that kernels beside them need not wait. A
        side that finds no room copies without.

    Raises
    ------
    DriverError, MemoryError
        If the device gives none.
    """

    def __init__(self, driver: UvmDriver, staging_bytes: int = 0) -> None:
        self._device = driver.info.device_id
        self.out, self.back = Transfers(driver), Transfers(driver)
        self.staging_bytes = 0
        self._seconds_of_copies: float | None = None
        for side in (self.out, self.back):
            side.mark()  # a stream is made for what is asked of it first
            if staging_bytes:
                with contextlib.suppress(MemoryError):
                    side.take_staging(staging_bytes // 2)
                    self.staging_bytes += staging_bytes // 2

    def current(self) -> int:
        """See `SideStreams`."""
        handle: int = torch._C._cuda_getCurrentRawStream(self._device)
        return handle

    def is_usual(self, stream: int) -> bool:
        """See `SideStreams`."""
        return stream == 0

    def follow(self, side: Transfers, stream: int) -> None:
        """See `SideStreams`."""
        side.wait_for(stream)

    def copy(
        self,
        side: Transfers,
        target: torch.UntypedStorage,
        source: torch.UntypedStorage,
        nbytes: int,
    ) -> None:
        """See `SideStreams`."""
        side.copy(((target.data_ptr(), source.data_ptr(), nbytes),))

    def mark(self, side: Transfers) -> Mark:
        """See `SideStreams`."""
        return side.mark()

    def wait(self, stream: int, mark: Mark) -> None:
        """See `SideStreams`."""
        mark.make_wait(stream)

    def passed(self, mark: Mark) -> bool:
        """See `SideStreams`."""
        return mark.done()

    def finish(self) -> None:
        """See `SideStreams`."""
        for side in (self.out, self.back):
            side.mark().wait()

    def seconds_of_copies(self) -> float:
        """Return how long it takes to copy one byte to the host and back; the first time tries it.

        Waits for copies that are under way. Infinite where there is no memory to try it: then
        nothing is copied either.
        """
        if self._seconds_of_copies is None:
            try:
                self._seconds_of_copies = self._tried_copies()
            except (RuntimeError, MemoryError):
                self._seconds_of_copies = math.inf
        return self._seconds_of_copies

    def _tried_copies(self) -> float:
        host = self.host_buffer(_TRIED_BYTES)
        there = torch.empty(_TRIED_BYTES, dtype=torch.uint8, device=f"cuda:{self._device}")
        on_host, on_device = host.untyped_storage(), there.untyped_storage()
        self.follow(self.out, self.current())
        self.follow(self.back, self.current())
        for _ in range(2):  # the second time counts
            self.finish()
            begin = time.perf_counter()
            self.copy(self.out, on_host, on_device, _TRIED_BYTES)
            self.finish()
            self.copy(self.back, on_device, on_host, _TRIED_BYTES)
            self.finish()
        return (time.perf_counter() - begin) / _TRIED_BYTES

    def host_buffer(self, nbytes: int) -> torch.Tensor:
        """See `SideStreams`."""
        return torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)
