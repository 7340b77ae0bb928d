# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Past the edge on a GPU, with a budget in the place of a smaller card.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/residency/past_the_edge.py --json FILE
        [--programs etl,training]

Each program runs with everything resident, fault-driven with FIFO eviction (what the kernel driver
does: no discard, no prefetch), and with our policies, at 1.25, 1.5 and 2 times the budget. All
managed memory is on a card with room for it: nothing is ever truly oversubscribed. Contents are
checked at every use.

The fault-driven runs count only where they take at most 1.1 times of computing, faulted bytes at
the rate of faults and evicted bytes at the rate to the host, as measured in the same run.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rmm_uvm
from rmm_uvm.residency import Budget

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.gpu_arrays import GpuArrays
from benchmarks.residency.programs import MIB, PEAK_MIB, PROGRAMS

FACTORS = (1.25, 1.5, 2.0)
JUDGED_FACTOR = 1.5
JUDGED = ("fault-driven", "repeat")
TIME_BOUND, BYTES_BOUND = 0.5, 0.35  # at that factor
ITERATIONS_OF_ETL = ("etl", "mortgage")  # whose bytes are judged: they have dead data
EMULATION_BOUND = 1.1
SLOWDOWN_BOUNDS = {1.25: 1.3, 1.5: 2.0}
FITTING_BOUND = 1.01
FITTING_ROUNDS = 3
OVERSHOOT_BOUND = 0.1  # of the budget
PROBE_BYTES = 1 << 30
BY_LIBCUDA = "repeat, by libcuda"


def modes(budget_bytes: int) -> dict[str, Budget]:
    """Return what is compared at one budget."""
    return {
        "fault-driven": Budget(
            budget_bytes,
            policy="fifo",
            discard_dead=False,
            fetch=False,
            ahead=False,
            background=False,
        ),
        "lru": Budget(budget_bytes, policy="lru"),
        "correlation": Budget(budget_bytes, policy="correlation"),
        "repeat, ahead": Budget(budget_bytes, policy="repeat", ahead=True),
        BY_LIBCUDA: Budget(budget_bytes, policy="repeat", direct=False),
        "repeat": Budget(budget_bytes, policy="repeat"),
    }


class Runner:
    """Runs a program on pools, and keeps what it measured.

    Parameters
    ----------
    name : str
        Of the program.
    scale, iterations, passes : int
        Size, length, and how much is computed for a byte.
    """

    def __init__(self, name: str, scale: int, iterations: int, passes: int) -> None:
        self.name, self.scale, self.iterations, self.passes = name, scale, iterations, passes
        self.driver = rmm_uvm.cuda_driver(0)
        self.peak_bytes = PEAK_MIB[name] * MIB * scale

    def run(self, budget: Budget | None, rounds: int) -> dict[str, Any]:
        """Return medians of some rounds after a warm-up: seconds, and bytes of one round."""
        # Of slabs that grow as they are needed, RMM's pool uses little more than half.
        mr = rmm_uvm.managed_pool(
            driver=self.driver,
            initial_pool_size=int(self.peak_bytes * 1.25) if budget is None else None,
            maximum_pool_size=3 * self.peak_bytes,
            device_budget=budget,
        )
        arrays = GpuArrays(mr, self.passes)
        seconds, moved = [], []
        for number in range(rounds + 1):
            before = self.driver.migrated_bytes()
            begin = time.perf_counter()
            PROGRAMS[self.name](arrays, self.scale, self.iterations)
            wrong = arrays.finish()
            took = time.perf_counter() - begin
            after = self.driver.migrated_bytes()
            if wrong:
                raise SystemExit(f"{self.name}, {budget}: {wrong} words were lost")
            if number:
                seconds.append(took)
                moved.append([b - a for a, b in zip(before, after, strict=True)])
        row: dict[str, Any] = {
            "seconds": statistics.median(seconds),
            "to_device_bytes": statistics.median(one[0] for one in moved),
            "to_host_bytes": statistics.median(one[1] for one in moved),
        }
        kept = mr.managed_mr.residency.residency()
        if kept is not None:
            row["residency"] = kept
        del arrays, mr
        gc.collect()
        return row


def rates(driver: Any) -> dict[str, dict[str, float]]:
    """Return the rates of the way that a budget takes by default, and of those by libcuda."""
    direct = bool(driver.info.direct_migration)
    return {"default": _rates(driver, direct=direct), BY_LIBCUDA: _rates(driver, direct=False)}


def _rates(driver: Any, *, direct: bool) -> dict[str, float]:
    """Return bytes a second of faults, and of evictions and fetches in pieces, measured here."""
    import cupy

    mr = rmm_uvm.mr.ManagedMemoryResource(driver, prefetch="never")
    address = mr.allocate(PROBE_BYTES)
    memory = cupy.cuda.UnownedMemory(address, PROBE_BYTES, mr)
    words = cupy.ndarray(PROBE_BYTES // 8, cupy.uint64, cupy.cuda.MemoryPointer(memory, 0))
    synchronize = cupy.cuda.runtime.deviceSynchronize
    piece_bytes = (8 if direct else 4) * MIB  # as the manager moves them
    move = driver.migrate if direct else driver.prefetch

    def in_pieces(where: str) -> float:
        synchronize()
        begin = time.perf_counter()
        for offset in range(0, PROBE_BYTES, piece_bytes):
            move(address + offset, piece_bytes, where)
        synchronize()
        return PROBE_BYTES / (time.perf_counter() - begin)

    def by_faults() -> float:
        synchronize()
        begin = time.perf_counter()
        words.sum()
        synchronize()
        return PROBE_BYTES / (time.perf_counter() - begin)

    words.fill(1)
    found: dict[str, list[float]] = {"to_host": [], "fault": [], "to_device": []}
    for _ in range(4):
        found["to_host"].append(in_pieces("host"))
        found["fault"].append(by_faults())
        found["to_host"].append(in_pieces("host"))
        found["to_device"].append(in_pieces("device"))
    mr.deallocate(address, PROBE_BYTES)
    # The first round takes host pages for the first time.
    return {name: statistics.median(values[1:]) for name, values in found.items()}


def with_bounds(
    row: dict[str, Any], resident: dict[str, Any], speeds: dict[str, dict[str, float]]
) -> dict[str, Any]:
    """Return a row with what the link takes for its bytes, and what faults would take for them."""
    speed = speeds.get(row["mode"], speeds["default"])
    to_host_seconds = row["to_host_bytes"] / speed["to_host"]
    return {
        **row,
        "link_seconds": max(row["to_device_bytes"] / speed["to_device"], to_host_seconds),
        "fault_driven_seconds_expected": (
            resident["seconds"] + row["to_device_bytes"] / speed["fault"] + to_host_seconds
        ),
    }


def fitting_pair(
    run: Callable[[Budget | None], dict[str, Any]], fits: Budget, rounds: int = FITTING_ROUNDS
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a row without a budget and one with a budget that fits, of runs in turn."""
    pairs = [(run(None), run(fits)) for _ in range(rounds)]
    resident, fitting = (of_runs(rows) for rows in zip(*pairs, strict=True))
    return resident, fitting


def of_runs(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one row for several runs: medians, the least time, counts of the worst overshoot."""
    names = ("seconds", "to_device_bytes", "to_host_bytes")
    return {
        **max(rows, key=lambda row: row.get("residency", {}).get("peak_overshoot_bytes") or 0),
        **{name: statistics.median(row[name] for row in rows) for name in names},
        "least_seconds": min(row["seconds"] for row in rows),
        "runs": len(rows),
    }


def show(row: dict[str, Any]) -> None:
    """Print a row."""
    print(
        f"{row['program']:10} {row['factor']:4} {row['mode']:18} {row['seconds']:8.3f} s  "
        f"{row['to_device_bytes'] / 2**30:7.1f} GiB in {row['to_host_bytes'] / 2**30:7.1f} "
        f"GiB out, link {row['link_seconds']:.3f} s, overshoot {overshoot(row):.3f}",
        flush=True,
    )


def compared(runner: Runner, rounds: int) -> list[dict[str, Any]]:
    """Return every row of one program."""
    speeds = rates(runner.driver)
    resident, fitting = fitting_pair(
        lambda budget: runner.run(budget, rounds), Budget(int(runner.peak_bytes * 1.25))
    )
    rows = [
        {"program": runner.name, "factor": 0.0, "mode": "resident", **resident, "rates": speeds},
        {"program": runner.name, "factor": 0.8, "mode": "repeat", **fitting},
    ]
    for factor in FACTORS:
        ways = modes(int(runner.peak_bytes / factor))
        runs: dict[str, list[dict[str, Any]]] = {mode: [] for mode in ways}
        for number in range(rounds):  # what is judged takes turns: speeds drift
            for mode, budget in ways.items():
                if number == 0 or mode in JUDGED:
                    runs[mode].append(runner.run(budget, 1))
        for mode, of_one in runs.items():
            row = {"program": runner.name, "factor": factor, "mode": mode, **of_runs(of_one)}
            rows.append(with_bounds(row, resident, speeds))
            show(rows[-1])
    return rows


def overshoot(row: dict[str, Any]) -> float:
    """Return the most that kernels faulted in beside a budget, as its share."""
    kept = row["residency"]
    return float((kept["peak_overshoot_bytes"] or 0) / kept["budget_bytes"])


def verdicts_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge the default policy against the fault-driven runs."""
    verdicts: dict[str, Any] = {}
    for program in {row["program"] for row in rows}:
        at = {(r["factor"], r["mode"]): r for r in rows if r["program"] == program}
        resident = at[0.0, "resident"]
        if (0.8, "repeat") in at:
            # The least times: what a budget costs is less than what runs differ by.
            verdicts[f"{program}: everything fits, managed / not"] = harness.judged(
                at[0.8, "repeat"]["least_seconds"] / resident["least_seconds"], FITTING_BOUND
            )
        for factor in FACTORS:
            ours, theirs = at[factor, "repeat"], at[factor, "fault-driven"]
            name = f"{program} at {factor}x"
            verdicts[f"{name}: emulation is not slower than it should be"] = harness.judged(
                theirs["seconds"] / theirs["fault_driven_seconds_expected"], EMULATION_BOUND
            )
            verdicts[f"{name}: fault-in overshoot / budget"] = harness.judged(
                overshoot(ours), OVERSHOOT_BOUND
            )
            if factor == JUDGED_FACTOR:
                verdicts[f"{name}: time / fault-driven"] = harness.judged(
                    ours["seconds"] / theirs["seconds"], TIME_BOUND
                )
            if factor == JUDGED_FACTOR and program in ITERATIONS_OF_ETL:
                verdicts[f"{name}: bytes to the host / fault-driven"] = harness.judged(
                    ours["to_host_bytes"] / max(theirs["to_host_bytes"], 1), BYTES_BOUND
                )
            if factor in SLOWDOWN_BOUNDS:
                # Where the link takes longer than that for the bytes of our run, it is the bound.
                allowed = max(
                    SLOWDOWN_BOUNDS[factor],
                    1.1 * (1 + ours["link_seconds"] / resident["seconds"]),
                )
                verdicts[f"{name}: slowdown"] = harness.judged(
                    ours["seconds"] / resident["seconds"], allowed
                )
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", default="etl,training")
    parser.add_argument("--scale", type=int, default=24)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--passes", type=int, default=400, help="computing for each word")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    rows: list[dict[str, Any]] = []
    for name in arguments.programs.split(","):
        runner = Runner(name, arguments.scale, arguments.iterations, arguments.passes)
        rows += compared(runner, arguments.rounds)
    settings = {name: getattr(arguments, name) for name in ("scale", "iterations", "passes")}
    verdicts = verdicts_of(rows)
    results = {"settings": settings, "rows": rows, "verdicts": verdicts}
    harness.write_json(arguments.json, "residency", results)
    raise SystemExit(harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
