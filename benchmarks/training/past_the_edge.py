# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training past GPU memory, with a budget in the place of a smaller card.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/training/past_the_edge.py --json FILE
        --models gpt2,bert
    python benchmarks/training/past_the_edge.py --write    # the tables of docs/training.md

Each model trains with torch's own allocator (everything fits), on managed memory that fits, and
at each factor of its peak: fault-driven (first in, first out, page faults, dead memory copied: what
a smaller card would do), with uses announced just before them (lazy), fetched ahead (eager), and
lazy with what autograd keeps copied as far as it does not fit (copy).
Transformers also recompute (activation checkpointing) and keep what autograd saves in host memory
(`save_on_cpu`), with torch's own allocator: what a program does by hand instead. Ours then runs
with the memory that each of these needed. Losses are compared with deterministic kernels, in runs
of their own: ordinary ones of some models differ from run to run on any memory. So is what fits
(``--fits``), at the full batch: of smaller ones the host's launches set the pace, which differs by
more than managed memory costs. All that fits has to be within RMM_UVM_MANAGED_LIMIT.

A call adds its rows to the file after each model and type, since all together take longer than
one run may. ``--time-limit`` ends a call in time, and the same call with ``--missing`` goes on.
What fails is kept with its reason, and the next one begins.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import rmm_uvm
from rmm_uvm.residency import Budget

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.training import models
from benchmarks.training.training_document import DOCUMENT, RESULT, document_with
from benchmarks.training.training_runs import (
    Trainer,
    budgets,
    clean,
    deterministic_kernels,
    duplex_rate,
    operator_without_deterministic_kernel,
    recomputing,
    saving_on_cpu,
    to_keep,
)
from benchmarks.training.training_verdicts import BY_HAND, OURS, TRANSFORMERS, all_verdicts, case_of

FACTORS = (1.25, 1.5, 2.0, 3.0)
# Those with figures of their own to reach come first, should time run out.
NAMES = (*TRANSFORMERS, *(name for name in models.NAMES if name not in TRANSFORMERS))
LOSSES_FACTOR = 1.5
LOSSES_BATCH_FRACTION = 1 / 8
LOSSES_WAYS: dict[str, tuple[str, Literal["migrate", "copy"]]] = {
    "lazy": ("lazy", "migrate"),
    "eager": ("eager", "migrate"),
    "copy": ("lazy", "copy"),
}
FITTING_STEPS = 12
FITTING_ROUNDS = 4  # short steps differ more between rounds than within one
FAULT_DRIVEN_STEPS = 3
OURS_BY_HAND: dict[str, Literal["migrate", "copy"]] = {"lazy": "migrate", "copy": "copy"}
WAYS = ("fault-driven", *OURS, *BY_HAND)
PARTS = ("rows", "fits", "losses", "failed")


def fitting_pair(trainer: Trainer) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a row of torch's own allocator and one of managed memory that fits, run in turn."""
    rows: list[list[dict[str, Any]]] = [[], []]
    for _ in range(FITTING_ROUNDS):
        rows[0].append(trainer.train(FITTING_STEPS))
        clean()
        fits = Budget(int(rows[0][0]["reserved_bytes"] * 1.25))
        rows[1].append(trainer.on_managed_memory(fits, FITTING_STEPS))
        clean()
    for runs in rows:
        for name in ("seconds", "host_seconds"):
            runs[-1][name] = statistics.median(run[name] for run in runs)
        runs[-1]["least_seconds"] = min(run["least_seconds"] for run in runs)
    return rows[0][-1], rows[1][-1]


def add_rows(
    found: list[dict[str, Any]],
    trainer: Trainer,
    factors: Sequence[float],
    steps: int,
    rate: float,
    ways: Sequence[str] = WAYS,
) -> None:
    """Run one model in some ways beside what fits, and add each row as soon as it is there.

    Parameters
    ----------
    found : list
        What is added to: where the model fails, the rows so far are kept.
    trainer, factors, steps
        Model, peaks over the budget, and steps of ours past it.
    rate : float
        Bytes a second each way, as `duplex_rate` gives them.
    ways : sequence of str
        Of `WAYS`. Those by hand have those of ours in their memory with them.
    """
    name, dtype = trainer.name, trainer.dtype
    begin = time.perf_counter()
    native, managed = fitting_pair(trainer)

    def add(way: str, factor: float, run: dict[str, Any]) -> dict[str, Any]:
        clean()
        excess_bytes = native["peak_bytes"] * (1 - 1 / factor) if factor > 1 else 0.0
        row = {
            **{"model": name, "dtype": dtype, "factor": round(factor, 4), "way": way},
            **to_keep(run),
            "compute_seconds": round(native["seconds"], 6),
            "link_seconds": round(excess_bytes / rate, 6),
            "duplex_bytes_per_second": int(rate),
        }
        found.append(row)
        print(
            f"{name:14} {dtype} {factor:4.2f} {way:28} {row['seconds'] * 1e3:8.1f} ms "
            f"{row['to_device_bytes'] / 2**30:6.2f} GiB in {row['to_host_bytes'] / 2**30:6.2f} out "
            f"compute {native['seconds'] * 1e3:.1f} link {row['link_seconds'] * 1e3:.1f} ms "
            f"peak {row['peak_bytes'] / 2**30:.2f} GiB; {time.perf_counter() - begin:.1f} s",
            flush=True,
        )
        return row

    add("native", 0.0, native)
    add("managed", 0.0, managed)
    for factor in factors:
        for way, budget in budgets(int(native["peak_bytes"] / factor)).items():
            if way not in ways:
                continue
            few = FAULT_DRIVEN_STEPS if way == "fault-driven" else steps
            add(way, factor, trainer.on_managed_memory(budget, few))
        if "copy" in ways:
            lazy = budgets(int(native["peak_bytes"] / factor))["lazy"]
            add("copy", factor, trainer.on_managed_memory(lazy, steps, "copy"))
    wraps = dict(zip(BY_HAND, (recomputing, saving_on_cpu), strict=True))
    for way, wrap in wraps.items() if name in TRANSFORMERS else ():
        if way not in ways:
            continue
        peak_bytes = add(way, 0.0, trainer.train(steps, wrap))["peak_bytes"]
        lazy = budgets(peak_bytes)["lazy"]
        for ours in (one for one in OURS_BY_HAND if one in ways):
            run = trainer.on_managed_memory(lazy, steps, OURS_BY_HAND[ours])
            add(f"{ours}, memory of {way}", native["peak_bytes"] / peak_bytes, run)


def fits_of(trainer: Trainer) -> list[dict[str, Any]]:
    """Return a row of torch's own allocator and one of managed memory that fits."""
    ways = zip(("native", "managed"), fitting_pair(trainer), strict=True)
    rows = [
        {"model": trainer.name, "dtype": trainer.dtype, "factor": 0.0, "way": way, **to_keep(run)}
        for way, run in ways
    ]
    print(*rows, sep="\n", flush=True)
    return rows


def equal(one: dict[str, Any], other: dict[str, Any]) -> int:
    """Return for how many steps from the first the losses of two runs are the same to the bit."""
    pairs = list(zip(one["losses"], other["losses"], strict=True))
    return next((step for step, (a, b) in enumerate(pairs) if a != b), len(pairs))


def difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return by how much the losses of two runs differ at most."""
    return max(abs(a - b) for a, b in zip(one["losses"], other["losses"], strict=True))


def losses_of(trainer: Trainer, steps: int) -> dict[str, Any]:
    """Train where it fits and past the budget; compare the losses.

    With deterministic kernels only, if every operator has one. Otherwise with those that there
    are, and the row names the operators that have none. Where it fits it is trained twice: what
    differs there says nothing of us.
    """
    try:
        return _losses(trainer, steps, strict=True)
    except RuntimeError as error:
        if not operator_without_deterministic_kernel(error):
            raise
    clean()  # after the error, which holds the step's tensors
    return _losses(trainer, steps, strict=False)


def _losses(trainer: Trainer, steps: int, *, strict: bool) -> dict[str, Any]:
    try:
        with deterministic_kernels(strict=strict) as operators:
            native = trainer.train(steps)
            clean()
            again = trainer.train(steps)
            clean()
            within = budgets(int(native["peak_bytes"] / LOSSES_FACTOR))
            ours = {}
            for way, (mode, activations) in LOSSES_WAYS.items():
                ours[way] = trainer.on_managed_memory(within[mode], steps, activations)
                clean()
    finally:
        clean()
    equal_steps = {way: equal(run, native) for way, run in ours.items()}
    found = {
        "model": trainer.name,
        "dtype": trainer.dtype,
        "batch": trainer.batch,
        "factor": LOSSES_FACTOR,
        "steps": steps,
        "deterministic": strict,
        "operators": sorted(operators),  # those without a deterministic kernel
        "evicted_bytes": ours["lazy"]["residency"]["evicted_bytes"],
        "copied_bytes": ours["copy"]["activations"]["copied_bytes"],
        "last_loss": ours["lazy"]["losses"][-1],
        "equal_steps": min(equal_steps.values()),
        "equal_steps_of": equal_steps,
        "equal_steps_of_two_that_fit": equal(again, native),
        "largest_difference": max(difference(run, native) for run in ours.values()),
        "largest_difference_of_two_that_fit": difference(again, native),
    }
    print(found, flush=True)
    return found


class Kept:
    """What a result file has, and what is added to it.

    Parameters
    ----------
    path : Path
        The file; it need not be there.
    part : {"rows", "fits", "losses"}
        What this call adds to.
    """

    def __init__(self, path: Path, part: str) -> None:
        self._path, self._part = path, part
        before = json.loads(path.read_text()) if path.exists() else {}
        self.parts: dict[str, list[dict[str, Any]]] = {one: before.get(one, []) for one in PARTS}
        self._commit = harness.software()["commit"][:12]  # calls may be of several
        there = before.get("environment", {}).get("device")
        if there and there != harness.environment().get("device"):
            # The file's environment is that of its last call: what is of another card says so.
            for row in chain.from_iterable(self.parts.values()):
                row.setdefault("device", there)

    def has(self, case: tuple[str, str]) -> bool:
        """Return whether a model and type is there, and did not fail."""
        return not self._failed(case) and any(
            case_of(row) == case for row in self.parts[self._part]
        )

    def put(
        self, case: tuple[str, str], found: list[dict[str, Any]], reason: str
    ) -> dict[str, Any]:
        """Replace what is there of a model and type, write the file, and return all verdicts."""
        others = [row for row in self.parts[self._part] if case_of(row) != case]
        self.parts[self._part] = [*others, *({**row, "commit": self._commit} for row in found)]
        failed = [one for one in self.parts["failed"] if one not in self._failed(case)]
        if reason:
            name, dtype = case
            failed.append({"model": name, "dtype": dtype, "part": self._part, "reason": reason})
        self.parts["failed"] = failed
        verdicts = all_verdicts(self.parts)
        with contextlib.redirect_stdout(io.StringIO()):  # verdicts are printed once, at the end
            harness.write_json(self._path, "torch_training", {**self.parts, "verdicts": verdicts})
        return verdicts

    def _failed(self, case: tuple[str, str]) -> list[dict[str, Any]]:
        return [
            one
            for one in self.parts["failed"]
            if case_of(one) == case and one["part"] == self._part
        ]


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="run, and add to this file")
    parser.add_argument("--write", action="store_true", help=f"only write {DOCUMENT.name}")
    parser.add_argument("--models", type=_words, default=list(NAMES))
    parser.add_argument("--dtypes", type=_words, default=["fp32", "bf16"])
    parser.add_argument("--factors", type=_words, default=list(FACTORS))
    parser.add_argument("--ways", type=_words, default=list(WAYS), help="beside what fits")
    parser.add_argument("--steps", type=int, default=10, help="of ours, past the budget")
    parser.add_argument("--losses-steps", type=int, default=0, help="compare losses instead")
    parser.add_argument("--fits", action="store_true", help="measure only what fits instead")
    parser.add_argument("--batch-fraction", type=float, help="1; for losses an eighth")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="begin none after that")
    parser.add_argument("--missing", action="store_true", help="only what the file does not have")
    arguments = parser.parse_args(words)
    if (arguments.json is None) is not arguments.write:
        parser.error("give either --json FILE or --write")
    if arguments.fits and arguments.losses_steps:
        parser.error("--fits and --losses-steps are calls of their own")
    unknown = [name for name in arguments.models if name not in NAMES]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}: there are {', '.join(NAMES)}")
    unknown = [way for way in arguments.ways if way not in WAYS]
    if unknown:
        parser.error(f"no way {', '.join(unknown)}: there are {', '.join(WAYS)}")
    if arguments.batch_fraction is None:
        arguments.batch_fraction = LOSSES_BATCH_FRACTION if arguments.losses_steps else 1.0
    arguments.factors = [float(each) for each in arguments.factors]
    return arguments


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def run_all(arguments: argparse.Namespace, driver: Any) -> int:
    """Run what is asked for; return 1 if a verdict is missed or something failed."""
    begin = time.monotonic()
    part = "losses" if arguments.losses_steps else "fits" if arguments.fits else "rows"
    kept = Kept(arguments.json, part)
    cases = [(name, dtype) for name in arguments.models for dtype in arguments.dtypes]
    if arguments.missing:
        cases = [case for case in cases if not kept.has(case)]
    rate = duplex_rate(driver) if part == "rows" and cases else 0.0
    verdicts = all_verdicts(kept.parts)
    for number, case in enumerate(cases):
        if arguments.time_limit and time.monotonic() - begin > arguments.time_limit:
            left = ", ".join(" ".join(one) for one in cases[number:])
            print(f"{arguments.time_limit:g} s are over; left for another call: {left}")
            break
        found: list[dict[str, Any]] = []
        reason = ""
        try:
            clean()  # after one that failed
            trainer = Trainer(*case, arguments.batch_fraction, driver)
            if arguments.losses_steps:
                found.append(losses_of(trainer, arguments.losses_steps))
            elif arguments.fits:
                found.extend(fits_of(trainer))
            else:
                ways = arguments.ways
                add_rows(found, trainer, arguments.factors, arguments.steps, rate, ways)
        except Exception as error:  # whatever it is: the others are measured all the same
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            print(f"{' '.join(case)} failed: {reason}", file=sys.stderr, flush=True)
        verdicts = kept.put(case, found, reason)
    print(json.dumps(verdicts, indent=1))
    return harness.exit_status(verdicts)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, or write the document."""
    arguments = parsed(words)
    if arguments.write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), json.loads(RESULT.read_text())))
        return 0
    driver = rmm_uvm.cuda_driver(0)
    harness.require_managed_limit(driver.memory()[0])
    return run_all(arguments, driver)


if __name__ == "__main__":
    raise SystemExit(main())
