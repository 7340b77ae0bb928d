# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which device memory the arguments of pylibcudf's calls are made of."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from rmm_uvm.integrations.seen.announcer import Use
from rmm_uvm.residency.streams import stream_handle

__all__ = ["ColumnUses"]

_Look = Callable[[Any, list[Use]], None]
_Place = Callable[[Any], tuple[int, int, int]]  # address, bytes, and the allocation's first byte
_REMEMBERED = 4096  # objects made of columns, before those whose columns have gone are forgotten


class ColumnUses:
    """Finds columns, tables and buffers among arguments, also in lists, and what they use.

    A column uses its rows only: it may be a slice of a longer one. Of what has no fixed width the
    whole is used, as nobody knows where a row begins without reading it.

    Parameters
    ----------
    plc : module
        pylibcudf.
    stream : int
        Handle of the stream of calls that name none.
    """

    def __init__(self, plc: Any, stream: int) -> None:
        self._stream = stream
        self._size_of = plc.types.size_of
        self._is_fixed_width = plc.traits.is_fixed_width
        kinds = plc.types.TypeId
        self._shares_rows = {kinds.STRUCT}
        self._begins_with_rows = {kinds.STRING: 1, kinds.LIST: 1, kinds.DICTIONARY32: 0}
        self._layouts: dict[Any, tuple[int, Any]] = {}  # width; kind, if it may have children
        self._made_of: dict[int, tuple[weakref.ref[Any], ...]] = {}  # columns, by an object's id
        self._looks: dict[type, _Look | None] = {
            plc.Column: self._column,
            plc.Table: self._table,
            list: self._each,
            tuple: self._each,
        }
        self._places: dict[type, _Place] = {}  # how a type of buffers tells where it is
        self._streams: set[type] = set()  # that were among arguments
        for kind in (int, float, str, bytes, bool, type(None)):
            self._looks[kind] = None

    def of_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Use], int]:
        """Return what a call uses, and the handle of the stream that it is told."""
        uses: list[Use] = []
        looks = self._looks
        for thing in args:  # as `_look_at`, which would be one more call for each of them
            try:
                look = looks[type(thing)]
            except KeyError:
                look = self._learn(type(thing))
            if look is not None:
                look(thing, uses)
        stream = None
        if kwargs:
            stream = kwargs.get("stream")
            for thing in kwargs.values():
                if thing is not stream:
                    self._look_at(thing, uses)
        if stream is None:
            if not self._streams:
                return uses, self._stream
            # It may be told by its place.
            stream = next((each for each in args if type(each) in self._streams), None)
        return uses, self._stream if stream is None else stream_handle(stream)

    def of_result(self, result: Any) -> list[Use]:
        """Return what a reader's result is made of: its table, with names beside it."""
        table = getattr(result, "tbl", None)
        return [] if table is None else self.of_call((table,), {})[0]

    def remember(self, made: Any, args: Iterable[Any]) -> None:
        """Take note of the columns that an object is made of: they are used when it is."""
        # By id: such classes take no attributes and no weak references. A live object's id is its
        # own, and whoever has a dead one's passes here first.
        self._made_of[id(made)] = tuple(map(weakref.ref, self._columns_in(args)))
        if len(self._made_of) > _REMEMBERED:
            for key, columns in list(self._made_of.items()):
                if all(each() is None for each in columns):
                    del self._made_of[key]

    def look_for_remembered(self, kind: type) -> None:
        """Look at objects of a class as at the columns that they are made of."""
        self._looks[kind] = self._remembered

    def _columns_in(self, things: Iterable[Any]) -> Iterable[Any]:
        for thing in things:
            look = self._looks.get(type(thing))
            if look == self._column:
                yield thing
            elif look == self._table:
                yield from thing.columns()
            elif look == self._each:
                yield from self._columns_in(thing)

    def _look_at(self, thing: Any, uses: list[Use]) -> None:
        kind = type(thing)
        try:
            look = self._looks[kind]
        except KeyError:
            look = self._learn(kind)
        if look is not None:
            look(thing, uses)

    def _learn(self, kind: type) -> _Look | None:
        """Find out, once for each type, how its objects are looked at."""
        if hasattr(kind, "__cuda_stream__"):
            self._streams.add(kind)
        look = next((known for each, known in self._looks.items() if issubclass(kind, each)), None)
        if look is None and hasattr(kind, "ptr") and hasattr(kind, "size"):
            look = self._whole_buffer
        self._looks[kind] = look
        return look

    def _each(self, things: Iterable[Any], uses: list[Use]) -> None:
        for thing in things:
            if self._looks.get(type(thing), self) is None:
                return  # lists are of one kind: no look at a million numbers
            self._look_at(thing, uses)

    def _remembered(self, thing: Any, uses: list[Use]) -> None:
        for reference in self._made_of.get(id(thing), ()):
            column = reference()
            if column is not None:
                self._column(column, uses)

    def _table(self, table: Any, uses: list[Use]) -> None:
        for column in table.columns():
            self._rows(column, column.offset(), column.size(), uses)

    def _column(self, column: Any, uses: list[Use]) -> None:
        self._rows(column, column.offset(), column.size(), uses)

    def _rows(self, column: Any, first: int, count: int, uses: list[Use]) -> None:
        data_type = column.type()
        try:
            width, kind = self._layouts[data_type]
        except KeyError:
            width, kind = self._layout(data_type)
        data = column.data()
        if data is not None:
            self._buffer(data, first * width, count * width if width else None, uses)
        mask = column.null_mask()
        if mask is not None:
            self._buffer(mask, first // 8, (first % 8 + count + 7) // 8, uses)
        if kind is not None:
            self._children(column, kind, first, count, uses)

    def _children(self, column: Any, kind: Any, first: int, count: int, uses: list[Use]) -> None:
        children = column.children()
        if not children:
            return
        if kind in self._shares_rows:
            for child in children:
                self._rows(child, child.offset() + first, count, uses)
            return
        more = self._begins_with_rows.get(kind)
        if more is not None:
            rows, *children = children
            self._rows(rows, rows.offset() + first, count + more, uses)
        for child in children:
            self._column(child, uses)

    def _layout(self, data_type: Any) -> tuple[int, Any]:
        if self._is_fixed_width(data_type):
            layout = self._size_of(data_type), None
        else:
            layout = 0, data_type.id()
        self._layouts[data_type] = layout
        return layout

    def _whole_buffer(self, buffer: Any, uses: list[Use]) -> None:
        self._buffer(buffer, 0, None, uses)

    def _buffer(self, buffer: Any, first_byte: int, nbytes: int | None, uses: list[Use]) -> None:
        """Add a part of a buffer; None: all from `first_byte` on."""
        try:
            place = self._places[type(buffer)]
        except KeyError:
            place = self._places[type(buffer)] = _place_of(buffer)
        address, size, owner = place(buffer)
        rest = size - first_byte
        used = rest if nbytes is None or nbytes > rest else nbytes
        if used > 0:
            uses.append((address + first_byte, used, owner))


def _place_of(buffer: Any) -> _Place:
    """Return what tells where buffers of a type are."""
    if hasattr(type(buffer), "memory_info"):
        return _of_spillable
    if not hasattr(buffer, "_offset"):
        return _of_its_own
    fields = hasattr(buffer, "_owner") and hasattr(buffer, "_size")
    return _of_cudf if fields and hasattr(buffer._owner, "_ptr") else _of_cudf_by_properties


def _of_spillable(buffer: Any) -> tuple[int, int, int]:
    """Return the memory of a buffer that cuDF may spill: its ptr would bring it back."""
    owner, size, where = buffer.memory_info()
    return owner, size if where == "gpu" else 0, owner


def _of_cudf(buffer: Any) -> tuple[int, int, int]:
    """Of cuDF's; not by its ptr, which copies what is shared. Fields cost a third of properties."""
    owner = buffer._owner._ptr
    return owner + buffer._offset, buffer._size, owner


def _of_cudf_by_properties(buffer: Any) -> tuple[int, int, int]:
    owner = buffer.owner.ptr
    return owner + buffer._offset, buffer.size, owner


def _of_its_own(buffer: Any) -> tuple[int, int, int]:
    address = buffer.ptr
    return address, buffer.size, address
