# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A program on data of several budgets: what a budget costs and saves, by the protocol's rules.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/past_the_edge/run.py --program cudf --json FILE
        [--factor 1.5] [--budget 4GiB] [--sides default,fault-driven] [--time-limit 540] [--missing]

The data have FACTOR budgets together. Programs are in programs/; `--program list` names them. Each
run has a process of its own. Sides: `resident` (a pool of cudaMalloc memory), `default` (a budget,
nothing else), `lru`, `unseen` (without what tells the manager of cuDF's calls), `announced`
(`rmm_uvm.touch` before each step), `not-ahead` and `announced-not-ahead` (what is expected next is
fetched when it is used), `dead-first` (as `not-ahead`, and dead blocks leave before live ones),
`fault-driven`, and `fault-driven-prefetched` (the same with RMM's adaptor, which prefetches what is
allocated). What people use instead has as much device memory, and no budget: `by-hand` and
`by-hand-buffered` keep the frames of `cudf` in pinned host memory, and copy each in before it is
used, or while the one before is; `cudf-spilling` and `dask-spilling` have cuDF, or a worker, spill;
`pinned-behind` hands out host memory once the device's is; `polars-streaming` is the streaming
executor of cudf-polars; `checkpointing` runs as few blocks of a model again as fit, and
`save-on-cpu` copies all that autograd keeps. A program has some of them. Programs of torch allocate
through RMM, and are announced by `rmm_uvm.torch.announced`. With `lazy`, `copies` and `automatic`
torch's own allocator has the budget instead: `rmm_uvm.torch.install`. The rules are in
benchmarks/README.md.

`--missing` goes on with a file, where there is one: what it has stays, as long as machine, commit
and settings are the same. A repetition that was cut short is measured anew. `--simulated` tries all
of it without a GPU, which says nothing of one. Exit status 1 where a ratio is no result, or runs
are missing.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rmm_uvm
from rmm_uvm.support.output import written_whole
from rmm_uvm.support.units import parse_bytes

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.past_the_edge import document, memory, runner
from benchmarks.common.past_the_edge.measure import Plan, Program, measure
from benchmarks.common.past_the_edge.rounds import COUNTED_FROM, moments
from benchmarks.common.past_the_edge.sides import (
    BASELINES,
    SIDES,
    Side,
    managed_bytes,
    open_memory,
    open_simulated,
    warming_torch_up,
)
from benchmarks.past_the_edge.programs import INSTEAD, PROGRAMS, TORCH, Simulated

WARM_UP_BYTES = 64 << 20  # of a piece that has all kernels loaded before anything is measured
SEED = 20261127
SAME = ("device", "kernel_driver", "versions", "commit", "simulated")  # of machine and software


def child(request: dict[str, Any]) -> dict[str, Any]:
    """Run what a process is asked for."""
    side = SIDES[request["side"]]
    plan = Plan(
        budget_bytes=request["budget_bytes"],
        rounds=request["rounds"],
        moments=request["moments"],
        stop=request["stop"],
        sample_seconds=request["sample_ms"] / 1000 if request["watched"] else 0,
    )
    if request["simulated"]:
        return _simulated_child(side, plan, request)
    return _gpu_child(side, plan, request)


def _gpu_child(side: Side, plan: Plan, request: dict[str, Any]) -> dict[str, Any]:
    if request["watched"]:
        sys.setswitchinterval(0.0005)  # the sampler takes turns with the program
    driver = rmm_uvm.cuda_driver(0)
    data_bytes, pieces = request["data_bytes"], request["pieces"]
    kind = PROGRAMS[request["program"]]
    if side.instead:
        instead = INSTEAD[request["program"]][side.instead]
        make: Callable[[int, int], Program] = lambda *size: instead(*size, plan.budget_bytes)  # noqa: E731
    else:
        make = functools.partial(kind, announced=side.announced)
    if request["program"] in TORCH:  # of tensors of other sizes other kernels would be loaded
        with warming_torch_up(side, driver, data_bytes):
            _run_once(kind(data_bytes, 1))
    elif side.instead != "dask":  # its worker is another process each time
        warm_up = make if side.instead == "streaming" else kind
        whole = getattr(kind, "WARMED_UP_WHOLE", False)
        _run_once(warm_up(data_bytes if whole else min(WARM_UP_BYTES, data_bytes // pieces), 1))
    _forget_cached()
    free_bytes = driver.memory()[0]
    of_side, give_back = open_memory(side, driver, plan.budget_bytes, data_bytes)
    program = make(data_bytes, pieces)

    def beside() -> tuple[int | None, str]:
        nonlocal of_side
        program.drop()
        _forget_cached()
        of_side.close()
        del of_side
        return memory.beside_bytes(driver, free_bytes, give_back)

    return measure(program, of_side, plan, beside)


def _simulated_child(side: Side, plan: Plan, request: dict[str, Any]) -> dict[str, Any]:
    data_bytes = request["data_bytes"]
    driver = rmm_uvm.simulated_device(4 * data_bytes // (2 << 20) * (2 << 20))
    of_side, _ = open_simulated(side, driver, plan.budget_bytes, data_bytes)
    told = of_side.residency if side.seen else None
    return measure(Simulated(data_bytes, request["pieces"], of_side, told), of_side, plan)


def _run_once(program: Program) -> None:
    program.make()
    for number in range(program.operations):
        program.operation(number)
    program.drop()


def _forget_cached() -> None:
    """Give back memory that libraries keep for themselves, of those that were imported."""
    if "cupy" in sys.modules:
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()
    if "cudf.utils.scalar" in sys.modules:  # the last numbers that columns were computed with
        sys.modules["cudf.utils.scalar"].pa_scalar_to_plc_scalar.cache_clear()


def kept_rows(
    path: Path, settings: dict[str, Any], machine: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the rows of an earlier call; end the program where they are of something else."""
    earlier = json.loads(path.read_text())
    of = earlier["environment"]
    other = [name for name in SAME if of.get(name) != machine.get(name)]
    before = earlier["settings"]
    other += [name for name in settings if name != "moments" and before.get(name) != settings[name]]
    both = zip(before["moments"], settings["moments"], strict=False)
    other += ["moments"] if any(one != another for one, another in both) else []
    if other:
        raise SystemExit(f"{path} is of another {', '.join(other)}: measure all anew")
    return [*earlier["runs"], *earlier["watched"], *earlier["stops"]]


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", choices=[*PROGRAMS, "list"], default="cudf")
    parser.add_argument("--factor", type=float, default=1.5, help="data, in budgets")
    parser.add_argument("--budget", default="4GiB")
    parser.add_argument("--pieces", type=int, help="of the data; each program has a default")
    parser.add_argument(
        "--rounds", type=int, default=7, help="of a run; from the 4th on they count"
    )
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--stops", type=int, default=5, help="moments with a twin each")
    parser.add_argument("--sides", help="names, with commas")
    parser.add_argument("--seed", type=int, default=SEED, help="of the moments")
    parser.add_argument("--sample-ms", type=float, default=4.0, help="between looks")
    parser.add_argument("--run-limit", type=float, default=120.0, help="seconds of one process")
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="seconds of all")
    parser.add_argument("--missing", action="store_true", help="go on with the file")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", metavar="MODULES", help=argparse.SUPPRESS)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(given: list[str] | None = None) -> int:
    asked = parsed(given)
    if asked.child is not None:
        for module in filter(None, asked.child.split(",")):
            importlib.import_module(module)
        answer = json.dumps(child(json.loads(sys.stdin.readline())))
        with written_whole(asked.answer, "the row") as partial:
            partial.write_text(answer)
        return 0
    if asked.program == "list":
        print(
            "\n".join(
                f"{name:16} {kind.__doc__.splitlines()[0]}" for name, kind in PROGRAMS.items()
            )
        )
        return 0
    if asked.json is None:
        raise SystemExit("--json FILE is needed")
    if asked.rounds < COUNTED_FROM:
        raise SystemExit(f"--rounds {asked.rounds}: rounds count from the {COUNTED_FROM}th on")
    kind = PROGRAMS[asked.program]
    names = asked.sides.split(",") if asked.sides else kind.SIDES
    pieces = asked.pieces or kind.PIECES
    if unknown := [name for name in names if name not in SIDES]:
        raise SystemExit(f"--sides {','.join(unknown)}: there are {', '.join(SIDES)}")
    sides = [SIDES[name] for name in names]
    instead = {} if asked.simulated else INSTEAD.get(asked.program, {})
    if lacking := [side.name for side in sides if side.instead and side.instead not in instead]:
        there = [side.name for side in SIDES.values() if side.instead in instead]
        raise SystemExit(
            f"--program {asked.program} has no {', '.join(lacking)}: "
            f"{', '.join(there) or 'nothing in place of a budget, here'}"
        )
    if asked.program not in TORCH and any(side.torch for side in sides):
        raise SystemExit(f"--program {asked.program} is none of torch's: {', '.join(TORCH)} are")
    budget_bytes = parse_bytes(asked.budget, name="--budget")
    data_bytes = int(budget_bytes * asked.factor)
    if not asked.simulated:
        limit = harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
        if managed_bytes(data_bytes) > limit:
            raise SystemExit(
                f"{managed_bytes(data_bytes)} bytes of managed memory are needed, "
                f"RMM_UVM_MANAGED_LIMIT is {limit}"
            )
        if hasattr(kind, "prepare"):
            kind.prepare(data_bytes, pieces)
    settings = {
        "program": asked.program,
        "asked_factor": asked.factor,
        "budget_bytes": budget_bytes,
        "data_bytes": data_bytes,
        "pieces": pieces,
        "rounds": asked.rounds,
        "seed": asked.seed,
        "sample_ms": asked.sample_ms,
        "monitor": False,
        "environment": memory.PINNED,
        "simulated": asked.simulated,
    }
    operations = pieces * (Simulated if asked.simulated else kind).STEPS
    counted = range(COUNTED_FROM, asked.rounds + 1)
    settings["moments"] = moments(asked.seed, counted, operations, asked.stops)
    machine = harness.software() if asked.simulated else harness.environment()
    going_on = asked.missing and asked.json.exists()
    kept = kept_rows(asked.json, settings, machine) if going_on else []
    request = {**settings, "environment": None}

    def run(job: runner.Job) -> dict[str, Any]:
        stop = None if job.stop is None else list(job.stop)
        asks = {**request, "side": job.side.name, "stop": stop, "watched": job.watched}
        return processes.run(asks, asked.run_limit)

    # On a simulated device a look takes no time: each run has its own.
    wanted = runner.jobs(sides, asked.repetitions, settings["moments"], watched=not asked.simulated)
    rows = runner.in_turn(kept, wanted)
    modules = () if asked.simulated else getattr(kind, "MODULES", ())
    with runner.Processes(Path(__file__).resolve(), modules) as processes:
        for row in runner.run_all(wanted, run, rows, asked.time_limit):
            print(_line(row), flush=True)
            rows.append(row)
            _write(asked.json, settings, machine, rows)
    told = _write(asked.json, settings, machine, rows)
    print("\n".join(document.lines(told)))
    if missing := {job.key for job in wanted} - {runner.key_of(row) for row in rows}:
        print(f"{len(missing)} runs are missing: go on with --missing")
    return 0 if not missing and all(row["result"] for row in told["ratios"]) else 1


def _write(
    path: Path,
    settings: dict[str, Any],
    machine: dict[str, Any],
    rows: list[dict[str, Any]],
) -> dict[str, Any]:
    names = [name for name in SIDES if name in {row["side"] for row in rows}]
    baselines = [side.name for side in BASELINES]
    ours = [one for one in names if one not in ("resident", *baselines)]
    pairs = [(one, other) for one in ours for other in baselines]
    pairs += [(one, "resident") for one in names if one != "resident"]
    timed, watched, twins = (
        [row for row in rows if runner.key_of(row)[2] == kind] for kind in runner.KINDS
    )
    told = document.rows_of(
        [SIDES[name].as_row() for name in names],
        timed,
        watched,
        twins,
        pairs,
        settings["budget_bytes"],
    )
    results = {"settings": settings, **told}
    harness.write_json(path, "past_the_edge", results, machine, quiet=True)
    return told


def _line(row: dict[str, Any]) -> str:
    what = f"{row['side']:23} {row['repetition']} {row['process_seconds']:6.1f} s"
    if "failed" in row:
        return f"{what}  failed: {row['failed']}"
    if "stop" in row:
        told = row["stop"]
        mib = {name: told[f"{name}_bytes"] / 2**20 for name in ("live_resident", "dead_resident")}
        other = told["live_resident_by_page_tables_bytes"]
        tables = "unknown" if other is None else f"{other / 2**20:.0f} MiB"
        return (
            f"{what}  stopped: {mib['live_resident']:.0f} MiB of live memory resident, "
            f"{mib['dead_resident']:.0f} MiB of dead; by page tables {tables}"
        )
    what += "  watched:" if row.get("watched") else ""
    return what + "  rounds of " + " ".join(f"{each['seconds']:.3f}" for each in row["rounds"])


if __name__ == "__main__":
    raise SystemExit(main())
