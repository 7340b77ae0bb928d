# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Eleven of the queries of TPC-H in plain pandas, with the parameters of its validation run.

They were written in this project, after the queries' text; those of others are cudf-polars' own.
Nothing here knows of cuDF: whether these are pandas' frames or those of `cudf.pandas` is decided
before this module is imported. Each query takes the tables by name and returns its answer.

Days are NumPy's: cudf.pandas has nothing on the GPU for a `pandas.Timestamp`, so that a comparison
with one would copy the whole column to the host and leave it to pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.tpch.queries import TABLES

Tables = Mapping[str, pd.DataFrame]


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Return all tables, with all of their columns."""
    return {name: pd.read_parquet(folder / f"{name}.parquet") for name in TABLES}


def _from_until(dates: pd.Series, begin: str, end: str) -> pd.Series:
    return (dates >= np.datetime64(begin)) & (dates < np.datetime64(end))


def _revenue(items: pd.DataFrame) -> pd.Series:
    return items["l_extendedprice"] * (1 - items["l_discount"])


def q1(tables: Tables) -> pd.DataFrame:
    """Summarise what was shipped, by flag and status."""
    items = tables["lineitem"]
    items = items[items["l_shipdate"] <= np.datetime64("1998-09-02")]
    reduced = _revenue(items)
    items = items.assign(disc_price=reduced, charge=reduced * (1 + items["l_tax"]))
    return (
        items.groupby(["l_returnflag", "l_linestatus"], as_index=False)
        .agg(
            sum_qty=("l_quantity", "sum"),
            sum_base_price=("l_extendedprice", "sum"),
            sum_disc_price=("disc_price", "sum"),
            sum_charge=("charge", "sum"),
            avg_qty=("l_quantity", "mean"),
            avg_price=("l_extendedprice", "mean"),
            avg_disc=("l_discount", "mean"),
            count_order=("l_orderkey", "count"),
        )
        .sort_values(["l_returnflag", "l_linestatus"])
    )


def q3(tables: Tables) -> pd.DataFrame:
    """Return the ten orders of most value that have not been shipped."""
    day = np.datetime64("1995-03-15")
    customers, orders, items = tables["customer"], tables["orders"], tables["lineitem"]
    customers = customers[customers["c_mktsegment"] == "BUILDING"][["c_custkey"]]
    orders = orders[orders["o_orderdate"] < day]
    orders = orders.merge(customers, left_on="o_custkey", right_on="c_custkey")
    joined = items[items["l_shipdate"] > day].merge(
        orders[["o_orderkey", "o_orderdate", "o_shippriority"]],
        left_on="l_orderkey",
        right_on="o_orderkey",
    )
    joined["revenue"] = _revenue(joined)
    return (
        joined.groupby(["l_orderkey", "o_orderdate", "o_shippriority"], as_index=False)["revenue"]
        .sum()
        .sort_values(["revenue", "o_orderdate"], ascending=[False, True])
        .head(10)[["l_orderkey", "revenue", "o_orderdate", "o_shippriority"]]
    )


def q4(tables: Tables) -> pd.DataFrame:
    """Count orders of a quarter that came late, by priority."""
    orders, items = tables["orders"], tables["lineitem"]
    late = items[items["l_commitdate"] < items["l_receiptdate"]]["l_orderkey"]
    orders = orders[_from_until(orders["o_orderdate"], "1993-07-01", "1993-10-01")]
    orders = orders[orders["o_orderkey"].isin(late)]
    return (
        orders.groupby("o_orderpriority", as_index=False)
        .agg(order_count=("o_orderkey", "count"))
        .sort_values("o_orderpriority")
    )


def q5(tables: Tables) -> pd.DataFrame:
    """Return what suppliers of a region took from customers of their own nation."""
    regions, orders = tables["region"], tables["orders"]
    nations = tables["nation"].merge(
        regions[regions["r_name"] == "ASIA"], left_on="n_regionkey", right_on="r_regionkey"
    )[["n_nationkey", "n_name"]]
    orders = orders[_from_until(orders["o_orderdate"], "1994-01-01", "1995-01-01")]
    joined = (
        orders[["o_orderkey", "o_custkey"]]
        .merge(
            tables["customer"][["c_custkey", "c_nationkey"]],
            left_on="o_custkey",
            right_on="c_custkey",
        )
        .merge(nations, left_on="c_nationkey", right_on="n_nationkey")
        .merge(
            tables["lineitem"][["l_orderkey", "l_suppkey", "l_extendedprice", "l_discount"]],
            left_on="o_orderkey",
            right_on="l_orderkey",
        )
        .merge(
            tables["supplier"][["s_suppkey", "s_nationkey"]],
            left_on=["l_suppkey", "c_nationkey"],
            right_on=["s_suppkey", "s_nationkey"],
        )
    )
    joined["revenue"] = _revenue(joined)
    return (
        joined.groupby("n_name", as_index=False)["revenue"]
        .sum()
        .sort_values("revenue", ascending=False)
    )


def q6(tables: Tables) -> pd.DataFrame:
    """Return what would have been earned without some discounts."""
    items = tables["lineitem"]
    items = items[
        _from_until(items["l_shipdate"], "1994-01-01", "1995-01-01")
        & items["l_discount"].between(0.05, 0.07)
        & (items["l_quantity"] < 24)
    ]
    return pd.DataFrame({"revenue": [(items["l_extendedprice"] * items["l_discount"]).sum()]})


def q9(tables: Tables) -> pd.DataFrame:
    """Return profits of parts of one color, by nation and year."""
    parts = tables["part"]
    parts = parts[parts["p_name"].str.contains("green", regex=False)][["p_partkey"]]
    joined = (
        tables["lineitem"]
        .merge(parts, left_on="l_partkey", right_on="p_partkey")
        .merge(
            tables["partsupp"],
            left_on=["l_partkey", "l_suppkey"],
            right_on=["ps_partkey", "ps_suppkey"],
        )
        .merge(
            tables["supplier"][["s_suppkey", "s_nationkey"]],
            left_on="l_suppkey",
            right_on="s_suppkey",
        )
        .merge(
            tables["orders"][["o_orderkey", "o_orderdate"]],
            left_on="l_orderkey",
            right_on="o_orderkey",
        )
        .merge(
            tables["nation"][["n_nationkey", "n_name"]],
            left_on="s_nationkey",
            right_on="n_nationkey",
        )
    )
    joined["o_year"] = joined["o_orderdate"].dt.year
    joined["sum_profit"] = _revenue(joined) - joined["ps_supplycost"] * joined["l_quantity"]
    return (
        joined.rename(columns={"n_name": "nation"})
        .groupby(["nation", "o_year"], as_index=False)["sum_profit"]
        .sum()
        .sort_values(["nation", "o_year"], ascending=[True, False])
    )


def q10(tables: Tables) -> pd.DataFrame:
    """Return the twenty customers who sent back most."""
    orders, items = tables["orders"], tables["lineitem"]
    orders = orders[_from_until(orders["o_orderdate"], "1993-10-01", "1994-01-01")]
    joined = (
        items[items["l_returnflag"] == "R"]
        .merge(orders[["o_orderkey", "o_custkey"]], left_on="l_orderkey", right_on="o_orderkey")
        .merge(tables["customer"], left_on="o_custkey", right_on="c_custkey")
        .merge(tables["nation"], left_on="c_nationkey", right_on="n_nationkey")
    )
    joined["revenue"] = _revenue(joined)
    who = ["c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment"]
    return (
        joined.groupby(who, as_index=False)["revenue"]
        .sum()
        .sort_values("revenue", ascending=False)
        .head(20)
    )


def q12(tables: Tables) -> pd.DataFrame:
    """Count late items of two ways of shipping, by how urgent the order was."""
    items = tables["lineitem"]
    items = items[
        items["l_shipmode"].isin(["MAIL", "SHIP"])
        & (items["l_commitdate"] < items["l_receiptdate"])
        & (items["l_shipdate"] < items["l_commitdate"])
        & _from_until(items["l_receiptdate"], "1994-01-01", "1995-01-01")
    ]
    joined = items[["l_orderkey", "l_shipmode"]].merge(
        tables["orders"][["o_orderkey", "o_orderpriority"]],
        left_on="l_orderkey",
        right_on="o_orderkey",
    )
    urgent = joined["o_orderpriority"].isin(["1-URGENT", "2-HIGH"])
    joined["high_line_count"] = urgent.astype("int64")
    joined["low_line_count"] = (~urgent).astype("int64")
    return (
        joined.groupby("l_shipmode", as_index=False)[["high_line_count", "low_line_count"]]
        .sum()
        .sort_values("l_shipmode")
    )


def q13(tables: Tables) -> pd.DataFrame:
    """Return how many customers have how many orders without a special request."""
    orders = tables["orders"]
    orders = orders[~orders["o_comment"].str.contains("special.*requests", regex=True)]
    joined = tables["customer"][["c_custkey"]].merge(
        orders[["o_custkey", "o_orderkey"]], left_on="c_custkey", right_on="o_custkey", how="left"
    )
    each = joined.groupby("c_custkey", as_index=False).agg(c_count=("o_orderkey", "count"))
    return (
        each.groupby("c_count", as_index=False)
        .agg(custdist=("c_custkey", "count"))
        .sort_values(["custdist", "c_count"], ascending=[False, False])
    )


def q14(tables: Tables) -> pd.DataFrame:
    """Return which percentage of a month's revenue came from promoted parts."""
    items = tables["lineitem"]
    items = items[_from_until(items["l_shipdate"], "1995-09-01", "1995-10-01")]
    joined = items[["l_partkey", "l_extendedprice", "l_discount"]].merge(
        tables["part"][["p_partkey", "p_type"]], left_on="l_partkey", right_on="p_partkey"
    )
    revenue = _revenue(joined)
    promoted = revenue[joined["p_type"].str.startswith("PROMO")].sum()
    return pd.DataFrame({"promo_revenue": [100.0 * promoted / revenue.sum()]})


def q18(tables: Tables) -> pd.DataFrame:
    """Return the hundred dearest of the orders over 300 pieces."""
    items = tables["lineitem"][["l_orderkey", "l_quantity"]]
    each = items.groupby("l_orderkey", as_index=False)["l_quantity"].sum()
    large = each[each["l_quantity"] > 300]
    joined = (
        tables["orders"]
        .merge(large, left_on="o_orderkey", right_on="l_orderkey")
        .merge(
            tables["customer"][["c_custkey", "c_name"]], left_on="o_custkey", right_on="c_custkey"
        )
    )
    joined = joined.sort_values(["o_totalprice", "o_orderdate"], ascending=[False, True]).head(100)
    names = ["c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "l_quantity"]
    return joined[names].rename(columns={"l_quantity": "sum(l_quantity)"})


QUERIES: dict[str, Callable[[Tables], pd.DataFrame]] = {
    **{"q1": q1, "q3": q3, "q4": q4, "q5": q5, "q6": q6, "q9": q9, "q10": q10, "q12": q12},
    **{"q13": q13, "q14": q14, "q18": q18},
}
