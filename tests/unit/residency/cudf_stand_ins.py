# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Objects that behave as cuDF 26.10's do when somebody asks for their memory.

cuDF cannot be imported without a GPU. What these do was read in its wheel: ``cudf.core.buffer``,
``cudf.core.column.column``, ``cudf.core.index`` and ``pylibcudf.column``. Whatever makes, copies or
moves memory there, raises here: a hint must not ask for it.
"""

from __future__ import annotations

from typing import Any, NoReturn


def refused(what: str) -> NoReturn:
    """Say that a hint would have changed something."""
    raise AssertionError(f"a hint asked for {what}")


class Buffer:
    """``cudf.core.buffer.buffer.Buffer``: its interface copies what is shared."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.ptr = address
        self.size = self.nbytes = nbytes

    @property
    def __cuda_array_interface__(self) -> NoReturn:
        refused("write access, which copies a shared buffer")


class SpillableBuffer:
    """``cudf.core.buffer.spillable_buffer.SpillableBuffer``."""

    def __init__(self, address: int, nbytes: int, where: str) -> None:
        self._info = (address, nbytes, where)
        self.size = self.nbytes = nbytes

    def memory_info(self) -> tuple[int, int, str]:
        return self._info

    @property
    def ptr(self) -> NoReturn:
        refused("the pointer, which brings a spilled buffer back and keeps it")

    @property
    def __cuda_array_interface__(self) -> NoReturn:
        refused("the pointer, which brings a spilled buffer back and keeps it")


class PlcColumn:
    """``pylibcudf.column.Column``: methods, not properties."""

    def __init__(self, data: Any = None, mask: Any = None, children: tuple[Any, ...] = ()) -> None:
        self._data, self._mask, self._children = data, mask, children

    def data(self) -> Any:
        return self._data

    def null_mask(self) -> Any:
        return self._mask

    def children(self) -> list[Any]:
        return list(self._children)


class PlcTable:
    """``pylibcudf.table.Table``."""

    def __init__(self, *columns: PlcColumn) -> None:
        self._made_of = columns

    def columns(self) -> tuple[PlcColumn, ...]:
        return self._made_of


class Column:
    """``cudf.core.column.column.ColumnBase``."""

    def __init__(self, plc_column: PlcColumn, dtype: Any = None) -> None:
        self.plc_column = plc_column
        self.dtype = dtype


class Index:
    """``cudf.core.index.Index``."""

    def __init__(self, column: Column) -> None:
        self._columns = (column,)


class RangeIndex:
    """``cudf.core.index.RangeIndex``: its columns are written down when they are asked for."""

    def __init__(self, length: int) -> None:
        self._range = range(length)

    @property
    def _columns(self) -> NoReturn:
        refused("the numbers of a range, which allocates them")


class DataFrame:
    """``cudf.core.dataframe.DataFrame``; a Series is the same with one column."""

    def __init__(self, *columns: Column, index: Any = None) -> None:
        self._columns = columns
        self._index = index if index is not None else RangeIndex(3)


class CategoricalDtype:
    """``cudf.core.dtypes.CategoricalDtype``."""

    def __init__(self, categories: Any) -> None:
        self._categories = categories


for made_by, kinds in {
    "cudf.core.buffer.buffer": (Buffer, SpillableBuffer),
    "cudf.core.column.column": (Column,),
    "cudf.core.dataframe": (DataFrame,),
    "cudf.core.dtypes": (CategoricalDtype,),
    "cudf.core.index": (Index, RangeIndex),
    "pylibcudf.column": (PlcColumn,),
    "pylibcudf.table": (PlcTable,),
}.items():
    for kind in kinds:
        kind.__module__ = made_by  # how cuDF's objects are known
