# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A buffer of another process, opened here.

Covers `open` and what it returns. Does not cover the mapping that it shares with other buffers of
the same pool; see `rmm_uvm.ipc.slabs`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

from rmm_uvm._lib.transfers import Transfers
from rmm_uvm.errors import AvailabilityError, DriverError
from rmm_uvm.ipc.handle import Handle
from rmm_uvm.ipc.slabs import OpenSlab, slabs

__all__ = ["Opened", "open"]


class Opened:
    """A buffer of another process; made by `open`. Closed when collected, and as a context manager.

    Has ``__cuda_array_interface__``: CuPy, Numba and others take it as an array, and keep it open
    as long as they use it.

    Attributes
    ----------
    nbytes : int
        Length, bytes.
    shape : tuple of int
        In elements, as it was exported.
    typestr : str
        Of the elements, as in the array interface; ``"|u1"`` for bytes.

    Notes
    -----
    Thread-safe. Stays in its process: it cannot be pickled, and a forked child must not use it.
    """

    def __init__(self, slab: OpenSlab, handle: Handle, stream: int) -> None:
        self.nbytes = handle.nbytes
        self.shape = handle.shape
        self.typestr = handle.typestr
        self._address = slab.address + handle.offset
        self._slot = handle.slot
        self._stream = stream
        self._process = os.getpid()
        self._slab: OpenSlab | None = slab

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._slab is None

    @property
    def ptr(self) -> int:
        """Its first byte.

        Raises
        ------
        AvailabilityError
            If it was closed, or this is a forked child.
        """
        if self._slab is None:
            raise AvailabilityError("the buffer was closed: its memory may be in other use")
        if os.getpid() != self._process:
            raise AvailabilityError("the buffer was opened before the fork, by the parent: reopen")
        return self._address

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.typestr,
            "data": (self.ptr, False),
            "version": 3,
            "strides": None,
            "stream": self._stream or 1,  # 0 is not allowed there; 1 is the legacy default stream
        }

    def close(self) -> None:
        """Give it back to its exporter, who may use the memory anew. Idempotent.

        Waits for the stream that it was opened for. Work on other streams that reads it must be
        done already, or the stream have waited for it.

        Raises
        ------
        DriverError
            If the work in that stream failed. It is closed all the same.
        """
        self._close(collected=False)

    def _close(self, *, collected: bool) -> None:
        slab, self._slab = self._slab, None
        if slab is None or os.getpid() != self._process:
            return
        try:
            slab.transfers.driver.synchronize(self._stream)
        finally:
            slabs().end(slab, self._slot, collected=collected)

    def __del__(self) -> None:
        # At exit the kernel lets go of the lease, and CUDA must not be called any more.
        if getattr(self, "_slab", None) is not None and not sys.is_finalizing():
            with contextlib.suppress(DriverError, MemoryError):
                self._close(collected=True)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError("an opened buffer stays in its process: send the handle, or a copy")

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"at {self._address:#x}"
        return f"<rmm_uvm.ipc.Opened: shape {self.shape}, type {self.typestr}, {state}>"


def open(handle: bytes, *, stream: int = 0, transfers: Transfers | None = None) -> Opened:
    """Open a buffer that another process has exported, without a copy.

    Parameters
    ----------
    handle : bytes
        From `IpcPool.export`, in another process of this user on this machine.
    stream : int
        Stream that will read it: waits for what the exporter's stream had to do at the export. 0
        is the legacy default stream.
    transfers : Transfers, optional
        Of the device that maps it; by default the current device's, and for a handle of a simulated
        device one without memory of its own.

    Returns
    -------
    Opened
        Close it soon: until then the exporter's memory is not used anew.

    Raises
    ------
    DataError
        If `handle` is no handle, is damaged, of another version, or names bytes outside its slab.
    AvailabilityError
        If the exporter has ended or has dropped its pool; the lease has ended, expired, or was
        opened as often as it may; the handle is of another machine; its device is not visible here;
        or this process can open no more files.
    ConfigurationError
        If the handle is of this very process.
    DriverError
        If CUDA cannot map the memory, such as without peer access between the devices.
    MemoryError
        If there are no addresses for it.

    Notes
    -----
    Thread-safe. The first handle of a pool takes milliseconds, since CUDA maps its whole slab;
    further ones take microseconds. The slab stays mapped until its exporter has gone.
    """
    wanted = Handle.unpack(handle)
    return Opened(slabs().open(wanted, stream, transfers), wanted, stream)
