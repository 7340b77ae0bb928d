# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The mortgage ETL past the edge on a GPU, again and again: cuDF, with a budget for a smaller card.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/residency/mortgage.py --json FILE [--rows N]

One iteration is the ETL of one part, from text to a table in host memory. What Python gives libcudf
is announced, as `rmm_uvm.reinitialize` has it with a budget; libcudf's temporary memory is seen
when it is allocated. Freed host memory is kept for the next iteration: clearing
pages for a new table is no part of what is compared. Every way has to compute the same features.
What is compared, and what it means: `past_the_edge.py`; with a budget that fits: `fits.py`.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import rmm

import rmm_uvm
from rmm_uvm.integrations.seen.libcudf import observe
from rmm_uvm.residency import Budget
from rmm_uvm_mortgage.compare import features_digest
from rmm_uvm_mortgage.data_cache import generated_data
from rmm_uvm_mortgage.dictionary import load_domains
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.etl import run_etl
from rmm_uvm_mortgage.files import find_files, make_parts
from rmm_uvm_mortgage.generate import GeneratorConfig

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.residency import past_the_edge

FIRST_POOL_BYTES = 8 << 30
MOST_POOL_BYTES = 23 << 30
JUDGED = (
    "fault-driven",
    "repeat, by libcuda",
    "repeat",
)  # what runs in every round; a run takes ten seconds
ELSEWHERE = ("correlation", "repeat, ahead")  # compared in `past_the_edge.py`


class Loop:
    """The ETL loop, on one pool after the other.

    Parameters
    ----------
    data : Path
        The data set; its first part is used.
    iterations : int
        Of the ETL on each pool; the first two, in which the order is learnt, are left out.
    """

    def __init__(self, data: Path, iterations: int) -> None:
        files = find_files(data)
        self.part = make_parts(files, load_domains(files), 1)[0]
        self.iterations = iterations
        self.driver = rmm_uvm.cuda_driver(0)
        # cuDF keeps device scalars for ever: not those of a pool, which would stay with them.
        run_etl(make_engine("cudf"), self.part)

    def run(self, budget: Budget | None, peak_bytes: int = 0) -> dict[str, Any]:
        """Return medians of an iteration: seconds, bytes each way; and the features' digest."""
        previous = rmm.mr.get_current_device_resource()
        most_bytes = min(3 * peak_bytes, MOST_POOL_BYTES) if peak_bytes else MOST_POOL_BYTES
        mr = self.pool(budget, most_bytes)
        rmm.mr.set_current_device_resource(mr)
        end = observe([mr.managed_mr.residency] if budget is not None else [])
        try:
            return self._iterations(mr)
        finally:
            end()
            gc.collect()
            rmm.mr.set_current_device_resource(previous)
            del mr
            gc.collect()

    def pool(self, budget: Budget | None, most_bytes: int) -> Any:
        """Return a pool for the loop."""
        return rmm_uvm.managed_pool(
            driver=self.driver,
            initial_pool_size=min(FIRST_POOL_BYTES, most_bytes) if budget is None else None,
            maximum_pool_size=most_bytes,
            device_budget=budget,
        )

    def _iterations(self, mr: Any) -> dict[str, Any]:
        engine = make_engine("cudf")
        seconds, moved, faulted = [], [], []
        for number in range(self.iterations):
            before = self.driver.migrated_bytes()
            begin = time.perf_counter()
            table = run_etl(engine, self.part)
            engine.synchronize()
            took = time.perf_counter() - begin
            after = self.driver.migrated_bytes()
            faulted.append((mr.managed_mr.residency.residency() or {}).get("faulted_bytes"))
            if number >= 2:
                seconds.append(took)
                moved.append([b - a for a, b in zip(before, after, strict=True)])
        # Of the last iteration, and of each eighth month: of all it takes longer than the ETL.
        months = pc.cast(pc.fill_null(table["loan_age"], 0), "int32")
        sample = table.filter(pc.equal(pc.bit_wise_and(months, 7), 0))
        digest = features_digest([sample])
        row: dict[str, Any] = {
            "seconds": statistics.median(seconds),
            "to_device_bytes": statistics.median(one[0] for one in moved),
            "to_host_bytes": statistics.median(one[1] for one in moved),
            "peak_bytes": mr.peak_bytes,
            "digest": digest,
        }
        kept = mr.managed_mr.residency.residency()
        if kept is not None:
            row["residency"] = kept
            row["faulted_bytes_so_far"] = faulted  # after each iteration, the first two as well
        return row


Runs = dict[tuple[float, str], list[dict[str, Any]]]


def in_turn(loop: Loop, peak_bytes: int, rounds: int) -> Iterator[Runs]:
    """Give what ran at each factor in each way, after each round: speeds drift."""
    ways: list[tuple[float, str, Budget | None]] = [
        (0.0, "resident", None),
        *(
            (factor, mode, budget)
            for factor in past_the_edge.FACTORS
            for mode, budget in past_the_edge.modes(int(peak_bytes / factor)).items()
            if mode not in ELSEWHERE
            and (mode != "repeat, by libcuda" or factor == past_the_edge.JUDGED_FACTOR)
        ),
    ]
    runs: Runs = {}
    for number in range(rounds):
        for factor, mode, budget in ways:
            if number == 0 or mode in ("resident", *JUDGED):
                found = loop.run(budget, peak_bytes)
                runs.setdefault((factor, mode), []).append(found)
                print(f"round {number + 1}: {factor} {mode} {found['seconds']:.3f} s", flush=True)
        yield runs


def results_of(runs: Runs, speeds: dict[str, Any], rows_of_data: int) -> dict[str, Any]:
    """Return rows and verdicts of the rounds so far."""
    digests = {run["digest"] for of_one in runs.values() for run in of_one}
    resident = past_the_edge.of_runs(runs[0.0, "resident"])
    rows = [{"program": "mortgage", "factor": 0.0, "mode": "resident", **resident, "rates": speeds}]
    for (factor, mode), of_one in runs.items():
        row = {
            "program": "mortgage",
            "factor": factor,
            "mode": mode,
            **past_the_edge.of_runs(of_one),
        }
        if factor > 1:
            row = past_the_edge.with_bounds(row, resident, speeds)
            past_the_edge.show(row)
        if mode != "resident":
            rows.append(row)
    verdicts = past_the_edge.verdicts_of(rows)
    verdicts["features are the same"] = len(digests) == 1
    return {"rows": rows, "rows_of_data": rows_of_data, "verdicts": verdicts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--data", type=Path, help="data set; by default one is generated")
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3, help="of what is judged")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    harness.keep_host_memory()
    data = arguments.data or generated_data(GeneratorConfig(performance_rows=arguments.rows))
    loop = Loop(data, arguments.iterations)
    speeds = past_the_edge.rates(loop.driver)
    results: dict[str, Any] = {}
    for runs in in_turn(loop, loop.run(None)["peak_bytes"], arguments.rounds):
        results = results_of(runs, speeds, arguments.rows)
        harness.write_json(arguments.json, "residency_mortgage", results)
    raise SystemExit(harness.exit_status(results["verdicts"]))


if __name__ == "__main__":
    main()
