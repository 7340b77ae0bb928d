# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""libcudf, where Python calls it: pylibcudf's functions and methods.

cuDF, cudf.pandas and cudf-polars all call ``pylibcudf.MODULE.FUNCTION(...)``, and look it up when
they call: so others can be put in the place of the modules' attributes. The classes of pylibcudf's
wheels can be changed as well; where a build refuses that, cuDF's own ``ColumnBase.access`` tells of
what methods use.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rmm_uvm._lib.residency import ManagedResidency
from rmm_uvm.integrations.seen.announcer import Announcer
from rmm_uvm.integrations.seen.by_column import ByColumn
from rmm_uvm.integrations.seen.columns import ColumnUses
from rmm_uvm.integrations.when_imported import when_imported
from rmm_uvm.integrations.wiring import Wiring
from rmm_uvm.residency.streams import stream_handle

__all__ = ["LibcudfCalls", "observe", "wire_libcudf"]

_CUDF_COLUMNS = "cudf.core.column.column"

# Modules of pylibcudf that take nothing from the device.
_OF_THE_HOST = {
    "aggregation",
    "context",
    "expressions",
    "prefetch",
    "span",
    "traits",
    "types",
    "typing",
    "utilities",
    "utils",
    "column",
    "column_factories",
    "gpumemoryview",
    "table",
    "scalar",
    "libcudf",
    "_version",
    "_interop_helpers",
    "exception_handler",
    "io.types",
    "io.datasource",
    "strings.regex_flags",
    "strings.regex_program",
    "strings.side_type",
    "strings.char_types_enum",
}
# Functions that make views and read nothing: to bring all for a slice would be for nothing.
_VIEWS = {
    "copying.slice",
    "copying.split",
    "copying.empty_like",
    "contiguous_split.unpack",
    "contiguous_split.unpack_from_memoryviews",
}
# Methods that read or write what their object is made of, or what they are given.
_METHODS = {
    "column.Column": (
        "copy",
        "to_arrow",
        "to_scalar",
        "to_pylist",
        "_to_host_array",
        "_to_device_array",
    ),
    "table.Table": ("copy", "to_arrow", "_to_host_array", "_to_device_array"),
    "groupby.GroupBy": ("aggregate", "scan", "shift", "replace_nulls", "get_groups"),
    "join.FilteredJoin": ("semi_join", "anti_join"),
    "contiguous_split.ChunkedPack": ("create", "next", "pack_to_host"),
    "reduce.ApproxDistinctCount": ("add", "merge", "estimate"),
    "io.parquet.ChunkedParquetWriter": ("write",),
    "io.parquet.ParquetWriterOptions": ("builder",),
    "io.orc.OrcChunkedWriter": ("write",),
    "io.orc.OrcWriterOptions": ("builder",),
    "io.json.JsonWriterOptions": ("builder",),
    "io.csv.CsvWriterOptions": ("builder",),
}
# Methods that return a table that nobody has read yet, as functions named `read_...` do.
_READERS = {"io.parquet.ChunkedParquetReader": ("read_chunk",)}
# What writes into what it is given; all others only read that.
_WRITES = re.compile(r"_in_place$|\.normalize_nans_and_zeros$|\.next$")
# Classes whose objects are made of columns that their methods, or functions, use.
_MADE_OF_COLUMNS = ("groupby.GroupBy", "groupby.GroupByRequest", "rolling.RollingRequest")

_DEVICE_ARGUMENT = re.compile(
    r"\b(Column|Table|list|tuple|dict|object|Iterable|Span|\w*Operand|ColumnOr\w+|TableOr\w+|"
    r"GroupBy\w*|gpumemoryview|PackedColumns|\w*Input\w*|stream)\b"
)


def wire_libcudf(residencies: Sequence[ManagedResidency]) -> Wiring:
    """Announce what calls of libcudf use, as soon as pylibcudf is imported.

    Parameters
    ----------
    residencies : sequence of ManagedResidency
        Of the managed pools that keep a budget.
    """
    name = "libcudf_calls"
    if importlib.util.find_spec("pylibcudf") is None:
        return Wiring(name, active=False, reason="cuDF is not installed")
    undo = observe(residencies)
    return Wiring(name, active=True, reason="announced to the budget's manager", undo=undo)


def observe(residencies: Sequence[ManagedResidency]) -> Callable[[], None]:
    """Announce what calls of libcudf use, from now on or from the import of pylibcudf on.

    Parameters
    ----------
    residencies : sequence of ManagedResidency
        What is told. Columns in other memory are passed over.

    Returns
    -------
    callable
        Ends it.
    """
    calls = LibcudfCalls(residencies)
    calls.attach_when_imported()
    return calls.detach


class LibcudfCalls:
    """Announces what Python gives libcudf, just before each call.

    Parameters
    ----------
    residencies : sequence of ManagedResidency
        What is told. Columns in other memory are passed over.

    Attributes
    ----------
    seen : list of str
        Functions and methods that are looked at, as ``"MODULE.FUNCTION"``.
    announcer : Announcer
        Its `failures` are calls that could not be looked at.

    Warns
    -----
    MonitorWarning
        Once, when a call's arguments are not as those of pylibcudf 26.10: that call goes on without
        being announced, and so does each other one that is like it.
    """

    def __init__(self, residencies: Sequence[ManagedResidency]) -> None:
        self.announcer = Announcer("cuDF", residencies)
        self.seen: list[str] = []
        self._forget: list[Callable[[], None]] = []

    def attach_when_imported(self) -> None:
        """Announce from now on, or from the import of pylibcudf on."""
        self._forget.append(when_imported("pylibcudf", self._attach))

    def detach(self) -> None:
        """Announce nothing any more."""
        for forget in self._forget:
            forget()
        self.announcer.detach()

    def _attach(self) -> None:
        try:
            plc = sys.modules["pylibcudf"]
            utils = importlib.import_module("pylibcudf.utils")
            self._uses = ColumnUses(plc, stream_handle(getattr(utils, "CUDF_DEFAULT_STREAM", None)))
            self._replace_functions(plc)
            self._replace_methods(plc)
        except Exception as error:  # else the import of cuDF would fail with ours
            self.announcer.detach()
            self.announcer.fail("all calls", error)
            return
        self._forget.append(when_imported(_CUDF_COLUMNS, self._attach_to_cudf))

    def _replace_functions(self, plc: Any) -> None:
        ours_for: dict[int, Any] = {}
        by_column = ByColumn(plc)
        for name, module in _modules_of(plc):
            for attribute in getattr(module, "__all__", None) or _public(module):
                theirs: Any = getattr(module, attribute, None)
                label = f"{name}.{attribute}"
                reads = _reads_a_file(label, theirs)
                if label in _VIEWS or not (reads or _takes_device_memory(theirs)):
                    continue
                # One that has two names is one.
                ours = ours_for.get(id(theirs))
                if ours is None and reads:
                    ours = self.announcer.after(label, theirs, self._uses.of_result)
                elif ours is None:
                    ours = self._before(label, theirs, divide=by_column.divider(label))
                ours_for[id(theirs)] = ours
                if self.announcer.replace(module, attribute, ours, label):
                    self.seen.append(label)
        # Names that were taken out of pylibcudf's modules before.
        for name, module in list(sys.modules.items()):
            if not name.startswith(("cudf.", "cudf_polars.")):
                continue
            for attribute, value in list(vars(module).items()):
                ours = ours_for.get(id(value))
                if ours is not None and ours.__wrapped__ is value:
                    self.announcer.replace(module, attribute, ours, f"{name}.{attribute}")

    def _replace_methods(self, plc: Any) -> None:
        for path in _MADE_OF_COLUMNS:
            made = _class_at(plc, path)
            if made is not None and "__init__" in vars(made):
                ours = self._remembering(made.__init__)
                if self.announcer.replace(made, "__init__", ours, f"{path}.__init__"):
                    self._uses.look_for_remembered(made)
        for path, methods in _METHODS.items():
            theirs_of = _class_at(plc, path)
            for method in methods if theirs_of is not None else ():
                theirs = vars(theirs_of).get(method)
                if theirs is None:
                    continue
                label = f"{path}.{method}"
                static = isinstance(theirs, staticmethod)
                inner = theirs.__func__ if isinstance(theirs, staticmethod) else theirs
                ours = self._before(label, inner)
                if self.announcer.replace(
                    theirs_of, method, staticmethod(ours) if static else ours, label
                ):
                    self.seen.append(label)

        for path, methods in _READERS.items():
            theirs_of = _class_at(plc, path)
            for method in methods if theirs_of is not None else ():
                if (theirs := vars(theirs_of).get(method)) is None:
                    continue
                ours = self.announcer.after(f"{path}.{method}", theirs, self._uses.of_result)
                if self.announcer.replace(theirs_of, method, ours, f"{path}.{method}"):
                    self.seen.append(f"{path}.{method}")

    def _before(self, label: str, theirs: Callable[..., Any], **more: Any) -> Callable[..., Any]:
        only_read = _WRITES.search(label) is None
        return self.announcer.before(label, theirs, self._uses.of_call, only_read=only_read, **more)

    def _remembering(self, theirs: Callable[..., None]) -> Callable[..., None]:
        remember = self._uses.remember

        @functools.wraps(theirs)
        def made(this: Any, *args: Any, **kwargs: Any) -> None:
            theirs(this, *args, **kwargs)
            remember(this, (*args, *kwargs.values()))

        return made

    def _attach_to_cudf(self) -> None:
        """See to columns that are handed to others, and to methods that nobody may replace."""
        base = getattr(sys.modules[_CUDF_COLUMNS], "ColumnBase", None)
        interface = getattr(base, "__cuda_array_interface__", None)
        if base is None or not isinstance(interface, property) or interface.fget is None:
            return
        of_column = functools.partial(_of_cudf_column, self._uses)
        name = "ColumnBase.__cuda_array_interface__"
        handed_out = property(self.announcer.before(name, interface.fget, of_column))
        if self.announcer.replace(base, "__cuda_array_interface__", handed_out, name):
            self.seen.append(name)
        if "column.Column.copy" not in self.seen and hasattr(base, "access"):
            ours = self.announcer.before("ColumnBase.access", base.access, of_column)
            if self.announcer.replace(base, "access", ours, "ColumnBase.access"):
                self.seen.append("ColumnBase.access")


def _of_cudf_column(uses: ColumnUses, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    return uses.of_call((args[0].plc_column,), {})


def _modules_of(plc: Any) -> Iterator[tuple[str, Any]]:
    prefix = f"{plc.__name__}."
    for info in pkgutil.walk_packages(plc.__path__, prefix):
        name = info.name[len(prefix) :]
        if name not in _OF_THE_HOST and name.split(".")[0] not in _OF_THE_HOST:
            yield name, importlib.import_module(info.name)


def _public(module: Any) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")]


def _reads_a_file(label: str, thing: Any) -> bool:
    module, _, function = label.rpartition(".")
    return module.startswith("io.") and function.startswith("read_") and callable(thing)


def _takes_device_memory(thing: Any) -> bool:
    """By the signature in the first line of what Cython says of a function."""
    if (
        thing is None
        or isinstance(thing, type)
        or not callable(thing)
        or hasattr(thing, "__path__")
    ):
        return False
    if getattr(thing, "__name__", "").startswith(("is_supported", "read_", "make_source")):
        return False
    first_line = (getattr(thing, "__doc__", None) or "").strip().partition("\n")[0]
    signature = re.match(r"[\w.]+\((.*)\)", first_line)
    if signature is None or type(thing).__name__.startswith("fused"):
        return True  # nobody knows: it is looked at when it is called
    return bool(_DEVICE_ARGUMENT.search(signature.group(1)))


def _class_at(plc: Any, path: str) -> Any:
    thing = plc
    for part in path.split("."):
        thing = getattr(thing, part, None)
    return thing
