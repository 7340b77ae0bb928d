# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in of pylibcudf whose functions touch what libcudf's kernels read and write.

Columns are laid out as libcudf's: rows of fixed width, masks of 32-bit words, strings and lists
behind offsets, structures of columns with the same rows; a slice shares the buffers of its column.
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from .touched_memory import TouchedMemory

_MASK_WORD_ROWS, _MASK_WORD_BYTES = 32, 4


class TypeId(enum.IntEnum):
    """Of pylibcudf."""

    INT32 = 3
    INT64 = 4
    DICTIONARY32 = 22
    STRING = 23
    LIST = 24
    STRUCT = 28


WIDTHS = {TypeId.INT32: 4, TypeId.INT64: 8}


@dataclass(frozen=True)
class DataType:
    """Of pylibcudf."""

    kind: TypeId

    def id(self) -> TypeId:
        return self.kind


class Span:
    """As ``pylibcudf.gpumemoryview``."""

    __slots__ = ("held", "memory", "ptr", "size")

    def __init__(self, memory: TouchedMemory, nbytes: int) -> None:
        self.memory, self.held = memory, memory.allocate(nbytes)
        self.ptr, self.size = self.held.ptr, nbytes


@dataclass(eq=False)
class Column:
    """As ``pylibcudf.Column``. `each` is how many characters or elements a row has."""

    memory: TouchedMemory
    kind: TypeId
    rows: int
    first: int = 0
    data_buffer: Any = None
    mask_buffer: Any = None
    parts: tuple[Column, ...] = ()
    each: int = 0

    def data(self) -> Any:
        return self.data_buffer

    def null_mask(self) -> Any:
        return self.mask_buffer

    def children(self) -> list[Column]:
        return list(self.parts)

    def size(self) -> int:
        return self.rows

    def offset(self) -> int:
        return self.first

    def type(self) -> DataType:
        return DataType(self.kind)

    def touch(self, *, write: bool = False) -> None:
        """Touch all rows, as a kernel does that goes over the column."""
        self._touch_rows(self.first, self.rows, write)

    def like(self) -> Column:
        """Allocate a column of the same rows, as a result; they are written."""
        nullable = self.mask_buffer is not None
        made = _column(self.memory, self.kind, self.rows, self.each, nullable=nullable)
        if self.kind in (TypeId.LIST, TypeId.STRUCT):
            elements = self.parts[1:] if self.kind == TypeId.LIST else self.parts
            views = [replace(one, first=0, rows=self.rows * (self.each or 1)) for one in elements]
            made.parts = (*made.parts, *(view.like() for view in views))
        made.touch(write=True)
        return made

    def copy(self, stream: Any = None) -> Column:
        with self.memory.kernel("Column.copy"):
            self.touch()
            return self.like()

    def to_arrow(self, metadata: Any = None, stream: Any = None) -> str:
        with self.memory.kernel("Column.to_arrow"):
            self.touch()
        return "arrow"

    def _touch_rows(self, first: int, count: int, write: bool) -> None:
        touch = self.memory.write if write else self.memory.read
        if self.mask_buffer is not None:
            begin = first // _MASK_WORD_ROWS
            end = -(-(first + count) // _MASK_WORD_ROWS)
            touch(self.mask_buffer.ptr + begin * _MASK_WORD_BYTES, (end - begin) * _MASK_WORD_BYTES)
        if self.kind in WIDTHS:
            width = WIDTHS[self.kind]
            touch(self.data_buffer.ptr + first * width, count * width)
        elif self.kind == TypeId.STRUCT:
            for part in self.parts:
                part._touch_rows(part.first + first, count, write)
        else:
            offsets = self.parts[0]
            offsets._touch_rows(offsets.first + first, count + 1, write)
            if self.kind == TypeId.STRING:
                touch(self.data_buffer.ptr + first * self.each, count * self.each)
            for elements in self.parts[1:]:
                elements._touch_rows(elements.first + first * self.each, count * self.each, write)


@dataclass(eq=False)
class Table:
    """As ``pylibcudf.Table``."""

    made_of: Sequence[Column]

    @property
    def memory(self) -> TouchedMemory:
        return self.made_of[0].memory

    def columns(self) -> list[Column]:
        return list(self.made_of)

    def touch(self) -> None:
        for column in self.made_of:
            column.touch()

    def like(self) -> Table:
        return Table([column.like() for column in self.made_of])


@dataclass(eq=False)
class Scalar:
    """As ``pylibcudf.Scalar``: nobody can ask where its memory is."""

    memory: TouchedMemory
    held: Any = field(default=None)

    def __post_init__(self) -> None:
        self.held = self.memory.made(16)

    def touch(self) -> None:
        self.memory.read(self.held.ptr, 16)


def _column(
    memory: TouchedMemory, kind: TypeId, rows: int, each: int = 0, *, nullable: bool = False
) -> Column:
    """Allocate a column; of a list or a structure without what it is made of."""
    words = -(-rows // _MASK_WORD_ROWS)
    mask = Span(memory, words * _MASK_WORD_BYTES) if nullable else None
    data: Span | None = None
    parts: tuple[Column, ...] = ()
    if kind in WIDTHS or kind == TypeId.STRING:
        data = Span(memory, rows * (WIDTHS.get(kind) or each))
    if kind in (TypeId.STRING, TypeId.LIST):
        parts = (_column(memory, TypeId.INT32, rows + 1),)
    return Column(memory, kind, rows, 0, data, mask, parts, each)


def fixed(memory: TouchedMemory, rows: int, *, nullable: bool = False) -> Column:
    """Make a column of 64-bit numbers."""
    return _made(_column(memory, TypeId.INT64, rows, nullable=nullable))


def strings(memory: TouchedMemory, rows: int, each: int, *, nullable: bool = False) -> Column:
    """Make a column of strings of so many characters."""
    return _made(_column(memory, TypeId.STRING, rows, each, nullable=nullable))


def lists(memory: TouchedMemory, rows: int, each: int, *, nullable: bool = False) -> Column:
    """Make a column of lists of so many 64-bit numbers."""
    made = _column(memory, TypeId.LIST, rows, each, nullable=nullable)
    made.parts = (*made.parts, fixed(memory, rows * each))
    return _made(made)


def structure(memory: TouchedMemory, *parts: Column, nullable: bool = False) -> Column:
    """Make a column of structures of columns with the same rows."""
    made = _column(memory, TypeId.STRUCT, parts[0].rows, nullable=nullable)
    made.parts = parts
    return _made(made)


def sliced(column: Column, first: int, rows: int) -> Column:
    """Return rows of a column, in the buffers of that."""
    return replace(column, first=column.first + first, rows=rows)


def _made(column: Column) -> Column:
    """Give a column contents that nothing has to announce."""
    column.touch(write=True)
    column.memory.forget()
    return column


def gather(source: Table, gather_map: Column, policy: int = 0, stream: Any = None) -> Table:
    """gather(Table source_table, Column gather_map, policy, stream=None) -> Table"""
    with gather_map.memory.kernel("gather"):
        gather_map.touch()
        source.touch()
        return source.like()


def slice_of(column: Column, indices: list[int], stream: Any = None) -> list[Column]:
    """slice(Column input, list indices, stream=None) -> list"""
    pairs = zip(indices[::2], indices[1::2], strict=True)
    return [sliced(column, begin, end - begin) for begin, end in pairs]


def concatenate(objects: list[Table], stream: Any = None) -> list[Table]:
    """concatenate(list objects, stream=None)"""
    with objects[0].memory.kernel("concatenate"):
        for each in objects:
            each.touch()
        return [each.like() for each in objects]


def inner_join(left: Table, right: Table, nulls: int = 0, stream: Any = None) -> list[Column]:
    """inner_join(Table left_keys, Table right_keys, nulls_equal, stream=None) -> tuple"""
    with left.memory.kernel("inner_join"):
        left.touch()
        right.touch()
        rows = left.made_of[0].rows
        maps = [_column(left.memory, TypeId.INT32, rows) for _ in range(2)]
        for each in maps:
            each.touch(write=True)
        return maps


def binary_operation(lhs: Any, rhs: Any, op: str, dtype: Any, stream: Any = None) -> Column:
    """binary_operation(LeftBinaryOperand lhs, RightBinaryOperand rhs, op, DataType data_type)"""
    column: Column = lhs if isinstance(lhs, Column) else rhs
    with column.memory.kernel("binary_operation"):
        lhs.touch()
        rhs.touch()
        return column.like()


def sort_by_key(values: Table, keys: Table, order: Any = None, stream: Any = None) -> Table:
    """sort_by_key(Table values, Table keys, list column_order, stream=None) -> Table"""
    with keys.memory.kernel("sort_by_key"):
        keys.touch()
        values.touch()
        return values.like()


def apply_boolean_mask(source: Table, mask: Column, stream: Any = None) -> Table:
    """apply_boolean_mask(Table source_table, Column boolean_mask, stream=None) -> Table"""
    with mask.memory.kernel("apply_boolean_mask"):
        mask.touch()
        source.touch()
        return source.like()


def to_upper(column: Column, stream: Any = None) -> Column:
    """to_upper(Column input, stream=None) -> Column"""
    with column.memory.kernel("to_upper"):
        column.touch()
        return column.like()


def reduce(column: Column, aggregation: str, dtype: Any, stream: Any = None) -> Scalar:
    """reduce(Column col, Aggregation agg, DataType data_type, stream=None) -> Scalar"""
    with column.memory.kernel("reduce"):
        column.touch()
    return Scalar(column.memory)


def null_count(bitmask: Span, start: int, stop: int, stream: Any = None) -> int:
    """null_count(object bitmask, size_type start, size_type stop, stream=None) -> int"""
    with bitmask.memory.kernel("null_count"):
        bitmask.memory.read(bitmask.ptr, bitmask.size)
    return 0


class GroupByRequest:
    """As ``pylibcudf.groupby.GroupByRequest``."""

    def __init__(self, values: Column, aggregations: list[str]) -> None:
        self.values = values


class GroupBy:
    """As ``pylibcudf.groupby.GroupBy``."""

    def __init__(self, keys: Table, stream: Any = None) -> None:
        self._keys = keys

    def aggregate(self, requests: list[GroupByRequest], stream: Any = None) -> list[Column]:
        with self._keys.memory.kernel("GroupBy.aggregate"):
            self._keys.touch()
            for each in requests:
                each.values.touch()
            return [each.values.like() for each in requests]


def play(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a pylibcudf in place; return it."""
    parts: dict[str, dict[str, Any]] = {
        "binaryop": {"binary_operation": binary_operation},
        "column": {"Column": Column},
        "concatenate": {"concatenate": concatenate},
        "copying": {"gather": gather, "slice": slice_of},
        "groupby": {"GroupBy": GroupBy, "GroupByRequest": GroupByRequest},
        "join": {"inner_join": inner_join},
        "null_mask": {"null_count": null_count},
        "reduce": {"reduce": reduce},
        "sorting": {"sort_by_key": sort_by_key},
        "stream_compaction": {"apply_boolean_mask": apply_boolean_mask},
        "strings": {"to_upper": to_upper},
        "table": {"Table": Table},
        "types": {"TypeId": TypeId, "size_of": lambda each: WIDTHS[each.id()]},
        "traits": {"is_fixed_width": lambda each: each.id() in WIDTHS},
        "utils": {"CUDF_DEFAULT_STREAM": None},
    }
    plc: Any = types.ModuleType("pylibcudf")
    plc.__path__ = []
    monkeypatch.setitem(sys.modules, "pylibcudf", plc)
    for name, names in parts.items():
        module = types.ModuleType(f"pylibcudf.{name}")
        for each, value in names.items():
            setattr(module, each, value)
        setattr(plc, name, module)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    plc.Column, plc.Table = plc.column.Column, plc.table.Table
    monkeypatch.setattr(
        "pkgutil.walk_packages",
        lambda _path, prefix: [types.SimpleNamespace(name=prefix + name) for name in parts],
    )
    return plc
