# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The tables that orders refer to: who sells, who buys, what is sold, and where they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.tpch.columns import (
    addresses,
    any_of,
    cents,
    comments,
    numbered,
    phones,
    picked,
    table_of,
)
from benchmarks.tpch.words import COLORS, CONTAINERS, NATIONS, REGIONS, SEGMENTS, TYPES

SUPPLIERS_OF_A_PART = 4


def region_table() -> pa.Table:
    return table_of(
        {
            "r_regionkey": np.arange(len(REGIONS)),
            "r_name": pa.array(REGIONS),
            "r_comment": pa.array([f"all of {name.lower()}" for name in REGIONS]),
        }
    )


def nation_table() -> pa.Table:
    named = sorted(
        (nation, REGIONS.index(region)) for region in REGIONS for nation in NATIONS[region]
    )
    return table_of(
        {
            "n_nationkey": np.arange(len(named)),
            "n_name": pa.array([nation for nation, _ in named]),
            "n_regionkey": np.array([region for _, region in named]),
            "n_comment": pa.array([f"all of {nation.lower()}" for nation, _ in named]),
        }
    )


def supplier_table(random: np.random.Generator, rows: int) -> pa.Table:
    keys, nations = np.arange(1, rows + 1), random.integers(0, 25, rows)
    complaints = ("Customer slow Complaints", "Customer  many Complaints pending")
    return table_of(
        {
            "s_suppkey": keys,
            "s_name": numbered("Supplier", keys),
            "s_address": addresses(random, rows),
            "s_nationkey": nations,
            "s_phone": phones(random, nations),
            "s_acctbal": cents(random, -99_999, 999_999, rows),
            "s_comment": comments(random, rows, complaints, 0.01),
        }
    )


def customer_table(random: np.random.Generator, rows: int) -> pa.Table:
    keys, nations = np.arange(1, rows + 1), random.integers(0, 25, rows)
    return table_of(
        {
            "c_custkey": keys,
            "c_name": numbered("Customer", keys),
            "c_address": addresses(random, rows),
            "c_nationkey": nations,
            "c_phone": phones(random, nations),
            "c_acctbal": cents(random, -99_999, 999_999, rows),
            "c_mktsegment": any_of(random, SEGMENTS, rows),
            "c_comment": comments(random, rows),
        }
    )


def retail_price(keys: np.ndarray) -> np.ndarray:
    """Return the price of a part, which its key alone decides, as in the specification."""
    return (90_000 + keys // 10 % 20_001 + 100 * (keys % 1000)) / 100


def part_table(random: np.random.Generator, rows: int) -> pa.Table:
    keys, makers = np.arange(1, rows + 1), random.integers(1, 6, rows)
    brands = makers * 10 + random.integers(1, 6, rows)
    colors = random.integers(0, len(COLORS), (rows, 5)).tolist()
    names = [" ".join(COLORS[number] for number in row) for row in colors]
    types = [f"{a} {b} {c}" for a in TYPES[0] for b in TYPES[1] for c in TYPES[2]]
    containers = [f"{a} {b}" for a in CONTAINERS[0] for b in CONTAINERS[1]]
    return table_of(
        {
            "p_partkey": keys,
            "p_name": pa.array(names),
            "p_mfgr": picked([f"Manufacturer#{maker}" for maker in range(6)], makers),
            "p_brand": picked([f"Brand#{brand:02}" for brand in range(56)], brands),
            "p_type": any_of(random, types, rows),
            "p_size": random.integers(1, 51, rows),
            "p_container": any_of(random, containers, rows),
            "p_retailprice": retail_price(keys),
            "p_comment": comments(random, rows),
        }
    )


def supplier_of(keys: np.ndarray, which: np.ndarray, suppliers: int) -> np.ndarray:
    """Return one of the four suppliers of each part, who are far from each other."""
    step = suppliers // SUPPLIERS_OF_A_PART + (keys - 1) // suppliers
    return (keys + which * step) % suppliers + 1


def partsupp_table(random: np.random.Generator, parts: int, suppliers: int) -> pa.Table:
    keys = np.repeat(np.arange(1, parts + 1), SUPPLIERS_OF_A_PART)
    which = np.tile(np.arange(SUPPLIERS_OF_A_PART), parts)
    return table_of(
        {
            "ps_partkey": keys,
            "ps_suppkey": supplier_of(keys, which, suppliers),
            "ps_availqty": random.integers(1, 10_000, len(keys)),
            "ps_supplycost": cents(random, 100, 100_000, len(keys)),
            "ps_comment": comments(random, len(keys)),
        }
    )
