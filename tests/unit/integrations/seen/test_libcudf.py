# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What libcudf is given is announced; pylibcudf and cuDF are played by modules with their calls."""

from __future__ import annotations

import enum
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.errors import MonitorWarning
from rmm_uvm.integrations.seen.libcudf import LibcudfCalls, wire_libcudf

MIB = 1 << 20


class TypeId(enum.IntEnum):
    INT64 = 4
    STRING = 23
    DICTIONARY32 = 22
    LIST = 24
    STRUCT = 28


class DataType:
    def __init__(self, kind: TypeId) -> None:
        self._kind = kind

    def id(self) -> TypeId:
        return self._kind


INT64, STRING, STRUCT, LIST = map(
    DataType, (TypeId.INT64, TypeId.STRING, TypeId.STRUCT, TypeId.LIST)
)


class Owner:
    def __init__(self, mr: Any, nbytes: int) -> None:
        self._held = rmm.DeviceBuffer(size=nbytes, mr=mr)
        self._ptr = self._held.ptr

    @property
    def ptr(self) -> int:
        return self._ptr


class CudfBuffer:
    """A slice of an owner, as ``cudf.core.buffer.buffer.Buffer``."""

    def __init__(self, owner: Owner, nbytes: int, offset: int = 0) -> None:
        self._owner, self._size, self._offset = owner, nbytes, offset

    @property
    def owner(self) -> Owner:
        return self._owner

    @property
    def size(self) -> int:
        return self._size

    @property
    def ptr(self) -> int:
        raise AssertionError("ptr of a buffer that is written copies what is shared")


class RenamedBuffer:
    """A slice whose fields have other names than cuDF's, and whose properties do not."""

    def __init__(self, owner: Owner, nbytes: int, offset: int = 0) -> None:
        self.owner, self.size, self._offset = owner, nbytes, offset


class Span:
    """A piece of device memory, as ``pylibcudf.gpumemoryview``."""

    __slots__ = ("_held", "ptr", "size")

    def __init__(self, mr: Any, nbytes: int) -> None:
        self._held = rmm.DeviceBuffer(size=nbytes, mr=mr)
        self.ptr, self.size = self._held.ptr, nbytes


class Column:
    def __init__(
        self,
        data: Any,
        rows: int = 0,
        offset: int = 0,
        mask: Any = None,
        children: tuple[Any, ...] = (),
        data_type: Any = INT64,
    ) -> None:
        self._parts = data, mask, children
        self._rows = rows, offset
        self._type = data_type

    def data(self) -> Any:
        return self._parts[0]

    def null_mask(self) -> Any:
        return self._parts[1]

    def children(self) -> list[Any]:
        return list(self._parts[2])

    def size(self) -> int:
        return self._rows[0]

    def offset(self) -> int:
        return self._rows[1]

    def type(self) -> Any:
        return self._type

    def copy(self) -> str:
        return "copied"


class Table:
    def __init__(self, columns: list[Any]) -> None:
        self._columns = columns

    def columns(self) -> tuple[Any, ...]:
        return tuple(self._columns)


class GroupBy:
    __slots__ = ()

    def __init__(self, keys: Any) -> None:
        pass

    def aggregate(self, requests: list[Any]) -> str:
        return f"{len(requests)} aggregated"


class Stream:
    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def gather(source: Any, gather_map: Any, stream: Any = None) -> tuple[Any, ...]:
    """gather(Table source, Column gather_map, stream=None) -> Table"""
    return source, gather_map, stream


def slice_of(column: Any, indices: list[int]) -> str:
    """slice(Column column, list indices) -> list"""
    return "sliced"


def is_supported_cast(source: Any, to: Any) -> bool:
    """is_supported_cast(DataType source, DataType to) -> bool"""
    return True


def play(monkeypatch: pytest.MonkeyPatch, **classes: Any) -> types.ModuleType:
    """Put a pylibcudf in place that looks things up as 26.10's does; return it."""
    plc = types.ModuleType("pylibcudf")
    plc.__path__ = []
    parts = {
        "copying": {"gather": classes.get("gather", gather), "slice": slice_of},
        "concatenate": {n: classes[n] for n in ("concatenate",) if n in classes},
        "unary": {"is_supported_cast": is_supported_cast},
        "groupby": {"GroupBy": classes.get("GroupBy", GroupBy)},
        "column": {"Column": classes.get("Column", Column)},
        "table": {"Table": Table},
        "types": {"TypeId": TypeId, "size_of": lambda _type: 8},
        "traits": {"is_fixed_width": lambda each: each.id() == TypeId.INT64},
        "io": {},
        "io.csv": {n: classes[n] for n in ("read_csv",) if n in classes},
        "utils": {"CUDF_DEFAULT_STREAM": classes.get("default_stream")},
    }
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
        lambda _path, prefix, names=tuple(parts): [
            types.SimpleNamespace(name=prefix + name) for name in names
        ],
    )
    return plc


@pytest.fixture
def mr() -> Any:
    return rmm_uvm.managed_pool(
        driver="simulated:256MiB", device_budget="16MiB", maximum_pool_size="192MiB"
    )


@pytest.fixture
def plc(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(GroupBy, "aggregate", GroupBy.aggregate)  # put back what a test leaves
    return play(monkeypatch)


@pytest.fixture
def calls(mr: Any, plc: Any) -> Iterator[LibcudfCalls]:
    calls = LibcudfCalls([mr.managed_mr.residency])
    calls.attach_when_imported()
    yield calls
    calls.detach()


@pytest.fixture
def wanted(mr: Any, calls: LibcudfCalls) -> Callable[[], int]:
    """Bytes of uses that were announced since this was asked before."""
    seen = [0]

    def since() -> int:
        now = mr.managed_mr.residency.residency()["wanted_bytes"]
        seen[0], before = now, seen[0]
        return int(now - before)

    return since


def column_of(mr: Any, nbytes: int) -> Column:
    return Column(CudfBuffer(Owner(mr, nbytes), nbytes), nbytes // 8)


def fill(mr: Any, count: int = 4, nbytes: int = 6 * MIB) -> list[Column]:
    """Return columns that are more than the budget: the first ones are away."""
    return [column_of(mr, nbytes) for _ in range(count)]


def test_what_a_function_is_given_is_brought_in(plc: Any, mr: Any, wanted: Any) -> None:
    columns = fill(mr)
    table, column = Table(columns[:1]), columns[1]
    assert plc.copying.gather(table, column) == (table, column, None)
    assert wanted() == 12 * MIB
    assert mr.managed_mr.residency.residency()["fetched_bytes"] >= 6 * MIB


def test_while_all_is_present_nothing_is_announced(plc: Any, mr: Any, wanted: Any) -> None:
    plc.copying.gather(Table([column_of(mr, 6 * MIB)]), None)
    assert wanted() == 0


def test_lists_and_named_arguments_are_looked_into(plc: Any, mr: Any, wanted: Any) -> None:
    columns = fill(mr, 8, 4 * MIB)
    plc.copying.gather([columns[0], columns[1]], gather_map=(columns[2],))
    assert wanted() == 12 * MIB
    plc.copying.gather(list(range(1000)), "text")
    assert wanted() == 0


def test_what_one_call_uses_stays_for_the_rest_of_it(plc: Any, mr: Any, wanted: Any) -> None:
    columns = fill(mr, 8, 4 * MIB)
    for _ in range(2):
        plc.copying.gather(columns[:3], None)
    statistics = mr.managed_mr.residency.residency()
    assert wanted() == 24 * MIB
    assert statistics["present_bytes"] >= 12 * MIB


def test_a_column_is_announced_by_its_rows(plc: Any, mr: Any, wanted: Any) -> None:
    held = fill(mr)
    owner = Owner(mr, 16 * MIB)
    buffer, rows = CudfBuffer(owner, 16 * MIB), 2 * MIB // 8
    plc.copying.gather(Column(buffer, rows, offset=3 * rows), None)
    assert wanted() == 2 * MIB
    plc.copying.gather(Column(buffer, 1, offset=0, mask=CudfBuffer(Owner(mr, 4 * MIB), 64)), None)
    assert wanted() == 4 * MIB  # a block each
    assert len(held) == 4


def test_rows_of_strings_lists_and_structures_are_those_of_their_parts(
    plc: Any, mr: Any, wanted: Any
) -> None:
    held = fill(mr)
    rows = 2 * MIB // 8

    def offsets() -> Column:
        return Column(CudfBuffer(Owner(mr, 16 * MIB), 16 * MIB), 8 * rows)

    characters = CudfBuffer(Owner(mr, 2 * MIB), 2 * MIB)
    text = Column(characters, rows - 1, 2 * rows, children=(offsets(),), data_type=STRING)
    plc.copying.gather(text, None)
    assert wanted() == 4 * MIB
    numbers = Column(None, rows, 2 * rows, children=(offsets(), offsets()), data_type=STRUCT)
    plc.copying.gather(numbers, None)
    assert wanted() == 4 * MIB
    elements = Column(CudfBuffer(Owner(mr, 4 * MIB), 4 * MIB), 2 * rows)
    lists = Column(None, rows - 1, 0, children=(offsets(), elements), data_type=LIST)
    plc.copying.gather(lists, None)
    assert wanted() == 6 * MIB
    assert len(held) == 4


class Told:
    """In the place of a residency: what it is told."""

    budget = None

    def __init__(self, *, all_present: bool) -> None:
        self.all_present = all_present
        self.made: list[tuple[int, int, int]] = []
        self.only_read: list[bool] = []

    def touch_all(self, _uses: Any, _stream: int, only_read: bool) -> None:
        self.only_read.append(only_read)

    def note_made(self, uses: Any) -> None:
        self.made += uses


def copy_range_in_place(*given: Any) -> tuple[Any, ...]:
    return given


def test_only_what_writes_in_place_is_announced_to_be_written(
    monkeypatch: pytest.MonkeyPatch, mr: Any
) -> None:
    plc = play(monkeypatch)
    plc.copying.copy_range_in_place = copy_range_in_place
    told = Told(all_present=False)
    calls = LibcudfCalls([told])  # type: ignore[list-item]
    calls.attach_when_imported()
    column = column_of(mr, 2 * MIB)
    plc.copying.gather(column, None)
    assert told.only_read == [True]  # the host may keep its copy of it
    plc.copying.copy_range_in_place(column, None)
    assert told.only_read == [True, False]
    calls.detach()


@pytest.mark.parametrize("all_present", [False, True])
def test_what_a_reader_returns_is_known_to_be_written(
    monkeypatch: pytest.MonkeyPatch, mr: Any, all_present: bool
) -> None:
    columns = [column_of(mr, 6 * MIB), column_of(mr, 2 * MIB)]
    result = types.SimpleNamespace(tbl=Table(columns))
    plc = play(monkeypatch, read_csv=lambda options: result)
    told = Told(all_present=all_present)
    calls = LibcudfCalls([told])  # type: ignore[list-item]
    calls.attach_when_imported()
    try:
        assert plc.__dict__["io.csv"].read_csv("options") is result
        assert "io.csv.read_csv" in calls.seen
        assert told.made == ([] if all_present else [_all_of(each) for each in columns])
    finally:
        calls.detach()
    assert plc.__dict__["io.csv"].read_csv("options") is result
    assert len(told.made) == (0 if all_present else 2)
    result.tbl = columns = None  # the module keeps its function


def _all_of(column: Column) -> tuple[int, int, int]:
    buffer = column.data()
    return buffer.owner.ptr, buffer.size, buffer.owner.ptr


def test_reader_whose_result_is_another_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    plc = play(monkeypatch, read_csv=lambda options: options)
    told = Told(all_present=False)
    calls = LibcudfCalls([told])  # type: ignore[list-item]
    calls.attach_when_imported()
    try:
        assert plc.__dict__["io.csv"].read_csv("options") == "options"
        broken = types.SimpleNamespace(tbl=Table([types.SimpleNamespace]))
        broken.tbl.columns = None
        with pytest.warns(MonitorWarning, match="io.csv.read_csv"):
            assert plc.__dict__["io.csv"].read_csv(broken) is broken
        assert told.made == []
    finally:
        calls.detach()


def test_buffers_of_other_memory_and_spilled_ones_are_passed_over(
    plc: Any, mr: Any, wanted: Any
) -> None:
    held = fill(mr)
    foreign = types.SimpleNamespace(ptr=4096, size=MIB)

    class Spilled:
        def memory_info(self) -> tuple[int, int, str]:
            return held[0], 5, "cpu"

    plc.copying.gather(Column(foreign, MIB // 8, mask=Spilled()), None)
    assert wanted() == 0


def test_slice_whose_fields_have_other_names_is_announced_by_its_properties(
    plc: Any, mr: Any, wanted: Any
) -> None:
    held = fill(mr)
    sliced = RenamedBuffer(Owner(mr, 4 * MIB), 2 * MIB, 2 * MIB)
    plc.copying.gather(Column(sliced, 2 * MIB // 8), None)
    assert wanted() == 2 * MIB
    assert len(held) == 4


def test_plain_buffers_are_announced_whole(plc: Any, mr: Any, wanted: Any) -> None:
    held = fill(mr)
    plc.copying.gather(Span(mr, 2 * MIB), None)
    assert wanted() == 2 * MIB
    assert len(held) == 4


def test_methods_and_what_their_object_is_made_of_are_announced(
    plc: Any, mr: Any, wanted: Any
) -> None:
    columns = fill(mr, 12, 2 * MIB)
    assert columns[0].copy() == "copied"
    assert wanted() == 2 * MIB
    grouped = plc.groupby.GroupBy(Table(columns[:2]))
    assert wanted() == 0
    held = fill(mr)
    assert grouped.aggregate([columns[3]]) == "1 aggregated"
    assert wanted() == 6 * MIB
    assert len(held) == 4


def test_views_and_questions_are_no_uses(plc: Any, mr: Any, calls: Any, wanted: Any) -> None:
    columns = fill(mr)
    plc.copying.slice(columns[0], [0, 1])
    plc.unary.is_supported_cast(INT64, STRING)
    assert wanted() == 0
    assert calls.seen == ["copying.gather", "column.Column.copy", "groupby.GroupBy.aggregate"]


@pytest.mark.parametrize("named", [True, False])
def test_the_stream_of_the_call_is_the_one_that_waits(
    plc: Any, mr: Any, calls: Any, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(calls.announcer, "tell", lambda _uses, stream, **_: asked.append(stream))
    held = fill(mr)
    if named:
        plc.copying.gather(held[0], None, stream=Stream(77))
    else:
        plc.copying.gather(held[0], None, Stream(77))
    plc.copying.gather(held[0], None)
    assert asked == [77, 0]


def test_names_that_were_taken_before_are_seen_too(
    monkeypatch: pytest.MonkeyPatch, mr: Any, plc: Any
) -> None:
    user = types.ModuleType("cudf_polars.dsl")
    user.gather = gather  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cudf_polars.dsl", user)
    calls = LibcudfCalls([mr.managed_mr.residency])
    calls.attach_when_imported()
    assert user.gather is plc.copying.gather
    calls.detach()
    assert user.gather is gather
    assert plc.copying.gather is gather


def test_ended_calls_leave_pylibcudf_as_it_was(mr: Any, plc: Any) -> None:
    before = plc.copying.gather, Column.copy, GroupBy.__init__, GroupBy.aggregate
    assert before[0] is gather
    first, second = (LibcudfCalls([mr.managed_mr.residency]) for _ in range(2))
    for each in (first, second):
        each.attach_when_imported()
    first.detach()  # under the other one: it stays, and is quiet
    held = fill(mr)
    plc.copying.gather(held[0], None)
    assert mr.managed_mr.residency.residency()["wanted_bytes"] == 6 * MIB
    second.detach()
    plc.copying.gather(held[0], None)
    assert mr.managed_mr.residency.residency()["wanted_bytes"] == 6 * MIB


def test_the_last_one_that_ends_puts_pylibcudf_back(mr: Any, plc: Any) -> None:
    before = plc.copying.gather, Column.copy, GroupBy.__init__, GroupBy.aggregate
    first, second = (LibcudfCalls([mr.managed_mr.residency]) for _ in range(2))
    for each in (first, second):
        each.attach_when_imported()
    assert plc.copying.gather is not before[0]
    second.detach()
    first.detach()
    assert (plc.copying.gather, Column.copy, GroupBy.__init__, GroupBy.aggregate) == before


def test_a_call_that_cannot_be_looked_at_goes_on_and_only_that_one(
    plc: Any, mr: Any, calls: Any, wanted: Any
) -> None:
    held = fill(mr)

    class Odd(Column):
        def size(self) -> int:
            raise RuntimeError("of another make")

    with pytest.warns(MonitorWarning, match=r"copying\.gather cannot be seen .*rmm_uvm\.touch"):
        assert plc.copying.gather(Odd(held[0].data()), None)[1] is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        plc.copying.gather(Odd(held[0].data()), None)
        plc.copying.gather(held[0], None)
    assert wanted() == 6 * MIB
    assert calls.announcer.failures == {"copying.gather": "RuntimeError: of another make"}


@pytest.mark.parametrize("size", [-1, None, 1 << 70])
def test_odd_sizes_do_not_fail_the_call(plc: Any, mr: Any, calls: Any, size: Any) -> None:
    held = fill(mr)
    odd = types.SimpleNamespace(ptr=4096, size=size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MonitorWarning)
        assert plc.copying.gather(Column(odd, 1 << 50), held[0])[1] is held[0]


def test_error_of_the_call_comes_through(
    monkeypatch: pytest.MonkeyPatch, mr: Any, plc: Any
) -> None:
    def failing(column: Any) -> None:
        """failing(Column column)"""
        raise KeyError("of the program")

    monkeypatch.setattr(plc.copying, "gather", failing)
    calls = LibcudfCalls([mr.managed_mr.residency])
    calls.attach_when_imported()
    with pytest.raises(KeyError, match="of the program"):
        plc.copying.gather(fill(mr)[0])
    calls.detach()


def test_pylibcudf_of_another_make_is_left_alone_and_said(
    monkeypatch: pytest.MonkeyPatch, mr: Any
) -> None:
    plc = play(monkeypatch)
    del plc.Column
    calls = LibcudfCalls([mr.managed_mr.residency])
    with pytest.warns(MonitorWarning, match=r"rmm_uvm\.touch"):
        calls.attach_when_imported()
    assert plc.copying.gather is gather


def play_cudf(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put cuDF's columns in place, which have an interface and ask for access as 26.10's do."""
    module = types.ModuleType("cudf.core.column.column")

    class ColumnBase:
        def __init__(self, plc_column: Any) -> None:
            self.plc_column = plc_column

        @property
        def __cuda_array_interface__(self) -> str:
            return "an interface"

        def access(self, **how: Any) -> dict[str, Any]:
            return how

    module.ColumnBase = ColumnBase  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return ColumnBase


def test_columns_that_are_handed_to_others_are_announced(
    monkeypatch: pytest.MonkeyPatch, mr: Any, plc: Any
) -> None:
    base = play_cudf(monkeypatch)
    calls = LibcudfCalls([mr.managed_mr.residency])
    calls.attach_when_imported()
    held = fill(mr)
    column = base(held[0])
    assert column.__cuda_array_interface__ == "an interface"
    assert mr.managed_mr.residency.residency()["wanted_bytes"] == 6 * MIB
    column.access(mode="read")  # its methods are seen themselves
    assert mr.managed_mr.residency.residency()["wanted_bytes"] == 6 * MIB
    calls.detach()


def test_where_classes_cannot_be_changed_access_tells_of_methods(
    monkeypatch: pytest.MonkeyPatch, mr: Any
) -> None:
    class Fixed(type):
        def __setattr__(cls, name: str, value: Any) -> None:
            raise TypeError("cannot set attribute of immutable type")

    class FixedColumn(Column, metaclass=Fixed):
        copy = Column.copy

    play(monkeypatch, Column=FixedColumn)
    base = play_cudf(monkeypatch)
    calls = LibcudfCalls([mr.managed_mr.residency])
    calls.attach_when_imported()
    assert "column.Column.copy" in calls.announcer.refused
    held = fill(mr)
    data = held[0].data()
    assert base(FixedColumn(data, data.size // 8)).access(mode="read") == {"mode": "read"}
    assert mr.managed_mr.residency.residency()["wanted_bytes"] == 6 * MIB
    calls.detach()


def test_wiring_without_cudf_says_so(mr: Any) -> None:
    wiring = wire_libcudf([mr.managed_mr.residency])
    assert not wiring.active
    assert wiring.reason == "cuDF is not installed"
