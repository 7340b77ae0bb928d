# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Queries of PDS-H by cudf-polars, over tables in host memory."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

PEAK_BYTES_OF_SCALE = 600_000_000
"""Live device memory of the hungriest query, q1, at scale factor 1.

It is computed, not measured: q1 takes seven columns of 6 million items. Five numbers have 8 bytes,
and two texts of one character have 5 with their offsets: 50 bytes a row. Its filter keeps 98 % of
the rows, and makes a copy of them while the originals are still live.
"""

NOT_ASKED_FOR = ("l_comment", "l_shipinstruct", "l_linenumber", "ps_comment", "p_comment")
"""Columns that no query uses, and that are large: they stay in the files."""


class PdsH:
    """cudf-polars: eight PDS-H queries over tables in host memory.

    A step is a query. It copies the columns that it needs to the device, and leaves nothing there.

    Parameters
    ----------
    data_bytes : int
        Live at the peak of the hungriest query; the scale of the tables follows from it.
    pieces : int
        How often a round runs all queries; the tables have a share of the scale each time.
    announced : bool
        Makes no difference: nothing is on the device between queries.
    """

    QUERIES = ("q1", "q3", "q5", "q9", "q10", "q12", "q13", "q18")
    STEPS = len(QUERIES)
    SIDES = ("resident", "default")
    PIECES = 1

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        from benchmarks.tpch import polars_engine

        self._scans = polars_engine.scan_tables
        self._queries = polars_engine.QUERIES
        self._data_bytes, self._pieces = data_bytes, pieces
        self.operations = pieces * self.STEPS
        self._frames: dict[str, Any] = {}

    @staticmethod
    def prepare(data_bytes: int, pieces: int) -> Path:
        """Write the tables unless they are there, and return their folder.

        Files stay for the next process: generating them takes longer than a run.
        """
        from benchmarks.tpch import tables

        scale = max(tables.LEAST_SCALE, round(data_bytes / pieces / PEAK_BYTES_OF_SCALE, 2))
        folder = Path(tempfile.gettempdir(), f"rmm-uvm-pds-h-{scale:g}")
        tables.provide_tables(folder, scale)
        return folder

    def make(self) -> None:
        scans = self._scans(self.prepare(self._data_bytes, self._pieces))
        # In one chunk each: of several, cudf-polars makes a second copy on the device to join them.
        self._frames = {
            name: scan.drop(NOT_ASKED_FOR, strict=False).collect().rechunk().lazy()
            for name, scan in scans.items()
        }

    def operation(self, number: int) -> int:
        query = self._queries[self.QUERIES[number % self.STEPS]]
        return whole_number(query(self._frames).collect(engine=_engine()))

    def drop(self) -> None:
        self._frames = {}
        gc.collect()  # plans


def _engine() -> Any:
    """Return cudf-polars in RMM's current memory; left to itself, it makes a pool of its own.

    With ``raise_on_fail`` nothing is left to the CPU.
    """
    import polars
    import rmm

    return polars.GPUEngine(
        executor="in-memory",
        raise_on_fail=True,
        memory_resource=rmm.mr.get_per_device_resource(0),
    )


def whole_number(answer: Any) -> int:
    """Return a checksum of an answer: rows, and the sum of all numbers to six digits.

    A GPU adds floats in any order, so the last of their sixteen digits differ from run to run.
    """
    from polars import selectors

    sums = answer.select(selectors.numeric().sum().cast(float)).row(0)
    return answer.height + round(1000 * float(f"{sum(sums):.6g}"))
