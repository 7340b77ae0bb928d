# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Describes an array on a device: where it lies, and what its bytes are."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.residency.memory_of import interface_of
from rmm_uvm.support.messages import shown

__all__ = ["ArrayView", "item_bytes", "view_of"]

# Byte order, kind, size; units of times follow. Structures have "V" and their size.
_TYPESTR = re.compile(r"[<>|=][biufcmMVS]([0-9]{1,9})(\[[0-9]*[A-Za-z]+\])?", re.ASCII)


class ArrayView(NamedTuple):
    """A contiguous array.

    Parameters
    ----------
    address : int
        First byte.
    nbytes : int
        Length, bytes.
    typestr : str
        As in the array interface, such as ``"<f4"``.
    shape : tuple of int
        In elements, C order.
    stream : int
        Stream that the contents are ordered in; 0 where none is named.
    """

    address: int
    nbytes: int
    typestr: str
    shape: tuple[int, ...]
    stream: int


@functools.lru_cache(maxsize=256)
def item_bytes(typestr: str) -> int | None:
    """Return the bytes of one element, or None for what is no type.

    Examples
    --------
    >>> item_bytes("<f4"), item_bytes("<M8[ns]"), item_bytes("float")
    (4, 8, None)
    """
    match = _TYPESTR.fullmatch(typestr)
    return int(match[1]) if match else None


def view_of(buffer: Any) -> ArrayView:
    """Return what a buffer's ``__cuda_array_interface__`` says.

    Raises
    ------
    ConfigurationError
        If it has none, or is empty, masked or not contiguous.
    """
    interface = interface_of(buffer)
    if not isinstance(interface, dict):
        raise ConfigurationError(
            f"{type(buffer).__name__} has no __cuda_array_interface__: export device memory, "
            "such as an rmm.DeviceBuffer or a CuPy array"
        )
    shape = tuple(int(length) for length in interface["shape"])
    typestr = str(interface["typestr"])
    size = item_bytes(typestr)
    if size is None:
        raise ConfigurationError(
            f"elements of type {shown(typestr)} cannot be exported: export bytes"
        )
    if interface.get("mask") is not None:
        raise ConfigurationError("a masked array cannot be exported: export data and mask apart")
    nbytes = size * math.prod(shape)
    address, _ = interface["data"]
    if nbytes == 0 or not address:
        raise ConfigurationError(f"an array of shape {shape} has no bytes to export")
    if not _contiguous(shape, interface.get("strides"), size):
        raise ConfigurationError(
            "only C-contiguous arrays can be exported: make a contiguous copy in the IPC pool"
        )
    return ArrayView(int(address), nbytes, typestr, shape, int(interface.get("stream") or 0))


def _contiguous(shape: Sequence[int], strides: Sequence[int] | None, size: int) -> bool:
    if strides is None:
        return True
    expected = size
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length > 1 and stride != expected:  # what is not stepped over may have any stride
            return False
        expected *= length
    return True
