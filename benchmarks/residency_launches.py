# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What launches over resident data take while the manager of a budget moves other data, on a GPU.

    RMM_UVM_MANAGED_LIMIT=4GiB python benchmarks/residency_launches.py --json FILE

One thread launches a short kernel over memory that is pinned, again and again. Meanwhile another
goes round arrays that are larger than the budget together, in a stream of its own, so that they are
evicted and fetched all the time: in pieces of 4 MiB as the migration thread moves them, and in
calls of 64 MiB as requests that wait do. A prefetch call holds a lock that every launch needs.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import _harness
from _gpu_arrays import GpuArrays

import rmm_uvm
from rmm_uvm.residency import Budget

MIB = 1 << 20
BUDGET_BYTES = 768 * MIB
PINNED_BYTES = 128 * MIB
MOVED_BYTES = 128 * MIB
MOVED_ARRAYS = 8
LAUNCHES = 2000
BOUND = 1.05
PIECES = {"pieces of 2 MiB": 2 * MIB, "pieces of 4 MiB": 4 * MIB, "calls of 64 MiB": 64 * MIB}


def launches(arrays: GpuArrays, handle: int) -> float:
    """Return the median seconds of a launch and its kernel."""
    seconds = []
    for _ in range(LAUNCHES):
        begin = time.perf_counter()
        arrays.compute(handle)
        arrays.wait()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def measured(piece_bytes: int) -> dict[str, Any]:
    """Return a launch's seconds alone and beside migrations, and what moved."""
    import cupy

    driver = rmm_uvm.cuda_driver(0)
    budget = Budget(BUDGET_BYTES, policy="lru", piece_bytes=piece_bytes, fetch_bytes=piece_bytes)
    mr = rmm_uvm.managed_pool(
        driver=driver,
        initial_pool_size=2048 * MIB,
        maximum_pool_size=2048 * MIB,
        device_budget=budget,
    )
    arrays = GpuArrays(mr, passes=20)
    pinned = arrays.make(PINNED_BYTES)
    moved = [arrays.make(MOVED_BYTES) for _ in range(MOVED_ARRAYS)]
    arrays.read(pinned)
    arrays.wait()
    prefetcher = mr.managed_mr.prefetcher
    prefetcher.pin(pinned, PINNED_BYTES)
    stream = cupy.cuda.Stream(non_blocking=True)
    stop = threading.Event()

    def go_round() -> None:
        while not stop.is_set():
            for address in moved:
                prefetcher.touch(address, MOVED_BYTES, address, stream.ptr)
                stream.synchronize()
                if stop.is_set():
                    return

    launches(arrays, pinned)
    alone_seconds = launches(arrays, pinned)
    before = driver.migrated_bytes()
    mover = threading.Thread(target=go_round)
    begin = time.perf_counter()
    mover.start()
    beside_seconds = launches(arrays, pinned)
    took = time.perf_counter() - begin
    stop.set()
    mover.join()
    after = driver.migrated_bytes()
    prefetcher.unpin(pinned, PINNED_BYTES)
    if arrays.finish():
        raise SystemExit("words were lost")
    found = {
        "alone_seconds": alone_seconds,
        "beside_seconds": beside_seconds,
        "ratio": beside_seconds / alone_seconds,
        "to_device_bytes_per_second": (after[0] - before[0]) / took,
        "to_host_bytes_per_second": (after[1] - before[1]) / took,
    }
    del arrays, mr
    gc.collect()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    _harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    rows = {name: measured(piece_bytes) for name, piece_bytes in PIECES.items()}
    verdicts = {
        f"launch beside {name}": _harness.judged(rows[name]["ratio"], BOUND)
        for name in list(PIECES)[:2]
    }
    _harness.write_json(arguments.json, "residency_launches", {"rows": rows, "verdicts": verdicts})
    for name, row in rows.items():
        print(f"{name}: {row['ratio']:.3f}, {row['alone_seconds'] * 1e6:.1f} us alone")
    raise SystemExit(_harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
