# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Queries like those of TPC-H through cudf.pandas and cudf-polars: our pool against stock.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/tpch/compare.py --json FILE [--scale 2]

The tables are generated: see `tables.py`. Each way has a process of its own, and their runs
take turns; what the ways are says `memory.py`. cudf.pandas and cudf-polars both run the 22
queries (PDS-H) of their own benchmarks, as they are. Answers of all are compared with those of
Polars on the CPU: floats to a millionth, all else exactly. With a budget less than what our pool
held at most they answer once more, and are not timed: figures past the edge have a protocol, which
this is not. Nothing here is audited by TPC, nor comparable with its published results.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rmm_uvm.support.units import parse_bytes

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.tpch.answers import Answer, differences, digest, rounded
from benchmarks.tpch.memory import GPU_WAYS, Sizes
from benchmarks.tpch.process import EngineProcess, QueryError
from benchmarks.tpch.queries import ROUNDED
from benchmarks.tpch.tables import provide_tables

REFERENCES = {"pandas-pdsh": "pdsh", "pdsh": "pdsh", "pandas": "polars", "polars": "polars"}
"""By what runs queries, which frames say on the CPU what the answers are."""
IN_TURN = ("cuda", "stock", "ours")
MANAGED = ("stock", "ours", "budget")
SHOWN = 3  # differences of one answer
LEAST_ROUNDS = 2  # of a query in the ratios: after one there is no median


class Comparison:
    """All ways of one library: their answers, times and memory.

    Parameters
    ----------
    library : str
        One of `REFERENCES`.
    folder : Path
        Where the tables are.
    pool_bytes : int
        Of each way.
    """

    def __init__(self, library: str, folder: Path, pool_bytes: int) -> None:
        self.library, self._folder, self._pool_bytes = library, folder, pool_bytes
        self._expected: dict[str, Answer] = {}
        self._orders: dict[str, Any] = {}
        self.answers: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        self.failures: list[dict[str, str]] = []
        self.fallbacks: dict[str, dict[str, dict[str, int]]] = {}
        self.memory: dict[str, dict[str, Any]] = {}

    def complete(
        self,
        ways: Sequence[str],
        rounds: int,
        time_limit: float,
        factor: float,
        keep: Callable[[], None],
    ) -> None:
        """Do all of it; a process that ends meanwhile is a failure, and what was found is kept.

        `keep` is called after each part: what was found is there if the next one never ends.
        """
        try:
            self.refer()
            keep()
            self.run(ways, rounds, time_limit)
            keep()
            self.answer_past_the_edge(factor)
        except QueryError as error:
            self._keep("all", "", [str(error)])
        keep()

    def refer(self) -> None:
        """Find out on the CPU what the answers are."""
        with self._process("cpu", REFERENCES[self.library]) as process:
            for name, order in process.call("orders").items():
                try:
                    answer = process.call("answer", name)
                    decimals = ROUNDED.get((self.library, name), {})
                    self._expected[name] = rounded(answer, decimals)
                    self._orders[name] = order
                except QueryError as error:
                    self._keep("cpu", name, [str(error)])
        for name, answer in self._expected.items():
            rows = len(next(iter(answer.values())))
            self.answers.append(
                {"library": self.library, "query": name, "rows": rows, "digest": digest(answer)}
            )

    def run(self, ways: Sequence[str], rounds: int, time_limit: float) -> None:
        """Compare the answers of ways, then time them in turn."""
        with contextlib.ExitStack() as stack:
            processes = {way: stack.enter_context(self._process(way)) for way in ways}
            passed = {
                way: {name for name in self._orders if self._check(process, way, name)}
                for way, process in processes.items()
            }
            alive = {way: process for way, process in processes.items() if passed[way]}
            right = [name for name in self._orders if all(name in passed[way] for way in alive)]
            self._time(alive, right, rounds, time_limit)
            for way, process in alive.items():
                self.memory[way] = process.call("memory")
                if self.library.startswith("pandas") and way in GPU_WAYS:
                    counted = {name: process.call("fallbacks", name) for name in right}
                    self.fallbacks[way] = {name: found for name, found in counted.items() if found}

    def answer_past_the_edge(self, factor: float) -> None:
        """Answer with a budget of the peak over `factor`, if the peak is known."""
        peak_bytes = self.memory.get("ours", {}).get("peak_bytes")
        if not peak_bytes:
            return
        budget_bytes = int(peak_bytes / factor)
        with self._process("budget", budget_bytes=budget_bytes) as process:
            right = [self._check(process, "budget", name) for name in self._orders]
            self.memory["budget"] = {"budget_bytes": budget_bytes}
            if any(right):
                self.memory["budget"] |= process.call("memory")

    def verdicts(self, ways: Sequence[str]) -> dict[str, Any]:
        """Return whether each way answered everything rightly, and what goes with it."""
        failed = {one["way"] for one in self.failures}
        found: dict[str, Any] = {
            f"{self.library}: answers of {way}": not failed & {way, "cpu", "all"} for way in ways
        }
        if {"stock", "ours"} <= set(self.fallbacks):
            found[f"{self.library}: ours leaves to the CPU what stock does"] = (
                self.fallbacks["stock"] == self.fallbacks["ours"]
            )
        if "ours" in ways:
            peak_bytes = self.memory.get("ours", {}).get("peak_bytes", 0)
            found[f"{self.library}: ours ran in our pool"] = peak_bytes > 0
            found[f"{self.library}: ran past the edge"] = "budget" in self.memory
        if "budget" in self.memory:
            moved = self.memory["budget"]
            found[f"{self.library}: the budget was passed"] = (
                moved.get("evicted_bytes", 0) + moved.get("dropped_bytes", 0) > 0
            )
        return found

    def ratios(self) -> dict[str, float]:
        """Return how much longer ours takes: the median of the queries' ratios of medians.

        Of queries that ran `LEAST_ROUNDS` at least.
        """
        timed = [row for row in self.rows if row["in_ratios"]]
        seconds = {(row["query"], row["way"]): row["seconds"] for row in timed}
        names = [row["query"] for row in timed if row["way"] == "ours"]
        found = {}
        for way in ("cuda", "stock"):
            pairs = [
                seconds[name, "ours"] / seconds[name, way]
                for name in names
                if (name, way) in seconds
            ]
            if pairs:
                found[f"{self.library}: ours / {way}"] = round(statistics.median(pairs), 4)
        return found

    def _process(
        self, way: str, library: str | None = None, budget_bytes: int | None = None
    ) -> EngineProcess:
        return EngineProcess(
            library or self.library,
            self._folder,
            way,
            Sizes(self._pool_bytes, budget_bytes),
            self._pool_bytes if way in MANAGED else 0,
        )

    def _check(self, process: EngineProcess, way: str, name: str) -> bool:
        """Say whether a query runs and answers as it should; keep what is wrong."""
        try:
            got = process.call("answer", name)
            wrong = differences(self._expected[name], got, self._orders[name])
        except QueryError as error:
            wrong = [str(error)]
        if wrong:
            self._keep(way, name, wrong)
        return not wrong

    def _keep(self, way: str, name: str, wrong: Sequence[str]) -> None:
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        what = "; ".join(wrong[:SHOWN]) + more
        self.failures.append({"library": self.library, "query": name, "way": way, "what": what})
        print(f"{self.library}, {way}, {name}: {what}", flush=True)

    def _time(
        self,
        processes: Mapping[str, EngineProcess],
        names: Sequence[str],
        rounds: int,
        time_limit: float,
    ) -> None:
        """Time queries that answered rightly, in turn, until the time is over."""
        until = time.monotonic() + time_limit
        for name in names:
            runs = {
                way: functools.partial(process.seconds, name) for way, process in processes.items()
            }
            left = max(1, rounds) if time.monotonic() < until else 1
            for way, seconds in harness.interleaved(runs, left, warm_ups=0).items():
                self.rows.append(
                    {
                        "library": self.library,
                        "query": name,
                        "way": way,
                        "seconds": statistics.median(seconds),
                        "rounds": len(seconds),
                        "in_ratios": len(seconds) >= LEAST_ROUNDS,
                    }
                )


def results_of(comparisons: Sequence[Comparison], ways: Sequence[str]) -> dict[str, Any]:
    """Return what was found so far, for the result file."""
    checked = {
        one.library: [*ways, *(["budget"] if "budget" in one.memory else [])] for one in comparisons
    }
    verdicts: dict[str, Any] = {}
    for one in comparisons:
        verdicts |= one.verdicts(checked[one.library])
    return {
        "rows": [row for one in comparisons for row in one.rows],
        "ratios": {name: value for one in comparisons for name, value in one.ratios().items()},
        "answers": [row for one in comparisons for row in one.answers],
        "memory": {one.library: one.memory for one in comparisons},
        "fallbacks": {one.library: one.fallbacks for one in comparisons if one.fallbacks},
        "failures": [row for one in comparisons for row in one.failures],
        "verdicts": verdicts,
    }


def parser() -> argparse.ArgumentParser:
    """Return what the command line may hold."""
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--scale", type=float, default=2.0, help="of 1, 1 GB (%(default)s)")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--tables", type=Path, help="keep the tables in this folder, or use those")
    made.add_argument("--libraries", nargs="+", choices=REFERENCES, default=("pandas-pdsh", "pdsh"))
    made.add_argument("--ways", nargs="+", choices=("cpu", *IN_TURN), default=IN_TURN)
    made.add_argument("--pool", default="10GiB", help="of each way (%(default)s)")
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--factor", type=float, default=1.5, help="of the peak over the budget")
    made.add_argument("--time-limit", type=float, default=45.0, help="s of timing, each library")
    made.add_argument("--json", type=Path, required=True)
    return made


def main(words: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    pool_bytes = parse_bytes(arguments.pool)
    if set(arguments.ways) - {"cpu"}:  # no GPU run without the cap, of any memory
        managed = [way for way in arguments.ways if way in MANAGED]
        harness.require_managed_on_gpus(1, dict.fromkeys(managed, pool_bytes))
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.tables or Path(temporary)
        table_rows = provide_tables(folder, arguments.scale, arguments.seed)
        comparisons: list[Comparison] = []

        def keep() -> None:
            results = {
                "scale": arguments.scale,
                "seed": arguments.seed,
                "table_rows": table_rows,
                "pool_bytes": pool_bytes,
                **results_of(comparisons, arguments.ways),
            }
            harness.write_json(arguments.json, "tpch", results)

        for library in arguments.libraries:
            comparisons.append(Comparison(library, folder, pool_bytes))
            comparisons[-1].complete(
                arguments.ways, arguments.rounds, arguments.time_limit, arguments.factor, keep
            )
    return harness.exit_status(results_of(comparisons, arguments.ways)["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())
