# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs consolidated on one machine, after HUVM (USENIX ATC 2022); simulated, needs no GPU.

    python benchmarks/neighbors_consolidation.py --json results/neighbors_consolidation.json

Four GPUs joined by NVSwitch. Some run a graph program whose data are 1.4 times its GPU's memory,
others a program that fits and leaves a share of its GPU idle. The paper names programs and data,
and gives no sizes: shapes are its, sizes and computing are ours (`_consolidation_programs.py`), and
so is who is over memory where it does not say. Ways to keep memory are rows, spare memory a sweep.
Modelled time of an iteration, equal at every run; a neighbour's slowdown is its step beside them
over the same step with the harvesters' memory going to the host.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import _harness
from _consolidation_programs import MIB, PIECE_BYTES, Harvester, Owner, memory_bytes

import rmm_uvm
from rmm_uvm.simulator import load_machine

OVER = 1.4
SPARES = (0.05, 0.1, 0.2, 0.4, 0.6)
ITERATIONS = 6
WARM_UP = 2


@dataclass(frozen=True)
class Scenario:
    """Programs over memory by GPU, and GPUs whose programs fit: first harvests from first."""

    name: str
    harvesters: tuple[str, ...]
    owners: int = 2


SCENARIOS = (
    Scenario("1: page rank, components; training on 2", ("page rank", "components")),
    Scenario("2: breadth first on 2; two trainings", ("breadth first", "breadth first")),
    Scenario("3: components, breadth first; page rank on 2", ("components", "breadth first")),
    Scenario("4: components, louvain; training on 2", ("components", "louvain")),
    Scenario("ours: training, breadth first; training on 2", ("training", "breadth first")),
)


@dataclass(frozen=True)
class Way:
    """Arguments of `Budget`, beside where memory leaves to."""

    name: str
    to_neighbor: bool = True
    budget: Mapping[str, Any] = field(default_factory=dict)


WAYS = (
    Way("host only", to_neighbor=False),
    Way("+ victim cache"),
)


def run(scenario: Scenario, way: Way, spare: float, memory: str, machine: str) -> dict[str, Any]:
    """Run a scenario; return seconds of each harvester's iteration, and what went where."""
    count = len(scenario.harvesters)
    gpu_bytes = memory_bytes(memory)
    node = rmm_uvm.simulated_node(
        count + scenario.owners, gpu_bytes, "nvswitch", machine=load_machine(machine)
    )
    owners = [Owner(node.devices[gpu], spare) for gpu in range(count, count + scenario.owners)]
    data_bytes = int(gpu_bytes * OVER) // PIECE_BYTES * PIECE_BYTES
    harvesters = [
        Harvester(
            node.devices[gpu],
            kind,
            data_bytes,
            {**way.budget, "evict_to": count + gpu if way.to_neighbor else "host"},
        )
        for gpu, kind in enumerate(scenario.harvesters)
    ]
    node.synchronize()
    for owner in owners:
        owner.begin()
    going = {number: one.steps(ITERATIONS) for number, one in enumerate(harvesters)}
    while going:
        # Whose clock is behind goes on: so that links are shared at the same modelled time.
        behind = min(going, key=lambda number: harvesters[number].now_ns)
        if next(going[behind], ...) is ...:
            del going[behind]
            continue
        for owner in owners:
            while owner.now_ns < harvesters[behind].now_ns:
                owner.step()
    traffic = node.traffic()
    return {
        "seconds": [one.seconds(WARM_UP) for one in harvesters],
        "owner_step_seconds": [owner.step_seconds() for owner in owners],
        "peer_bytes": sum(
            found.nbytes for (one, other), found in traffic.items() if "host" not in (one, other)
        ),
        "host_bytes": sum(
            found.nbytes for (one, other), found in traffic.items() if "host" in (one, other)
        ),
    }


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
        "peer_mib": found["peer_bytes"] // MIB,
        "host_mib": found["host_bytes"] // MIB,
    }


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def table(memory: str, machine: str) -> list[dict[str, Any]]:
    """Return a row for each scenario, share of spare memory, and way."""
    rows = []
    for scenario in SCENARIOS:
        for spare in SPARES:
            results = {way.name: run(scenario, way, spare, memory, machine) for way in WAYS}
            for way in WAYS:
                row = {"scenario": scenario.name, "spare_fraction": spare, "way": way.name}
                row |= compared(results[way.name], results[WAYS[0].name])
                rows.append(row)
                print(
                    f"{scenario.name:48} {spare:4.0%} {way.name:16} {row['speedup']:6.2f}x "
                    f"neighbour {row['owner_slowdown']:.3f}x, {row['peer_mib']:>6} MiB by peers, "
                    f"{row['host_mib']:>6} MiB by host"
                )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=_harness.Path, help="where results go")
    parser.add_argument("--memory", default="1GiB", help="of each GPU")
    parser.add_argument("--machine", default="h200-pcie5", help="a machine profile")
    asked = parser.parse_args()
    rows = table(asked.memory, asked.machine)
    if asked.json:
        results = {"memory": asked.memory, "machine": asked.machine, "over": OVER, "rows": rows}
        _harness.write_json(asked.json, "neighbors_consolidation", results)


if __name__ == "__main__":
    main()
