# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The queries of `pandas_engine.py` as lazy frames of Polars: another way to the same answers.

Run on the CPU they say what the answers are. Written from what the queries ask, not from the other
module: what two plans and two libraries agree on is hardly the same mistake twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import polars as pl
from polars import col

from benchmarks.tpch.queries import TABLES

Scans = Mapping[str, pl.LazyFrame]
REVENUE = col("l_extendedprice") * (1 - col("l_discount"))


def scan_tables(folder: Path) -> dict[str, pl.LazyFrame]:
    """Return all tables, of which a query reads what it uses."""
    return {name: pl.scan_parquet(folder / f"{name}.parquet") for name in TABLES}


def _from_until(name: str, begin: datetime, end: datetime) -> pl.Expr:
    return col(name).is_between(begin, end, closed="left")


def q1(scans: Scans) -> pl.LazyFrame:
    return (
        scans["lineitem"]
        .filter(col("l_shipdate") <= datetime(1998, 9, 2))
        .group_by("l_returnflag", "l_linestatus")
        .agg(
            sum_qty=col("l_quantity").sum(),
            sum_base_price=col("l_extendedprice").sum(),
            sum_disc_price=REVENUE.sum(),
            sum_charge=(REVENUE * (1 + col("l_tax"))).sum(),
            avg_qty=col("l_quantity").mean(),
            avg_price=col("l_extendedprice").mean(),
            avg_disc=col("l_discount").mean(),
            count_order=pl.len(),
        )
        .sort("l_returnflag", "l_linestatus")
    )


def q3(scans: Scans) -> pl.LazyFrame:
    day = datetime(1995, 3, 15)
    building = scans["customer"].filter(col("c_mktsegment") == "BUILDING")
    return (
        scans["lineitem"]
        .filter(col("l_shipdate") > day)
        .group_by("l_orderkey")
        .agg(revenue=REVENUE.sum())
        .join(
            scans["orders"].filter(col("o_orderdate") < day),
            left_on="l_orderkey",
            right_on="o_orderkey",
        )
        .join(building, left_on="o_custkey", right_on="c_custkey", how="semi")
        .sort("revenue", "o_orderdate", descending=[True, False])
        .head(10)
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
    )


def q4(scans: Scans) -> pl.LazyFrame:
    late = scans["lineitem"].filter(col("l_receiptdate") > col("l_commitdate"))
    return (
        scans["orders"]
        .filter(_from_until("o_orderdate", datetime(1993, 7, 1), datetime(1993, 10, 1)))
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("o_orderpriority")
        .agg(order_count=pl.len())
        .sort("o_orderpriority")
    )


def q5(scans: Scans) -> pl.LazyFrame:
    nations = scans["nation"].join(
        scans["region"].filter(col("r_name") == "ASIA"),
        left_on="n_regionkey",
        right_on="r_regionkey",
        how="semi",
    )
    suppliers = scans["supplier"].join(nations, left_on="s_nationkey", right_on="n_nationkey")
    orders = scans["orders"].filter(
        _from_until("o_orderdate", datetime(1994, 1, 1), datetime(1995, 1, 1))
    )
    return (
        scans["lineitem"]
        .join(suppliers, left_on="l_suppkey", right_on="s_suppkey")
        .join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(scans["customer"], left_on="o_custkey", right_on="c_custkey")
        .filter(col("c_nationkey") == col("s_nationkey"))
        .group_by("n_name")
        .agg(revenue=REVENUE.sum())
        .sort("revenue", descending=True)
    )


def q6(scans: Scans) -> pl.LazyFrame:
    return (
        scans["lineitem"]
        .filter(
            _from_until("l_shipdate", datetime(1994, 1, 1), datetime(1995, 1, 1)),
            col("l_discount") >= 0.05,
            col("l_discount") <= 0.07,
            col("l_quantity") < 24,
        )
        .select(revenue=(col("l_extendedprice") * col("l_discount")).sum())
    )


def q9(scans: Scans) -> pl.LazyFrame:
    green = scans["part"].filter(col("p_name").str.contains("green", literal=True))
    nations = scans["supplier"].join(scans["nation"], left_on="s_nationkey", right_on="n_nationkey")
    profit = REVENUE - col("ps_supplycost") * col("l_quantity")
    return (
        scans["partsupp"]
        .join(green, left_on="ps_partkey", right_on="p_partkey", how="semi")
        .join(nations, left_on="ps_suppkey", right_on="s_suppkey")
        .join(
            scans["lineitem"],
            left_on=["ps_partkey", "ps_suppkey"],
            right_on=["l_partkey", "l_suppkey"],
        )
        .join(scans["orders"], left_on="l_orderkey", right_on="o_orderkey")
        .group_by(nation=col("n_name"), o_year=col("o_orderdate").dt.year())
        .agg(sum_profit=profit.sum())
        .sort("nation", "o_year", descending=[False, True])
    )


def q10(scans: Scans) -> pl.LazyFrame:
    orders = scans["orders"].filter(
        _from_until("o_orderdate", datetime(1993, 10, 1), datetime(1994, 1, 1))
    )
    return (
        scans["lineitem"]
        .filter(col("l_returnflag") == "R")
        .join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .group_by("o_custkey")
        .agg(revenue=REVENUE.sum())
        .join(scans["customer"], left_on="o_custkey", right_on="c_custkey", coalesce=False)
        .join(scans["nation"], left_on="c_nationkey", right_on="n_nationkey")
        .sort("revenue", descending=True)
        .head(20)
        .select(
            *("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment"),
            "revenue",
        )
    )


def q12(scans: Scans) -> pl.LazyFrame:
    high = col("o_orderpriority").str.slice(0, 1).is_in(["1", "2"])
    return (
        scans["lineitem"]
        .filter(
            (col("l_shipmode") == "MAIL") | (col("l_shipmode") == "SHIP"),
            col("l_shipdate") < col("l_commitdate"),
            col("l_commitdate") < col("l_receiptdate"),
            _from_until("l_receiptdate", datetime(1994, 1, 1), datetime(1995, 1, 1)),
        )
        .join(scans["orders"], left_on="l_orderkey", right_on="o_orderkey")
        .group_by("l_shipmode")
        .agg(high_line_count=high.sum(), low_line_count=(~high).sum())
        .sort("l_shipmode")
    )


def q13(scans: Scans) -> pl.LazyFrame:
    counted = (
        scans["orders"]
        .filter(~col("o_comment").str.contains("special.*requests"))
        .group_by("o_custkey")
        .agg(c_count=pl.len())
    )
    return (
        scans["customer"]
        .join(counted, left_on="c_custkey", right_on="o_custkey", how="left")
        .with_columns(col("c_count").fill_null(0))
        .group_by("c_count")
        .agg(custdist=pl.len())
        .sort("custdist", "c_count", descending=True)
    )


def q14(scans: Scans) -> pl.LazyFrame:
    promoted = pl.when(col("p_type").str.starts_with("PROMO")).then(REVENUE).otherwise(0.0)
    return (
        scans["lineitem"]
        .filter(_from_until("l_shipdate", datetime(1995, 9, 1), datetime(1995, 10, 1)))
        .join(scans["part"], left_on="l_partkey", right_on="p_partkey")
        .select(promo_revenue=100 * promoted.sum() / REVENUE.sum())
    )


def q18(scans: Scans) -> pl.LazyFrame:
    return (
        scans["lineitem"]
        .group_by("l_orderkey")
        .agg(col("l_quantity").sum().alias("sum(l_quantity)"))
        .filter(col("sum(l_quantity)") > 300)
        .join(scans["orders"], left_on="l_orderkey", right_on="o_orderkey")
        .join(scans["customer"], left_on="o_custkey", right_on="c_custkey")
        .sort("o_totalprice", "o_orderdate", descending=[True, False])
        .head(100)
        .select(
            "c_name",
            col("o_custkey").alias("c_custkey"),
            col("l_orderkey").alias("o_orderkey"),
            *("o_orderdate", "o_totalprice", "sum(l_quantity)"),
        )
    )


QUERIES: dict[str, Callable[[Scans], pl.LazyFrame]] = {
    **{"q1": q1, "q3": q3, "q4": q4, "q5": q5, "q6": q6, "q9": q9, "q10": q10, "q12": q12},
    **{"q13": q13, "q14": q14, "q18": q18},
}
