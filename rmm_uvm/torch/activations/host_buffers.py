# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Pinned host memory that copies take in turn.

Torch keeps such memory too, but hands it out again only once the device is seen to have passed
events of each use. Ours is used again in the order of our streams.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from rmm_uvm.torch.activations.side_streams import SideStreams

__all__ = ["HostBuffers"]


class HostBuffers:
    """Buffers in powers of two, as torch has them. Not thread-safe.

    Parameters
    ----------
    streams : SideStreams
        Who copies into buffers and out of them.
    """

    def __init__(self, streams: SideStreams) -> None:
        self._streams = streams
        self._free: dict[int, list[tuple[torch.Tensor, Any]]] = {}  # with a mark, by bytes
        # What an interrupt or an error left without an owner stays here: others must not have it
        # while a copy may be under way.
        self._taken: dict[int, torch.Tensor] = {}  # by id
        self._is_full = self._ended = False

    def take(self, nbytes: int, stream: int) -> torch.Tensor | None:
        """Return a buffer for a copy to the host that is about to follow a stream; None: no room.

        Parameters
        ----------
        nbytes : int
            That it has at least; > 0.
        stream : int
            Of the program, which may be made to wait for whoever reads from the buffer still.
        """
        size = 1 << (nbytes - 1).bit_length()
        free = self._free.get(size)
        if free:
            buffer, read = free[-1]
            self._taken[id(buffer)] = buffer  # first: see there
            free.pop()
            if read is not None and not self._streams.passed(read):
                self._streams.wait(stream, read)
            return buffer
        if self._is_full:
            return None
        try:
            buffer = self._streams.host_buffer(size)
        except RuntimeError:
            self._is_full = True  # to ask takes long
            return None
        self._taken[id(buffer)] = buffer
        return buffer

    def ask_again(self) -> None:
        """Ask for pinned memory again, although there was none before."""
        self._is_full = False

    def give_back(self, buffer: torch.Tensor, read: Any = None) -> None:
        """Take a buffer back; again: does nothing.

        Parameters
        ----------
        buffer : torch.Tensor
            From `take`. A copy to it may be under way.
        read : object, optional
            The mark after the last copy from it.
        """
        if id(buffer) not in self._taken:
            return
        if self._ended:
            self._finish()  # torch may give it to others at once
        else:
            self._free.setdefault(buffer.nbytes, []).append((buffer, read))
        self._taken.pop(id(buffer), None)

    def end(self) -> None:
        """Give free buffers to torch, and what is given back from now on as well."""
        self._ended = True
        if self._free or self._taken:
            self._finish()
        self._free.clear()

    def _finish(self) -> None:
        # A device that failed copies nothing any more.
        with contextlib.suppress(RuntimeError, MemoryError):
            self._streams.finish()
