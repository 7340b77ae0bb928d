# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which device memory the arguments of a kernel are: arrays of any library, and cuDF's columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from rmm_uvm.integrations.seen.announcer import Use
from rmm_uvm.integrations.seen.columns import ColumnUses
from rmm_uvm.residency.memory_of import (
    buffer_region,
    interface_of,
    interface_regions,
    is_cudf,
    tensor_region,
    unwrapped,
)

__all__ = ["ArrayUses", "cupy_base"]

_Look = Callable[[Any, list[Use]], None]
_LONG = 64  # items: a longer list that begins with a number has no arrays


class ArrayUses:
    """Finds arrays among things, also in lists, and the memory that they use.

    Whatever is no array and no buffer is passed over, host memory too. Arrays of CuPy and columns
    of cuDF are looked at without asking for their interface, which may be seen itself.
    """

    def __init__(self) -> None:
        self._columns: ColumnUses | None = None
        self._looks: dict[type, _Look | None] = {list: self._each, tuple: self._each}
        for kind in (int, float, complex, str, bytes, bool, type(None)):
            self._looks[kind] = None

    def of_things(self, things: Iterable[Any]) -> list[Use]:
        """Return what things use, each once."""
        uses: list[Use] = []
        for thing in things:
            self._look_at(thing, uses)
        return list(dict.fromkeys(uses)) if len(uses) > 1 else uses

    def _look_at(self, thing: Any, uses: list[Use]) -> None:
        kind = type(thing)
        try:
            look = self._looks[kind]
        except KeyError:
            look = self._looks[kind] = self._learn(thing, kind)
        if look is not None:
            look(thing, uses)

    def _learn(self, thing: Any, kind: type) -> _Look | None:
        """Find out, once for each type, how its objects are looked at."""
        look: _Look | None = None
        if issubclass(kind, (list, tuple)):
            look = self._each
        elif (base := cupy_base(kind)) is not None:
            look = _cupy_array(base)
        elif any("_fsproxy_fast_type" in vars(each) for each in kind.__mro__):
            look = self._proxy
        elif is_cudf(thing):
            look = self._cudf
        elif kind.__module__.partition(".")[0] == "torch" and hasattr(kind, "data_ptr"):
            look = _tensor
        elif hasattr(kind, "__cuda_array_interface__"):
            look = _interface
        elif hasattr(kind, "ptr") and hasattr(kind, "mem"):
            look = _pointer
        elif hasattr(kind, "ptr") and (hasattr(kind, "size") or hasattr(kind, "nbytes")):
            look = _buffer
        return look

    def _each(self, things: Any, uses: list[Use]) -> None:
        if len(things) > _LONG and self._looks.get(type(things[0]), self) is None:
            return
        for thing in things:
            self._look_at(thing, uses)

    def _proxy(self, thing: Any, uses: list[Use]) -> None:
        inner = unwrapped(thing)
        if inner is not thing:
            self._look_at(inner, uses)

    def _cudf(self, thing: Any, uses: list[Use]) -> None:
        if isinstance(getattr(thing, "_range", None), range):
            return  # an index of numbers that nobody has written down
        if self._columns is None:
            self._columns = ColumnUses(sys.modules["pylibcudf"], 0)
        if hasattr(thing, "_columns"):  # frames, series, indexes
            columns = thing._columns
        else:  # a column, or what has one: an accessor of categories
            columns = (getattr(thing, "_column", thing),)
        plc = tuple(getattr(each, "plc_column", each) for each in columns)
        uses += self._columns.of_call(plc, {})[0]


def cupy_base(kind: type) -> type | None:
    """Return the class of CuPy's C code that an array's class is made of; None for all others."""
    for each in kind.__mro__:
        if each.__name__ == "_ndarray_base" and each.__module__.startswith("cupy."):
            return each
    return None


def _cupy_array(base: Any) -> _Look:
    pointer_of = base.data.__get__  # not the array's own `data`, which is seen itself

    def look(array: Any, uses: list[Use]) -> None:
        nbytes = array.nbytes
        if nbytes == 0:
            return
        pointer = pointer_of(array)
        owner = pointer.mem.ptr
        if array.flags.forc:
            uses.append((pointer.ptr, nbytes, owner))
            return
        reach = [(each - 1) * step for each, step in zip(array.shape, array.strides, strict=True)]
        before = sum(step for step in reach if step < 0)
        behind = sum(step for step in reach if step > 0)
        uses.append((pointer.ptr + before, behind - before + array.itemsize, owner))

    return look


def _tensor(tensor: Any, uses: list[Use]) -> None:
    if tensor.is_cuda:
        address, nbytes = tensor_region(tensor)
        uses.append((address, nbytes, address))


def _interface(array: Any, uses: list[Use]) -> None:
    for address, nbytes in interface_regions(interface_of(array)):
        uses.append((address, nbytes, address))


def _pointer(pointer: Any, uses: list[Use]) -> None:
    """Add what lies behind a pointer of CuPy: nobody knows how far a kernel goes."""
    memory = pointer.mem
    uses.append((pointer.ptr, memory.size - (pointer.ptr - memory.ptr), memory.ptr))


def _buffer(buffer: Any, uses: list[Use]) -> None:
    address, nbytes = buffer_region(buffer)
    uses.append((address, nbytes, address))
