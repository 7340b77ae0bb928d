# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How fast the model is, and how much memory it takes; needs no GPU.

    python benchmarks/planner/model_speed.py --json benchmarks/results/model_speed.json

A block operation is a block of 2 MiB that is migrated, filled, evicted, discarded or found where it
should be, once. 10 GiB go round and round on a card of 8: by prefetches, and by page faults; 4 GiB
that fit are read. Medians of several runs, on one core. The figure that is asked for is that of all
of it together: as many operations of each kind.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rmm_uvm.simulator import Access, Simulator, load_machine, random_pages

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

GIB = 1 << 30
MIB = 1 << 20
CARD_BYTES = 8 * GIB
DATA_BYTES = 10 * GIB
LEAST_OPERATIONS_PER_SECOND = 5e6
MOST_BYTES_PER_BLOCK = 200


def prefetched(simulator: Simulator, data: int) -> None:
    """Bring everything, 64 MiB a call."""
    for _ in range(20):
        for offset in range(0, DATA_BYTES, 64 * MIB):
            simulator.prefetch(data + offset, 64 * MIB)


def faulted(simulator: Simulator, data: int) -> None:
    """Have kernels read everything, page by page as they fault."""
    for _ in range(20):
        simulator.kernel([Access(data, DATA_BYTES)])


def found(simulator: Simulator, data: int) -> None:
    """Have kernels read what is there."""
    for _ in range(200):
        simulator.kernel([Access(data, 4 * GIB)])


def measured(work: Callable[[Simulator, int], None], rounds: int) -> float:
    """Return block operations a second of processor time, the median of several rounds."""
    simulator = Simulator(load_machine("h200-pcie5"), device_bytes=CARD_BYTES)
    data = simulator.allocate_managed(DATA_BYTES)
    simulator.cpu_touch(data, DATA_BYTES, write=True)
    simulator.prefetch(data, 4 * GIB)
    rates = []
    for _ in range(rounds):
        before, begun = simulator.counters().block_operations, time.process_time()
        work(simulator, data)
        spent = time.process_time() - begun
        rates.append((simulator.counters().block_operations - before) / spent)
    return statistics.median(rates)


def footprint() -> dict[str, float]:
    """Return bytes for each 2 MiB of address space: pages alike in a block, and mixed ones."""
    simulator = Simulator(load_machine("h200-pcie5"), device_bytes=CARD_BYTES)
    data = simulator.allocate_managed(DATA_BYTES)
    blocks = DATA_BYTES // (2 * MIB)
    simulator.cpu_touch(data, DATA_BYTES, write=True)
    alike = simulator.footprint_bytes / blocks
    simulator.kernel([Access(data, DATA_BYTES, random_pages(200_000), write=True)])
    return {"alike": round(alike, 1), "mixed": round(simulator.footprint_bytes / blocks, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    kinds = {"prefetched": prefetched, "faulted": faulted, "found": found}
    rates = {name: measured(work, arguments.rounds) for name, work in kinds.items()}
    together = len(rates) / sum(1 / rate for rate in rates.values())
    taken = footprint()
    verdicts = {
        "block operations a second": harness.judged_at_least(
            round(together), LEAST_OPERATIONS_PER_SECOND
        ),
        "bytes for each 2 MiB": harness.judged_at_most(max(taken.values()), MOST_BYTES_PER_BLOCK),
    }
    print({name: f"{rate / 1e6:.1f} M/s" for name, rate in rates.items()}, verdicts)
    harness.write_json(
        arguments.json,
        "model_speed",
        {
            "verdicts": verdicts,
            "operations_per_second": {name: round(rate) for name, rate in rates.items()},
            "footprint_bytes_per_block": taken,
        },
    )
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    raise SystemExit(main())
