# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Allocate and free from Python, on each chain, in nanoseconds.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/pool/allocate_free.py --json FILE
    python benchmarks/pool/allocate_free.py --simulated --json FILE

256 bytes to 16 MiB, log-uniform, 64 blocks alive, always the oldest freed. With ``--simulated``
without a GPU: our chain against RMM's pool over the same simulated upstream.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import rmm

from rmm_uvm.drivers import UvmDriver, cuda_driver, simulated_device
from rmm_uvm.mr import ManagedMemoryResource

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.chains import limited_managed, make_chain, pool

POOL_BYTES = 3 << 30
LIVE = 64


def sizes(count: int) -> list[int]:
    """Return the sizes to allocate, the same in every run."""
    generator = random.Random(11)
    return [int(2 ** generator.uniform(8, 24)) for _ in range(count)]


def measure(mr: rmm.mr.DeviceMemoryResource, wanted: list[int]) -> Callable[[], float]:
    """Return a run that gives the mean nanoseconds of one allocate and free."""

    def run() -> float:
        alive = [(mr.allocate(size), size) for size in wanted[:LIVE]]
        begin = time.perf_counter_ns()
        for number, size in enumerate(wanted):
            slot = number % LIVE
            mr.deallocate(*alive[slot])
            alive[slot] = (mr.allocate(size), size)
        elapsed = time.perf_counter_ns() - begin
        for address, size in alive:
            mr.deallocate(address, size)
        return elapsed / len(wanted)

    return run


def chains(driver: UvmDriver) -> dict[str, rmm.mr.DeviceMemoryResource]:
    """Return the chains by name."""
    if driver.info.simulated:
        return {
            "Pool(ManagedMemoryResource)": pool(ManagedMemoryResource(driver), POOL_BYTES),
            "ours": make_chain("managed", POOL_BYTES, driver),
        }
    return {
        "Prefetch(Pool(Managed))": make_chain("rmm-prefetch", POOL_BYTES, driver),
        "Pool(Managed)": make_chain("rmm-managed", POOL_BYTES, driver),
        "Pool(Cuda)": make_chain("cuda-pool", POOL_BYTES, driver),
        "Arena(Managed)": rmm.mr.ArenaMemoryResource(limited_managed(POOL_BYTES), POOL_BYTES),
        "ours": make_chain("managed", POOL_BYTES, driver),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    driver: UvmDriver
    if arguments.simulated:
        driver = simulated_device("16GiB")
    else:
        driver = cuda_driver(0)
        harness.require_managed_limit(driver.memory()[0])
        rmm.mr.set_current_device_resource(rmm.mr.CudaMemoryResource())
    wanted = sizes(arguments.count)
    made = chains(driver)
    nanoseconds = harness.interleaved(
        {name: measure(mr, wanted) for name, mr in made.items()}, arguments.rounds
    )
    verdicts = {}
    if arguments.simulated:
        verdicts["ours / Pool"] = round(
            harness.ratio(nanoseconds, "ours", "Pool(ManagedMemoryResource)"), 4
        )
    else:
        verdicts["ours / Prefetch(Pool(Managed))"] = harness.judged(
            harness.ratio(nanoseconds, "ours", "Prefetch(Pool(Managed))"), 0.55
        )
        verdicts["ours / Pool(Managed)"] = round(
            harness.ratio(nanoseconds, "ours", "Pool(Managed)"), 4
        )
    harness.write_json(
        arguments.json,
        "allocate_free",
        {
            "nanoseconds": nanoseconds,
            "medians": harness.medians(nanoseconds),
            "our_statistics": made["ours"].statistics(),
            "verdicts": verdicts,
        },
    )


if __name__ == "__main__":
    main()
