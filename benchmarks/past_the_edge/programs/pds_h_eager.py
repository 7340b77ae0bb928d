# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The 22 queries of PDS-H, eagerly by cudf.pandas, or streamed by cudf-polars: as both bring them.

Each query reads its tables from files. In the first round, which is not timed, a query's checksum
is that of its whole answer; then it is the number of rows.
"""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.past_the_edge.programs.cudf_pandas import accelerated_pandas

PEAK_BYTES_OF_SCALE = 3_350_836_507
"""Live at the hungriest query of cudf.pandas, at scale factor 1: half of what `tpch.json` has of 2.

Measured on an H200.
"""


def provided_tables(data_bytes: int) -> Path:
    """Write the tables unless they are there, and return their folder."""
    from benchmarks.tpch import tables

    scale = max(tables.LEAST_SCALE, round(data_bytes / PEAK_BYTES_OF_SCALE, 2))
    folder = Path(tempfile.gettempdir(), f"rmm-uvm-pds-h-{scale:g}")
    tables.provide_tables(folder, scale)
    return folder


class _Queries:
    """What both have in common.

    Parameters
    ----------
    data_bytes : int
        Live at the peak of the hungriest query, by cudf.pandas; the scale follows from it.
    pieces : int
        How often a round runs all queries; the tables have a share of the scale each time.
    """

    STEPS = 22
    PIECES = 1
    EACH_TIMED = True
    WARMED_UP_WHOLE = True  # of small tables alone, the driver took 98 MiB more later, at times

    def __init__(self, data_bytes: int, pieces: int) -> None:
        self._folder = provided_tables(data_bytes // pieces)
        self.operations = pieces * self.STEPS
        self._queries: list[tuple[str, Any]] = []
        self._checked: set[str] = set()

    def operation(self, number: int) -> int:
        name, query = self._queries[number % self.STEPS]
        answer = self._answer(query)
        if name in self._checked:
            return len(answer)
        from benchmarks.tpch.answers import checksum, plain, rounded
        from benchmarks.tpch.queries import ROUNDED

        self._checked.add(name)
        decimals = ROUNDED.get(("pandas-pdsh", name), {})
        return checksum(rounded(plain(self._columns(answer)), decimals))

    def drop(self) -> None:
        self._queries = []
        gc.collect()

    def _answer(self, query: Any) -> Any:
        raise NotImplementedError

    def _columns(self, answer: Any) -> dict[str, list[Any]]:
        raise NotImplementedError


class PdsHStreamed(_Queries):
    """cudf-polars' streaming executor, with the queries of its own benchmark.

    Parameters
    ----------
    budget_bytes : int
        Of device memory.
    """

    def __init__(self, data_bytes: int, pieces: int, budget_bytes: int) -> None:
        super().__init__(data_bytes, pieces)
        self._budget_bytes = budget_bytes

    def make(self) -> None:
        from benchmarks.tpch.engines import pdsh_frames
        from benchmarks.tpch.streaming import streaming_engine

        self._engine = streaming_engine(self._budget_bytes)
        self._queries = list(pdsh_frames(self._folder)[0].items())

    def _answer(self, query: Any) -> Any:
        return query.collect(engine=self._engine)

    def _columns(self, answer: Any) -> dict[str, list[Any]]:
        return answer.to_dict(as_series=False)

    def drop(self) -> None:
        super().drop()
        self._engine.shutdown()


class PdsHEager(_Queries):
    """cudf.pandas: the 22 PDS-H queries of its own benchmark; a step is a query."""

    SIDES = ("resident", "default", "polars-streaming")

    def __init__(self, data_bytes: int, pieces: int, *, announced: bool = False) -> None:
        assert not announced  # nothing is on the device between queries
        super().__init__(data_bytes, pieces)

    @staticmethod
    def prepare(data_bytes: int, pieces: int) -> Path:
        """Write the tables before any time is taken."""
        return provided_tables(data_bytes // pieces)

    def make(self) -> None:
        from benchmarks.tpch.engines import cudf_queries

        accelerated_pandas()
        self._queries = list(cudf_queries(self._folder)[0].items())

    def _answer(self, query: Any) -> Any:
        return query()

    def _columns(self, answer: Any) -> dict[str, list[Any]]:
        frame = answer.as_cpu_object()  # of pandas itself: cudf.pandas may not fall back here
        return {name: frame[name].tolist() for name in frame.columns.tolist()}
