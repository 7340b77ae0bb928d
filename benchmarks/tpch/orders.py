# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Orders and their items, generated piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.tpch.columns import any_of, comments, picked, table_of
from benchmarks.tpch.parties import SUPPLIERS_OF_A_PART, retail_price, supplier_of
from benchmarks.tpch.words import INSTRUCTIONS, MODES, PRIORITIES

ORDERS_AT_ONCE = 500_000  # rows of a piece, so that memory stays small
FIRST_DAY, LAST_DAY = np.datetime64("1992-01-01"), np.datetime64("1998-08-02")  # of orders
TODAY = np.datetime64("1995-06-17")  # what was shipped or received by then is final


def orders_and_items(
    random: np.random.Generator, orders: int, customers: int, parts: int, suppliers: int
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield orders, piece by piece, and their items."""
    for first in range(0, orders, ORDERS_AT_ONCE):
        rows = min(ORDERS_AT_ONCE, orders - first)
        numbers = np.arange(first, first + rows)
        keys = numbers // 8 * 32 + numbers % 8 + 1  # a quarter of the keys is in use
        days = FIRST_DAY + random.integers(0, int((LAST_DAY - FIRST_DAY).astype(int)), rows)
        lines = random.integers(1, 8, rows)
        of_order = np.repeat(np.arange(rows), lines)
        items, final, charge = _items(random, days[of_order], parts, suppliers)
        line_numbers = np.arange(len(of_order)) - np.repeat(np.cumsum(lines) - lines, lines) + 1
        finals = np.bincount(of_order, final, rows)
        status = np.where(finals == lines, 0, np.where(finals == 0, 1, 2))
        # A third of the customers never orders anything.
        ordering = random.integers(0, customers * 2 // 3, rows) * 3 // 2 + 1
        clerks = [f"Clerk#{clerk:09}" for clerk in range(orders // 1500 + 1)]
        yield (
            table_of(
                {
                    "o_orderkey": keys,
                    "o_custkey": ordering,
                    "o_orderstatus": picked(("F", "O", "P"), status),
                    "o_totalprice": np.round(np.bincount(of_order, charge, rows), 2),
                    "o_orderdate": days,
                    "o_orderpriority": any_of(random, PRIORITIES, rows),
                    "o_clerk": any_of(random, clerks, rows),
                    "o_shippriority": np.zeros(rows, dtype=np.int64),
                    "o_comment": comments(random, rows, ("special blithe requests",), 0.01),
                }
            ),
            table_of({"l_orderkey": keys[of_order], "l_linenumber": line_numbers, **items}),
        )


def _items(
    random: np.random.Generator, ordered: np.ndarray, parts: int, suppliers: int
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Return columns of the items that were ordered on those days, which are final, and prices."""
    rows = len(ordered)
    part = random.integers(1, parts + 1, rows)
    quantity = random.integers(1, 51, rows).astype(np.float64)
    price = np.round(quantity * retail_price(part), 2)
    discount, tax = random.integers(0, 11, rows) / 100, random.integers(0, 9, rows) / 100
    shipped = ordered + random.integers(1, 122, rows)
    received = shipped + random.integers(1, 31, rows)
    returned = np.where(received <= TODAY, random.integers(0, 2, rows), 2)
    final = shipped <= TODAY
    columns = {
        "l_partkey": part,
        "l_suppkey": supplier_of(part, random.integers(0, SUPPLIERS_OF_A_PART, rows), suppliers),
        "l_quantity": quantity,
        "l_extendedprice": price,
        "l_discount": discount,
        "l_tax": tax,
        "l_returnflag": picked(("A", "R", "N"), returned),
        "l_linestatus": picked(("F", "O"), np.where(final, 0, 1)),
        "l_shipdate": shipped,
        "l_commitdate": ordered + random.integers(30, 91, rows),
        "l_receiptdate": received,
        "l_shipinstruct": any_of(random, INSTRUCTIONS, rows),
        "l_shipmode": any_of(random, MODES, rows),
        "l_comment": comments(random, rows),
    }
    return columns, final, price * (1 - discount) * (1 + tax)
