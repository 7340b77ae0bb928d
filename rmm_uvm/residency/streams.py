# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Handles of CUDA streams, from the objects that libraries have for them."""

from __future__ import annotations

from typing import Any

from rmm_uvm.errors import DataError
from rmm_uvm.support.messages import shown

__all__ = ["stream_handle"]


def stream_handle(stream: Any) -> int:
    """Return a CUDA stream's handle.

    Parameters
    ----------
    stream : object
        None for the default stream; a handle; or a stream of RMM, cuda.core and others
        (``__cuda_stream__``), PyTorch (``cuda_stream``), CuPy (``ptr``) or Numba (``handle``).

    Raises
    ------
    DataError
        If it is no stream.

    Examples
    --------
    >>> stream_handle(None), stream_handle(2)
    (0, 2)
    """
    if stream is None:
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool):
        return _checked(stream, stream)
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        pair = protocol() if callable(protocol) else protocol  # older ones have it as a property
        return _checked(pair[1], stream)
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return _checked(getattr(stream, name), stream)
    if hasattr(stream, "handle"):
        handle = stream.handle
        return _checked(getattr(handle, "value", handle) or 0, stream)  # ctypes has None for 0
    raise DataError(f"{shown(stream)} is not a CUDA stream: give one, its handle, or None")


def _checked(handle: Any, stream: object) -> int:
    if isinstance(handle, int) and 0 <= handle < 1 << 64:
        return handle
    raise DataError(f"stream={shown(stream)}: a handle is a number, 0 or more")
