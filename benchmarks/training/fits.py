# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What training on managed memory costs where everything fits, against torch's own allocator.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/training/fits.py --json FILE
        [--models resnet50,resnet101] [--dtypes fp32,bf16]

At the full batch: of smaller ones the host's launches set the pace, which differs by more than
managed memory costs. A run on managed memory lies between two with torch's own allocator, and its
median step is compared with the mean of theirs: the host's pace drifts from run to run. The ratio
is the median of the runs'. How far neighbours with torch's own allocator are apart is told beside
it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import rmm_uvm
import rmm_uvm.torch
from rmm_uvm.residency import Budget

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.training import models

CASES = (
    *((name, "bf16") for name in ("gpt2", "gpt2-medium", "bert")),
    *(
        (name, dtype)
        for name in ("resnet50", "resnet101", "resnet152")
        for dtype in ("bf16", "fp32")
    ),
)
STEPS = 12  # of a run; the first half is left out
ROUNDS = 8  # short steps differ more between rounds than within one
ROOM = 1.25  # of the budget, over what torch's own allocator takes
BOUND = 1.02
WAYS = ("native", "managed")


def trained(name: str, dtype: str) -> dict[str, Any]:
    """Train a model for some steps; return what a step takes, the batch and the peak."""
    batch = models.full_batch(name)
    torch.cuda.reset_peak_memory_stats()
    program = models.make(name, batch=batch, dtype=dtype, device="cuda")
    seconds = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        program.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return {
        "each_seconds": seconds[STEPS // 2 :],
        "batch": batch,
        "peak_bytes": torch.cuda.max_memory_allocated(),
        "reserved_bytes": torch.cuda.max_memory_reserved(),
    }


def clean() -> None:
    """Give back what torch keeps of the last run."""
    gc.collect()
    torch.cuda.empty_cache()


def pair(name: str, dtype: str, driver: Any) -> list[dict[str, Any]]:
    """Return a row of torch's own allocator and one of managed memory that fits."""
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    moved = 0
    for _ in range(ROUNDS):
        runs["native"].append(trained(name, dtype))
        clean()
        budget = Budget(int(runs["native"][0]["reserved_bytes"] * ROOM))
        with rmm_uvm.torch.managed(device_budget=budget):
            # Here: the driver that it opened has tried its counters, which moves bytes.
            before = driver.migrated_bytes()
            runs["managed"].append(trained(name, dtype))
            moved += sum(driver.migrated_bytes()) - sum(before)
        clean()
    runs["native"].append(trained(name, dtype))
    clean()
    return [
        {
            **{"model": name, "dtype": dtype, "way": way, "batch": of_way[0]["batch"]},
            "run_seconds": (each := [statistics.median(one["each_seconds"]) for one in of_way]),
            "seconds": statistics.median(each),
            "least_seconds": min(min(one["each_seconds"]) for one in of_way),
            "peak_bytes": of_way[-1]["peak_bytes"],
            "moved_bytes": moved if way == "managed" else 0,
        }
        for way, of_way in runs.items()
    ]


def ratios(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return managed memory over torch's own allocator, by model and type."""
    at = {(row["model"], row["dtype"], row["way"]): row["run_seconds"] for row in rows}
    return {
        f"{name} {dtype}": statistics.median(
            managed / statistics.mean(beside)
            for managed, beside in zip(
                at[name, dtype, "managed"], itertools.pairwise(native), strict=True
            )
        )
        for (name, dtype, way), native in at.items()
        if way == "native"
    }


def apart(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return by what fraction two runs with torch's own allocator differ, one after the other."""
    return {
        f"{row['model']} {row['dtype']}": statistics.median(
            abs(later / earlier - 1) for earlier, later in itertools.pairwise(row["run_seconds"])
        )
        for row in rows
        if row["way"] == "native"
    }


def verdicts(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Judge each model and type."""
    return {
        f"{case}: everything fits, managed / native": harness.judged(ratio, BOUND)
        for case, ratio in ratios(rows).items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=lambda words: words.split(","))
    parser.add_argument("--dtypes", type=lambda words: words.split(","))
    parser.add_argument("--json", type=Path, required=True)
    asked = parser.parse_args()
    driver = rmm_uvm.cuda_driver(0)
    harness.require_managed_limit(driver.memory()[0])
    rows: list[dict[str, Any]] = []
    for name, dtype in CASES:
        if name in (asked.models or [name]) and dtype in (asked.dtypes or [dtype]):
            rows += pair(name, dtype, driver)
            print(*rows[-len(WAYS) :], sep="\n", flush=True)
            harness.write_json(
                asked.json,
                "torch_fits",
                {"rows": rows, "native_apart": apart(rows), "verdicts": verdicts(rows)},
                quiet=True,
            )
    raise SystemExit(harness.exit_status(verdicts(rows)))


if __name__ == "__main__":
    main()
