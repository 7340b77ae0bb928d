# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs past a budget with an idle neighbour, against the host alone; both ours.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/neighbors/loops.py --json FILE [--workloads NAMES]
    python benchmarks/neighbors/loops.py --json FILE --simulated

The mortgage ETL, a training step, two graph programs and a pipeline of uneven stages, each at 1.5
times of a budget: once live memory leaves to the neighbour first, once to the host only, in turn.
All must compute the same. A call replaces the rows of the programs that it runs and keeps the
others; the file is written after each round. With `--ahead` both ways fetch ahead of use; `--also`
sets what is off by default. Two GPUs with peer access; `--simulated` tests the script.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rmm_uvm
from rmm_uvm.residency import Budget

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.neighbors.workloads import Workload, gpu_workloads, simulated_workloads

FACTOR = 1.5
ALSO = ("in_place", "copy_beside", "multipath")
HOST, HARVEST = "host only", "neighbour first"
BEST_BOUND, MEAN_BOUND = 2.71, 1.5
LOSS_TOLERANCE = 1e-3  # kernels of some models differ from run to run on any memory
KEPT = ("seconds", "digest", "losses")
COUNTS = (
    *("evicted_bytes", "neighbor_bytes", "from_neighbor_bytes", "peak_harvested_bytes"),
    *("fetched_bytes", "fetched_ahead_bytes", "given_back_bytes", "held_back", "failed_calls"),
    *("in_place_bytes", "copied_beside_bytes", "staged_bytes"),
)
Row = Mapping[str, Any]


def ways(budget_bytes: int, settings: Mapping[str, Any]) -> dict[str, Budget]:
    """Return what is compared: both with ``ahead``, the neighbour's way with ``also``."""
    ahead = settings["ahead"]
    also = dict.fromkeys(settings["also"], True)
    return {
        HOST: Budget(budget_bytes, ahead=ahead),
        HARVEST: Budget(budget_bytes, ahead=ahead, neighbors="auto", board=None, **also),
    }


def row_of(program: str, way: str, runs: Sequence[Row]) -> dict[str, Any]:
    """Return a row of several runs: medians, all times, and counts of the last run."""
    last = runs[-1]
    row: dict[str, Any] = {"program": program, "way": way}
    row |= {name: last[name] for name in KEPT if name in last}
    row["each_seconds"] = [run["seconds"] for run in runs]
    row["seconds"] = statistics.median(row["each_seconds"])
    if "residency" in last:
        row["residency"] = {name: last["residency"][name] for name in COUNTS}
    return row


def rows_of(
    program: str, workload: Workload, rounds: int, keep: Any, settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Run a program in both ways in turn; hand over the rows after each round."""
    resident = row_of(program, "resident", [workload.run(None)])
    budgets = ways(int(workload.peak_bytes / FACTOR), settings)
    runs: dict[str, list[Row]] = {way: [] for way in budgets}
    rows = [resident]
    for number in range(rounds):
        order = list(budgets.items())
        for way, budget in order if number % 2 == 0 else order[::-1]:
            runs[way].append(workload.run(budget))
            print(
                f"{program:14} {way:16} {runs[way][-1]['seconds']:8.4f} s, resident "
                f"{resident['seconds']:.4f} s",
                flush=True,
            )
        rows = [resident, *(row_of(program, way, found) for way, found in runs.items())]
        keep(rows)
    return rows


def speedups(rows: Sequence[Row]) -> dict[str, float]:
    """Return how many times as fast each program is with the neighbour: medians of pairs."""
    seconds = {(row["program"], row["way"]): row["each_seconds"] for row in rows}
    return {
        program: statistics.median(
            host / ours for host, ours in zip(times, seconds[program, HARVEST], strict=True)
        )
        for (program, way), times in seconds.items()
        if way == HOST
    }


def is_same(rows: Sequence[Row]) -> bool:
    """Tell whether runs of one program computed the same: to the bit, or losses nearly so."""
    first = rows[0]
    return all(
        row.get("digest") == first.get("digest")
        and all(
            math.isclose(a, b, rel_tol=LOSS_TOLERANCE)
            for a, b in zip(row.get("losses", ()), first.get("losses", ()), strict=True)
        )
        for row in rows
    )


def verdicts(rows: Sequence[Row]) -> dict[str, Any]:
    """Judge what is there."""
    ups = speedups(rows)
    found: dict[str, Any] = {}
    if ups:
        mean = math.exp(statistics.fmean(map(math.log, ups.values())))
        found["the best"] = harness.judged_at_least(max(ups.values()), BEST_BOUND)
        found["geometric mean"] = harness.judged_at_least(mean, MEAN_BOUND)
    for program in dict.fromkeys(row["program"] for row in rows):
        own = [row for row in rows if row["program"] == program]
        found[f"{program}: computed the same"] = is_same(own)
        counts = [row["residency"] for row in own if row["way"] == HARVEST]
        found[f"{program}: memory went to the neighbour, no call failed"] = bool(counts) and all(
            one["neighbor_bytes"] > 0 and one["failed_calls"] == 0 for one in counts
        )
    return found


class File:
    """The result file: rows of programs that do not run stay as they are."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._path, self._settings = path, settings
        before = json.loads(path.read_text()) if path.exists() else {}
        self.rows: list[dict[str, Any]] = before.get("rows", [])
        self.failed: dict[str, str] = before.get("failed", {})

    def put(self, program: str, rows: Sequence[dict[str, Any]], reason: str = "") -> None:
        """Replace what is there of a program, and write the file."""
        self.rows = [row for row in self.rows if row["program"] != program] + list(rows)
        self.failed = {name: why for name, why in self.failed.items() if name != program}
        if reason:
            self.failed[program] = reason
        with contextlib.redirect_stdout(io.StringIO()):  # verdicts of a part are none
            harness.write_json(self._path, "neighbors_loops", self.result())

    def result(self) -> dict[str, Any]:
        """Return all of it."""
        found = verdicts(self.rows)
        if self.failed:
            found["every program ran"] = False
        return {
            **self._settings,
            "rows": self.rows,
            "failed": self.failed,
            "speedups": {name: round(up, 4) for name, up in speedups(self.rows).items()},
            "verdicts": found,
        }


def parsed(words: Sequence[str] | None, names: Sequence[str]) -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--simulated", action="store_true", help="test the script without GPUs")
    parser.add_argument(
        "--workloads", type=lambda text: text.split(","), metavar="NAMES", help=", ".join(names)
    )
    parser.add_argument("--rows", type=int, default=12_000_000, help="of the ETL's data")
    parser.add_argument("--parts", type=int, default=32, help="of the graph, 132 MiB each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ahead", action="store_true", help="both ways fetch ahead of use")
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        choices=ALSO,
        help="a setting that the way with the neighbour has too; may be given again",
    )
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Measure; return 1 if a verdict is missed."""
    names = ("etl", "training", "page rank", "breadth first", "pipeline")
    arguments = parsed(words, names)
    if arguments.simulated:
        made = simulated_workloads()
    else:
        harness.require_managed_on_gpus(2, {"the largest program": 23 << 30})
        harness.keep_host_memory()
        made = gpu_workloads(rmm_uvm.cuda_driver(0), arguments.rows, arguments.parts)
    chosen = arguments.workloads or list(made)
    if unknown := [name for name in chosen if name not in made]:
        raise SystemExit(f"no workload {', '.join(unknown)}: there are {', '.join(made)}")
    settings = {"ahead": arguments.ahead, "also": arguments.also}
    file = File(arguments.json, {"factor": FACTOR, **settings})
    for name in chosen:
        rows: list[dict[str, Any]] = []

        def keep(found: list[dict[str, Any]], name: str = name) -> None:
            file.put(name, found)

        try:
            rows = rows_of(name, made[name](), arguments.rounds, keep, settings)
        except Exception as error:  # whatever it is: the others are measured all the same
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            print(f"{name} failed: {reason}", file=sys.stderr, flush=True)
            file.put(name, rows, reason)
    result = file.result()
    print(json.dumps({"speedups": result["speedups"], "verdicts": result["verdicts"]}, indent=1))
    return harness.exit_status(result["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())
