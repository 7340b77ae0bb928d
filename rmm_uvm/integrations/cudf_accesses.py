# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""cuDF: the columns that its operations are about to use, announced to the budget's manager.

libcudf's kernels are not seen from outside. cuDF 26.10 asks for access to a column before it hands
it to libcudf (``ColumnBase.access``), one column or several at a time (``access_columns``); what it
asks for is what is needed next. Memory that libcudf uses within an operation is seen when it is
allocated. Operations that do not ask are served by page faults, as without this.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.errors import MonitorWarning
from rmm_uvm.integrations.when_imported import when_imported
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.residency.streams import stream_handle

__all__ = ["observe", "wire_accesses"]

_COLUMNS = "cudf.core.column.column"


def wire_accesses(residencies: Sequence[ManagedResidency]) -> Wiring:
    """Announce what operations of cuDF use, as soon as cuDF is imported.

    Parameters
    ----------
    residencies : sequence of ManagedResidency
        Of the managed pools that keep a budget.
    """
    name = "cudf_accesses"
    if importlib.util.find_spec("cudf") is None:
        return Wiring(name, active=False, reason="cuDF is not installed")
    undo = observe(residencies)
    return Wiring(name, active=True, reason="announced to the budget's manager", undo=undo)


def observe(residencies: Sequence[ManagedResidency]) -> Callable[[], None]:
    """Announce the columns that cuDF asks access to, from now on or from its import on.

    Parameters
    ----------
    residencies : sequence of ManagedResidency
        What is told. Columns in other memory are passed over.

    Returns
    -------
    callable
        Ends it.

    Warns
    -----
    MonitorWarning
        Once, if this cuDF's columns are not as those of 26.10: nothing is announced then.

    Notes
    -----
    While nothing can be away from the device an access costs less than a microsecond more. Several
    observers may be there; end them in any order.
    """
    accesses = _Accesses(tuple(residencies))
    forget = when_imported(_COLUMNS, accesses.attach)

    def end() -> None:
        forget()
        accesses.detach()

    return end


class _Accesses:
    """What is announced to whom, and the calls of cuDF that tell of it."""

    def __init__(self, residencies: tuple[ManagedResidency, ...]) -> None:
        self._residencies = residencies
        self._stream = 0
        self._asked = threading.local()  # .together: several columns are being asked for as one
        self._on = False
        self._replaced: list[tuple[Any, str, Any, Any]] = []  # of what, name, theirs, ours

    def attach(self) -> None:
        """Take note of accesses from now on."""
        try:
            from pylibcudf import utils

            self._stream = stream_handle(getattr(utils, "CUDF_DEFAULT_STREAM", None))
            self._replace(sys.modules[_COLUMNS].ColumnBase, "access", self._one)
        except Exception as error:  # else the import of cuDF would fail with ours
            self._give_up(error)
            return
        self._on = True
        together = sys.modules.get("cudf.core.column.utils")
        if hasattr(together, "_flatten_and_access"):
            # Without it columns are announced one by one: the last ones may drive out the first.
            self._replace(together, "_flatten_and_access", self._several)

    def detach(self) -> None:
        """Announce nothing any more; what others have put over cuDF's calls since stays."""
        self._on = False
        while self._replaced:
            thing, name, theirs, ours = self._replaced.pop()
            if getattr(thing, name) is ours:
                setattr(thing, name, theirs)

    def _replace(self, thing: Any, name: str, made: Callable[[Any], Any]) -> None:
        theirs = getattr(thing, name)
        ours = made(theirs)
        setattr(thing, name, ours)
        self._replaced.append((thing, name, theirs, ours))

    def _one(self, access: Callable[..., Any]) -> Callable[..., Any]:
        residencies = self._residencies

        @functools.wraps(access)
        def observed(column: Any, *args: Any, **kwargs: Any) -> Any:
            for residency in residencies:  # a loop, since cuDF asks some thousand times a second
                if not residency.all_present:
                    if self._on and not getattr(self._asked, "together", False):
                        self._announce((column,))
                    break
            return access(column, *args, **kwargs)

        return observed

    def _several(self, flatten: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def announced(objects: Iterable[Any], *args: Any) -> Iterator[Any]:
            objects = _written_down(objects)
            self._announce(_columns(objects))
            self._asked.together = True
            try:
                yield from flatten(objects, *args)
            finally:
                self._asked.together = False

        @functools.wraps(flatten)
        def observed(objects: Iterable[Any], *args: Any) -> Iterator[Any]:
            passed_over = not self._on or getattr(self._asked, "together", False)
            if passed_over or all(each.all_present for each in self._residencies):
                return flatten(objects, *args)
            return announced(objects, *args)

        return observed

    def _announce(self, columns: Iterable[Any]) -> None:
        try:
            uses = [use for column in columns for use in _uses(column.plc_column)]
            for residency in self._residencies:
                residency.touch_all(uses, self._stream)
        except Exception as error:  # the operation goes on without: it has done nothing wrong
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.detach()
        warnings.warn(
            f"what cuDF is about to use cannot be seen ({type(error).__name__}: {error}), and "
            "comes by page faults: announce it with rmm_uvm.touch",
            MonitorWarning,
            stacklevel=4,
        )


def _written_down(objects: Iterable[Any]) -> tuple[Any, ...]:
    """Return the same with iterators in it as tuples: they can be looked at only once."""
    return tuple(
        _written_down(each)
        if not hasattr(each, "access") and isinstance(each, Iterable) and not _is_text(each)
        else each
        for each in objects
    )


def _columns(objects: Iterable[Any]) -> Iterator[Any]:
    for each in objects:
        if isinstance(each, tuple):
            yield from _columns(each)
        elif hasattr(each, "plc_column"):
            yield each


def _is_text(thing: object) -> bool:
    return isinstance(thing, str | bytes)


def _uses(column: Any) -> Iterator[tuple[int, int, int]]:
    """Yield address, bytes and owner of one of libcudf's columns: data, mask, children."""
    for buffer in (column.data(), column.null_mask()):
        if buffer is not None:
            yield _use(buffer)
    for child in column.children():
        yield from _uses(child)


def _use(buffer: Any) -> tuple[int, int, int]:
    if hasattr(buffer, "memory_info"):  # one that cuDF may spill: its ptr would bring it back
        address, nbytes, where = buffer.memory_info()
        return (address, nbytes, address) if where == "gpu" else (0, 0, 0)
    offset = getattr(buffer, "_offset", None)
    if offset is None:  # none of cuDF's
        return buffer.ptr, buffer.size, buffer.ptr
    owner = buffer.owner.ptr  # not the buffer's own ptr: for one that is written, that copies it
    return owner + offset, buffer.size, owner
