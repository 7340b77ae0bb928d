# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What a budget costs the mortgage ETL where everything fits: cuDF, one iteration after the other.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/residency/fits.py --json FILE [--rows N]

Iterations of one run differ by a tenth, those of two runs by more. So a pool without a budget and
one with a budget that fits are there at the same time, and iterations take them in turn. A third
pool, without a budget too, says how far two alike are apart: their medians by hundredths, their
shortest iterations by thousandths. What the budget costs it costs in every iteration, the shortest
too. Both the shortest and the median of the ratios of neighbours are judged.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import rmm

import rmm_uvm
from rmm_uvm.integrations.seen.libcudf import observe
from rmm_uvm.residency import Budget
from rmm_uvm_mortgage.data_cache import generated_data
from rmm_uvm_mortgage.dictionary import load_domains
from rmm_uvm_mortgage.engines import make_engine
from rmm_uvm_mortgage.etl import run_etl
from rmm_uvm_mortgage.files import Part, find_files, make_parts
from rmm_uvm_mortgage.generate import GeneratorConfig

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

WAYS = ("plain", "budget", "plain again")
MOST_POOL_BYTES = int(7.9 * (1 << 30))  # three of them within 24 GiB
BUDGET_BYTES = 2 * MOST_POOL_BYTES  # more than the pool can have: it never has to act
WARM_UPS = 3  # the order is learnt in two
BOUND = 1.01


class AccessCounter:
    """Stands in for a budget's manager, and counts how often it is asked."""

    def __init__(self) -> None:
        self.accesses = 0

    @property
    def all_present(self) -> bool:
        """Nothing to announce."""
        self.accesses += 1
        return True


def pool(budget: Budget | None) -> Any:
    """Return a pool for the ETL."""
    return rmm_uvm.managed_pool(
        driver=rmm_uvm.cuda_driver(0),
        initial_pool_size=MOST_POOL_BYTES if budget is None else None,
        maximum_pool_size=MOST_POOL_BYTES,
        device_budget=budget,
    )


def seconds_of(part: Part, mr: Any, told: list[Any] | None = None) -> float:
    """Return what one iteration on a pool takes; its accesses are announced if it has a budget."""
    prefetcher = mr.managed_mr.residency
    if told is None:
        told = [prefetcher] if prefetcher.residency() is not None else []
    end = observe(told)
    previous = rmm.mr.get_current_device_resource()
    rmm.mr.set_current_device_resource(mr)
    engine = make_engine("cudf")
    try:
        begin = time.perf_counter()
        run_etl(engine, part)
        engine.synchronize()
        return time.perf_counter() - begin
    finally:
        rmm.mr.set_current_device_resource(previous)
        end()
        gc.collect()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    harness.keep_host_memory()
    files = find_files(generated_data(GeneratorConfig(performance_rows=arguments.rows)))
    part = make_parts(files, load_domains(files), 1)[0]
    # cuDF keeps device scalars for ever: not those of a pool, which would stay with them.
    run_etl(make_engine("cudf"), part)
    pools = {way: pool(Budget(BUDGET_BYTES) if way == "budget" else None) for way in WAYS}
    seconds = harness.interleaved(
        {way: lambda mr=mr: seconds_of(part, mr) for way, mr in pools.items()},
        arguments.rounds,
        WARM_UPS,
    )
    kept = pools["budget"].managed_mr.residency.residency()
    counter = AccessCounter()
    seconds_of(part, pools["plain"], [counter])
    least = {way: min(values) for way, values in seconds.items()}
    costs = least["budget"] / min(least["plain"], least["plain again"])
    verdicts = {
        "mortgage: everything fits, managed / not": harness.judged(costs, BOUND),
        "mortgage: everything fits, managed / not, median of neighbours": harness.judged(
            harness.ratio(seconds, "budget", "plain"), BOUND
        ),
        "nothing was evicted": kept["evicted_bytes"] == 0,
    }
    results = {
        "rows_of_data": arguments.rows,
        "rounds": arguments.rounds,
        "seconds": harness.medians(seconds),
        "least_seconds": least,
        "accesses_of_columns": counter.accesses,
        "quartiles": {way: statistics.quantiles(values, n=4) for way, values in seconds.items()},
        "median_ratios": {
            way: harness.ratio(seconds, way, "plain") for way in ("budget", "plain again")
        },
        "peak_bytes": {way: mr.peak_bytes for way, mr in pools.items()},
        "residency": kept,
        "verdicts": verdicts,
    }
    harness.write_json(arguments.json, "residency_fits", results)
    print({way: round(value, 4) for way, value in results["seconds"].items()}, round(costs, 4))
    raise SystemExit(harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
