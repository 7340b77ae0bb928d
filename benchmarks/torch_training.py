# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training past GPU memory, with a budget in the place of a smaller card.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/torch_training.py --json FILE --models gpt2,bert

Each model trains with torch's own allocator (everything fits), on managed memory that fits, and
at each factor of its peak: fault-driven (first in, first out, page faults, dead memory copied: what
a smaller card would do), with uses announced just before them (lazy), and fetched ahead (eager).
Transformers also recompute (activation checkpointing) and keep what autograd saves in host memory
(`save_on_cpu`), with torch's own allocator: what a program does by hand instead. Ours then runs
with the memory that each of these needed. Losses are compared with deterministic kernels, in runs
of their own: ordinary ones of some models differ from run to run on any memory.

A call adds its rows to the file: all models together take longer than one run may.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _harness
import _torch_models
import residency
import torch

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.residency import Budget

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS is not deterministic

FACTORS = (1.25, 1.5, 2.0, 3.0)
TRANSFORMERS = ("gpt2", "gpt2-medium", "bert", "whisper-small")
FITS_BOUND = 1.02
LINK_BOUND = 1.25  # transformers, at the first two factors
SPEED_UPS = {1.25: 2.0, 1.5: 3.0, 2.0: 3.0, 3.0: 2.0}  # geometric means over the models
LOSSES_FACTOR = 1.5
FITTING_STEPS = 16
FITTING_ROUNDS = 2
FAULT_DRIVEN_STEPS = 3
PROBE_BYTES = 1 << 30
PIECE_BYTES = 8 << 20


def budgets(budget_bytes: int) -> dict[str, Budget]:
    """Return what is compared at one budget."""
    modes = residency.modes(budget_bytes)
    return {
        "fault-driven": modes["fault-driven"],
        "lazy": modes["repeat"],
        "eager": modes["repeat, ahead"],
    }


def duplex_rate(driver: Any) -> float:
    """Return bytes a second each way, while pieces of two gibibytes change places."""
    mr = rmm_uvm.mr.ManagedMemoryResource(driver, prefetch="never")
    halves = [mr.allocate(PROBE_BYTES) for _ in range(2)]

    def move(address: int, where: str) -> None:
        for offset in range(0, PROBE_BYTES, PIECE_BYTES):
            driver.migrate(address + offset, PIECE_BYTES, where)

    move(halves[0], "device")
    move(halves[1], "device")
    move(halves[1], "host")
    found = []
    for number in range(4):
        out, into = halves[number % 2], halves[1 - number % 2]
        threads = [
            threading.Thread(target=move, args=(out, "host")),
            threading.Thread(target=move, args=(into, "device")),
        ]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.append(PROBE_BYTES / (time.perf_counter() - begin))
    for address in halves:
        mr.deallocate(address, PROBE_BYTES)
    return statistics.median(found[2:])  # the first two take host pages for the first time


class Trainer:
    """Trains one model in one way after the other.

    Parameters
    ----------
    name, dtype : str
        Of `_torch_models.make`.
    batch_fraction : float
        Of the model's full batch, which takes 8 to 16 GiB; > 0.
    """

    def __init__(self, name: str, dtype: str, batch_fraction: float) -> None:
        self.name, self.dtype = name, dtype
        self.batch = max(1, round(_torch_models.full_batch(name) * batch_fraction))
        self.driver = rmm_uvm.cuda_driver(0)

    def train(
        self, steps: int, wrap: Callable[[Any], Any] = contextlib.nullcontext
    ) -> dict[str, Any]:
        """Make the model and train it; return medians of a step, the losses and the peak.

        The first half of the steps is left out of the medians.
        """
        torch.cuda.reset_peak_memory_stats()
        program = _torch_models.make(self.name, batch=self.batch, dtype=self.dtype, device="cuda")
        seconds, moved, losses = [], [], []
        for _ in range(steps):
            before = self.driver.migrated_bytes()
            begin = time.perf_counter()
            with wrap(program.model):
                losses.append(program.step())
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begin)
            after = self.driver.migrated_bytes()
            moved.append([b - a for a, b in zip(before, after, strict=True)])
        counted = slice(steps // 2, None)
        return {
            "seconds": statistics.median(seconds[counted]),
            "least_seconds": min(seconds[counted]),
            "each_seconds": [round(each, 6) for each in seconds],
            "batch": self.batch,
            "to_device_bytes": statistics.median(one[0] for one in moved[counted]),
            "to_host_bytes": statistics.median(one[1] for one in moved[counted]),
            "peak_bytes": torch.cuda.max_memory_allocated(),
            "reserved_bytes": torch.cuda.max_memory_reserved(),
            "losses": [loss.item() for loss in losses],
        }

    def on_managed_memory(self, budget: Budget, steps: int) -> dict[str, Any]:
        """Train on managed memory under a budget."""
        with rmm_uvm.torch.managed(device_budget=budget) as memory:
            row = self.train(steps)
            row.update(memory.statistics())
        return row


@contextlib.contextmanager
def recomputing(model: Any) -> Iterator[None]:
    """Recompute activations, as Hugging Face's models do on request."""
    model.gradient_checkpointing_enable()
    yield


def saving_on_cpu(_model: Any) -> Any:
    """Keep what autograd saves in pinned host memory."""
    return torch.autograd.graph.save_on_cpu(pin_memory=True)


def clean() -> None:
    """Give back what torch keeps of the last run."""
    gc.collect()
    torch.cuda.empty_cache()


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
        runs[-1]["seconds"] = statistics.median(run["seconds"] for run in runs)
        runs[-1]["least_seconds"] = min(run["least_seconds"] for run in runs)
    return rows[0][-1], rows[1][-1]


def rows_of(trainer: Trainer, factors: list[float], steps: int) -> list[dict[str, Any]]:
    """Return every row of one model."""
    name, dtype = trainer.name, trainer.dtype
    rate = duplex_rate(trainer.driver)
    begin = time.perf_counter()
    native, managed = fitting_pair(trainer)
    found: list[dict[str, Any]] = []

    def add(way: str, factor: float, row: dict[str, Any]) -> dict[str, Any]:
        clean()
        excess_bytes = native["peak_bytes"] * (1 - 1 / factor) if factor > 1 else 0.0
        row.update(
            model=name,
            dtype=dtype,
            factor=factor,
            way=way,
            compute_seconds=native["seconds"],
            link_seconds=excess_bytes / rate,
            duplex_bytes_per_second=rate,
        )
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
    by_hand = {"checkpointing": recomputing, "save_on_cpu": saving_on_cpu}
    for way, wrap in by_hand.items() if name in TRANSFORMERS else ():
        peak_bytes = add(way, 0.0, trainer.train(FITTING_STEPS, wrap))["peak_bytes"]
        row = trainer.on_managed_memory(budgets(peak_bytes)["lazy"], steps)
        add(f"lazy, memory of {way}", native["peak_bytes"] / peak_bytes, row)
    for factor in factors:
        for way, budget in budgets(int(native["peak_bytes"] / factor)).items():
            few = FAULT_DRIVEN_STEPS if way == "fault-driven" else steps
            add(way, factor, trainer.on_managed_memory(budget, few))
    return found


def equal(one: dict[str, Any], other: dict[str, Any]) -> int:
    """Return in how many steps the losses of two runs are the same to the bit."""
    return sum(a == b for a, b in zip(one["losses"], other["losses"], strict=True))


def losses_of(trainer: Trainer, steps: int) -> dict[str, Any]:
    """Train with deterministic kernels, where it fits and past the budget; compare the losses.

    Where it fits it is trained twice: what differs there says nothing of us.
    """
    torch.use_deterministic_algorithms(True)  # noqa: FBT003 - torch's own
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        native = trainer.train(steps)
        clean()
        again = trainer.train(steps)
        clean()
        budget = budgets(int(native["peak_bytes"] / LOSSES_FACTOR))["lazy"]
        ours = trainer.on_managed_memory(budget, steps)
    finally:
        torch.use_deterministic_algorithms(False)  # noqa: FBT003
        clean()
    found = {
        "model": trainer.name,
        "dtype": trainer.dtype,
        "batch": trainer.batch,
        "factor": LOSSES_FACTOR,
        "steps": steps,
        "evicted_bytes": ours["residency"]["evicted_bytes"],
        "last_loss": ours["losses"][-1],
        "equal_steps": equal(ours, native),
        "equal_steps_of_two_that_fit": equal(again, native),
    }
    print(found, flush=True)
    return found


def verdicts_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge ours, the better of lazy and eager."""
    at = {(row["model"], row["dtype"], row["factor"], row["way"]): row for row in rows}
    verdicts: dict[str, Any] = {}
    cases = sorted({(row["model"], row["dtype"]) for row in rows})

    def ours(case: tuple[str, str], factor: float) -> float:
        return min(float(at[*case, factor, way]["seconds"]) for way in ("lazy", "eager"))

    for case in cases:
        verdicts[f"{' '.join(case)}: everything fits, managed / native"] = _harness.judged(
            # The least: what managed memory costs is less than what steps differ by.
            at[*case, 0.0, "managed"]["least_seconds"] / at[*case, 0.0, "native"]["least_seconds"],
            FITS_BOUND,
        )
        for factor in (1.25, 1.5):
            if case[0] in TRANSFORMERS and (*case, factor, "lazy") in at:
                row = at[*case, factor, "lazy"]
                bound = max(row["compute_seconds"], row["link_seconds"])
                verdicts[f"{' '.join(case)} at {factor}x: time / bound"] = _harness.judged(
                    ours(case, factor) / bound, LINK_BOUND
                )
        if (*case, 0.0, "save_on_cpu") in at:
            by_hand = at[*case, 0.0, "save_on_cpu"]
            same = [row for row in rows if case == (row["model"], row["dtype"])]
            ours_then = min(
                row["seconds"] for row in same if row["way"].endswith("memory of save_on_cpu")
            )
            verdicts[f"{' '.join(case)}: ours / save_on_cpu in its memory"] = _harness.judged(
                ours_then / by_hand["seconds"], 1.0
            )
    for factor, least in SPEED_UPS.items():
        there = [case for case in cases if (*case, factor, "lazy") in at]
        if there:
            mean = statistics.geometric_mean(
                at[*case, factor, "fault-driven"]["seconds"] / ours(case, factor) for case in there
            )
            verdicts[f"{factor}x: fault-driven / ours, geometric mean"] = {
                "value": mean,
                "must_be_at_least": least,
                "reached": mean >= least,
            }
    return verdicts


def verdicts_of_losses(losses: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge that no loss differs, in a run that did move memory."""
    return {
        f"{row['model']} {row['dtype']}: losses of {row['steps']} steps are equal": {
            "value": row["equal_steps"],
            "must_be_at_least": row["steps"],
            "reached": row["equal_steps"] == row["steps"] and row["evicted_bytes"] > 0,
        }
        for row in losses
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(_torch_models.NAMES))
    parser.add_argument("--dtypes", default="fp32,bf16")
    parser.add_argument("--factors", default=",".join(map(str, FACTORS)))
    parser.add_argument("--steps", type=int, default=10, help="of ours, past the budget")
    parser.add_argument("--losses-steps", type=int, default=0, help="compare losses instead")
    parser.add_argument("--batch-fraction", type=float, default=1.0)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    _harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    factors = [float(each) for each in arguments.factors.split(",") if each]
    kept: dict[str, list[dict[str, Any]]] = {"rows": [], "losses": []}
    if arguments.json.exists():
        kept |= {name: json.loads(arguments.json.read_text())[name] for name in kept}
    verdicts: dict[str, Any] = {}
    for name in arguments.models.split(","):
        for dtype in arguments.dtypes.split(","):
            trainer = Trainer(name, dtype, arguments.batch_fraction)
            if arguments.losses_steps:
                part, found = "losses", [losses_of(trainer, arguments.losses_steps)]
            else:
                part, found = "rows", rows_of(trainer, factors, arguments.steps)
            others = [row for row in kept[part] if (row["model"], row["dtype"]) != (name, dtype)]
            kept[part] = others + found
            verdicts = verdicts_of(kept["rows"]) | verdicts_of_losses(kept["losses"])
            _harness.write_json(arguments.json, "torch_training", {**kept, "verdicts": verdicts})
    raise SystemExit(_harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
