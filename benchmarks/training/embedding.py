# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Embeddings at four times the budget: ours, plain managed memory, a host table, all resident.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/training/embedding.py --json FILE
    python benchmarks/training/embedding.py --cpu --small --json FILE

Bags of ids with zipf frequencies of exponent 1.05, hashed. Each way has the same rows and does the
same steps of SGD, and has to end with the same rows. Ours learns from other batches than those that
are timed, then reorders. "Plain" is plain managed memory on a smaller card, emulated: see
`FaultDrivenTable` of `embedding_tables.py`. With ``--cpu`` torch computes on the host while a
simulated device is commanded: that shows that it runs, and its seconds mean nothing; nothing is
judged but the rows.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import rmm_uvm

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.training.embedding_tables import (
    FaultDrivenTable,
    HostTable,
    ModuleTable,
    Sizes,
    Table,
    batch_of,
    managed_table,
    resident_table,
)

LARGE = Sizes(1 << 25, 64, 65536, 26, 2 << 30)
SMALL = Sizes(1 << 17, 64, 512, 8, 8 << 20)
BATCHES = {"ours": 20, "ours, not reordered": 10, "plain": 2, "host table": 3, "resident": 20}
LEARNING_BATCHES, WARM_UPS = 2000, 2
PLAIN_BOUND, RESIDENT_BOUND = 5.0, 0.5
TOLERANCE = 1e-3
STEPS = 2  # of training that every way does, for the same rows; some do more afterwards


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(
    table: Table, act: Callable[[torch.Tensor], object], batches: list[torch.Tensor]
) -> float:
    """Return the median of batches that come one after the other, each to its end."""
    found = []
    for ids in batches:
        table.prepare(ids)
        synchronize(ids.device)
        begin = time.perf_counter()
        act(ids)
        synchronize(ids.device)
        found.append(time.perf_counter() - begin)
    return statistics.median(found[WARM_UPS:] or found)


def measured(
    name: str, table: Table, sizes: Sizes, device: torch.device, driver: Any
) -> tuple[dict[str, Any], torch.Tensor]:
    """Return a row, and what some bags are after the steps that every way does."""
    for step in range(STEPS):
        ids = batch_of(sizes, 100 + step, device)
        table.prepare(ids)
        table.train(ids)
    probe = batch_of(sizes, 99, device)
    table.prepare(probe)
    result = table.infer(probe)[:4096].cpu()
    batches = [batch_of(sizes, 200 + n, device) for n in range(BATCHES[name] + WARM_UPS)]
    row: dict[str, Any] = {"way": name}
    for what, act in {"infer": table.infer, "train": table.train}.items():
        before = driver.migrated_bytes()
        row[f"{what}_seconds"] = seconds_of(table, act, batches)
        after = driver.migrated_bytes()
        moved = [(b - a) // len(batches) for a, b in zip(before, after, strict=True)]
        row[f"{what}_to_device_bytes"], row[f"{what}_to_host_bytes"] = moved  # of a batch
    return row, result


def learn(ours: ModuleTable, sizes: Sizes, device: torch.device, batches: int) -> float:
    """Have ours see batches that are not timed, and reorder; return what reordering took."""
    ours.module.sample_every, kept = 1, ours.module.sample_every
    for number in range(batches):
        ours.infer(batch_of(sizes, 10_000 + number, device))
    ours.module.sample_every = kept
    ours.optimizer.zero_grad()
    synchronize(device)
    begin = time.perf_counter()
    ours.module.reorder(ours.optimizer)
    synchronize(device)
    return time.perf_counter() - begin


def compared(sizes: Sizes, driver: Any, device: torch.device, batches: int) -> dict[str, Any]:
    """Return the rows of all ways, and the largest difference of results between them."""
    rows: list[dict[str, Any]] = []
    results: dict[str, torch.Tensor] = {}

    def take(name: str, table: Table) -> dict[str, Any]:
        row, results[name] = measured(name, table, sizes, device, driver)
        rows.append(row)
        print(
            f"{name:20} {row['infer_seconds'] * 1e3:9.2f} ms inference, "
            f"{row['train_seconds'] * 1e3:9.2f} ms training",
            flush=True,
        )
        return row

    take("resident", resident_table(sizes, device))
    gc.collect()
    for reordered in (False, True):
        ours = managed_table(sizes, driver)
        name = "ours" if reordered else "ours, not reordered"
        reorder_seconds = None
        if reordered:
            reorder_seconds = learn(ours, sizes, device, batches)
        else:
            for number in range(8):
                ours.infer(batch_of(sizes, 10_000 + number, device))
            ours.module.place()
        ours.module.reset_statistics()
        row = take(name, ours)
        hits = ours.module.hit_statistics()
        print(hits, flush=True)
        row |= {
            "reorder_seconds": reorder_seconds,
            "hit_fraction": hits.hit_fraction,
            "link_bytes_estimated": hits.link_bytes,
            "hot_bytes": hits.hot_bytes,
            "reason": hits.reason,
        }
        del ours
        gc.collect()
    take("host table", HostTable(sizes, device))
    gc.collect()
    take("plain", FaultDrivenTable(sizes, driver))
    gc.collect()
    expected = results["resident"]
    difference = max(float((one - expected).abs().max()) for one in results.values())
    return {"rows": rows, "largest_difference": difference / float(expected.abs().max())}


def verdicts_of(rows: list[dict[str, Any]], difference: float, *, timed: bool) -> dict[str, Any]:
    """Judge ours against plain managed memory, and against everything resident."""
    verdicts: dict[str, Any] = {
        "same rows in every way": harness.judged_at_most(difference, TOLERANCE)
    }
    at = {row["way"]: row for row in rows}
    for what in ("infer_seconds", "train_seconds") if timed else ():
        name = what.removesuffix("_seconds")
        ours = at["ours"][what]
        verdicts[f"{name}: speed / plain managed"] = harness.judged_at_least(
            at["plain"][what] / ours, PLAIN_BOUND
        )
        verdicts[f"{name}: speed / resident"] = harness.judged_at_least(
            at["resident"][what] / ours, RESIDENT_BOUND
        )
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cpu", action="store_true", help="without a GPU: a simulated device")
    parser.add_argument("--small", action="store_true", help="a table of 32 MiB")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    sizes = SMALL if arguments.small else LARGE
    if arguments.cpu:
        driver: Any = rmm_uvm.simulated_device(max(4 * sizes.budget_bytes, 64 << 20))
        device = torch.device("cpu")
    else:
        driver, device = rmm_uvm.cuda_driver(0), torch.device("cuda:0")
        limit_bytes = harness.require_managed_limit(driver.memory()[0])
        if sizes.table_bytes > limit_bytes // 2:
            raise SystemExit(f"a table of {sizes.table_bytes} bytes is too large for the limit")
    batches = 20 if arguments.small else LEARNING_BATCHES
    found = compared(sizes, driver, device, batches)
    verdicts = verdicts_of(found["rows"], found["largest_difference"], timed=not arguments.cpu)
    settings = {
        **vars(sizes),
        "table_bytes": sizes.table_bytes,
        "learning_batches": batches,
        "cpu": arguments.cpu,
    }
    results = {"settings": settings, **found, "verdicts": verdicts}
    harness.write_json(arguments.json, "torch_embedding", results)
    raise SystemExit(harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
