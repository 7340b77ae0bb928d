# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Queries like those of TPC-H, on the CPU: two implementations agree, and what does not is seen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from .residency_scripts import script

tables_module = script("tpch/tables")
pandas_queries = script("tpch/pandas_engine")
polars_queries = script("tpch/polars_engine")
shared = script("tpch/queries")
answers = script("tpch/answers")
SCALE = 0.01
ROWS = {
    **{"region": 5, "nation": 25, "supplier": 100, "customer": 1500, "part": 2000},
    **{"partsupp": 8000, "orders": 15000},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("tables")
    rows = tables_module.provide_tables(made, SCALE)
    assert {name: rows[name] for name in ROWS} == ROWS
    in_polars("q6", made)  # what Polars opens it keeps: no test of its own leaves that behind
    return made


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, pd.DataFrame]:
    read: dict[str, pd.DataFrame] = pandas_queries.read_tables(folder)
    return read


def in_pandas(name: str, tables: dict[str, pd.DataFrame]) -> Any:
    frame = pandas_queries.QUERIES[name](tables)
    return answers.plain({column: frame[column].tolist() for column in frame.columns})


def in_polars(name: str, folder: Path) -> Any:
    frame = polars_queries.QUERIES[name](polars_queries.scan_tables(folder)).collect()
    return answers.plain(frame.to_dict(as_series=False))


def test_tables_items_fit_their_orders_and_suppliers(tables: dict[str, pd.DataFrame]) -> None:
    orders, items, pairs = tables["orders"], tables["lineitem"], tables["partsupp"]
    assert 3.9 < len(items) / len(orders) < 4.1
    assert orders["o_orderkey"].is_unique
    assert set(items["l_orderkey"]) == set(orders["o_orderkey"])
    assert set(orders["o_custkey"]) < set(tables["customer"]["c_custkey"])
    assert not pairs.duplicated(["ps_partkey", "ps_suppkey"]).any()
    sold = items[["l_partkey", "l_suppkey"]].drop_duplicates()
    kept = sold.merge(
        pairs, left_on=["l_partkey", "l_suppkey"], right_on=["ps_partkey", "ps_suppkey"]
    )
    assert len(kept) == len(sold)
    charge = items["l_extendedprice"] * (1 - items["l_discount"]) * (1 + items["l_tax"])
    totals = charge.groupby(items["l_orderkey"]).sum().round(2)
    assert np.allclose(orders.set_index("o_orderkey")["o_totalprice"], totals, atol=0.011)
    assert not items.duplicated(["l_orderkey", "l_linenumber"]).any()


def test_tables_of_a_seed_are_the_same_and_of_another_are_not(tmp_path: Path, folder: Path) -> None:
    for seed in (1, 2):
        tables_module.write_tables(tmp_path / str(seed), SCALE, seed)
    for name in ("supplier", "lineitem"):
        file = f"{name}.parquet"
        assert (tmp_path / "1" / file).read_bytes() == (folder / file).read_bytes()
        assert (tmp_path / "2" / file).read_bytes() != (folder / file).read_bytes()


def test_tables_with_too_few_suppliers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"scale is 0\.001: at least 0\.01"):
        tables_module.write_tables(tmp_path, 0.001)


def test_tables_that_are_there_are_taken_if_they_are_those(folder: Path) -> None:
    before = (folder / "orders.parquet").stat().st_mtime_ns
    assert tables_module.provide_tables(folder, SCALE)["orders"] == ROWS["orders"]
    assert (folder / "orders.parquet").stat().st_mtime_ns == before
    for scale, seed in ((0.02, 1), (SCALE, 2)):
        with pytest.raises(ValueError, match="are tables of"):
            tables_module.provide_tables(folder, scale, seed)


@pytest.mark.parametrize("name", shared.ORDER)
def test_query_in_pandas_and_in_polars_gives_one_answer(
    name: str, folder: Path, tables: dict[str, pd.DataFrame]
) -> None:
    expected, got = in_polars(name, folder), in_pandas(name, tables)
    assert len(next(iter(expected.values()))) > 0
    assert answers.differences(expected, got, shared.ORDER[name]) == []


@pytest.mark.parametrize("name", shared.ORDER)
def test_query_over_half_the_rows_gives_another_answer(
    name: str, folder: Path, tables: dict[str, pd.DataFrame]
) -> None:
    halved = {part: tables[part].iloc[::2] for part in ("orders", "lineitem")}
    got = in_pandas(name, {**tables, **halved})
    assert answers.differences(in_polars(name, folder), got, shared.ORDER[name])


@pytest.mark.parametrize("name", shared.ORDER)
def test_query_in_pandas_compares_with_no_timestamp(
    name: str, tables: dict[str, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pandas_queries, "pd", SimpleNamespace(DataFrame=pd.DataFrame))
    assert in_pandas(name, tables)
    dates = tables["orders"]["o_orderdate"]
    kept = pandas_queries._from_until(dates, "1994-01-01", "1995-01-01")
    assert kept.equals(dates.dt.year == 1994)  # midnight of both ends
    assert 0 < kept.sum() < len(dates)


def test_queries_are_the_same_in_both_modules() -> None:
    assert set(pandas_queries.QUERIES) == set(polars_queries.QUERIES) == set(shared.ORDER)


ANSWER = {"name": ["a", "b", "c"], "count": [1, 2, 2], "sum": [10.0, 20.0, 30.0]}
BY_COUNT = (("count", False),)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sum": [10.0, 20.0001, 30.0]}, "sum: 20.0001 in place of 20.0"),
        ({"count": [1, 2, 3]}, "count: 3 in place of 2"),
        ({"name": ["a", "b", "d"]}, "name: 'd' in place of 'c'"),
        ({"count": [1.0, 2.0, 2.0]}, "count: 1.0 in place of 1"),
        ({"sum": [10.0, None, 30.0]}, "sum: None in place of 20.0"),
        ({name: values[:2] for name, values in ANSWER.items()}, "name: 2 rows in place of 3"),
        (
            {name: values[::-1] for name, values in ANSWER.items()},
            "got: row 2 is out of order: count is 1 after 2",
        ),
        ({"more": [1, 2, 3]}, "columns are"),
    ],
    ids=["float", "int", "text", "kind", "missing", "rows", "order", "columns"],
)
def test_answer_that_differs_is_told(changed: dict[str, list[Any]], said: str) -> None:
    found = answers.differences(ANSWER, {**ANSWER, **changed}, BY_COUNT)
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    "changed",
    [
        {"sum": [10.0, 20.00001, 30.0]},
        {"name": ["a", "c", "b"], "sum": [10.0, 30.0, 20.0]},  # a tie
    ],
    ids=["float", "tie"],
)
def test_answer_that_may_differ_so_is_the_same(changed: dict[str, list[Any]]) -> None:
    assert answers.differences(ANSWER, {**ANSWER, **changed}, BY_COUNT) == []


def test_answer_out_of_order_is_the_same_where_none_is_asked_for() -> None:
    turned = {name: values[::-1] for name, values in ANSWER.items()}
    assert answers.differences(ANSWER, turned) == []


def test_order_descends_where_it_is_said_to() -> None:
    down = {name: values[::-1] for name, values in ANSWER.items()}
    assert answers.differences(down, down, (("count", True),)) == []
    assert len(answers.differences(down, down, BY_COUNT)) == 2  # of both


def test_values_become_plain() -> None:
    day = pd.Timestamp("1995-03-15")
    got = answers.plain({"a": [np.int32(1), np.float64("nan")], "b": [day, day.date()]})
    assert got == {"a": [1, None], "b": ["1995-03-15", "1995-03-15"]}
    assert type(got["a"][0]) is int
    assert answers.digest(got) != answers.digest({**got, "a": [2, None]})
