# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which memory an object has: its device buffers, as addresses and sizes.

Covers frames and columns of cuDF, arrays of CuPy, Numba and PyTorch, RMM's buffers, whatever has
``__cuda_array_interface__``, and containers of these. Imports none of these libraries.

Looks only, and has nothing made. cuDF 26.10 makes things when it is asked in the usual way: a
``RangeIndex`` a column of its numbers, ``__cuda_array_interface__`` of a buffer that is shared a
copy of it, and ``ptr`` of a buffer that was spilled brings it back.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, KeysView, Mapping, ValuesView
from numbers import Integral
from typing import Any, NamedTuple

from rmm_uvm.errors import DataError
from rmm_uvm.support.messages import shown

__all__ = [
    "Region",
    "buffer_region",
    "checked_region",
    "cudf_regions",
    "interface_of",
    "interface_regions",
    "is_cudf",
    "is_tensor",
    "joined",
    "memory_of",
    "tensor_region",
    "things_in",
    "unwrapped",
]

_ADDRESS_END = 1 << 64


class Region(NamedTuple):
    """Bytes of device memory: first address, and how many, > 0."""

    address: int
    nbytes: int

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.nbytes


def checked_region(address: object, nbytes: object) -> Region:
    """Return a region of what somebody says are an address and a size in bytes; may be empty.

    Raises
    ------
    DataError
        If they are no numbers, one is negative, or no address space has them.
    """
    try:
        region = Region(int(address), int(nbytes))  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"({shown(address)}, {shown(nbytes)}): expected an address and a number of bytes"
        ) from None
    if region.address < 0 or region.nbytes < 0 or region.end > _ADDRESS_END:
        raise DataError(
            f"({shown(address)}, {shown(nbytes)}): no address space has these bytes; address and "
            "size are 0 or more"
        )
    return region


def joined(regions: Iterable[Region]) -> list[Region]:
    """Return the same bytes with every byte in one region: ascending, adjacent ones joined.

    Examples
    --------
    >>> joined([Region(100, 50), Region(0, 10), Region(120, 80)])
    [Region(address=0, nbytes=10), Region(address=100, nbytes=100)]
    """
    found: list[Region] = []
    for region in sorted(regions):
        if found and region.address <= found[-1].end:
            last = found.pop()
            region = Region(last.address, max(last.end, region.end) - last.address)
        found.append(region)
    return found


_TYPE = re.compile(r"[<>|=]?[A-Za-z](\d+)")  # "<f4"; times have more behind it: "<M8[ns]"


def interface_of(thing: Any) -> Any:
    """Return an object's ``__cuda_array_interface__``, None where it has none.

    Where `rmm_uvm` announces what is asked for it, this does not: whoever looks does not use it.
    """
    for kind in type(thing).__mro__:
        found = vars(kind).get("__cuda_array_interface__")
        if found is None:
            continue
        get: Any = getattr(found, "fget", None)
        if not hasattr(get, "without_telling"):
            break
        while hasattr(get, "without_telling"):
            get = get.without_telling
        return get(thing)
    return getattr(thing, "__cuda_array_interface__", None)


def interface_regions(interface: Any) -> Iterator[Region]:
    """Yield what a ``__cuda_array_interface__`` describes: the data, and the mask if there is one.

    Raises
    ------
    DataError
        If it has not got what the interface asks for.
    """
    try:
        yield _interface_region(interface)
        mask = interface.get("mask")
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"__cuda_array_interface__={shown(interface)} cannot be read: "
            f"{type(error).__name__}: {error}"
        ) from None
    if mask is not None:
        yield from interface_regions(mask.__cuda_array_interface__)


def _interface_region(interface: Mapping[str, Any]) -> Region:
    shape = tuple(int(length) for length in interface["shape"])
    if 0 in shape:
        return Region(0, 0)  # the address means nothing
    match = _TYPE.match(interface["typestr"])
    if match is None:
        raise ValueError(f"typestr {interface['typestr']!r}")
    strides = interface.get("strides")
    return _strided(interface["data"][0], shape, strides, int(match[1]))


def is_tensor(thing: object) -> bool:
    """Tell whether it is a tensor of PyTorch; imports nothing."""
    return type(thing).__module__.partition(".")[0] == "torch" and hasattr(thing, "data_ptr")


def tensor_region(tensor: Any) -> Region:
    """Return the memory of a tensor of PyTorch.

    Not by its ``__cuda_array_interface__``, which a parameter refuses to give: it needs a gradient.

    Raises
    ------
    DataError
        If it is on the host, or has no dense memory of its own.
    """
    if not tensor.is_cuda:
        raise DataError(f"this tensor is in host memory ({tensor.device}): hints are for a device")
    try:
        address, strides = tensor.data_ptr(), tensor.stride()
    except (RuntimeError, NotImplementedError) as error:  # sparse, or made while tracing
        raise DataError(f"this tensor has no memory of its own: {error}") from None
    if tensor.numel() == 0:
        return Region(0, 0)
    item_bytes = int(tensor.element_size())
    return _strided(
        address, tuple(tensor.shape), [int(step) * item_bytes for step in strides], item_bytes
    )


def buffer_region(buffer: Any) -> Region:
    """Return the memory of what has an address and a size in bytes: ``ptr`` and ``size``."""
    nbytes = getattr(buffer, "nbytes", None)
    return checked_region(buffer.ptr, buffer.size if nbytes is None else nbytes)


def _strided(
    address: object, shape: tuple[int, ...], strides: Iterable[int] | None, item_bytes: int
) -> Region:
    """Return the bytes from the first that an array has to its last."""
    if strides is None:
        nbytes = item_bytes
        for length in shape:
            nbytes *= length
        return checked_region(address, nbytes)
    reach = [(length - 1) * int(stride) for length, stride in zip(shape, strides, strict=True)]
    before = sum(step for step in reach if step < 0)
    behind = sum(step for step in reach if step > 0)
    return checked_region(int(address) + before, behind - before + item_bytes)  # type: ignore[call-overload]


_MOST_COLUMN_DEPTH = 64  # of nested columns; libcudf itself has no bound


def unwrapped(thing: Any) -> Any:
    """Return what a proxy of cudf.pandas stands for now, without moving it; anything else as is."""
    if "_fsproxy_wrapped" in getattr(thing, "__dict__", ()):
        return thing.__dict__["_fsproxy_wrapped"]
    return thing


def is_cudf(thing: object) -> bool:
    """Tell whether cuDF or libcudf's Python layer made it."""
    return type(thing).__module__.partition(".")[0] in ("cudf", "pylibcudf")


def cudf_regions(thing: Any) -> Iterator[Region]:
    """Yield the buffers of what cuDF or libcudf's Python layer made.

    Raises
    ------
    DataError
        If it has no columns and no buffer.
    """
    if isinstance(getattr(thing, "_range", None), range):
        return  # an index of numbers that nobody has written down
    if hasattr(thing, "_columns"):  # frames, series, indexes
        for column in thing._columns:
            yield from _column(column)
        index = getattr(thing, "_index", None)
        if index is not None:
            yield from cudf_regions(index)
    elif hasattr(thing, "plc_column") or hasattr(thing, "null_mask"):
        yield from _column(thing)
    elif callable(getattr(thing, "columns", None)):  # libcudf's table
        for column in thing.columns():
            yield from _column(column)
    elif hasattr(thing, "memory_info") or hasattr(thing, "ptr"):  # in this order: see `_buffer`
        yield from _buffer(thing)
    else:
        raise DataError(f"{type(thing).__name__} of cuDF has neither columns nor a buffer")


def _column(column: Any) -> Iterator[Region]:
    yield from _plc_column(getattr(column, "plc_column", column), 0)
    # Categories are a column of the type's, which other columns may share.
    categories = getattr(getattr(column, "dtype", None), "_categories", None)
    if categories is not None and is_cudf(categories):
        yield from cudf_regions(categories)


def _plc_column(column: Any, depth: int) -> Iterator[Region]:
    """Yield the buffers of one of libcudf's columns: data, mask, children."""
    if depth > _MOST_COLUMN_DEPTH:
        raise DataError(f"a column of cuDF is nested more than {_MOST_COLUMN_DEPTH} deep")
    for buffer in (column.data(), column.null_mask()):
        if buffer is not None:
            yield from _buffer(buffer)
    for child in column.children():
        yield from _plc_column(child, depth + 1)


def _buffer(buffer: Any) -> Iterator[Region]:
    if hasattr(buffer, "memory_info"):  # one that cuDF may spill: its ptr would bring it back
        address, nbytes, where = buffer.memory_info()
        if where == "gpu":
            yield checked_region(address, nbytes)
    else:
        yield buffer_region(buffer)


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
    elif (interface := interface_of(thing)) is not None:
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
