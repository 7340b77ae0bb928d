# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of ours beside the program's: copies to pinned host memory and back, both at once.

They are not of torch's: those are handed out in turn, so that the program would share ours.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

import torch

from rmm_uvm.torch.streams import OwnStream, uncounted

__all__ = ["CudaSideStreams", "SideStreams", "side_streams"]


class SideStreams(Protocol):
    """What copies need of a device. Nothing but `host_buffer` may wait for it.

    Attributes
    ----------
    out, back : object
        The streams of copies to the host, and to the device.
    """

    out: Any
    back: Any

    def current(self) -> Any:
        """Return the stream of this thread; equal streams compare equal."""

    def is_usual(self, stream: Any) -> bool:
        """Whether it is the default stream, in which all work is unless several are in play."""

    def record(self, stream: Any) -> Any:
        """Return an event that passes after the work of a stream so far."""

    def wait(self, stream: Any, event: Any) -> None:
        """Have what is given to a stream from now on come after an event."""

    def passed(self, event: Any) -> bool:
        """Whether an event is over."""

    def copy(self, stream: Any, target: torch.Tensor, source: torch.Tensor) -> None:
        """Copy bytes in a stream."""

    def host_buffer(self, nbytes: int) -> torch.Tensor:
        """Return pinned host memory; RuntimeError if there is none."""


class CudaSideStreams:
    """Two streams of a GPU. See `SideStreams`; use `side_streams`.

    Parameters
    ----------
    device : int
        CUDA ordinal.
    """

    def __init__(self, device: int) -> None:
        from rmm.pylibrmm.stream import CudaStreamFlags, Stream

        self._device = device
        with torch.cuda.device(device):
            # Not blocking: else every kernel of the default stream would wait for them.
            self._owned = [Stream(flags=CudaStreamFlags.NON_BLOCKING) for _ in range(2)]
        self.out, self.back = (
            OwnStream(each.__cuda_stream__()[1], device=torch.device("cuda", device))
            for each in self._owned
        )

    def current(self) -> Any:
        """See `SideStreams`."""
        return torch.cuda.current_stream(self._device)

    def is_usual(self, stream: Any) -> bool:
        """See `SideStreams`."""
        usual: bool = stream.cuda_stream == 0
        return usual

    def record(self, stream: Any) -> Any:
        """See `SideStreams`."""
        return stream.record_event()

    def wait(self, stream: Any, event: Any) -> None:
        """See `SideStreams`."""
        with uncounted():
            stream.wait_event(event)

    def passed(self, event: Any) -> bool:
        """See `SideStreams`."""
        over: bool = event.query()
        return over

    def copy(self, stream: Any, target: torch.Tensor, source: torch.Tensor) -> None:
        """See `SideStreams`."""
        with torch.cuda.stream(stream), torch.no_grad():
            target.copy_(source, non_blocking=True)

    def host_buffer(self, nbytes: int) -> torch.Tensor:
        """See `SideStreams`; torch keeps such memory for the next time."""
        return torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)


@functools.cache
def side_streams(device: int) -> CudaSideStreams:
    """Return those of a device: two for each, until the process ends.

    Torch's pinned memory leads to the streams that used it until it is used again.
    """
    return CudaSideStreams(device)
