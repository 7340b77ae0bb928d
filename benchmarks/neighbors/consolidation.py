# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs consolidated on one machine, after HUVM (USENIX ATC 2022); simulated, needs no GPU.

    python benchmarks/neighbors/consolidation.py [--json FILE] [--write]

Four and eight GPUs joined by NVSwitch. Half of them run programs whose data are 1.4 times their
GPU's memory, the others programs that fit and leave a share of their GPU idle. The paper names
programs and data, and gives no sizes: shapes are its, sizes and computing are ours
(`consolidation_programs.py`), and so is who is over memory where it does not say. Techniques are
added one after the other, as in the paper's ablation; spare memory and look-ahead are sweeps, and
so is how GPUs are joined for bursts, of which programs have few (`consolidation_bursts.py`).
Figures are modelled time of an iteration and equal at every run; a neighbour's slowdown is its step
beside them over the same step with the harvesters' memory going to the host. About two minutes.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("RMM_UVM_DRIVER", "simulated")


import rmm_uvm
from rmm_uvm.simulator import load_machine

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.neighbors.consolidation_bursts import JOINED, burst_row
from benchmarks.neighbors.consolidation_document import DOCUMENT, document_with
from benchmarks.neighbors.consolidation_programs import (
    MIB,
    PIECE_BYTES,
    Harvester,
    Owner,
    memory_bytes,
)

OVER = 1.4
SPARES = (0.05, 0.1, 0.2, 0.4, 0.6)
GPUS = (4, 8)
LOOK_AHEAD_SPARE = 0.4
LOOK_AHEADS = (0, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB)
KERNEL_SPARE = 0.4
KERNEL_PIECES = (1, 4, 8, 16)
ITERATIONS = 6
WARM_UP = 2
MEMORY = "1GiB"
MACHINE = "h200-pcie5"
RESULT = Path(__file__).parents[1] / "results" / "neighbors_consolidation.json"


@dataclass(frozen=True)
class Scenario:
    """Programs over memory by GPU, and what the other half of the GPUs runs, which fits."""

    name: str
    harvesters: tuple[str, str]
    owners: str


SCENARIOS = (
    Scenario("1", ("page rank", "components"), "training"),
    Scenario("2", ("breadth first", "breadth first"), "training"),
    Scenario("3", ("components", "breadth first"), "page rank"),
    Scenario("4", ("components", "louvain"), "training"),
    Scenario("ours", ("training", "breadth first"), "training"),
)


@dataclass(frozen=True)
class Way:
    """Arguments of `Budget`, and what a program and its node do."""

    name: str
    budget: Mapping[str, Any] = field(default_factory=dict)
    evicts_ahead: bool = True
    places_at_once: bool = True


SMALL = {"piece_bytes": 2 * MIB, "fetch_bytes": 2 * MIB, "direct": False}
LARGE = {"piece_bytes": 8 * MIB, "fetch_bytes": 32 * MIB, "direct": False}
AHEAD = {"ahead": True, "ahead_bytes": 32 * MIB}
DIRECT = {**LARGE, **AHEAD, "direct": True}
OWN = "own"  # each harvester one owner's GPU, the first the first's
BESIDE = {"neighbors": OWN}
BASE = "host only"
HOST_BEST = "host only, with all that needs no neighbour"
LOCAL = "+ look-ahead"
SHARED = "look-ahead, every owner's GPU to all"
DIRECT_HOST = "past libcuda: host only, with look-ahead"
IN_TURN = "past libcuda: look-ahead, a place after the other"
PARALLEL = "past libcuda: + parallel fetch"
MULTIPATH = "past libcuda: + multi-path fetch"
WAYS = (
    Way(BASE, SMALL, evicts_ahead=False),
    Way("+ victim cache", {**SMALL, **BESIDE}, evicts_ahead=False),
    Way("+ pre-eviction", {**SMALL, **BESIDE}),
    Way("+ large pieces", {**LARGE, **BESIDE}),
    Way(LOCAL, {**LARGE, **BESIDE, **AHEAD}),
    Way("look-ahead and copies on the host", {**LARGE, **BESIDE, **AHEAD, "copy_beside": True}),
    Way("look-ahead and use in place", {**LARGE, **BESIDE, **AHEAD, "in_place": True}),
    Way(SHARED, {**LARGE, **AHEAD, "neighbors": "auto"}),
    Way(HOST_BEST, {**LARGE, **AHEAD}),
    Way(DIRECT_HOST, DIRECT),
    Way(IN_TURN, {**DIRECT, **BESIDE}, places_at_once=False),
    Way(PARALLEL, {**DIRECT, **BESIDE}),
    Way(MULTIPATH, {**DIRECT, **BESIDE, "multipath": True}),
)
WAYS_BY_NAME = {way.name: way for way in WAYS}


def run(
    scenario: Scenario,
    way: Way,
    spare: float,
    gpus: int = 4,
    memory: str = MEMORY,
    kernel_pieces: int = 1,
) -> dict[str, Any]:
    """Run a scenario; return seconds of each harvester's iteration, and what went where."""
    half = gpus // 2
    gpu_bytes = memory_bytes(memory)
    node = rmm_uvm.simulated_node(
        gpus,
        gpu_bytes,
        "nvswitch",
        direct_migration=True,
        places_at_once=way.places_at_once,
        machine=load_machine(MACHINE),
    )
    owners = [Owner(device, spare, scenario.owners) for device in node.devices[half:]]
    for owner in owners:
        owner.begin()  # they run already, and have what they need
    data_bytes = int(gpu_bytes * OVER) // PIECE_BYTES * PIECE_BYTES
    harvesters = [
        Harvester(
            node.devices[gpu],
            scenario.harvesters[gpu % 2],
            data_bytes,
            {"board": None, **way.budget, "neighbors": neighbors_of(way, gpu, half)},
            evicts_ahead=way.evicts_ahead,
            kernel_pieces=kernel_pieces,
        )
        for gpu in range(half)
    ]
    in_turn(harvesters, [one.begin() for one in harvesters], owners)
    node.synchronize()
    for owner in owners:
        owner.begin()
    in_turn(harvesters, [one.steps(ITERATIONS) for one in harvesters], owners)
    kept = [one.prefetcher.residency() or {} for one in harvesters]
    return {
        "seconds": [one.seconds(WARM_UP) for one in harvesters],
        "owner_step_seconds": [owner.step_seconds() for owner in owners],
        "evicted_bytes": sum(one["evicted_bytes"] for one in kept),
        "neighbor_bytes": sum(one["neighbor_bytes"] for one in kept),
        "from_neighbor_bytes": sum(one["from_neighbor_bytes"] for one in kept),
        "given_back_bytes": sum(one["given_back_bytes"] for one in kept),
        "staged_bytes": sum(one["staged_bytes"] for one in kept),
    }


def in_turn(
    harvesters: Sequence[Harvester], steps: Sequence[Iterator[None]], owners: Sequence[Owner]
) -> None:
    """Let programs go on, whose clock is behind first: links are shared at the same time."""
    going = dict(enumerate(steps))
    while going:
        behind = min(going, key=lambda number: harvesters[number].now_ns)
        if next(going[behind], ...) is ...:
            del going[behind]
            continue
        for owner in owners:
            while owner.now_ns < harvesters[behind].now_ns:
                owner.step()


def neighbors_of(way: Way, gpu: int, half: int) -> str | list[int] | None:
    """Return whose memory a harvester may use."""
    asked: str | None = way.budget.get("neighbors")
    return [half + gpu] if asked == OWN else asked


def compared(found: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row: speed-up of the harvesters together, slowdown of the owners, bytes."""
    ups = [before / now for before, now in zip(base["seconds"], found["seconds"], strict=True)]
    downs = [
        now / before
        for before, now in zip(base["owner_step_seconds"], found["owner_step_seconds"], strict=True)
    ]
    return {
        "seconds": [round(value, 6) for value in found["seconds"]],
        "speedup": round(geometric_mean(ups), 3),
        "owner_slowdown": round(max(downs), 4),
        "evicted_mib": found["evicted_bytes"] // MIB,
        "to_neighbor_mib": found["neighbor_bytes"] // MIB,
        "from_neighbor_mib": found["from_neighbor_bytes"] // MIB,
        "given_back_mib": found["given_back_bytes"] // MIB,
        "staged_mib": found["staged_bytes"] // MIB,
    }


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def rows_of(
    scenario: Scenario,
    spare: float,
    gpus: int,
    ways: Iterable[Way],
    memory: str = MEMORY,
    kernel_pieces: int = 1,
) -> list[dict[str, Any]]:
    """Return a row for each way; `ways` begins with what the others are compared with."""
    rows: list[dict[str, Any]] = []
    base: dict[str, Any] | None = None
    for way in ways:
        row: dict[str, Any] = {
            "scenario": scenario.name,
            "gpus": gpus,
            "spare_fraction": spare,
            "way": way.name,
        }
        found = run(scenario, way, spare, gpus, memory, kernel_pieces)
        base = base or found
        rows.append(row | compared(found, base))
        print(_told(rows[-1]), flush=True)
    return rows


def _told(row: Mapping[str, Any]) -> str:
    return (
        f"{row['scenario']:5} {row['gpus']} GPUs {row['spare_fraction']:4.0%} {row['way']:44} "
        f"{row['speedup']:6.2f}x, neighbour {row['owner_slowdown']:.3f}x, of "
        f"{row['evicted_mib']:>6} MiB {row['to_neighbor_mib']:>6} to neighbours"
    )


def look_ahead_way(ahead_bytes: int) -> Way:
    """Return the way with every technique that there is, at one look-ahead."""
    ahead = {"ahead": ahead_bytes > 0, "ahead_bytes": ahead_bytes}
    return Way(f"look-ahead of {ahead_bytes // MIB} MiB", {**LARGE, **BESIDE, **ahead})


def look_ahead_rows(scenario: Scenario, memory: str = MEMORY) -> list[dict[str, Any]]:
    """Return a row for each look-ahead, against none."""
    ways = [look_ahead_way(ahead_bytes) for ahead_bytes in LOOK_AHEADS]
    rows = rows_of(scenario, LOOK_AHEAD_SPARE, 4, ways, memory)
    return [
        {**row, "ahead_bytes": ahead_bytes}
        for row, ahead_bytes in zip(rows, LOOK_AHEADS, strict=True)
    ]


def kernel_rows(scenario: Scenario, memory: str = MEMORY) -> list[dict[str, Any]]:
    """Return what parallel fetch brings, by the data of a kernel, against a place at a time."""
    ways = [WAYS_BY_NAME[name] for name in (IN_TURN, PARALLEL)]
    return [
        {**row, "kernel_bytes": pieces * PIECE_BYTES}
        for pieces in KERNEL_PIECES
        for row in rows_of(scenario, KERNEL_SPARE, 4, ways, memory, pieces)
    ]


def against_host(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what a neighbour's memory is worth where all else is as good without it."""
    at = {(row["scenario"], row["gpus"], row["spare_fraction"], row["way"]): row for row in rows}
    found = []
    for (scenario, gpus, spare, way), row in at.items():
        if way == LOCAL:
            host = at[scenario, gpus, spare, HOST_BEST]
            ups = [a / b for a, b in zip(host["seconds"], row["seconds"], strict=True)]
            found.append(
                {
                    "scenario": scenario,
                    "gpus": gpus,
                    "spare_fraction": spare,
                    "speedup": round(geometric_mean(ups), 3),
                }
            )
    return found


def verdicts(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what has to hold: nobody is slower for it."""
    ups = [row["speedup"] for row in against_host(rows)]
    downs = [row["owner_slowdown"] for row in rows]
    return {
        "speed-up over host only, the least": harness.judged_at_least(min(ups), 1.0),
        "slowdown of owners, the worst": harness.judged(max(downs), 1.03),
    }


def burst_verdicts(bursts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what has to hold where a neighbour has links of its own."""
    best = bursts[0]
    at_once = best["halves in turn"] / best["halves at once"]
    both = best["over its own link"] / best["over both links"]
    return {
        "burst from both places at once, against in turn": harness.judged_at_least(at_once, 1.15),
        "burst over both links, against its own": harness.judged_at_least(both, 1.0),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path, default=RESULT, metavar="FILE")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    asked = parser.parse_args()
    rows = [
        row
        for gpus in GPUS
        for scenario in SCENARIOS
        for spare in SPARES
        for row in rows_of(scenario, spare, gpus, WAYS)
    ]
    result = {
        **{"memory": MEMORY, "machine": MACHINE, "over": OVER},
        **{"iterations": ITERATIONS, "warm_up": WARM_UP},
        "rows": rows,
        "look_aheads": [row for scenario in SCENARIOS for row in look_ahead_rows(scenario)],
        "kernels": [row for scenario in SCENARIOS for row in kernel_rows(scenario)],
        "against_host": (ups := against_host(rows)),
        "best_against_host": max(row["speedup"] for row in ups),
        "bursts": (bursts := [burst_row(joined, MACHINE, MEMORY) for joined in JOINED]),
        "verdicts": verdicts(rows) | burst_verdicts(bursts),
    }
    harness.write_json(asked.json, "neighbors_consolidation", result)
    if asked.write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), result))
    return harness.exit_status(result["verdicts"])


if __name__ == "__main__":
    raise SystemExit(main())
