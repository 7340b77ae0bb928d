# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which memory an object has: its device buffers, as addresses and sizes.

Covers frames and columns of cuDF, arrays of CuPy, Numba and PyTorch, RMM's buffers, whatever has
``__cuda_array_interface__``, and containers of these. Imports none of these libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any

from rmm_uvm.errors import DataError
from rmm_uvm.messages import shown
from rmm_uvm.residency.array_memory import (
    buffer_region,
    interface_regions,
    is_tensor,
    tensor_region,
)
from rmm_uvm.residency.cudf_memory import cudf_regions, is_cudf, unwrapped
from rmm_uvm.residency.region import Region, checked_region

__all__ = ["memory_of"]

_MOST_DEPTH = 8  # of containers


def memory_of(thing: object) -> tuple[Region, ...]:
    """Return the device memory that an object has.

    Parameters
    ----------
    thing : object
        A cuDF frame, series, index or column, also of cudf.pandas; a table or column of pylibcudf;
        an array of CuPy, Numba or PyTorch; an `rmm.DeviceBuffer`; anything with
        ``__cuda_array_interface__``; a pair ``(address, nbytes)``; or a list, tuple, set or mapping
        of these.

    Returns
    -------
    tuple of Region
        Each buffer once, in the order found. Empty buffers, and what cuDF has spilled, are left
        out.

    Raises
    ------
    DataError
        If it has no device memory, is in host memory, or describes memory that cannot be.

    Notes
    -----
    Nothing is copied, moved or allocated for it. A strided view counts from its first byte to its
    last: what lies between is in the same blocks. A slice of a cuDF column counts with the whole of
    the buffers that it shares.

    Examples
    --------
    >>> memory_of((4096, 100))
    (Region(address=4096, nbytes=100),)
    """
    return tuple(dict.fromkeys(region for region in _regions(thing, 0) if region.nbytes > 0))


def _regions(thing: Any, depth: int) -> Iterator[Region]:
    thing = unwrapped(thing)
    if _is_pair(thing):
        yield checked_region(*thing)
    elif isinstance(thing, Mapping | list | tuple | set | frozenset):
        if depth == _MOST_DEPTH:
            raise DataError(f"containers are nested more than {_MOST_DEPTH} deep")
        for one in thing.values() if isinstance(thing, Mapping) else thing:
            yield from _regions(one, depth + 1)
    elif is_cudf(thing):
        yield from cudf_regions(thing)
    elif is_tensor(thing):
        yield tensor_region(thing)
    elif (interface := getattr(thing, "__cuda_array_interface__", None)) is not None:
        yield from interface_regions(interface)
    elif hasattr(thing, "ptr") and (hasattr(thing, "size") or hasattr(thing, "nbytes")):
        yield buffer_region(thing)
    else:
        raise DataError(_why_none(thing))


def _is_pair(thing: object) -> bool:
    return (
        isinstance(thing, tuple)
        and len(thing) == 2
        and all(isinstance(one, Integral) and not isinstance(one, bool) for one in thing)
    )


def _why_none(thing: object) -> str:
    if hasattr(thing, "__array_interface__") or _module(thing) == "pandas":
        return f"{type(thing).__name__} is in host memory: hints are for memory of a device"
    return (
        f"{shown(thing)} has no device memory that could be found: give a cuDF frame or column, an "
        "array with __cuda_array_interface__, a buffer or (address, nbytes)"
    )


def _module(thing: object) -> str:
    return type(thing).__module__.partition(".")[0]
