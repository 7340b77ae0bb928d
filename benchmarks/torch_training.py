# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Training past GPU memory, with a budget in the place of a smaller card.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/torch_training.py --json FILE --models gpt2,bert

Each model trains with torch's own allocator (everything fits), on managed memory that fits, and
at each factor of its peak: fault-driven (first in, first out, page faults, dead memory copied: what
a smaller card would do), with uses announced just before them (lazy), and fetched ahead (eager).
Transformers also recompute (activation checkpointing) and keep what autograd saves in host memory
(`save_on_cpu`), with torch's own allocator: what a program does by hand instead.

A call adds its rows to the file: all models together take longer than one run may.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
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

FACTORS = (1.25, 1.5, 2.0, 3.0)
TRANSFORMERS = ("gpt2", "gpt2-medium", "bert", "whisper-small")
FITS_BOUND = 1.02
LINK_BOUND = 1.25  # transformers, at the first two factors
SPEED_UPS = {1.25: 2.0, 1.5: 3.0, 2.0: 3.0, 3.0: 2.0}  # geometric means over the models
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
    steps : int
        Of each run; the first half is left out.
    """

    def __init__(self, name: str, dtype: str, steps: int) -> None:
        self.name, self.dtype, self.steps = name, dtype, steps
        self.driver = rmm_uvm.cuda_driver(0)

    def train(self, wrap: Callable[[Any], Any] = contextlib.nullcontext) -> dict[str, Any]:
        """Make the model and train it; return medians of a step, the losses and the peak."""
        torch.cuda.reset_peak_memory_stats()
        program = _torch_models.make(self.name, dtype=self.dtype, device="cuda")
        seconds, moved, losses = [], [], []
        for _ in range(self.steps):
            before = self.driver.migrated_bytes()
            begin = time.perf_counter()
            with wrap(program.model):
                losses.append(program.step())
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begin)
            after = self.driver.migrated_bytes()
            moved.append([b - a for a, b in zip(before, after, strict=True)])
        counted = slice(self.steps // 2, None)
        return {
            "seconds": statistics.median(seconds[counted]),
            "first_seconds": seconds[0],
            "to_device_bytes": statistics.median(one[0] for one in moved[counted]),
            "to_host_bytes": statistics.median(one[1] for one in moved[counted]),
            "peak_bytes": torch.cuda.max_memory_allocated(),
            "reserved_bytes": torch.cuda.max_memory_reserved(),
            "losses": [loss.item() for loss in losses],
        }

    def on_managed_memory(self, budget: Budget) -> dict[str, Any]:
        """Train on managed memory under a budget."""
        with rmm_uvm.torch.managed(device_budget=budget) as memory:
            row = self.train()
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


def rows_of(name: str, dtype: str, factors: list[float], steps: int) -> list[dict[str, Any]]:
    """Return every row of one model."""
    trainer = Trainer(name, dtype, steps)
    rate = duplex_rate(trainer.driver)
    native = trainer.train()
    found: list[dict[str, Any]] = []

    def add(way: str, factor: float, row: dict[str, Any]) -> None:
        gc.collect()
        torch.cuda.empty_cache()
        excess_bytes = max(0.0, native["peak_bytes"] * (1 - 1 / factor)) if factor > 1 else 0.0
        row.update(
            model=name,
            dtype=dtype,
            factor=factor,
            way=way,
            compute_seconds=native["seconds"],
            link_seconds=excess_bytes / rate,
            duplex_bytes_per_second=rate,
            losses_are_the_same=row["losses"] == native["losses"],
        )
        found.append(row)
        print(
            f"{name:14} {dtype} {factor:4} {way:14} {row['seconds'] * 1e3:9.1f} ms "
            f"{row['to_device_bytes'] / 2**30:6.2f} GiB in {row['to_host_bytes'] / 2**30:6.2f} out "
            f"compute {native['seconds'] * 1e3:.1f} link {row['link_seconds'] * 1e3:.1f} ms",
            flush=True,
        )

    add("native", 0.0, native)
    add("managed", 0.0, trainer.on_managed_memory(Budget(int(native["reserved_bytes"] * 1.25))))
    if name in TRANSFORMERS:
        add("checkpointing", 0.0, trainer.train(recomputing))
        add("save_on_cpu", 0.0, trainer.train(saving_on_cpu))
    for factor in factors:
        for way, budget in budgets(int(native["peak_bytes"] / factor)).items():
            add(way, factor, trainer.on_managed_memory(budget))
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
            at[*case, 0.0, "managed"]["seconds"] / at[*case, 0.0, "native"]["seconds"], FITS_BOUND
        )
        for factor in (1.25, 1.5):
            if case[0] in TRANSFORMERS and (*case, factor, "lazy") in at:
                row = at[*case, factor, "lazy"]
                bound = max(row["compute_seconds"], row["link_seconds"])
                verdicts[f"{' '.join(case)} at {factor}x: time / bound"] = _harness.judged(
                    ours(case, factor) / bound, LINK_BOUND
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(_torch_models.NAMES))
    parser.add_argument("--dtypes", default="fp32,bf16")
    parser.add_argument("--factors", default=",".join(map(str, FACTORS)))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    _harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    torch.use_deterministic_algorithms(True, warn_only=True)  # noqa: FBT003 - torch's own
    factors = [float(each) for each in arguments.factors.split(",")]
    kept: list[dict[str, Any]] = []
    if arguments.json.exists():
        kept = json.loads(arguments.json.read_text())["rows"]
    for name in arguments.models.split(","):
        for dtype in arguments.dtypes.split(","):
            rows = rows_of(name, dtype, factors, arguments.steps)
            kept = [row for row in kept if (row["model"], row["dtype"]) != (name, dtype)] + rows
            results = {"rows": kept, "verdicts": verdicts_of(kept)}
            _harness.write_json(arguments.json, "torch_training", results)
    raise SystemExit(_harness.exit_status(verdicts_of(kept)))


if __name__ == "__main__":
    main()
