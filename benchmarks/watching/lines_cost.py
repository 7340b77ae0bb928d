# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What it costs to note the line of every allocation.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/watching/lines_cost.py --gpu --json FILE

Programs allocate from our chain on a simulated device, with and without an account of lines in
turn, 5 and 50 calls deep; in processor time, of the fastest round each. A pass of cuDF of 50 ms has
some 200 allocations: 3 % of it are 7500 ns for an allocation and its free. With --gpu such a pass
is timed too, with and without in turn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import rmm_uvm
from rmm_uvm._lib.lines import LineAccount
from rmm_uvm.drivers import cuda_driver

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.watching.trace_cost import SLICE, Steps, columns, loop, run, sizes

DEPTHS = (5, 50)
MOST_NS = 1500  # a fifth of what may be taken


def deep(depth: int, function: Callable[[], float]) -> float:
    """Call a function so many calls further in."""
    return function() if depth == 0 else deep(depth - 1, function)


def cost_ns(program: Callable[[int], Steps], depth: int, rounds: int) -> float:
    """Return nanoseconds of an allocate-and-free pair that the account adds."""
    mr = rmm_uvm.managed_pool(driver="simulated:8GiB", initial_pool_size="4GiB")
    steps = list(program(SLICE))
    account = LineAccount()
    without, noted = [], []
    for _ in range(rounds):
        without.append(deep(depth, lambda: run(mr, steps)))
        mr.set_account(account)
        noted.append(deep(depth, lambda: run(mr, steps)))
        mr.end_account(account)
    account.close()
    assert account.report()[1][1][1] == SLICE * rounds  # all on one path
    return round(min(noted) - min(without), 1)


def pass_seconds(rows: int, rounds: int) -> dict[str, list[float]]:
    """Time a cuDF pass on resident data, with and without an account of lines."""
    from benchmarks.common.chains import make_chain
    from benchmarks.pool.cudf_pass import Pass

    driver = cuda_driver(0)
    harness.require_managed_limit(driver.memory()[0])
    chain = make_chain("managed", 7 << 30, driver)
    one_pass = Pass(chain, rows)
    account = LineAccount()

    def noted() -> float:
        chain.set_account(account)
        try:
            return one_pass()
        finally:
            chain.end_account(account)

    seconds = harness.interleaved({"without": one_pass, "with lines": noted}, rounds)
    account.close()
    assert len(account.report()[1]) > 1  # lines were noted
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--gpu", action="store_true", help="time a pass of cuDF, too")
    parser.add_argument("--rows", type=int, default=20_000_000, help="of that pass")
    parser.add_argument("--pass-rounds", type=int, default=41)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    pairs_ns = {
        f"{program.__name__}, {depth} calls deep": cost_ns(program, depth, arguments.rounds)
        for program in (loop, columns, sizes)
        for depth in DEPTHS
    }
    worst = max(pairs_ns.values())
    verdicts = {
        "nanoseconds of an allocation and its free": {
            "most": worst,
            "must_be_at_most": MOST_NS,
            "reached": worst <= MOST_NS,
        },
        "part of a pass of 50 ms with 200 of them": {
            "most": round(200 * worst / 50e6, 5),
            "must_be_at_most": 0.03,
            "reached": 200 * worst / 50e6 <= 0.03,
        },
    }
    results = {"ns_of_a_pair": pairs_ns, "verdicts": verdicts}
    if arguments.gpu:
        results["seconds_of_a_pass"] = pass_seconds(arguments.rows, arguments.pass_rounds)
        verdicts["resident cuDF pass, with lines / without"] = harness.judged(
            harness.ratio(results["seconds_of_a_pass"], "with lines", "without"), 1.03
        )
    harness.write_json(arguments.json, "lines_cost", results)


if __name__ == "__main__":
    main()
