# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What launches over resident data take while the manager of a budget moves other data, on a GPU.

    RMM_UVM_MANAGED_LIMIT=4GiB python benchmarks/residency/launches.py --json FILE

One thread launches a kernel over memory that is pinned, again and again: one of about 1 ms, which
is judged, and one of 0.1 ms, in which a wait for the same lock weighs ten times as much. Meanwhile
another goes round arrays that are larger than the budget together, in a stream of its own, so that
they are evicted and fetched all the time: in pieces as the migration thread moves them by default,
and in calls of 64 MiB. A prefetch call holds a lock that every launch needs.
"""

from __future__ import annotations

import gc
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import rmm_uvm
from rmm_uvm.residency import Budget

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.gpu_arrays import GpuArrays

MIB = 1 << 20
PINNED_BYTES = {"1 ms": 1280 * MIB, "0.1 ms": 128 * MIB}  # by length of the kernel, about
LAUNCHES = {"1 ms": 600, "0.1 ms": 2000}
MOVED_BYTES = 128 * MIB
MOVED_ARRAYS = 8
ROOM_BYTES = 640 * MIB  # for what moves: five of eight arrays
BOUND = 1.05
JUDGED = "1 ms"
PIECES = {"pieces of 2 MiB": 2 * MIB, "pieces of 4 MiB": 4 * MIB, "calls of 64 MiB": 64 * MIB}


def launches(arrays: GpuArrays, handle: int, number: int) -> float:
    """Return the median seconds of a launch and its kernel."""
    seconds = []
    for _ in range(number):
        begin = time.perf_counter()
        arrays.compute(handle)
        arrays.wait()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def measured(kernel: str, piece_bytes: int) -> dict[str, Any]:
    """Return a launch's seconds alone and beside migrations, and what moved."""
    import cupy

    driver = rmm_uvm.cuda_driver(0)
    pinned_bytes, number = PINNED_BYTES[kernel], LAUNCHES[kernel]
    budget = Budget(
        pinned_bytes + ROOM_BYTES, policy="lru", piece_bytes=piece_bytes, fetch_bytes=piece_bytes
    )
    mr = rmm_uvm.managed_pool(
        driver=driver,
        initial_pool_size=3072 * MIB,
        maximum_pool_size=3072 * MIB,
        device_budget=budget,
    )
    arrays = GpuArrays(mr, passes=20)
    pinned = arrays.make(pinned_bytes)
    moved = [arrays.make(MOVED_BYTES) for _ in range(MOVED_ARRAYS)]
    arrays.read(pinned)
    arrays.wait()
    prefetcher = mr.managed_mr.residency
    prefetcher.pin(pinned, pinned_bytes)
    stream = cupy.cuda.Stream(non_blocking=True)
    stop = threading.Event()

    def go_round() -> None:
        while not stop.is_set():
            for address in moved:
                prefetcher.touch(address, MOVED_BYTES, address, stream.ptr)
                stream.synchronize()
                if stop.is_set():
                    return

    launches(arrays, pinned, number)
    alone_seconds = launches(arrays, pinned, number)
    before = driver.migrated_bytes()
    mover = threading.Thread(target=go_round)
    begin = time.perf_counter()
    mover.start()
    beside_seconds = launches(arrays, pinned, number)
    took = time.perf_counter() - begin
    stop.set()
    mover.join()
    after = driver.migrated_bytes()
    prefetcher.unpin(pinned, pinned_bytes)
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
    json_path = harness.asked_json_path(__doc__)
    harness.require_managed_limit(rmm_uvm.cuda_driver(0).memory()[0])
    rows = [
        {"kernel": kernel, "pieces": name, **measured(kernel, piece_bytes)}
        for kernel in PINNED_BYTES
        for name, piece_bytes in PIECES.items()
    ]
    verdicts = {
        f"launch of {row['kernel']} beside {row['pieces']}": harness.judged(row["ratio"], BOUND)
        for row in rows
        if row["kernel"] == JUDGED and row["pieces"].startswith("pieces")
    }
    harness.write_json(json_path, "residency_launches", {"rows": rows, "verdicts": verdicts})
    for row in rows:
        print(
            f"{row['kernel']:6} beside {row['pieces']}: {row['ratio']:.3f}, "
            f"{row['alone_seconds'] * 1e6:.1f} us alone"
        )
    raise SystemExit(harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
