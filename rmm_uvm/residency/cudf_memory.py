# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which memory an object of cuDF has: frames, series, indexes, columns, libcudf's tables.

Looks only, and has nothing made. cuDF 26.10 makes things when it is asked in the usual way: a
``RangeIndex`` a column of its numbers, ``__cuda_array_interface__`` of a buffer that is shared a
copy of it, and ``ptr`` of a buffer that was spilled brings it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rmm_uvm.errors import DataError
from rmm_uvm.residency.array_memory import buffer_region
from rmm_uvm.residency.region import Region, checked_region

__all__ = ["cudf_regions", "is_cudf", "unwrapped"]

_MOST_DEPTH = 64  # of nested columns; libcudf itself has no bound


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
    if depth > _MOST_DEPTH:
        raise DataError(f"a column of cuDF is nested more than {_MOST_DEPTH} deep")
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
