# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What every engine promises: null rules, sharing, joins, groups. One suite for all engines."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.errors import AvailabilityError, ConfigurationError
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.engines.base import Engine, EngineColumn
from rmm_uvm_mortgage.ranges import body_of
from rmm_uvm_mortgage.schema import TableSchema, _table

TABLE = _table(
    "test", "key int64", "date date", "number int32", "amount float64", "flag category flag"
)
ROWS = """\
1|01/01/1999|3|1.5|Y
1|12/01/2000|X|0|N
2|02/29/2000|0||
2||5|-2.25|Y
3|06/01/2001||0|Y
"""
Values = list[Any]


@pytest.fixture(params=["pandas", pytest.param("cudf", marks=pytest.mark.gpu)])
def engine(request: pytest.FixtureRequest) -> Engine[Any, Any]:
    return make_engine(request.param)


def read(engine: Engine[Any, Any], tmp_path: Path, rows: str, schema: TableSchema = TABLE) -> Any:
    path = tmp_path / "table.txt"
    path.write_text("header\n" + rows)
    return engine.read_text(body_of(path, schema), schema, {"flag": ("N", "Y")})


@pytest.fixture
def frame(engine: Engine[Any, Any], tmp_path: Path) -> Any:
    return read(engine, tmp_path, ROWS)


def values(engine: Engine[Any, Any], column: EngineColumn[Any], like: Any) -> Values:
    """Return the values of a column; `like` is any frame of as many rows."""
    frame = engine.select(like, engine.column_names(like)[:1])
    engine.assign(frame, "result", column)
    return engine.to_host(frame).column("result").to_pylist()


def rows(engine: Engine[Any, Any], frame: Any) -> list[tuple[Any, ...]]:
    table = engine.to_host(frame)
    found = zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    return sorted(found, key=repr)


# -- reading ---------------------------------------------------------------------------------------


def test_read_text_gives_all_types_with_nulls(engine: Engine[Any, Any], frame: Any) -> None:
    table = engine.to_host(frame)

    assert engine.height(frame) == 5
    assert table.column("key").to_pylist() == [1, 1, 2, 2, 3]
    assert table.column("number").to_pylist() == [3, None, 0, 5, None]
    assert table.column("amount").to_pylist() == [1.5, 0.0, None, -2.25, 0.0]
    assert table.column("flag").to_pylist() == [1, 0, None, 1, 1]
    assert table.column("date").to_pylist()[2:4] == [datetime.datetime(2000, 2, 29), None]
    assert [str(table.schema.field(n).type) for n in ("number", "flag")] == ["int32", "int32"]


# -- column operators ------------------------------------------------------------------------------


def test_arithmetic_with_null_is_null(engine: Engine[Any, Any], frame: Any) -> None:
    number, amount = engine.column(frame, "number"), engine.column(frame, "amount")

    assert values(engine, number * 12 + number, frame) == [39, None, 0, 65, None]
    assert values(engine, number - 1, frame) == [2, None, -1, 4, None]
    assert values(engine, amount / 2, frame) == [0.75, 0.0, None, -1.125, 0.0]


def test_comparison_with_null_is_null(engine: Engine[Any, Any], frame: Any) -> None:
    number, amount = engine.column(frame, "number"), engine.column(frame, "amount")

    assert values(engine, number >= 3, frame) == [True, None, False, True, None]
    assert values(engine, number > 3, frame) == [False, None, False, True, None]
    assert values(engine, amount.equals(0), frame) == [False, True, None, False, True]
    assert values(engine, amount.equals(0).cast("int32"), frame) == [0, 1, None, 0, 1]


def test_floor_rounds_towards_minus_infinity(engine: Engine[Any, Any], frame: Any) -> None:
    amount = engine.column(frame, "amount")

    assert values(engine, amount.floor(), frame) == [1.0, 0.0, None, -3.0, 0.0]


def test_fill_null_replaces_nulls_only(engine: Engine[Any, Any], frame: Any) -> None:
    number, amount = engine.column(frame, "number"), engine.column(frame, "amount")

    assert values(engine, number.cast("float32").fill_null(-1), frame) == [3, -1, 0, 5, -1]
    assert values(engine, amount.fill_null(-1), frame) == [1.5, 0, -1, -2.25, 0]
    assert values(engine, (number > 3).fill_null(False), frame) == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_date_parts_of_null_are_null(engine: Engine[Any, Any], frame: Any) -> None:
    date = engine.column(frame, "date")

    assert values(engine, date.year(), frame) == [1999, 2000, 2000, None, 2001]
    assert values(engine, date.month().cast("int8"), frame) == [1, 12, 2, None, 6]


# -- frames ----------------------------------------------------------------------------------------


def test_assign_to_a_selection_leaves_the_source_alone(
    engine: Engine[Any, Any], frame: Any
) -> None:
    selection = engine.select(frame, ["key", "number"])

    engine.assign(selection, "number", engine.column(selection, "key"))
    engine.assign_constant(selection, "month", 7, "int8")
    engine.drop(selection, ["key"])

    assert engine.column_names(selection) == ["number", "month"]
    assert engine.to_host(selection).column("month").to_pylist() == [7] * 5
    assert engine.column_names(frame) == list(TABLE.column_names)
    assert engine.to_host(frame).column("number").to_pylist() == [3, None, 0, 5, None]


def test_rename_keeps_the_source_names(engine: Engine[Any, Any], frame: Any) -> None:
    renamed = engine.rename(frame, {"number": "count"})

    assert engine.column_names(renamed) == ["key", "date", "count", "amount", "flag"]
    assert engine.column_names(frame) == list(TABLE.column_names)


def test_filter_takes_null_as_false(engine: Engine[Any, Any], frame: Any) -> None:
    kept = engine.filter(frame, engine.column(frame, "number") >= 3)

    assert engine.to_host(kept).column("amount").to_pylist() == [1.5, -2.25]


def test_filtered_frames_take_new_columns_by_position(engine: Engine[Any, Any], frame: Any) -> None:
    kept = engine.filter(frame, engine.column(frame, "number") >= 3)

    engine.assign(kept, "twice", engine.column(kept, "number") * 2)

    assert engine.to_host(kept).column("twice").to_pylist() == [6, 10]


def test_groupby_skips_nulls_and_keeps_all_null_groups(
    engine: Engine[Any, Any], frame: Any
) -> None:
    grouped = engine.groupby(frame, ["key"], {"number": "max", "amount": "min"})

    assert engine.column_names(grouped) == ["key", "number", "amount"]
    assert rows(engine, grouped) == [(1, 3, 0.0), (2, 5, -2.25), (3, None, 0.0)]


def test_groupby_of_dates_gives_the_first(engine: Engine[Any, Any], frame: Any) -> None:
    dated = engine.filter(frame, engine.column(frame, "amount") >= -10)
    first = engine.groupby(dated, ["key"], {"date": "min"})

    assert rows(engine, first) == [
        (1, datetime.datetime(1999, 1, 1)),
        (2, None),
        (3, datetime.datetime(2001, 6, 1)),
    ]


def test_left_join_keeps_unmatched_rows_with_nulls(engine: Engine[Any, Any], frame: Any) -> None:
    left = engine.select(frame, ["key", "amount"])
    right = engine.groupby(
        engine.filter(frame, engine.column(frame, "number") >= 4),
        ["key"],
        {"number": "max", "date": "min"},
    )

    joined = engine.left_join(left, right, on=["key"])

    assert rows(engine, joined) == sorted(
        [
            (1, 1.5, None, None),
            (1, 0.0, None, None),
            (2, None, 5, None),
            (2, -2.25, 5, None),
            (3, 0.0, None, None),
        ],
        key=repr,
    )
    assert str(engine.to_host(joined).schema.field("number").type) in ("int32", "double")


def test_left_join_repeats_rows_that_match_twice(engine: Engine[Any, Any], frame: Any) -> None:
    left = engine.groupby(frame, ["key"], {"flag": "max"})
    right = engine.select(frame, ["key", "number"])

    joined = engine.left_join(left, right, on=["key"])

    assert engine.height(joined) == 5


def test_left_join_on_several_keys_of_small_types(engine: Engine[Any, Any], frame: Any) -> None:
    left = engine.select(frame, ["key"])
    right = engine.select(frame, ["key", "amount"])
    for table in (left, right):
        engine.assign(table, "year", engine.column(frame, "number").fill_null(9).cast("int16"))
        engine.assign_constant(table, "month", 3, "int8")

    joined = engine.left_join(left, right, on=["key", "year", "month"])

    assert rows(engine, joined) == sorted(
        [(1, 3, 3, 1.5), (1, 9, 3, 0.0), (2, 0, 3, None), (2, 5, 3, -2.25), (3, 9, 3, 0.0)],
        key=repr,
    )


def test_join_and_group_of_no_rows_keep_columns(engine: Engine[Any, Any], frame: Any) -> None:
    nothing = engine.filter(frame, engine.column(frame, "number") >= 99)
    grouped = engine.groupby(nothing, ["key"], {"date": "min"})
    assert engine.height(grouped) == 0

    joined = engine.left_join(engine.select(frame, ["key"]), grouped, on=["key"])

    assert engine.to_host(joined).column("date").to_pylist() == [None] * 5


def test_concat_keeps_order_and_types(engine: Engine[Any, Any], frame: Any) -> None:
    number = engine.select(frame, ["key", "number"])

    table = engine.to_host(engine.concat([number, number]))

    assert table.column("number").to_pylist() == [3, None, 0, 5, None] * 2
    assert str(table.schema.field("number").type) == "int32"


def test_from_host_returns_what_to_host_gave(engine: Engine[Any, Any]) -> None:
    import pyarrow as pa

    table = pa.table({"a": pa.array([1.5, -1.0], pa.float32()), "b": pa.array([0, 1], pa.int32())})

    assert engine.to_host(engine.from_host(table)).equals(table)


# -- the engine itself -----------------------------------------------------------------------------


def test_stage_ends_for_every_observer_after_an_error() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.events: list[str] = []

        def begin(self, name: str) -> None:
            self.events.append(f"begin {name}")

        def end(self, name: str) -> None:
            self.events.append(f"end {name}")

    engine = make_engine("pandas")
    recorders = [Recorder(), Recorder()]
    engine.observers.extend(recorders)

    with pytest.raises(MemoryError), engine.stage("s"):
        raise MemoryError

    assert [recorder.events for recorder in recorders] == [["begin s", "end s"]] * 2


def test_make_engine_of_an_unknown_name_lists_the_engines() -> None:
    with pytest.raises(ConfigurationError, match="no engine 'duckdb'; there are cudf, pandas"):
        make_engine("duckdb")


@pytest.mark.parametrize(("name", "module"), [("pandas", "pandas"), ("cudf", "cudf")])
def test_make_engine_without_its_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)

    with pytest.raises(AvailabilityError, match=f"the {name} engine needs {module}: pip install"):
        make_engine(name)
