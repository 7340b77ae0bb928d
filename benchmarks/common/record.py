# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Run every benchmark that this machine allows, and compare with the committed results.

    python benchmarks/common/record.py [--only NAME ...] [--clock-allowance 1.5] [--keep FOLDER]
                                [--long] [--list]

Writes nothing in this repository. Figures of a simulated device are the same at every run: any
that is not equal is a regression, or a result to be committed anew. Times are compared by ratio;
one is a regression when it is more than the allowance times as slow, which stands for noise and for
another machine; so is one that is missing now. What needs a GPU runs where there is one, and then
only with RMM_UVM_MANAGED_LIMIT set. Half an hour without a GPU, on two
cores; with --long 20 minutes more. Exit status 1 if
anything regressed or a script failed, 2 if nothing could run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.record_figures import Comparison, compared, missed
from benchmarks.common.record_table import BENCHMARKS, FILE, NOT_RUN, Benchmark

HERE = Path(__file__).resolve().parents[1]
RESULTS = HERE / "results"
CLOCK_ALLOWANCE = 1.5
_WIDTH = 150  # characters, where there is no terminal
_SHOWN = 3  # differing figures of one benchmark; --keep has the files


@dataclass(frozen=True)
class Outcome:
    """What came of one benchmark: a comparison, or the reason why there is none."""

    benchmark: Benchmark
    comparison: Comparison | None = None
    seconds: float = 0.0
    status: int = 0
    why_not: str = ""
    newly_missed: frozenset[str] = frozenset()
    explained: bool = False  # the status says that bounds are missed, which the result names

    def regressions(self, allowance: float) -> list[str]:
        """Return a line for each figure that regressed, and for a bound that is missed."""
        lines = []
        if self.comparison is not None:
            for name, (was, now) in self.comparison.different.items():
                lines.append(f"{name}: {was} is {'missing' if now is None else now} now")
            for name, ratio in self.comparison.slower(allowance).items():
                lines.append(f"{name}: {ratio:.2f} times as slow")
        lines += [f"missed now: {name}" for name in sorted(self.newly_missed)]
        if self.comparison is not None and not self.comparison.compared + self.comparison.judged:
            lines.append("nothing compared: the two results have no figure in common")
        if self.status and not self.explained:
            lines.append(self.why_not or f"the script ended with status {self.status}")
        return lines


def gpus_here() -> int:
    """Return how many GPUs may be used; end the program where the cap is missing or not safe."""
    from rmm_uvm.drivers import cuda_driver
    from rmm_uvm.errors import UvmError

    found = 0
    for device in range(2):
        try:
            free_bytes, _ = cuda_driver(device).memory()
        except UvmError:
            break
        harness.require_managed_limit(free_bytes)
        found += 1
    return found


def _status_of(benchmark: Benchmark, file: Path, log: Path) -> int:
    """Run the command that makes a file; return its status."""
    settings = dict(benchmark.settings)
    if benchmark.gpus == 0:
        settings["RMM_UVM_DRIVER"] = "simulated"
    script, *arguments = (word.replace(FILE, str(file)) for word in benchmark.command)
    command = (
        ["bash", str(HERE.parent / script[1:]), *arguments]
        if script.startswith("/")
        else [sys.executable, str(HERE / script), *arguments]
    )
    with log.open("w") as output:
        return subprocess.run(
            command,
            env={**os.environ, "PYTHON": sys.executable, **settings},
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=benchmark.limit_seconds,
            check=False,
        ).returncode


def ran(benchmark: Benchmark, folder: Path) -> Outcome:
    """Run one benchmark and compare what it wrote with what is committed."""
    committed = RESULTS / f"{benchmark.result}.json"
    if not committed.exists():
        return Outcome(benchmark, why_not="nothing is committed to compare with")
    file = folder / f"{benchmark.result}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    log = folder / f"{benchmark.result}.log"
    try:
        status = _status_of(benchmark, file, log)
    except subprocess.TimeoutExpired:
        why_not = f"not ended after {benchmark.limit_seconds:g} s"
        return Outcome(benchmark, status=1, why_not=why_not)
    seconds = time.monotonic() - begun
    if not file.exists():
        said = log.read_text().strip().splitlines() or ["nothing"]
        return Outcome(benchmark, None, seconds, status or 1, f"no result; it said: {said[-1]}")
    recorded, now = (json.loads(path.read_text()) for path in (committed, file))
    comparison = compared(
        recorded, now, clocked=benchmark.clocked, clocked_parts=benchmark.clocked_parts
    )
    newly_missed = frozenset(missed(now) - missed(recorded))
    explained = status == 1 and bool(missed(now))
    return Outcome(
        benchmark, comparison, seconds, status, newly_missed=newly_missed, explained=explained
    )


def _verdict(outcome: Outcome, allowance: float) -> str:
    told = _judgement(outcome, allowance)
    return f"{told}; ended with status {outcome.status}" if outcome.status else told


def _judgement(outcome: Outcome, allowance: float) -> str:
    if regressions := outcome.regressions(allowance):
        found = outcome.comparison
        only_slower = found and len(found.slower(allowance)) == len(regressions)
        return f"{len(regressions)} {'slower' if only_slower else 'differ'}"
    return "within the allowance" if outcome.benchmark.clocked else "equal"


def table_of(outcomes: Iterable[Outcome], allowance: float) -> Table:
    """Return the outcomes as a table."""
    table = Table(title=f"against the committed results; times may be {allowance} times as long")
    table.add_column("benchmark", no_wrap=True)
    table.add_column("figures", justify="right")
    for heading in ("median ratio", "worst ratio"):
        table.add_column(heading, justify="right")
    table.add_column("of", overflow="fold")
    table.add_column("seconds", justify="right")
    table.add_column("")
    for outcome in outcomes:
        found = outcome.comparison
        if found is None:
            table.add_row(outcome.benchmark.result, *[""] * 5, outcome.why_not)
            continue
        median, worst = found.median_ratio, found.farthest or found.worst
        table.add_row(
            outcome.benchmark.result,
            str(found.compared),
            "" if median is None else f"{median:.2f}",
            f"{worst[1]:.3f}" if worst else "",
            worst[0] if worst else "",
            f"{outcome.seconds:.0f}",
            _verdict(outcome, allowance),
        )
    return table


def chosen(
    only: Iterable[str] | None, gpus: int, *, long: bool = False
) -> tuple[list[Benchmark], list[Outcome]]:
    """Return what runs, and what does not with the reason."""
    running: list[Benchmark] = []
    passed_over: list[Outcome] = []
    for benchmark in BENCHMARKS:
        if only and benchmark.result not in only:
            continue
        if benchmark.long and not (long or only):
            passed_over.append(Outcome(benchmark, why_not="takes long: with --long, or named"))
        elif benchmark.gpus > gpus:
            why_not = f"needs {benchmark.gpus} GPUs, here are {gpus}"
            passed_over.append(Outcome(benchmark, why_not=why_not))
        else:
            running.append(benchmark)
    return running, passed_over


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = [benchmark.result for benchmark in BENCHMARKS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME")
    parser.add_argument("--clock-allowance", type=float, default=CLOCK_ALLOWANCE)
    parser.add_argument("--keep", type=Path, help="leave results and output in this folder")
    parser.add_argument("--long", action="store_true", help="also what takes 20 minutes alone")
    parser.add_argument("--list", action="store_true", help="say what would run, and run nothing")
    arguments = parser.parse_args()
    width = None if sys.stdout.isatty() else _WIDTH
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    running, outcomes = chosen(arguments.only, gpus_here(), long=arguments.long)
    if arguments.list:
        for benchmark in running:
            console.print(f"{benchmark.result}: {' '.join(benchmark.command)}", soft_wrap=True)
        for name, why in {o.benchmark.result: o.why_not for o in outcomes}.items():
            console.print(f"{name}: not run: {why}", soft_wrap=True)
        for name, (what, why) in NOT_RUN.items():
            console.print(f"{name}: never run: {what}; {why}", soft_wrap=True)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        for number, benchmark in enumerate(running, 1):
            console.print(f"{number} of {len(running)}: {benchmark.result}", soft_wrap=True)
            outcomes.append(ran(benchmark, folder))
    console.print(table_of(outcomes, arguments.clock_allowance))
    failed = False
    for outcome in outcomes:
        regressions = outcome.regressions(arguments.clock_allowance)
        failed = failed or bool(regressions)
        for line in regressions[:_SHOWN]:
            console.print(f"{outcome.benchmark.result}: {line}", soft_wrap=True)
        if len(regressions) > _SHOWN:
            console.print(
                f"{outcome.benchmark.result}: and {len(regressions) - _SHOWN} more", soft_wrap=True
            )
    if not running:
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
