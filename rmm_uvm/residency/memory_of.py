# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which memory an object has: its device buffers, as addresses and sizes.

Covers frames and columns of cuDF, arrays of CuPy and PyTorch, RMM's buffers, whatever has
``__cuda_array_interface__``, and containers of these. Imports none of these libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rmm_uvm.errors import DataError
from rmm_uvm.messages import shown

__all__ = ["Region", "memory_of"]

_MOST_DEPTH = 8  # of containers, and of nested columns


class Region(NamedTuple):
    """Bytes of device memory: first address, and how many, > 0."""

    address: int
    nbytes: int


def memory_of(thing: object) -> tuple[Region, ...]:
    """Return the device memory that an object has.

    Parameters
    ----------
    thing : object
        A cuDF frame, series, index or column; an array of CuPy or PyTorch; an
        `rmm.DeviceBuffer`; anything with ``__cuda_array_interface__``; a pair ``(address,
        nbytes)``; or a list, tuple or mapping of these.

    Returns
    -------
    tuple of Region
        Each buffer once, in the order found. Empty buffers are left out.

    Raises
    ------
    DataError
        If there is none to be found in it.

    Notes
    -----
    A strided view counts from its first byte to its last: what lies between is in the same blocks.

    Examples
    --------
    >>> memory_of((4096, 100))
    (Region(address=4096, nbytes=100),)
    """
    found = dict.fromkeys(region for region in _regions(thing, 0) if region.nbytes > 0)
    return tuple(found)


def _regions(thing: Any, depth: int) -> Iterator[Region]:
    if depth > _MOST_DEPTH:
        raise DataError(f"{type(thing).__name__}: nested more than {_MOST_DEPTH} deep")
    if _is_pair(thing):
        yield Region(*thing)
    elif isinstance(thing, Mapping):
        for one in thing.values():
            yield from _regions(one, depth + 1)
    elif isinstance(thing, list | tuple | set | frozenset):
        for one in thing:
            yield from _regions(one, depth + 1)
    elif (columns := _columns_of(thing)) is not None:
        for column in columns:
            yield from _column_regions(column, depth + 1)
    elif (interface := getattr(thing, "__cuda_array_interface__", None)) is not None:
        yield _of_interface(interface)
    elif hasattr(thing, "ptr") and (hasattr(thing, "size") or hasattr(thing, "nbytes")):
        yield Region(int(thing.ptr), int(getattr(thing, "size", None) or thing.nbytes))
    else:
        raise DataError(
            f"{shown(thing)} has no device memory that could be found: give a cuDF frame or "
            "column, an array with __cuda_array_interface__, a buffer or (address, nbytes)"
        )


def _is_pair(thing: object) -> bool:
    return (
        isinstance(thing, tuple)
        and len(thing) == 2
        and all(isinstance(one, int) and not isinstance(one, bool) for one in thing)
    )


def _columns_of(thing: Any) -> list[Any] | None:
    """Return the columns of what cuDF made; None for anything else."""
    if not type(thing).__module__.startswith(("cudf.", "cudf")):
        return None
    if hasattr(thing, "_columns"):  # frames, series and indexes, the index of each included
        index = getattr(thing, "_index", None)
        own = list(thing._columns)
        return own + (list(index._columns) if hasattr(index, "_columns") else [])
    return [thing] if _is_column(thing) else None


def _is_column(thing: Any) -> bool:
    return hasattr(thing, "base_data") or hasattr(thing, "plc_column")


def _column_regions(column: Any, depth: int) -> Iterator[Region]:
    """Yield the buffers of a column: data, mask, children."""
    if depth > _MOST_DEPTH:
        raise DataError(f"{type(column).__name__}: nested more than {_MOST_DEPTH} deep")
    plc = getattr(column, "plc_column", column)
    for buffer in (_called(plc, "data"), _called(plc, "null_mask")):
        if buffer is not None:
            yield from _regions(buffer, depth)
    for child in _called(plc, "children") or ():
        yield from _column_regions(child, depth + 1)


def _called(thing: Any, name: str) -> Any:
    """Return an attribute, or what it returns: libcudf's columns have methods for these."""
    value = getattr(thing, name, None)
    return value() if callable(value) else value


def _of_interface(interface: Mapping[str, Any]) -> Region:
    address = int(interface["data"][0])
    shape = interface["shape"]
    item_bytes = int(str(interface["typestr"])[2:])
    if 0 in shape:
        return Region(address, 0)
    strides = interface.get("strides")
    if strides is None:
        count = 1
        for length in shape:
            count *= int(length)
        return Region(address, count * item_bytes)
    reach = [(int(length) - 1) * int(stride) for length, stride in zip(shape, strides, strict=True)]
    first = sum(step for step in reach if step < 0)
    last = sum(step for step in reach if step > 0)
    return Region(address + first, last - first + item_bytes)
