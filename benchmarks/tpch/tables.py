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
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.tpch.orders import orders_and_items
from benchmarks.tpch.parties import (
    customer_table,
    nation_table,
    part_table,
    partsupp_table,
    region_table,
    supplier_table,
)

SUPPLIERS, CUSTOMERS, PARTS, ORDERS = 10_000, 150_000, 200_000, 1_500_000  # at scale factor 1
LEAST_SCALE = 0.01
NOTE = "made.json"  # beside the tables: of which scale and seed they are


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
        "region": region_table(),
        "nation": nation_table(),
        "supplier": supplier_table(sources["supplier"], suppliers),
        "customer": customer_table(sources["customer"], customers),
        "part": part_table(sources["part"], parts),
        "partsupp": partsupp_table(sources["partsupp"], parts, suppliers),
    }
    rows = {}
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="none")
        rows[name] = table.num_rows
    pieces = orders_and_items(sources["orders"], orders, customers, parts, suppliers)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(provide_tables(arguments.folder, arguments.scale, arguments.seed))


if __name__ == "__main__":
    main()
