# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How often dead memory is handed out undiscarded, and what is copied for it. On a GPU.

    RMM_UVM_MANAGED_LIMIT=8GiB python benchmarks/residency/undiscarded.py --json FILE

Every program of the policy comparison, the recorded mortgage pipeline among them, runs with a
budget of 1/1.5 and 1/2 of its own peak: as it is, where its launches run ahead of the device, and
with a wait for the device before each allocation, where every free is done. Contents are checked
at every use. All memory is on a card with room for it.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import rmm_uvm

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.gpu_arrays import GpuArrays
from benchmarks.residency.policy_programs import PROGRAMS, RECORDED

FACTORS = (1.5, 2.0)
ROUNDS = 3
WORD_BYTES = 8
COPIED_BOUND = 0.01


class Memory:
    """Arrays with the calls that the programs are written against; sizes are whole words."""

    def __init__(self, mr: Any, *, waits: bool) -> None:
        self.arrays, self._waits = GpuArrays(mr, passes=20), waits

    def make(self, nbytes: int) -> int:
        """Allocate and write."""
        if self._waits:
            self.arrays.wait()
        return self.arrays.make(max(nbytes // WORD_BYTES, 1) * WORD_BYTES)

    allocate = make

    def read(self, handle: int, first_byte: int = 0, nbytes: int | None = None) -> None:
        """Announce and read."""
        self.arrays.read(handle, first_byte, nbytes)

    def write(self, handle: int) -> None:
        """Announce, read and write."""
        self.arrays.write(handle)

    def use(self, handle: int, nbytes: int, first_byte: int = 0, *, write: bool = False) -> None:
        """Announce, read, and write if that is said."""
        if write:
            self.arrays.write(handle)
        else:
            self.arrays.read(handle, first_byte)

    def free(self, handle: int) -> None:
        """Free."""
        self.arrays.free(handle)


def run(name: str, budget_bytes: int | None, *, waits: bool) -> dict[str, Any]:
    """Return the median seconds of some rounds, and what the last one moved and counted."""
    driver = rmm_uvm.cuda_driver(0)
    mr = rmm_uvm.managed_pool(
        driver=driver,
        maximum_pool_size="4GiB",
        initial_pool_size="64MiB",
        device_budget=budget_bytes,
    )
    memory: Any = Memory(mr, waits=waits)
    seconds = []
    row: dict[str, Any] = {}
    for _ in range(ROUNDS + 1):
        before, counted = driver.migrated_bytes(), mr.managed_mr.residency.residency() or {}
        begin = time.perf_counter()
        PROGRAMS[name](memory)
        if memory.arrays.finish():
            raise SystemExit(f"{name}: words were lost")
        seconds.append(time.perf_counter() - begin)
        for handle in memory.arrays.held():
            memory.free(handle)
        moved = [b - a for a, b in zip(before, driver.migrated_bytes(), strict=True)]
        row = {"to_device_bytes": moved[0], "to_host_bytes": moved[1]}
        now = mr.managed_mr.residency.residency() or {}
        for count in ("renewed_bytes", "undiscarded_bytes", "undiscarded_copied_bytes"):
            if count in now:
                row[count] = now[count] - counted[count]
    row |= {"seconds": statistics.median(seconds[1:]), "peak_bytes": mr.peak_bytes}
    del memory, mr
    gc.collect()
    return row


def main() -> None:
    json_path = harness.asked_json_path(__doc__)
    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    rows = []
    for name in PROGRAMS:
        peak_bytes = run(name, None, waits=False)["peak_bytes"]
        for factor in FACTORS:
            budget_bytes = int(peak_bytes / factor)
            for waits in (False, True):
                row = run(name, budget_bytes, waits=waits)
                rows.append({"program": name, "factor": factor, "waits": waits, **row})
                handed_out = row["renewed_bytes"] + row["undiscarded_bytes"]
                print(
                    f"{name} {factor}x{' waits' if waits else ''}: {row['seconds']:.3f} s, "
                    f"handed out {handed_out / 2**20:.0f} MiB, undiscarded "
                    f"{row['undiscarded_bytes'] / 2**20:.1f}, copied "
                    f"{row['undiscarded_copied_bytes'] / 2**20:.1f}, to the device "
                    f"{row['to_device_bytes'] / 2**20:.0f}, to the host "
                    f"{row['to_host_bytes'] / 2**20:.0f} MiB",
                    flush=True,
                )
    # What is copied for a discard that could not be made, of all that was handed out.
    verdicts = {
        f"{row['program']}, {row['factor']}x{', waits' if row['waits'] else ''}: copied": (
            harness.judged(
                row["undiscarded_copied_bytes"] / max(row["renewed_bytes"], 1), COPIED_BOUND
            )
        )
        for row in rows
    }
    results = {"rounds": ROUNDS, "recorded": RECORDED, "rows": rows, "verdicts": verdicts}
    harness.write_json(json_path, "undiscarded", results)
    raise SystemExit(harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
