# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What runs the queries: one library, in one memory, in a process of its own.

What others wrote, unchanged: `pandas-pdsh` runs the 22 queries that cudf.pandas brings along, and
`pdsh` those of cudf-polars. What was written here, and needs no GPU: `pandas` runs
`pandas_engine.py`, with cudf.pandas in the place of pandas unless it is on the CPU, and `polars`
runs `polars_engine.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import pyarrow.parquet as parquet

from benchmarks.tpch.answers import Answer, Order, plain
from benchmarks.tpch.fallbacks import counted_fallbacks
from benchmarks.tpch.memory import OUR_WAYS, Sizes, figures_of, stock_resource
from benchmarks.tpch.queries import ORDER, PDSH_NUMBERS

Query = Callable[[], Any]


class Engine(Protocol):
    """A library with the tables, ready to run queries."""

    orders: Mapping[str, Order]

    def run(self, name: str) -> Any:
        """Run a query to its end and return its frame."""

    def answer(self, frame: Any) -> Answer:
        """Return a frame as plain Python."""

    def fallbacks(self, name: str) -> dict[str, int]:
        """Run a query, and return how often which function was left to the CPU."""

    def memory(self) -> dict[str, Any]:
        """Return figures of the memory; nothing where there are none."""


class PandasEngine:
    """The queries in pandas, or with cudf.pandas in its place.

    Parameters
    ----------
    make_queries : callable
        Returns of a folder the queries by name, which take nothing, and what each is sorted by.
        It may import pandas, which has to be cudf.pandas' by then.
    """

    def __init__(
        self,
        folder: Path,
        way: str,
        sizes: Sizes,
        make_queries: Callable[[Path], tuple[Mapping[str, Query], Mapping[str, Order]]],
    ) -> None:
        self._on_gpu = way != "cpu"
        if self._on_gpu:
            self._accelerate(way, sizes)
        self._queries, self.orders = make_queries(folder)

    def _accelerate(self, way: str, sizes: Sizes) -> None:
        """Set the memory up first: cudf.pandas leaves alone what is not RMM's default."""
        if way in OUR_WAYS:
            import rmm_uvm

            rmm_uvm.reinitialize(**sizes.keywords())
        else:
            import rmm

            rmm.mr.set_current_device_resource(stock_resource(way, sizes, pooled=True))
        import cudf.pandas

        cudf.pandas.install()

    def run(self, name: str) -> Any:
        frame = self._queries[name]()
        if self._on_gpu:
            import cupy

            cupy.cuda.runtime.deviceSynchronize()
        return frame

    def answer(self, frame: Any) -> Answer:
        return plain({name: frame[name].tolist() for name in frame.columns.tolist()})

    def fallbacks(self, name: str) -> dict[str, int]:
        with counted_fallbacks() as counter:
            self.run(name)
        return dict(counter)

    def memory(self) -> dict[str, Any]:
        if not self._on_gpu:
            return {}
        import rmm

        return figures_of(rmm.mr.get_per_device_resource(0))


class PolarsEngine:
    """Lazy frames, collected by Polars on the CPU or by cudf-polars.

    Parameters
    ----------
    make_frames : callable
        Returns of a folder the frames by name, and what each is sorted by.
    """

    def __init__(
        self,
        folder: Path,
        way: str,
        sizes: Sizes,
        make_frames: Callable[[Path], tuple[Mapping[str, Any], Mapping[str, Order]]],
    ) -> None:
        self._resource: Any = None
        self._collector: Any = "in-memory"
        if way != "cpu":
            import polars

            self._resource = _polars_resource(way, sizes)
            # With `raise_on_fail` nothing is left to the CPU without a word.
            self._collector = polars.GPUEngine(
                executor="in-memory", raise_on_fail=True, memory_resource=self._resource
            )
        self._frames, self.orders = make_frames(folder)

    def run(self, name: str) -> Any:
        return self._frames[name].collect(engine=self._collector)

    def answer(self, frame: Any) -> Answer:
        return plain(frame.to_dict(as_series=False))

    def fallbacks(self, name: str) -> dict[str, int]:
        return {}  # an error had ended the program

    def memory(self) -> dict[str, Any]:
        return {} if self._resource is None else figures_of(self._resource)


def _polars_resource(way: str, sizes: Sizes) -> Any:
    """Return the resource that cudf-polars is given; ours by name, as in a configuration."""
    if way not in OUR_WAYS:
        return stock_resource(way, sizes, pooled=False)
    from cudf_polars.utils.config import MemoryResourceConfig

    config = MemoryResourceConfig(qualname="rmm_uvm.mr.ManagedPool", options=sizes.keywords())
    return config.create_memory_resource()


def own_queries(folder: Path) -> tuple[Mapping[str, Query], Mapping[str, Order]]:
    """Return the queries of `pandas_engine.py`, over tables that are read now."""
    from benchmarks.tpch import pandas_engine

    tables = pandas_engine.read_tables(folder)
    queries = pandas_engine.QUERIES
    return {name: functools.partial(query, tables) for name, query in queries.items()}, ORDER


def cudf_queries(folder: Path) -> tuple[Mapping[str, Query], Mapping[str, Order]]:
    """Return the queries of cudf.pandas' own benchmark, as they are: each reads its tables.

    What they sort by is not said there; the same queries of cudf-polars say it.
    """
    from cudf.pandas._benchmarks.pdsh import PDSHQueries

    config = _configuration(folder)
    return {
        f"q{number}": functools.partial(getattr(PDSHQueries, f"q{number}"), config)
        for number in PDSH_NUMBERS
    }, {}


def own_frames(folder: Path) -> tuple[Mapping[str, Any], Mapping[str, Order]]:
    """Return the queries of `polars_engine.py`."""
    from benchmarks.tpch import polars_engine

    scans = polars_engine.scan_tables(folder)
    return {name: query(scans) for name, query in polars_engine.QUERIES.items()}, ORDER


def pdsh_frames(folder: Path) -> tuple[Mapping[str, Any], Mapping[str, Order]]:
    """Return the queries of cudf-polars' own benchmark, as they are."""
    from cudf_polars.streaming.benchmarks.pdsh import PDSHQueries

    config = _configuration(folder)
    results = {f"q{number}": getattr(PDSHQueries, f"q{number}")(config) for number in PDSH_NUMBERS}
    return (
        {name: result.frame for name, result in results.items()},
        {name: tuple(map(tuple, result.sort_by)) for name, result in results.items()},
    )


def _configuration(folder: Path) -> SimpleNamespace:
    """Return what queries of both benchmarks ask their configuration for."""
    suppliers = parquet.read_metadata(folder / "supplier.parquet").num_rows
    return SimpleNamespace(dataset_path=folder, suffix=".parquet", scale_factor=suppliers / 10_000)


def make_engine(library: str, folder: Path, way: str, sizes: Sizes) -> Engine:
    """Make the engine of a library, one of `LIBRARIES`."""
    kind, make = LIBRARIES[library]
    return kind(folder, way, sizes, make)


LIBRARIES: dict[str, tuple[Any, Callable[[Path], Any]]] = {
    "pandas": (PandasEngine, own_queries),
    "pandas-pdsh": (PandasEngine, cudf_queries),
    "polars": (PolarsEngine, own_frames),
    "pdsh": (PolarsEngine, pdsh_frames),
}
