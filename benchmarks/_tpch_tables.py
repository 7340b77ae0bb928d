# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Eight tables like those of TPC-H, generated and written as Parquet files.

Names, types, sizes and value ranges are those of the TPC-H specification. Comments are made of a
small vocabulary, and its generator is another one: answers are not those that TPC publishes. Dates
are timestamps at midnight, which pandas, Polars and cuDF all read as columns of their own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _tpch_words import (
    COLORS,
    CONTAINERS,
    INSTRUCTIONS,
    MODES,
    NATIONS,
    PRIORITIES,
    REGIONS,
    SEGMENTS,
    TYPES,
    WORDS,
)

SUPPLIERS, CUSTOMERS, PARTS, ORDERS = 10_000, 150_000, 200_000, 1_500_000  # at scale factor 1
SUPPLIERS_OF_A_PART = 4
LEAST_SCALE = 0.01
NOTE = "made.json"  # beside the tables: of which scale and seed they are
ORDERS_AT_ONCE = 500_000  # rows of a piece, so that memory stays small
FIRST_DAY, LAST_DAY = np.datetime64("1992-01-01"), np.datetime64("1998-08-02")  # of orders
TODAY = np.datetime64("1995-06-17")  # what was shipped or received by then is final

PHRASES = 5000  # distinct comments of a table


def provide_tables(folder: Path, scale: float, seed: int = 1) -> dict[str, int]:
    """Write the tables unless they are there, and return how many rows each has.

    Raises
    ------
    ValueError
        If there are others, or `write_tables` raises it.
    """
    note, asked = folder / NOTE, {"scale": scale, "seed": seed}
    if not note.exists():
        rows = write_tables(folder, scale, seed)
        note.write_text(json.dumps({**asked, "rows": rows}))  # last: all is there
    made = json.loads(note.read_text())
    found: dict[str, int] = made.pop("rows")
    if made != asked:
        raise ValueError(f"in {folder} are tables of {made}, not of {asked}")
    return found


def write_tables(folder: Path, scale: float, seed: int = 1) -> dict[str, int]:
    """Write the tables, one file each, and return how many rows each has.

    Parameters
    ----------
    folder : Path
        Made where it is missing; files in it are replaced.
    scale : float
        The scale factor: of 1, orders have 1.5 million rows, and their items 6 million.
    seed : int
        Of everything random.

    Raises
    ------
    ValueError
        If there are too few suppliers for the four of each part to differ.
    """
    if scale < LEAST_SCALE:
        raise ValueError(f"scale is {scale}: at least {LEAST_SCALE}")
    folder.mkdir(parents=True, exist_ok=True)
    suppliers, customers, parts, orders = (
        round(count * scale) for count in (SUPPLIERS, CUSTOMERS, PARTS, ORDERS)
    )
    sources = {
        name: np.random.default_rng(child)
        for name, child in zip(
            ("supplier", "customer", "part", "partsupp", "orders"),
            np.random.SeedSequence(seed).spawn(5),
            strict=True,
        )
    }
    tables = {
        "region": _region(),
        "nation": _nation(),
        "supplier": _supplier(sources["supplier"], suppliers),
        "customer": _customer(sources["customer"], customers),
        "part": _part(sources["part"], parts),
        "partsupp": _partsupp(sources["partsupp"], parts, suppliers),
    }
    rows = {}
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="none")
        rows[name] = table.num_rows
    pieces = _orders_and_items(sources["orders"], orders, customers, parts, suppliers)
    return rows | _write_pieces(folder, ("orders", "lineitem"), pieces)


def _write_pieces(
    folder: Path, names: Sequence[str], pieces: Iterator[Sequence[pa.Table]]
) -> dict[str, int]:
    """Write tables that come piece by piece."""
    writers: dict[str, pq.ParquetWriter] = {}
    rows = dict.fromkeys(names, 0)
    for tables in pieces:
        for name, table in zip(names, tables, strict=True):
            if name not in writers:
                path = folder / f"{name}.parquet"
                writers[name] = pq.ParquetWriter(path, table.schema, compression="none")
            writers[name].write_table(table)
            rows[name] += table.num_rows
    for writer in writers.values():
        writer.close()
    return rows


def _picked(words: Sequence[str], numbers: np.ndarray) -> pa.Array:
    """Return the words that the numbers stand for."""
    picked = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(words))
    return picked.cast(pa.string())


def _any_of(random: np.random.Generator, words: Sequence[str], rows: int) -> pa.Array:
    return _picked(words, random.integers(0, len(words), rows, dtype=np.int32))


def _comments(
    random: np.random.Generator, rows: int, also: Sequence[str] = (), part: float = 0.0
) -> pa.Array:
    """Return comments, a part of which holds one of the phrases of `also`."""
    lengths = random.integers(4, 9, PHRASES)
    phrases = [" ".join(random.choice(WORDS, length)) for length in lengths]
    numbers = random.integers(0, PHRASES, rows, dtype=np.int32)
    if also:
        chosen = random.random(rows) < part
        numbers[chosen] = PHRASES + random.integers(0, len(also), int(chosen.sum()))
    return _picked([*phrases, *also], numbers)


def _numbered(word: str, keys: np.ndarray) -> pa.Array:
    return pa.array([f"{word}#{key:09}" for key in keys.tolist()])


def _addresses(random: np.random.Generator, rows: int) -> pa.Array:
    return pa.array([f"{number:010x}" for number in random.integers(0, 1 << 40, rows).tolist()])


def _phones(random: np.random.Generator, nations: np.ndarray) -> pa.Array:
    numbers = random.integers(0, 10**10, len(nations)).tolist()
    return pa.array(
        [
            f"{nation + 10}-{number // 10**7:03}-{number // 10**4 % 1000:03}-{number % 10**4:04}"
            for nation, number in zip(nations.tolist(), numbers, strict=True)
        ]
    )


def _cents(random: np.random.Generator, least: int, most: int, rows: int) -> np.ndarray:
    """Return amounts of money from least to most cents, in whole units."""
    return random.integers(least, most + 1, rows) / 100


def _table(columns: Mapping[str, Any]) -> pa.Table:
    return pa.table(
        {
            name: pa.array(column.astype("datetime64[ms]") if column.dtype.kind == "M" else column)
            if isinstance(column, np.ndarray)
            else column
            for name, column in columns.items()
        }
    )


def _region() -> pa.Table:
    return _table(
        {
            "r_regionkey": np.arange(len(REGIONS)),
            "r_name": pa.array(REGIONS),
            "r_comment": pa.array([f"all of {name.lower()}" for name in REGIONS]),
        }
    )


def _nation() -> pa.Table:
    named = sorted(
        (nation, REGIONS.index(region)) for region in REGIONS for nation in NATIONS[region]
    )
    return _table(
        {
            "n_nationkey": np.arange(len(named)),
            "n_name": pa.array([nation for nation, _ in named]),
            "n_regionkey": np.array([region for _, region in named]),
            "n_comment": pa.array([f"all of {nation.lower()}" for nation, _ in named]),
        }
    )


def _supplier(random: np.random.Generator, rows: int) -> pa.Table:
    keys, nations = np.arange(1, rows + 1), random.integers(0, 25, rows)
    complaints = ("Customer slow Complaints", "Customer  many Complaints pending")
    return _table(
        {
            "s_suppkey": keys,
            "s_name": _numbered("Supplier", keys),
            "s_address": _addresses(random, rows),
            "s_nationkey": nations,
            "s_phone": _phones(random, nations),
            "s_acctbal": _cents(random, -99_999, 999_999, rows),
            "s_comment": _comments(random, rows, complaints, 0.01),
        }
    )


def _customer(random: np.random.Generator, rows: int) -> pa.Table:
    keys, nations = np.arange(1, rows + 1), random.integers(0, 25, rows)
    return _table(
        {
            "c_custkey": keys,
            "c_name": _numbered("Customer", keys),
            "c_address": _addresses(random, rows),
            "c_nationkey": nations,
            "c_phone": _phones(random, nations),
            "c_acctbal": _cents(random, -99_999, 999_999, rows),
            "c_mktsegment": _any_of(random, SEGMENTS, rows),
            "c_comment": _comments(random, rows),
        }
    )


def _retail_price(keys: np.ndarray) -> np.ndarray:
    """Return the price of a part, which its key alone decides, as in the specification."""
    return (90_000 + keys // 10 % 20_001 + 100 * (keys % 1000)) / 100


def _part(random: np.random.Generator, rows: int) -> pa.Table:
    keys, makers = np.arange(1, rows + 1), random.integers(1, 6, rows)
    brands = makers * 10 + random.integers(1, 6, rows)
    colors = random.integers(0, len(COLORS), (rows, 5)).tolist()
    names = [" ".join(COLORS[number] for number in row) for row in colors]
    types = [f"{a} {b} {c}" for a in TYPES[0] for b in TYPES[1] for c in TYPES[2]]
    containers = [f"{a} {b}" for a in CONTAINERS[0] for b in CONTAINERS[1]]
    return _table(
        {
            "p_partkey": keys,
            "p_name": pa.array(names),
            "p_mfgr": _picked([f"Manufacturer#{maker}" for maker in range(6)], makers),
            "p_brand": _picked([f"Brand#{brand:02}" for brand in range(56)], brands),
            "p_type": _any_of(random, types, rows),
            "p_size": random.integers(1, 51, rows),
            "p_container": _any_of(random, containers, rows),
            "p_retailprice": _retail_price(keys),
            "p_comment": _comments(random, rows),
        }
    )


def _supplier_of(keys: np.ndarray, which: np.ndarray, suppliers: int) -> np.ndarray:
    """Return one of the four suppliers of each part, who are far from each other."""
    step = suppliers // SUPPLIERS_OF_A_PART + (keys - 1) // suppliers
    return (keys + which * step) % suppliers + 1


def _partsupp(random: np.random.Generator, parts: int, suppliers: int) -> pa.Table:
    keys = np.repeat(np.arange(1, parts + 1), SUPPLIERS_OF_A_PART)
    which = np.tile(np.arange(SUPPLIERS_OF_A_PART), parts)
    return _table(
        {
            "ps_partkey": keys,
            "ps_suppkey": _supplier_of(keys, which, suppliers),
            "ps_availqty": random.integers(1, 10_000, len(keys)),
            "ps_supplycost": _cents(random, 100, 100_000, len(keys)),
            "ps_comment": _comments(random, len(keys)),
        }
    )


def _orders_and_items(
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
            _table(
                {
                    "o_orderkey": keys,
                    "o_custkey": ordering,
                    "o_orderstatus": _picked(("F", "O", "P"), status),
                    "o_totalprice": np.round(np.bincount(of_order, charge, rows), 2),
                    "o_orderdate": days,
                    "o_orderpriority": _any_of(random, PRIORITIES, rows),
                    "o_clerk": _any_of(random, clerks, rows),
                    "o_shippriority": np.zeros(rows, dtype=np.int64),
                    "o_comment": _comments(random, rows, ("special blithe requests",), 0.01),
                }
            ),
            _table({"l_orderkey": keys[of_order], "l_linenumber": line_numbers, **items}),
        )


def _items(
    random: np.random.Generator, ordered: np.ndarray, parts: int, suppliers: int
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Return columns of the items that were ordered on those days, which are final, and prices."""
    rows = len(ordered)
    part = random.integers(1, parts + 1, rows)
    quantity = random.integers(1, 51, rows).astype(np.float64)
    price = np.round(quantity * _retail_price(part), 2)
    discount, tax = random.integers(0, 11, rows) / 100, random.integers(0, 9, rows) / 100
    shipped = ordered + random.integers(1, 122, rows)
    received = shipped + random.integers(1, 31, rows)
    returned = np.where(received <= TODAY, random.integers(0, 2, rows), 2)
    final = shipped <= TODAY
    columns = {
        "l_partkey": part,
        "l_suppkey": _supplier_of(part, random.integers(0, SUPPLIERS_OF_A_PART, rows), suppliers),
        "l_quantity": quantity,
        "l_extendedprice": price,
        "l_discount": discount,
        "l_tax": tax,
        "l_returnflag": _picked(("A", "R", "N"), returned),
        "l_linestatus": _picked(("F", "O"), np.where(final, 0, 1)),
        "l_shipdate": shipped,
        "l_commitdate": ordered + random.integers(30, 91, rows),
        "l_receiptdate": received,
        "l_shipinstruct": _any_of(random, INSTRUCTIONS, rows),
        "l_shipmode": _any_of(random, MODES, rows),
        "l_comment": _comments(random, rows),
    }
    return columns, final, price * (1 - discount) * (1 + tax)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(provide_tables(arguments.folder, arguments.scale, arguments.seed))


if __name__ == "__main__":
    main()
