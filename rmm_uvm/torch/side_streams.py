# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of ours beside the program's: copies to pinned host memory and back, both at once.

They are the driver's and not torch's: torch hands its own out in turn, so that the program would
share ours, and takes several times as long for each copy and each wait.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from rmm_uvm._lib.driver import UvmDriver
from rmm_uvm._lib.marks import Mark
from rmm_uvm._lib.transfers import Transfers

__all__ = ["CudaSideStreams", "SideStreams"]


class SideStreams(Protocol):
    """What copies need of a device. Nothing but `host_buffer` and `finish` may wait for it.

    Streams of the program are handles. Copies of a side are in the order of the calls.

    Attributes
    ----------
    out, back : object
        The sides: copies to the host, and to the device.
    """

    out: Any
    back: Any

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

    Raises
    ------
    DriverError, MemoryError
        If the device gives none.
    """

    def __init__(self, driver: UvmDriver) -> None:
        self._device = driver.info.device_id
        self.out, self.back = Transfers(driver), Transfers(driver)
        for side in (self.out, self.back):
            side.mark()  # a stream is made for what is asked of it first

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

    def host_buffer(self, nbytes: int) -> torch.Tensor:
        """See `SideStreams`."""
        return torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)
