# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training past the edge of a budget, with torch's caching allocator and without one.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/torch_caching.py --json FILE [--models gpt2,bert]
        [--dtypes bf16] [--factors 0,1.25,1.5,2,3] [--steps 4] [--batch-fraction 0.125]
        [--missing] [--time-limit SECONDS] [--rows-only]
    python benchmarks/torch_caching.py --json FILE --kernels-only     # needs no GPU
    python benchmarks/torch_caching.py --json FILE --merge OTHER ...  # nor this: adds their cases
    python benchmarks/torch_caching.py --json FILE --write            # the tables of training.md

What is published of managed memory under PyTorch says that the caching allocator trades page
faults for migrations: what it keeps free is used again where its pages are, and dead as it is it
leaves and comes back. Without one each free gives memory back, and each allocation faults in as new
memory.

Each way has a budget in the place of a smaller card, of the peak over a factor (0: everything
fits): "on" and "off" as the kernel driver would keep it, first in, first out, by page faults alone;
"on, ours" with our default policy. "off" is RMM's pluggable allocator over managed memory without a
pool. torch cannot change its allocator twice, so that each model takes two processes. Faults are
counted in one more step, since counting takes time. A call adds its models to the file.

On a machine with several GPUs, a call for each, with CUDA_VISIBLE_DEVICES and a file of its own,
measures a part of the models.
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

import _harness
import _torch_models
from _torch_caching_document import DOCUMENT, document_with
from _torch_caching_file import Kept
from _torch_caching_trainers import Counting, Uncached
from _torch_caching_verdicts import (
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
from _torch_recordings import kernels_of
from _training_runs import Trainer, budgets, clean

import rmm_uvm

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


def compared(case: Case, arguments: Any, save: Callable[[list[Row]], None]) -> None:
    """Measure one model in all ways, and save its rows after each process."""
    found: list[Row] = []

    def add(row: Row) -> None:
        found.append(row)
        show(row)

    def fail(child: str, reason: str) -> None:
        found.append({"model": case[0], "dtype": case[1], "way": child, "failed": reason})
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


def asked() -> argparse.Namespace:
    """Return the arguments; end the program where they cannot be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--models", default=",".join(_torch_models.NAMES))
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
    only.add_argument("--merge", type=Path, nargs="+", metavar="OTHER", help="add other files")
    only.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}, run nothing")
    parser.add_argument("--child", choices=(ON, OFF), help=argparse.SUPPRESS)
    parser.add_argument("--native-bytes", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.models.split(",")
    if unknown := [name for name in names if name not in _torch_models.NAMES]:
        parser.error(f"no model {unknown[0]!r}: there are {', '.join(_torch_models.NAMES)}")
    factors = [float(each) for each in arguments.factors.split(",")]
    if wrong := [each for each in factors if each != FITS and each <= 1]:
        parser.error(f"factor {wrong[0]:g}: 0 is what fits, others are greater than 1")
    if arguments.steps < 2:
        parser.error(f"--steps {arguments.steps}: at least 2, the first half is not counted")
    return arguments


def be_child(arguments: argparse.Namespace) -> None:
    """Measure what one process can, and tell the parent."""
    kind = Counting if arguments.child == ON else Uncached
    driver = rmm_uvm.cuda_driver(0)
    trainer = kind(arguments.models, arguments.dtypes, arguments.batch_fraction, driver)
    native = arguments.native_bytes and tuple(arguments.native_bytes)
    factors = [float(each) for each in arguments.factors.split(",")]

    def tell(row: Row) -> None:
        print(ROW + json.dumps(row), flush=True)

    rows_of(arguments.child, trainer, factors, arguments.steps, native, tell)


def measured(arguments: argparse.Namespace, kept: Kept) -> None:
    """Measure the models that are asked for, one after the other."""
    begin = time.monotonic()
    cases = list(itertools.product(arguments.models.split(","), arguments.dtypes.split(",")))
    if arguments.missing:
        factors = [float(each) for each in arguments.factors.split(",")]
        cases = list(not_measured(kept.rows, cases, factors))
    for number, case in enumerate(cases):
        if arguments.time_limit and time.monotonic() - begin > arguments.time_limit:
            left = ", ".join(" ".join(one) for one in cases[number:])
            print(f"{arguments.time_limit:g} s are over; left for another call: {left}")
            break
        batch = batch_of(case, arguments.batch_fraction)
        if not arguments.rows_only and not kept.knows(case, batch):
            kept.put_kernels(kernels_of(*case, batch))
        compared(case, arguments, kept.put_rows)


def batch_of(case: Case, fraction: float) -> int:
    """Return the samples in a step."""
    return max(1, round(_torch_models.full_batch(case[0]) * fraction))


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
        for path in arguments.merge:
            kept.merge(path)
        return
    if arguments.kernels_only:
        os.environ.setdefault("RMM_UVM_DRIVER", "simulated")  # what a new file says of the machine
        for case in itertools.product(arguments.models.split(","), arguments.dtypes.split(",")):
            kept.put_kernels(kernels_of(*case, batch_of(case, arguments.batch_fraction)))
            print(" ".join(case), flush=True)
        return
    _harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    measured(arguments, kept)
    judged = verdicts_of(kept.rows)
    print(json.dumps(judged, indent=1))
    raise SystemExit(_harness.exit_status(judged))


if __name__ == "__main__":
    main()
