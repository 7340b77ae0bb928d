# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Allocate and free from Python on each placement, and the least that a pool of our own would take.

Over a simulated driver, whose calls take next to nothing. RMM's pools record a CUDA event at every
free: without a GPU that fails, which takes longer than all the rest. So the stock chains are to be
read in `results/allocate_free.json`, from a GPU; the floor needs none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import rmm

from benchmarks.common.harness import interleaved
from benchmarks.pool.allocate_free import measure, sizes
from benchmarks.pool.placement_ways import ARENA, BASE, PLACEMENTS, STOCK, lacks_gpu
from rmm_uvm.drivers import simulated_device
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.residency import Budget

RESULTS = Path(__file__).parents[1] / "results"
SLAB_BYTES = 3 << 30
MOST_NS = 800.0
CALLS_ALONE = "calls that allocate nothing"
POOL_ALONE = f"{BASE}, no adaptor"
ON_A_GPU = "allocate_free.json"
IN_CPP = "cpp_allocate_free.json"
ADAPTOR_ALONE = {
    "without a budget": "allocate_free<uvm_alone>/bytes:{}_median",
    "with a budget": "allocate_free<uvm_alone_budget>/bytes:{}_median",
}
ADAPTOR_SIZES = (256, 1 << 20)


def with_budget(name: str) -> str:
    """Return the name of a chain under a budget that everything fits."""
    return f"{name}, budget"


def _managed(budget: Budget | None = None) -> ManagedMemoryResource:
    return ManagedMemoryResource(simulated_device("16GiB"), budget=budget)


def chains() -> dict[str, Any]:
    """Return the memory resources by name; the arena where the CUDA runtime has a device."""
    made: dict[str, Any] = {POOL_ALONE: rmm.mr.PoolMemoryResource(_managed(), SLAB_BYTES)}
    for name in (*STOCK, ARENA):
        budget = Budget(12 << 30, background=False)
        try:
            pools = [PLACEMENTS[name](_managed(one), SLAB_BYTES) for one in (None, budget)]
        except RuntimeError as error:
            if not lacks_gpu(error):
                raise
            continue
        made[name], made[with_budget(name)] = map(UvmResourceAdaptor, pools)
    return made


def measure_calls(mr: Any, count: int) -> Callable[[], float]:
    """Return a run that gives the nanoseconds of a pair of calls that need no memory."""

    def run() -> float:
        begin = time.perf_counter_ns()
        for _ in range(count):
            mr.deallocate(mr.allocate(0), 0)
        return (time.perf_counter_ns() - begin) / count

    return run


def measured(rounds: int, count: int) -> dict[str, Any]:
    """Return the fastest round of each chain, and the floors that follow from them."""
    made = chains()
    wanted = sizes(count)
    runs = {name: measure(mr, wanted) for name, mr in made.items()}
    runs[CALLS_ALONE] = measure_calls(made[BASE], count)
    # The fastest, not the median: whatever else the machine did only adds.
    fastest = {name: min(each) for name, each in interleaved(runs, rounds).items()}
    adaptor_ns = adaptor_alone(json.loads((RESULTS / IN_CPP).read_text()))
    return {
        "rounds": rounds,
        "pairs": count,
        "nanoseconds": {name: round(value, 1) for name, value in fastest.items()},
        "adaptor_ns": adaptor_ns,
        "floor_ns": floors(fastest[CALLS_ALONE], adaptor_ns),
        "on_a_gpu_ns": json.loads((RESULTS / ON_A_GPU).read_text())["medians"],
    }


def adaptor_alone(result: Mapping[str, Any]) -> dict[str, float]:
    """Return what our adaptor takes over a pool that takes nothing, from the C++ benchmark."""
    found = {one["name"]: one["real_time"] for one in result["benchmarks"]}
    return {
        name: round(max(found[pattern.format(nbytes)] for nbytes in ADAPTOR_SIZES), 1)
        for name, pattern in ADAPTOR_ALONE.items()
    }


def floors(calls_ns: float, adaptor_ns: Mapping[str, float]) -> dict[str, float]:
    """Return what a pair takes when the pool itself takes nothing."""
    return {name: round(calls_ns + each, 1) for name, each in adaptor_ns.items()}


def fast_enough(speed: Mapping[str, Any]) -> bool | None:
    """Tell whether a pool that takes nothing would be within the bound, with a budget too.

    The bound is what RMM's arena takes on a GPU's host. None where another machine, which may have
    a slower processor, has missed it: that decides nothing.
    """
    if max(speed["floor_ns"].values()) <= MOST_NS:
        return True
    return False if ARENA in speed["nanoseconds"] else None
