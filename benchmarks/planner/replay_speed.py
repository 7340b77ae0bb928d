# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Replays: how fast an hour-long recording goes, on cards that hold it and on such that do not.

    python benchmarks/planner/replay_speed.py --json FILE [--events 3600000] [--peak-gib 32]

The recording has the mortgage's shape: one part's stages with as many allocations, bytes and peaks
as were recorded on an H200 (results/mortgage_allocations_parts4.json), scaled to `--peak-gib`, at
the addresses that RMM's pool gives them, written when made and read before they are freed; repeated
until there are `--events`. Figures are those of the fastest of two replays, in processor time:
other programs only ever add. Nothing needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import rmm_uvm
from rmm_uvm.planner.trials.replaying import replay
from rmm_uvm.planner.workload.events import (
    ALLOCATE,
    FREE,
    REPLAY_DTYPE,
    TOUCH,
    WRITES,
    Slab,
    Workload,
)
from rmm_uvm.simulator import load_machine

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

RECORDED = Path(__file__).parents[1] / "results" / "mortgage_allocations_parts4.json"
BLOCK_BYTES = 2 << 20
NS_OF_AN_EVENT = 1_000_000  # 3.6 million of them are an hour
REPLAYS = 2


class Part:
    """One part of the mortgage, allocated from a pool as its stages were recorded to do."""

    def __init__(self, stages: list[dict[str, Any]], scale: float, pool_bytes: int) -> None:
        self._mr = rmm_uvm.managed_pool(
            driver=rmm_uvm.simulated_device(2 * pool_bytes),
            initial_pool_size=pool_bytes,
            maximum_pool_size=pool_bytes,
            prefetch="never",
            device_budget=None,
        )
        self._base = self._mr.upstream_mr.allocate(256)  # a fresh pool's first piece
        self._mr.upstream_mr.deallocate(self._base, 256)
        self.slab = Slab(self._base, pool_bytes)
        self.events: list[tuple[int, int, int, int, int]] = []  # kind, flags, stage, address, bytes
        self._held: list[tuple[int, int]] = []
        self._held_bytes = 0
        generator = random.Random(7)
        for number, stage in enumerate(stages, start=1):
            self._run(number, stage, scale, generator)
        while self._held:
            self._free(len(stages))

    def _run(self, number: int, stage: dict[str, Any], scale: float, generator: Any) -> None:
        count = stage["allocations"]
        weights = [generator.lognormvariate(0.0, 2.0) for _ in range(count)]
        unit = stage["allocated_bytes"] * scale / sum(weights)
        for weight in weights:
            nbytes = max(int(weight * unit), 1)
            # Columns that a stage takes over are freed first, and temporary ones as they age.
            while self._held and self._held_bytes + nbytes > stage["peak_bytes"] * scale:
                self._free(number)
            self._allocate(number, nbytes)
        while self._held and self._held_bytes > stage["end_bytes"] * scale:
            self._free(number)

    def _allocate(self, stage: int, nbytes: int) -> None:
        address = self._mr.allocate(nbytes)
        self._held.append((address, nbytes))
        self._held_bytes += nbytes
        self.events.append((ALLOCATE, 0, stage, address, nbytes))
        self.events.append((TOUCH, WRITES, stage, address, nbytes))

    def _free(self, stage: int) -> None:
        address, nbytes = self._held.pop(0)
        self._held_bytes -= nbytes
        self.events.append((TOUCH, 0, stage, address, nbytes))
        self.events.append((FREE, 0, stage, address, nbytes))
        self._mr.deallocate(address, nbytes)


def hour(count: int, peak_bytes: int) -> Workload:
    """Return the recording."""
    recorded = json.loads(RECORDED.read_text())["stages"]
    names = [stage["stage"] for stage in recorded]
    stages = recorded[: names.index("last_mile_cleaning") + 1]  # the first part's
    scale = peak_bytes / max(stage["peak_bytes"] for stage in stages)
    part = Part(stages, scale, peak_bytes * 3 // 2 // BLOCK_BYTES * BLOCK_BYTES)
    once = np.zeros(len(part.events), dtype=REPLAY_DTYPE)
    for field, values in zip(
        ("kind", "flags", "stage", "address", "nbytes"),
        zip(*part.events, strict=True),
        strict=True,
    ):
        once[field] = values
    events = np.tile(once, -(-count // len(once)))
    events["time_ns"] = np.arange(len(events), dtype=np.uint64) * NS_OF_AN_EVENT
    signed = np.zeros(len(once), dtype=np.int64)
    for kind, sign in ((ALLOCATE, 1), (FREE, -1)):
        signed += np.where(once["kind"] == kind, sign, 0) * once["nbytes"].astype(np.int64)
    allocated = events["nbytes"][events["kind"] == ALLOCATE]
    return Workload(
        events=events,
        slabs=(part.slab,),
        stages=("", *(stage["stage"] for stage in stages)),
        source=Path("hour"),
        kind="trace",
        touches_assumed=True,
        peak_live_bytes=int(signed.cumsum().max()),
        allocated_bytes=int(allocated.sum()),
        allocations=len(allocated),
        seconds=len(events) * NS_OF_AN_EVENT / 1e9,
    )


def touched_blocks(workload: Workload) -> int:
    """Return how many blocks all touches together cover."""
    touches = workload.events[workload.events["kind"] == TOUCH]
    first = touches["address"] // BLOCK_BYTES
    last = (touches["address"] + touches["nbytes"] - np.uint64(1)) // BLOCK_BYTES
    return int((last - first + np.uint64(1)).sum())


def measure(workload: Workload, gib: int, policy: Any) -> dict[str, Any]:
    """Replay on one card; return what it took and what came out."""
    machine = load_machine("h200-pcie5")
    taken = []
    for _ in range(REPLAYS):
        begin = time.process_time()
        result = replay(workload, machine, device_bytes=gib << 30, policy=policy)
        taken.append(time.process_time() - begin)
    seconds = min(taken)
    return {
        "card_gib": gib,
        "policy": policy,
        "seconds": round(seconds, 2),
        "events_per_second": round(len(workload.events) / seconds),
        "touched_blocks_per_second": round(touched_blocks(workload) / seconds),
        "migration_seconds": round(result.migration_seconds, 1),
        "evicted_blocks": result.evicted_blocks,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=3_600_000)
    parser.add_argument("--peak-gib", type=int, default=32)
    parser.add_argument("--cards-gib", type=int, nargs="+", default=[80, 24, 16])
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    workload = hour(arguments.events, arguments.peak_gib << 30)
    replays = [
        measure(workload, gib, policy)
        for gib in arguments.cards_gib
        for policy in ("driver", "discard-dead")
    ]
    hours = len(workload.events) / 3_600_000
    fitting = [one["seconds"] for one in replays if not one["evicted_blocks"]]
    verdicts = {
        "seconds for an hour, where it fits": harness.judged_at_most(
            max(fitting, default=0.0) / hours, 5.0
        ),
        "seconds for an hour, at most": harness.judged_at_most(
            max(one["seconds"] for one in replays) / hours, 20.0
        ),
    }
    figures = {
        "recording": {
            "events": len(workload.events),
            "hours": round(workload.seconds / 3600, 2),
            "allocated_bytes": workload.allocated_bytes,
            "peak_live_bytes": workload.peak_live_bytes,
            "touched_blocks": touched_blocks(workload),
        },
        "replays": replays,
        "verdicts": verdicts,
    }
    harness.write_json(arguments.json, "replay_speed", figures)
    return harness.exit_status(verdicts)


if __name__ == "__main__":
    raise SystemExit(main())
