# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training past the edge of a budget, with torch's caching allocator and without one.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/training/caching.py --json FILE
        [--models gpt2,bert] [--dtypes bf16] [--factors 0,1.25,1.5,2,3] [--steps 4]
        [--batch-fraction 0.125] [--missing] [--time-limit SECONDS] [--rows-only]
    python benchmarks/training/caching.py --json FILE --kernels-only     # needs no GPU
    python benchmarks/training/caching.py --json FILE --merge OTHER ...  # nor this, see below
    python benchmarks/training/caching.py --json FILE --write            # the tables of training.md

What is published of managed memory under PyTorch says that the caching allocator trades page
faults for migrations: what it keeps free is used again where its pages are, and dead as it is it
leaves and comes back. Without one each free gives memory back, and each allocation faults in as new
memory.

Each way has a budget in the place of a smaller card, of the peak over a factor (0: everything
fits): "on" and "off" as the kernel driver would keep it, first in, first out, by page faults alone;
"on, ours" with our default policy. "off" is RMM's pluggable allocator over managed memory without a
pool. torch cannot change its allocator twice, so that each model takes two processes. Faults are
counted in one more step, since counting takes time. A call adds to the file what it measured, and
replaces what is there of the same models and factors, but by nothing that lacks a way.

On a machine with several GPUs, a call for each, with CUDA_VISIBLE_DEVICES and a copy of the file,
measures a part of the models. `--merge` adds what was measured in such copies. All of them go in
one call, into the file as it was when it was copied: it tells by that what in a copy is older.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rmm_uvm

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.training import models
from benchmarks.training.caching_document import DOCUMENT, document_with
from benchmarks.training.caching_file import Kept
from benchmarks.training.caching_trainers import Counting, Uncached
from benchmarks.training.caching_verdicts import (
    DTYPES,
    FACTORS,
    FITS,
    NATIVE,
    OFF,
    ON,
    OURS,
    Case,
    not_measured,
    verdicts_of,
)
from benchmarks.training.recordings import kernels_of
from benchmarks.training.training_runs import Trainer, budgets, clean

BATCH_FRACTION = 0.125  # of the full batch: peaks of 1 to 8 GiB
ROOM = 1.25  # of what torch holds, where everything fits
CHILD_SECONDS = 300.0
ROW = "row: "  # begins a line of a child
Row = dict[str, Any]


def rows_of(
    child: str,
    trainer: Trainer,
    factors: Sequence[float],
    steps: int,
    native: tuple[int, int] | None,
    add: Callable[[Row], None],
) -> None:
    """Measure what one process can, and hand over row by row.

    Parameters
    ----------
    child : {"on", "off"}
        Which allocator torch has.
    native : tuple of int
        Peak and held bytes of torch's own allocator; "on" measures them.
    """

    def add_row(way: str, factor: float, budget_bytes: int, row: Row) -> Row:
        clean()
        what = {"model": trainer.name, "dtype": trainer.dtype, "factor": factor, "way": way}
        add({**what, "budget_bytes": budget_bytes, **row})
        return row

    if native is None:
        row = add_row(NATIVE, FITS, 0, trainer.train(steps))
        native = row["peak_bytes"], row["reserved_bytes"]
    peak_bytes, reserved_bytes = native
    ways = {ON: "fault-driven", OURS: "lazy"} if child == ON else {OFF: "fault-driven"}
    for factor in factors:
        budget_bytes = int(reserved_bytes * ROOM if factor == FITS else peak_bytes / factor)
        for way, mode in ways.items():
            # Our policy learns the order of a step first.
            count = 2 * steps if way == OURS else steps
            budget = budgets(budget_bytes)[mode]
            add_row(way, factor, budget_bytes, trainer.on_managed_memory(budget, count))


def run_child(command: Sequence[str], add: Callable[[Row], None], seconds: float) -> str:
    """Run a child, and hand over its rows as they come.

    Returns
    -------
    str
        Why it failed, a line; "" if it did not.
    """
    too_long = threading.Event()
    last = "it said nothing"
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:

        def end() -> None:
            too_long.set()
            child.kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            assert child.stdout is not None
            for line in child.stdout:
                if line.startswith(ROW):
                    add(json.loads(line.removeprefix(ROW)))
                elif line.strip():
                    last = line.strip()
                    print(f"  {last}", flush=True)
            status = child.wait()
        finally:
            timer.cancel()
            child.kill()  # it has ended, or what came could not be read
            timer.join()
    if too_long.is_set():
        return f"ended after {seconds:g} s: {last}"
    return f"exit status {status}: {last}" if status else ""


def command_of(child: str, case: Case, arguments: Any, native: Row | None) -> list[str]:
    """Return the command line of the process that measures one part of one model."""
    name, dtype = case
    peaks = [] if native is None else [native["peak_bytes"], native["reserved_bytes"]]
    return [
        *(sys.executable, str(Path(__file__)), "--json", str(arguments.json), "--child", child),
        *("--models", name, "--dtypes", dtype, "--factors", arguments.factors),
        *("--steps", str(arguments.steps), "--batch-fraction", str(arguments.batch_fraction)),
        *(["--native-bytes", *map(str, peaks)] if peaks else []),
    ]


def show(row: Row) -> None:
    """Print a row."""
    faults = row["faults_unknown"] if row["gpu_faults"] is None else f"{row['gpu_faults']:,}"
    print(
        f"{row['model']:10} {row['dtype']} {row['factor']:4.2f} {row['way']:9} "
        f"{row['seconds'] * 1e3:9.1f} ms {row['to_device_bytes'] / 2**20:8.0f} MiB in "
        f"{row['to_host_bytes'] / 2**20:8.0f} out {row['evictions']:6.0f} evictions "
        f"{faults} faults peak {row['peak_bytes'] / 2**30:.2f} GiB "
        f"held {row['reserved_bytes'] / 2**30:.2f} GiB",
        flush=True,
    )


def compared(case: Case, arguments: Any, save: Callable[[list[Row]], None]) -> int:
    """Measure one model in all ways, and save its rows one by one: a call may be ended.

    Returns
    -------
    int
        How many processes failed.
    """
    found: list[Row] = []
    factors = factors_of(arguments)

    def add(row: Row) -> None:
        found.append(row)
        show(row)
        save(found)

    def fail(child: str, reason: str) -> None:
        what = {"model": case[0], "dtype": case[1], "way": child, "factors": factors}
        found.append({**what, "failed": reason})
        print(f"{' '.join(case)} {child}: failed: {reason}", flush=True)

    for child in (ON, OFF):
        native = next((row for row in found if row["way"] == NATIVE), None)
        if child == OFF and native is None:
            reason = "there is no run of torch's own allocator to take budgets from"
        else:
            command = command_of(child, case, arguments, native)
            reason = run_child(command, add, arguments.child_seconds)
        if reason:
            fail(child, reason)
            save(found)
    return sum("failed" in row for row in found)


def asked() -> argparse.Namespace:
    """Return the arguments; end the program where they cannot be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--models", default=",".join(models.NAMES))
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--factors", default=",".join(map(str, FACTORS)))
    parser.add_argument("--steps", type=int, default=3, help="of each way; of ours twice as many")
    parser.add_argument("--batch-fraction", type=float, default=BATCH_FRACTION)
    parser.add_argument("--child-seconds", type=float, default=CHILD_SECONDS)
    parser.add_argument("--missing", action="store_true", help="only what the file does not have")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="begin none after that")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--kernels-only", action="store_true", help="no GPU: what kernels use")
    only.add_argument("--rows-only", action="store_true", help="record no kernels")
    only.add_argument("--merge", type=Path, nargs="+", metavar="OTHER", help="add copies' new rows")
    only.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}, run nothing")
    parser.add_argument("--child", choices=(ON, OFF), help=argparse.SUPPRESS)
    parser.add_argument("--native-bytes", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    known = {"model": (arguments.models, models.NAMES), "type": (arguments.dtypes, DTYPES)}
    for what, (words, there) in known.items():
        if unknown := [name for name in words.split(",") if name not in there]:
            parser.error(f"no {what} {unknown[0]!r}: there are {', '.join(there)}")
    read = [*(arguments.merge or []), *([arguments.json] if arguments.write else [])]
    if absent := [path for path in read if not path.is_file()]:
        parser.error(f"no file {absent[0]}")
    if wrong := [each for each in factors_of(arguments) if each != FITS and each <= 1]:
        parser.error(f"factor {wrong[0]:g}: 0 is what fits, others are greater than 1")
    if arguments.steps < 2:
        parser.error(f"--steps {arguments.steps}: at least 2, the first half is not counted")
    return arguments


def factors_of(arguments: Any) -> list[float]:
    """Return the factors that are asked for."""
    return [float(each) for each in arguments.factors.split(",")]


def be_child(arguments: argparse.Namespace) -> None:
    """Measure what one process can, and tell the parent."""
    kind = Counting if arguments.child == ON else Uncached
    driver = rmm_uvm.cuda_driver(0)
    trainer = kind(arguments.models, arguments.dtypes, arguments.batch_fraction, driver)
    native = arguments.native_bytes and tuple(arguments.native_bytes)

    def tell(row: Row) -> None:
        print(ROW + json.dumps(row), flush=True)

    rows_of(arguments.child, trainer, factors_of(arguments), arguments.steps, native, tell)


def measured(arguments: argparse.Namespace, kept: Kept) -> int:
    """Measure the models that are asked for one by one; return how many processes failed."""
    begin, failed = time.monotonic(), 0
    cases = list(itertools.product(arguments.models.split(","), arguments.dtypes.split(",")))
    for case in cases:  # before anything is measured
        kept.require_batch(case, batch_of(case, arguments.batch_fraction))
    if arguments.missing:
        cases = list(not_measured(kept.rows, cases, factors_of(arguments)))
    for number, case in enumerate(cases):
        limit_seconds = arguments.time_limit
        if limit_seconds is not None and time.monotonic() - begin > limit_seconds:
            left = ", ".join(" ".join(one) for one in cases[number:])
            print(f"{limit_seconds:g} s are over; left for another call: {left}")
            break
        batch = batch_of(case, arguments.batch_fraction)
        if not arguments.rows_only and not kept.knows(case, batch):
            kept.put_kernels(kernels_of(*case, batch))
        failed += compared(case, arguments, kept.put_rows)
    return failed


def batch_of(case: Case, fraction: float) -> int:
    """Return the samples in a step."""
    return max(1, round(models.full_batch(case[0]) * fraction))


def main() -> None:
    arguments = asked()
    if arguments.child is not None:
        be_child(arguments)
        return
    kept = Kept(arguments.json)
    if arguments.write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), kept.result))
        return
    if arguments.merge:
        kept.merge(arguments.merge)
        return
    if arguments.kernels_only:
        os.environ.setdefault("RMM_UVM_DRIVER", "simulated")  # what a new file says of the machine
        for case in itertools.product(arguments.models.split(","), arguments.dtypes.split(",")):
            kept.put_kernels(kernels_of(*case, batch_of(case, arguments.batch_fraction)))
            print(" ".join(case), flush=True)
        return
    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    failed = measured(arguments, kept)
    judged = verdicts_of(kept.rows)
    # The file keeps what it has where it cannot be measured again.
    judged["processes of this call that failed"] = harness.judged_at_most(failed, 0)
    print(json.dumps(judged, indent=1))
    raise SystemExit(harness.exit_status(judged))


if __name__ == "__main__":
    main()
