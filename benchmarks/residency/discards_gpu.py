# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The discard paper's FIR and hash join under a budget, on a GPU, beside the paper's ratios.

    RMM_UVM_MANAGED_LIMIT=8GiB python benchmarks/residency/discards_gpu.py --json FILE

The programs of `discards.py`, in a quarter of the paper's sizes, with kernels that check
every word. A program frees where the paper's discards; the inputs are on the host at first, as
there. Each runs fault-driven, with the same fetches and nothing dropped (what the paper compares
with), and as budgets are by default. All memory is on a card with room for it.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.gpu_arrays import GpuArrays
from benchmarks.residency.discards import FACTORS, PROGRAMS, PUBLISHED

os.environ["RMM_UVM_DRIVER"] = "cuda"  # `residency_discards` would have the simulated one

import rmm

import rmm_uvm
from rmm_uvm.residency import Budget

PASSES = 20  # multiplications on each word that is read
ROUNDS = 5
WAYS: dict[str, dict[str, Any]] = {
    "fault-driven": {"policy": "fifo", "discard_dead": False, "fetch": False, "background": False},
    "fetching": {"policy": "fifo", "discard_dead": False},
    "budget": {},
}


@dataclasses.dataclass(frozen=True)
class Memory:
    """Arrays with the calls that the paper's programs are written against."""

    arrays: GpuArrays

    def allocate(self, nbytes: int) -> int:
        """Allocate and write."""
        return self.arrays.make(nbytes)

    def read(self, handle: int) -> None:
        """Announce and read."""
        self.arrays.read(handle)

    def use(self, handle: int, _nbytes: int, *, write: bool) -> None:
        """Announce, read and write."""
        (self.arrays.write if write else self.arrays.read)(handle)

    def free(self, handle: int) -> None:
        """Free."""
        self.arrays.free(handle)


def run(name: str, budget: Budget | None) -> dict[str, float]:
    """Return medians of some rounds: seconds, and bytes each way."""
    program = PROGRAMS[name]
    driver = rmm_uvm.cuda_driver(0)
    managed = rmm_uvm.mr.ManagedMemoryResource(driver, budget=budget)
    # Equal buffers that are handed out in turn: memory is as stale as in the paper's programs.
    buffers = rmm.mr.FixedSizeMemoryResource(managed, program.buffer_bytes, program.buffers)
    mr = rmm_uvm.mr.UvmResourceAdaptor(buffers)
    arrays = GpuArrays(mr, PASSES)
    memory: Any = Memory(arrays)
    seconds, moved = [], []
    for number in range(ROUNDS + 1):
        inputs = [arrays.make(program.buffer_bytes) for _ in range(program.inputs)]
        arrays.wait()
        for buffer in inputs if budget is not None else ():
            managed.prefetcher.evict(buffer, program.buffer_bytes)
        before = driver.migrated_bytes()
        begin = time.perf_counter()
        program.run(memory, inputs, program.buffer_bytes)
        if arrays.finish():
            raise SystemExit(f"{name}, {budget}: words were lost")
        took = time.perf_counter() - begin
        after = driver.migrated_bytes()
        for handle in arrays.held():
            arrays.free(handle)
        if number:
            seconds.append(took)
            moved.append([b - a for a, b in zip(before, after, strict=True)])
    del arrays, memory, mr, buffers, managed
    gc.collect()
    return {
        "seconds": statistics.median(seconds),
        "to_device_bytes": statistics.median(one[0] for one in moved),
        "to_host_bytes": statistics.median(one[1] for one in moved),
    }


def compared(name: str, factor: int, resident: dict[str, float]) -> dict[str, Any]:
    """Return one program in all ways at one factor."""
    theirs = json.loads(PUBLISHED.read_text())
    figures, place = theirs["pcie4"][name], theirs["factors_percent"].index(factor * 100)
    budget_bytes = int(PROGRAMS[name].footprint_bytes / factor)
    ways = {way: run(name, Budget(budget_bytes, **settings)) for way, settings in WAYS.items()}
    ours, fetching = ways["budget"], ways["fetching"]
    return {
        "program": name,
        "factor": factor,
        "resident": resident,
        "ways": ways,
        "against_fetching": ours["seconds"] / fetching["seconds"],
        "against_fault_driven": ours["seconds"] / ways["fault-driven"]["seconds"],
        "to_host_against_fetching": ours["to_host_bytes"] / max(fetching["to_host_bytes"], 1),
        "published": figures["discard_ms"][place] / figures["prefetch_ms"][place],
        "published_to_host": figures["discard_dtoh_gb"][place] / figures["prefetch_dtoh_gb"][place],
    }


def verdicts_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the ratios beside the paper's: with discards against without, same fetches."""
    found = {}
    for row in rows:
        name = f"{row['program']}, {row['factor']}x"
        found[f"{name}: time against fetching, the paper's ratio"] = harness.judged(
            row["against_fetching"], row["published"]
        )
        found[f"{name}: to the host against fetching, the paper's ratio"] = harness.judged(
            row["to_host_against_fetching"], row["published_to_host"]
        )
        found[f"{name}: time against fault-driven, the paper's ratio"] = harness.judged(
            row["against_fault_driven"], row["published"]
        )
    return found


def main() -> None:
    json_path = harness.asked_json_path(__doc__)
    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    rows = []
    for name in PROGRAMS:
        resident = run(name, None)
        for factor in FACTORS:
            rows.append(compared(name, factor, resident))
            times = ", ".join(
                f"{way} {one['seconds']:.3f}" for way, one in rows[-1]["ways"].items()
            )
            print(f"{name} {factor}x: resident {resident['seconds']:.3f}, {times} s", flush=True)
    verdicts = verdicts_of(rows)
    results = {"passes": PASSES, "rounds": ROUNDS, "rows": rows, "verdicts": verdicts}
    harness.write_json(json_path, "residency_discards_gpu", results)
    raise SystemExit(harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
