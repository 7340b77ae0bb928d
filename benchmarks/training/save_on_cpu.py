# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ours against `save_on_cpu`, in the least memory that `save_on_cpu` trains in.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/training/save_on_cpu.py --json FILE

`past_the_edge.py` gives ours as much as the tensors of `save_on_cpu` take at most. A device needs
more for it: torch's segments have room between tensors. Here torch is held to a cap, which is
lowered until it runs out of memory (to a 32nd of that peak); then both train in the least one, in
turn. Ours has what its copies go through in the cap, too. `save_on_cpu` without a cap is beside
them, since a tight one has torch give segments back and take them anew.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

import rmm_uvm
from rmm_uvm.torch.activations.side_streams import staging_bytes_of

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.training.training_runs import Trainer, budgets, clean, saving_on_cpu, to_keep
from benchmarks.training.training_verdicts import TRANSFORMERS, case_of

ROUNDS = 3
STEPS = 24
STEPS_TO_SEE = 6  # whether a model trains
PARTS_OF_PEAK = 32
UNCAPPED, CAPPED, OURS = "save_on_cpu", "save_on_cpu in the cap", "copy in the cap"


@contextlib.contextmanager
def capped(nbytes: int) -> Iterator[None]:
    """Have torch's own allocator take no more than so much within a ``with`` block."""
    torch.cuda.set_per_process_memory_fraction(nbytes / torch.cuda.mem_get_info()[1])
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def trains_in(trainer: Trainer, nbytes: int) -> bool:
    """Return whether `save_on_cpu` trains in a cap."""
    try:
        with capped(nbytes):
            trainer.train(STEPS_TO_SEE, saving_on_cpu)
        trained = True
    except torch.OutOfMemoryError:
        trained = False
    clean()  # after the error, which holds the step's tensors
    return trained


def least_cap(trainer: Trainer, peak_bytes: int, most_bytes: int) -> tuple[int, list[int]]:
    """Return the least cap that `save_on_cpu` trains in, and those in which it did not.

    Parameters
    ----------
    trainer : Trainer
        Of the model.
    peak_bytes, most_bytes : int
        What its tensors take at most, the least that is tried; what torch takes for them.
    """
    part = peak_bytes // PARTS_OF_PEAK
    too_little: list[int] = []
    first, last = 0, max(-(-(most_bytes - peak_bytes) // part), 0)  # in the last it trains
    while first < last:
        middle = (first + last) // 2
        cap_bytes = peak_bytes + middle * part
        if trains_in(trainer, cap_bytes):
            last = middle
        else:
            too_little.append(cap_bytes)
            first = middle + 1
    return peak_bytes + last * part, sorted(too_little)


def rounds_in(trainer: Trainer, cap_bytes: int) -> list[dict[str, Any]]:
    """Return the rows of all ways in a cap; none if it is too little for `save_on_cpu`."""
    lazy = budgets(cap_bytes - staging_bytes_of(cap_bytes))["lazy"]
    rows: list[dict[str, Any]] = []

    def add(way: str, run: dict[str, Any]) -> None:
        clean()
        rows.append({"model": trainer.name, "dtype": trainer.dtype, "way": way, **to_keep(run)})
        print(f"{trainer.name} {trainer.dtype} {way:24} {run['seconds'] * 1e3:8.1f} ms", flush=True)

    for _ in range(ROUNDS):
        add(UNCAPPED, trainer.train(STEPS, saving_on_cpu))
        try:
            with capped(cap_bytes):
                run = trainer.train(STEPS, saving_on_cpu)
        except torch.OutOfMemoryError:
            return []
        add(CAPPED, run)
        add(OURS, trainer.on_managed_memory(lazy, STEPS, "copy"))
    return rows


def measured(trainer: Trainer) -> dict[str, Any]:
    """Return the caps and the rows of one model."""
    alone = trainer.train(STEPS_TO_SEE, saving_on_cpu)
    clean()
    cap_bytes, too_little = least_cap(trainer, alone["peak_bytes"], alone["reserved_bytes"])
    while not (rows := rounds_in(trainer, cap_bytes)):  # more steps may need more than a few
        too_little.append(cap_bytes)
        cap_bytes += alone["peak_bytes"] // PARTS_OF_PEAK
        clean()
    return {
        **{"model": trainer.name, "dtype": trainer.dtype, "cap_bytes": cap_bytes},
        **{"peak_bytes": alone["peak_bytes"], "reserved_bytes": alone["reserved_bytes"]},
        **{"too_little_bytes": too_little, "rows": rows},
    }


def verdicts_of(cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Judge medians of the rounds: ours is to be faster than both of theirs."""
    verdicts = {}
    for case in cases:
        took = {
            way: statistics.median(row["seconds"] for row in case["rows"] if row["way"] == way)
            for way in (UNCAPPED, CAPPED, OURS)
        }
        for theirs in (UNCAPPED, CAPPED):
            verdicts[f"{' '.join(case_of(case))}: {OURS} / {theirs}"] = harness.judged(
                took[OURS] / took[theirs], 1.0
            )
    return verdicts


def main(words: Sequence[str] | None = None) -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--models", default=",".join(TRANSFORMERS))
    parser.add_argument("--dtypes", default="fp32,bf16")
    arguments = parser.parse_args(words)
    unknown = set(arguments.models.split(",")) - set(TRANSFORMERS)
    if unknown:
        parser.error(f"no model {', '.join(sorted(unknown))}: there are {', '.join(TRANSFORMERS)}")
    driver = rmm_uvm.cuda_driver(0)
    harness.require_managed_limit(driver.memory()[0])
    cases: list[dict[str, Any]] = []
    for model in arguments.models.split(","):
        for dtype in arguments.dtypes.split(","):
            cases.append(measured(Trainer(model, dtype, 1.0, driver)))
            clean()
            found = {"steps": STEPS, "cases": cases, "verdicts": verdicts_of(cases)}
            harness.write_json(arguments.json, "torch_save_on_cpu", found)  # one may be cut off
    return harness.exit_status(verdicts_of(cases))


if __name__ == "__main__":
    raise SystemExit(main())
