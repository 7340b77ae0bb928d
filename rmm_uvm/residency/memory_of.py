# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which memory an object has: its device buffers, as addresses and sizes.

Covers frames and columns of cuDF, arrays of CuPy, Numba and PyTorch, RMM's buffers, whatever has
``__cuda_array_interface__``, and containers of these. Imports none of these libraries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, KeysView, Mapping, ValuesView
from numbers import Integral
from typing import Any

from rmm_uvm.errors import DataError
from rmm_uvm.residency.array_memory import (
    buffer_region,
    interface_regions,
    is_tensor,
    tensor_region,
)
from rmm_uvm.residency.cudf_memory import cudf_regions, is_cudf, unwrapped
from rmm_uvm.residency.region import Region, checked_region
from rmm_uvm.support.messages import shown

__all__ = ["memory_of", "things_in"]

_MOST_DEPTH = 8  # of containers
# Not whatever can be iterated over: a frame of Dask gives the names of its columns.
_CONTAINERS = (Mapping, KeysView, ValuesView, Iterator, list, tuple, set, frozenset, deque)


def memory_of(thing: object) -> tuple[Region, ...]:
    """Return the device memory that an object has.

    Parameters
    ----------
    thing : object
        A cuDF frame, series, index or column, also of cudf.pandas; a table or column of pylibcudf;
        an array of CuPy, Numba or PyTorch; an `rmm.DeviceBuffer`; anything with
        ``__cuda_array_interface__``; a pair ``(address, nbytes)``; or a list, tuple, set, deque,
        mapping or view of one, or a finite iterator such as a generator, of these. An iterator is
        used up by it, and gives nothing the next time.

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
    found = (region for one in things_in(thing) for region in _regions(one))
    return tuple(dict.fromkeys(region for region in found if region.nbytes > 0))


def things_in(thing: object) -> Iterator[object]:
    """Yield the single objects that an object is made of: itself, or what containers hold.

    Whoever keeps them keeps the memory of what an iterator made, which nobody else may hold.

    Raises
    ------
    DataError
        If containers are nested more than 8 deep.

    Examples
    --------
    >>> list(things_in([(4096, 100), {"a": (8192, 8)}]))
    [(4096, 100), (8192, 8)]
    """
    return _things_in(thing, 0)


def _things_in(thing: Any, depth: int) -> Iterator[object]:
    thing = unwrapped(thing)
    if _is_pair(thing) or not isinstance(thing, _CONTAINERS):
        yield thing
        return
    if depth == _MOST_DEPTH:
        raise DataError(f"containers are nested more than {_MOST_DEPTH} deep")
    for one in thing.values() if isinstance(thing, Mapping) else thing:
        yield from _things_in(one, depth + 1)


def _regions(thing: Any) -> Iterator[Region]:
    if _is_pair(thing):
        yield checked_region(*thing)
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
        "array with __cuda_array_interface__, a buffer, (address, nbytes), or a list of these"
    )


def _module(thing: object) -> str:
    return type(thing).__module__.partition(".")[0]
