# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What keeping a budget costs the host: memory, time of a call, waits of threads; needs no GPU.

    python benchmarks/pool/ledger_cost.py --json benchmarks/results/ledger_cost.json [--write]

Builds ``cpp/benchmarks/residency_ledger.cpp`` with the sources of residency, over a driver that
does nothing: all time is our own. Needs g++ and Google Benchmark (Debian, Ubuntu:
libbenchmark-dev). Medians of runs in random order; times of one thread are processor time. What
threads do in a second is by the clock, and depends on what else the machine does (``load_before``).
``--write`` puts the tables into docs/measure/growth.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs/measure/growth.md"
PLACE = re.compile(
    r"(<!-- begin: written by benchmarks/pool/ledger_cost.py --write -->\n).*?"
    r"(<!-- end: ledger_cost -->)",
    re.DOTALL,
)
MOST_BYTES_A_BLOCK = 64
MOST_UNEVEN = 2.0
MOST_GROWTH = 1.5
MOST_UNEQUAL = 0.02  # what is evicted a use, where two sizes are compared
LEAST_OF_ONE_THREAD = 0.5
BLOCKS = (1, 8, 64, 512)
THREADS = (1, 2, 4, 8)
CALLS_A_TURN = 5
SMALL_GIB, LARGE_GIB = 1, 64
# Of what is used in turn, twice the budget: blocks at once, and GiB kept; two are compared.
USED_BLOCKS, USED_GIB = (1, 32), (8, 16, 256)
COMPARED_GIB = {1: (16, 256), 32: (8, 256)}
# Ledger and budget, GiB, of a program that uses 8 GiB; the first holds all of it.
PROGRAMS = {"fits": (64, 64), "budget of half": (8, 4), "budget of half, 64 GiB kept": (64, 4)}
WRAPPED = (
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "sched_yield",
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
)
COUNTED = ("waited_for_locks", "waited_for_others", "contended", "locks_a_call", "dropped")


def built(folder: Path) -> Path:
    """Build the program and return it."""
    program = folder / "residency_ledger"
    sources = [
        *sorted((ROOT / "cpp/src/residency").rglob("*.cpp")),
        *sorted((ROOT / "cpp/src/process").glob("*.cpp")),
        *(ROOT / "cpp/benchmarks" / name for name in ("residency_ledger.cpp", "lock_waits.cpp")),
    ]
    options = ["-std=c++20", "-O2", "-DNDEBUG", f"-I{ROOT / 'cpp/include'}"]
    libraries = [*(f"-Wl,--wrap={name}" for name in WRAPPED), "-lbenchmark", "-pthread"]
    command = ["g++", *options, *map(str, sources), *libraries, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def measured(program: Path, repetitions: int) -> dict[str, Any]:
    """Run the program and return what Google Benchmark says."""
    found = program.with_suffix(".json")
    options = [
        f"--benchmark_repetitions={repetitions}",
        "--benchmark_min_time=0.1",
        "--benchmark_enable_random_interleaving=true",
        "--benchmark_report_aggregates_only=true",
        f"--benchmark_out={found}",
        "--benchmark_out_format=json",
    ]
    subprocess.run([str(program), *options], check=True)
    result: dict[str, Any] = json.loads(found.read_text())
    return result


def rows_of(benchmarks: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the medians as rows: calls of one thread, its uses in turn, and threads."""
    calls, uses, threads = [], [], []
    for one in benchmarks:
        if one.get("aggregate_name") != "median":
            continue
        arguments = {
            name: int(value)
            for name, _, value in (part.partition(":") for part in one["run_name"].split("/"))
            if value
        }
        if not one["run_name"].startswith("threads/"):
            row = {name: arguments[name] for name in ("blocks", "ledger_gib")}
            row["budget_gib"] = arguments["half_budgets_gib"] / 2
            row["ns"] = round(one["cpu_time"], 1)
            if one["run_name"].startswith("allocate_free/"):
                calls.append(row)
            else:
                uses.append({**row, "evicted_a_use": round(one["evicted_a_use"], 4)})
        else:
            row = {name: arguments[name] for name in ("ledger_gib", "budget_gib", "threads")}
            row["calls_per_second"] = round(one["items_per_second"])
            row.update({name: round(one[name], 5) for name in COUNTED})
            row["cpu_us_a_call"] = round(one["cpu_time"] / 1000 / CALLS_A_TURN, 3)
            row["failed_calls"] = round(one["failed_calls"])
            threads.append(row)
    return {"calls": calls, "uses": uses, "threads": threads}


def call_ns(
    calls: Sequence[Mapping[str, Any]], blocks: int, ledger_gib: int, *, fits: bool
) -> float:
    """Return the time of allocate + free of so many blocks."""
    (found,) = (
        row["ns"]
        for row in calls
        if (row["blocks"], row["ledger_gib"]) == (blocks, ledger_gib)
        and (row["budget_gib"] >= ledger_gib) == fits
    )
    return float(found)


def block_ns(calls: Sequence[Mapping[str, Any]], ledger_gib: int) -> dict[str, float]:
    """Return what a block more costs, between two sizes, while all of it fits."""
    ns = {blocks: call_ns(calls, blocks, ledger_gib, fits=True) for blocks in BLOCKS}
    return {
        f"{few} to {many}": (ns[many] - ns[few]) / (many - few)
        for few, many in itertools.pairwise(BLOCKS[1:])
    }


def use_ns(uses: Sequence[Mapping[str, Any]], blocks: int, ledger_gib: int) -> float:
    """Return the time of a use of so many blocks, which has others leave."""
    (found,) = (
        row["ns"] for row in uses if (row["blocks"], row["ledger_gib"]) == (blocks, ledger_gib)
    )
    return float(found)


def thread_row(threads: Sequence[Mapping[str, Any]], name: str, count: int) -> Mapping[str, Any]:
    """Return the row of a program with so many threads."""
    wanted = (*PROGRAMS[name], count)
    (found,) = (
        row for row in threads if (row["ledger_gib"], row["budget_gib"], row["threads"]) == wanted
    )
    return found


def verdicts(
    bytes_a_block: float,
    calls: Sequence[Mapping[str, Any]],
    uses: Sequence[Mapping[str, Any]],
    threads: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return figures beside their bounds."""
    judged = {"bytes a block": harness.judged_at_most(bytes_a_block, MOST_BYTES_A_BLOCK)}
    for ledger_gib in (SMALL_GIB, LARGE_GIB):
        costs = block_ns(calls, ledger_gib).values()
        judged[f"a block more, dearest / cheapest, {ledger_gib} GiB kept"] = harness.judged(
            max(costs) / min(costs) if min(costs) > 0 else float("inf"), MOST_UNEVEN
        )
    for blocks in BLOCKS:
        noun = "block" if blocks == 1 else "blocks"
        judged[f"{blocks} {noun}, {LARGE_GIB} GiB kept / {SMALL_GIB} GiB"] = harness.judged(
            call_ns(calls, blocks, LARGE_GIB, fits=True)
            / call_ns(calls, blocks, SMALL_GIB, fits=True),
            MOST_UNEVEN,
        )
    for blocks, (small_gib, large_gib) in COMPARED_GIB.items():
        few, many = (use_ns(uses, blocks, ledger_gib) for ledger_gib in (small_gib, large_gib))
        judged[f"use of {2 * blocks} MiB, {large_gib} GiB kept / {small_gib} GiB"] = harness.judged(
            many / few, MOST_GROWTH
        )
    judged["each use makes room for all of itself"] = all(
        abs(row["evicted_a_use"] - 1) <= MOST_UNEQUAL for row in uses
    )
    for name in PROGRAMS:
        one, many = (thread_row(threads, name, count) for count in (1, max(THREADS)))
        judged[f"{name}: calls a second, 8 threads / 1"] = harness.judged_at_least(
            many["calls_per_second"] / one["calls_per_second"], LEAST_OF_ONE_THREAD
        )
        judged[f"{name}: processor time of a call, 8 threads / 1"] = harness.judged(
            many["cpu_us_a_call"] / one["cpu_us_a_call"], MOST_UNEVEN
        )
    judged["no call failed"] = not any(row["failed_calls"] for row in threads)
    return judged


def table(result: Mapping[str, Any]) -> str:
    """Return the tables of the document."""
    calls, uses, threads = result["calls"], result["uses"], result["threads"]

    def microseconds(blocks: int, ledger_gib: int, *, fits: bool) -> str:
        return f"{call_ns(calls, blocks, ledger_gib, fits=fits) / 1000:.1f}"

    lines = [
        f"A block takes {result['bytes_a_block']:.1f} bytes. Allocate and free, one thread, µs:",
        "",
        "| blocks | all fits, 1 GiB kept | 64 GiB kept | short of room, 1 GiB kept | 64 GiB kept |",
        "|--:|--:|--:|--:|--:|",
    ]
    for blocks in BLOCKS:
        cells = [
            microseconds(blocks, ledger_gib, fits=True) for ledger_gib in (SMALL_GIB, LARGE_GIB)
        ]
        cells += [
            microseconds(blocks, ledger_gib, fits=False) if blocks < max(BLOCKS) else ""
            for ledger_gib in (SMALL_GIB, LARGE_GIB)
        ]
        lines.append(f"| {blocks} | {' | '.join(cells)} |")
    kept = " | ".join(f"{ledger_gib} GiB kept" for ledger_gib in USED_GIB)
    lines += [
        "",
        "Uses in turn of twice the budget, one thread, µs. What was used longest ago leaves "
        "(`lru`), so each use makes room for",
        "all of itself, whatever is kept. The policy `repeat` evicts half as much until it has "
        "more than 65,536 uses to remember:",
        "",
        f"| used at once | {kept} |",
        "|---|" + "--:|" * len(USED_GIB),
    ]
    for blocks in USED_BLOCKS:
        cells = [f"{use_ns(uses, blocks, ledger_gib) / 1000:.1f}" for ledger_gib in USED_GIB]
        lines.append(f"| {2 * blocks} MiB | {' | '.join(cells)} |")
    lines += [
        "",
        f"Threads, on {result['cpu_count']} cores that others use too: thousands of calls a "
        "second, the share of their time that they",
        "wait for locks, and the processor time of a call in µs, the migration thread too:",
        "",
        "| program of 8 GiB | " + " | ".join(f"{count} threads" for count in THREADS) + " |",
        "|---|" + "--:|" * len(THREADS),
    ]
    for name in PROGRAMS:
        rows = [thread_row(threads, name, count) for count in THREADS]
        cells = [
            f"{row['calls_per_second'] / 1000:,.0f}, {row['waited_for_locks']:.0%}, "
            f"{_plain(row['cpu_us_a_call'])}"
            for row in rows
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    one, two, many = (
        thread_row(threads, "fits", count)["cpu_us_a_call"] for count in (1, 2, max(THREADS))
    )
    lines += [
        "",
        "Where all fits, a call has one lock to take. Two cores that work at once hand it back and "
        "forth: a call takes",
        f"{two / one:.1f} times the processor time with 2 threads, and {many / one:.1f} times with "
        f"{max(THREADS)} (wanted: {MOST_UNEVEN:g} at most).",
    ]
    return "\n".join(lines).replace("| 1 threads |", "| 1 thread |") + "\n"


def _plain(figure: float) -> str:
    """Return two digits that count, as a table has them: 0.12, 5.3 and 100, not 1e+02."""
    two_digits = float(f"{figure:.2g}")
    return f"{two_digits:.9f}".rstrip("0").rstrip(".") if figure < 10 else f"{two_digits:,.0f}"


def written(document: str, result: Mapping[str, Any]) -> str:
    """Return the document with the tables of a result."""
    if not PLACE.search(document):
        raise SystemExit(f"{DOCUMENT.name} has no place for the tables")
    return PLACE.sub(lambda found: found[1] + table(result) + found[2], document)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    arguments = parser.parse_args()
    others = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        found = measured(built(Path(folder)), arguments.repetitions)
    rows = rows_of(found["benchmarks"])
    bytes_a_block = float(found["context"]["bytes_a_block"])
    result = {
        "verdicts": verdicts(bytes_a_block, **rows),
        "bytes_a_block": bytes_a_block,
        "record_bytes": int(found["context"]["record_bytes"]),
        "cpu_count": found["context"]["num_cpus"],
        "load_before": round(others, 1),
        **rows,
    }
    report = {"benchmark": "ledger_cost", "environment": harness.software(), **result}
    arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    if arguments.write:
        DOCUMENT.write_text(written(DOCUMENT.read_text(), result))
    print(json.dumps(result["verdicts"], indent=1))
    return harness.exit_status(result["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())
