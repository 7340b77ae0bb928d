# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `rmm_uvm.plan` advises and predicts, where it runs: a GPU, a budget for a smaller card.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/planner/advice_on_gpus.py --json FILE
    python benchmarks/planner/advice_on_gpus.py --json FILE --driver simulated
    python benchmarks/planner/advice_on_gpus.py --write     # the table of docs/planner.md

Five programs that announce their uses are recorded on a simulated device, planned for a card that
is too small and for one with room, and run in every way that the plan compared. All memory is on a
card with room for it: nothing is ever truly oversubscribed. On the small card the kernel driver's
own evictions are emulated by a budget: first in, first out, dead data copied; beside the plan's
prediction stands what the model says of the run as it is made. Prefetch modes other than the
default cannot be emulated there, and are compared on the large card alone.

A workload that fails does not end the others, and the file is written after each.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rmm_uvm
from rmm_uvm.errors import UvmError
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.simulator import load_machine
from rmm_uvm.support.units import whole_blocks

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.planner.advice_document import DOCUMENT, RESULT, document_with
from benchmarks.planner.advice_order import TIE_FRACTION, summaries, verdicts
from benchmarks.planner.advice_places import GpuPlace, Place, Run, SimulatedPlace, record
from benchmarks.planner.advice_ways import (
    advised_name,
    beside_seconds,
    plain,
    predicted_as_run,
    ways_of,
)
from benchmarks.planner.advice_workloads import PROGRAMS

FACTOR = 1.5  # peak over the small card
ROOM_FACTOR = 3  # large card over the peak
MODES = ("auto", "always", "never")


class LostError(Exception):
    """Contents were not as written."""


def compared(
    name: str, place: Place, machine: Any, arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Record, plan and run one workload on both cards; return its rows."""

    def program(memory: Any) -> None:
        PROGRAMS[name](memory, arguments.scale, arguments.iterations)

    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "program.trace"
        record(program, {"initial_pool_size": arguments.scale * 384 << 20}, trace, machine)
        workload = load_workload(trace)
    peak_bytes = workload.peak_live_bytes
    large_bytes = whole_blocks(ROOM_FACTOR * peak_bytes)
    roomy = {"initial_pool_size": whole_blocks(large_bytes / 2)}
    fitting = [place.run(program, roomy).seconds for _ in range(3)]
    rows: list[dict[str, Any]] = []
    # Runs where everything fits are short, and so their noise is larger.
    for card_name, device_bytes, modes, rounds in (
        ("small", whole_blocks(peak_bytes / FACTOR), ("auto",), arguments.rounds),
        ("large", large_bytes, MODES, 3 * arguments.rounds),
    ):
        plan = rmm_uvm.plan(
            workload,
            device_bytes,
            machine=machine,
            prefetch=modes,
            fitting_seconds=statistics.median(fitting),
            announced=True,
        )
        [card] = plan.cards
        shared = {
            "workload": name,
            "card": card_name,
            "capacity_bytes": card.capacity_bytes,
            "peak_bytes": peak_bytes,
        }
        predict = beside_seconds(card.ways)
        ways = ways_of(card)
        chosen = advised_name(card)
        runs = measured(program, place, ways, rounds)
        base = [run.seconds for run in runs["default"]]
        for way_name, way in ways.items():
            seconds = [run.seconds for run in runs[way_name]]
            middle = statistics.median(seconds)
            row = {
                **shared,
                "way": way_name,
                "advised": way_name == chosen,
                **plain(way),
                "predicted_seconds": way.predicted_seconds,
                "predicted_as_run_seconds": predicted_as_run(workload, machine, way, predict),
                "seconds": middle,
                "over_default": statistics.median(
                    a / b for a, b in zip(seconds, base, strict=True)
                ),
                "spread": (max(seconds) - min(seconds)) / middle,
                "rounds_seconds": seconds,
                "to_device_bytes": statistics.median(r.to_device_bytes for r in runs[way_name]),
                "to_host_bytes": statistics.median(r.to_host_bytes for r in runs[way_name]),
                "wrong_words": sum(run.wrong_words for run in runs[way_name]),
            }
            rows.append(row)
            show(row)
    return rows


def measured(
    program: Callable[[Any], None], place: Place, ways: Any, rounds: int
) -> dict[str, list[Run]]:
    """Return the runs of each way, taken in turn after one warm-up of each."""
    runs: dict[str, list[Run]] = {name: [] for name in ways}

    def once(name: str) -> float:
        run = place.run(program, ways[name].settings(background=place.background))
        if run.wrong_words:
            raise LostError(f"{name}: {run.wrong_words} words were not as written")
        runs[name].append(run)
        return run.seconds

    harness.interleaved({name: (lambda n=name: once(n)) for name in ways}, rounds, warm_ups=1)
    return {name: found[1:] for name, found in runs.items()}


def show(row: dict[str, Any]) -> None:
    """Print a row."""
    predicted = row["predicted_as_run_seconds"]
    print(
        f"{row['workload']:10} {row['card']:6} {row['way']:20} {row['seconds']:8.4f} s "
        f"+- {row['spread']:5.1%}, predicted {predicted or float('nan'):8.4f} s, "
        f"{row['to_host_bytes'] / 2**20:6.0f} MiB out{', advised' if row['advised'] else ''}",
        flush=True,
    )


def report(
    rows: Sequence[dict[str, Any]], failures: Sequence[Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return the result, as far as it is there."""
    return {
        "settings": {
            name: getattr(arguments, name) for name in ("scale", "iterations", "passes", "rounds")
        },
        "machine": str(arguments.machine),
        "factor": FACTOR,
        "tie_fraction": TIE_FRACTION,
        "rows": list(rows),
        "failures": list(failures),
        "summaries": summaries(rows),
        "verdicts": verdicts(rows, failures, arguments.workloads),
    }


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="run, and write this file")
    parser.add_argument("--driver", choices=("cuda", "simulated"), default="cuda")
    parser.add_argument("--machine", default="h200-pcie5", help="profile to plan with")
    parser.add_argument(
        "--workloads", type=lambda text: text.split(","), default=list(PROGRAMS), metavar="NAMES"
    )
    parser.add_argument("--scale", type=int, default=3, help="peaks are about 220 MiB times this")
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--passes", type=int, default=400, help="computing for each word")
    parser.add_argument("--rounds", type=int, default=5, help="thrice as many where all fits")
    parser.add_argument("--most-seconds", type=float, default=150, help="no workload after that")
    parser.add_argument("--write", action="store_true", help=f"only write {DOCUMENT.name}")
    arguments = parser.parse_args(words)
    if (arguments.json is None) is not arguments.write:
        parser.error("give either --json FILE or --write")
    unknown = [name for name in arguments.workloads if name not in PROGRAMS]
    if unknown:
        parser.error(f"no workload {', '.join(unknown)}: there are {', '.join(PROGRAMS)}")
    return arguments


def main(words: Sequence[str] | None = None) -> int:
    """Run everything; return 1 if a verdict is missed."""
    arguments = parsed(words)
    if arguments.write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), json.loads(RESULT.read_text())))
        return 0
    machine = load_machine(arguments.machine)
    place: Place
    if arguments.driver == "simulated":
        os.environ["RMM_UVM_DRIVER"] = "simulated"
        place = SimulatedPlace(machine)
    else:
        harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
        place = GpuPlace(arguments.passes)
    rows: list[dict[str, Any]] = []
    failures: list[dict[str, str]] = []
    begin = time.monotonic()
    for number, name in enumerate(arguments.workloads):
        try:
            if number and time.monotonic() - begin > arguments.most_seconds:
                raise TimeoutError(f"{arguments.most_seconds:g} s are over")
            rows += compared(name, place, machine, arguments)
        except (UvmError, MemoryError, OSError, LostError, RuntimeError, ValueError) as error:
            failures.append({"workload": name, "error": f"{type(error).__name__}: {error}"})
            print(f"{name} failed: {failures[-1]['error']}", flush=True)
        result = report(rows, failures, arguments)
        with contextlib.redirect_stdout(io.StringIO()):  # verdicts of a part are none
            harness.write_json(arguments.json, "advice_on_gpus", result)
    print(json.dumps(result["verdicts"], indent=1))
    return harness.exit_status(result["verdicts"])


if __name__ == "__main__":
    sys.exit(main())
