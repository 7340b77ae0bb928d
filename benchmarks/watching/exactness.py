# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes that a monitor counts over a random mix of moves, against what must have moved.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/watching/exactness.py --json FILE

Prefetches both ways, GPU faults and CPU touches of whole 2 MiB blocks, in random order. A block
moves exactly when it is not yet where it is wanted, so that what must move is known beforehand.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import rmm_uvm
from rmm_uvm.drivers import CudaDriver, cuda_driver
from rmm_uvm.mr import ManagedMemoryResource

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.watching.faults import stream_over, touch_by_cpu

BLOCK_BYTES = 2 << 20
BLOCKS = 256
WAYS = ("prefetch to the device", "prefetch to the host", "GPU fault", "CPU touch")


def move(driver: CudaDriver, way: str, address: int, nbytes: int) -> None:
    """Bring a range to one side in one of the ways."""
    if way == "GPU fault":
        stream_over(address, nbytes)
    elif way == "CPU touch":
        touch_by_cpu(address, nbytes)
    else:
        driver.prefetch(address, nbytes, way.split()[-1])
    driver.synchronize()


def run(driver: CudaDriver, steps: int) -> dict[str, Any]:
    """Make the moves; return by way what was expected and what was counted."""
    mr = ManagedMemoryResource(driver, prefetch="never")
    address = mr.allocate(BLOCKS * BLOCK_BYTES)
    touch_by_cpu(address, BLOCKS * BLOCK_BYTES)  # puts all pages on the host, moves nothing
    on_device = np.zeros(BLOCKS, dtype=bool)
    random = np.random.default_rng(11)
    rows = {way: {"moves": 0, "expected_bytes": 0, "counted_bytes": 0} for way in WAYS}
    wrong_way_bytes, unequal = 0, 0
    with rmm_uvm.monitor(driver=driver, on_finding=None, publish=False) as m:
        for _ in range(steps):
            way = WAYS[int(random.integers(len(WAYS)))]
            first = int(random.integers(BLOCKS))
            last = int(random.integers(first, BLOCKS)) + 1
            to_device = way in ("prefetch to the device", "GPU fault")
            expected = int((on_device[first:last] != to_device).sum()) * BLOCK_BYTES
            before = m.snapshot()
            move(driver, way, address + first * BLOCK_BYTES, (last - first) * BLOCK_BYTES)
            window = m.window(before)
            moved = (window.device_to_host_bytes or 0, window.host_to_device_bytes or 0)
            wrong_way_bytes += moved[not to_device]
            unequal += moved[to_device] != expected
            on_device[first:last] = to_device
            rows[way]["moves"] += 1
            rows[way]["expected_bytes"] += expected
            rows[way]["counted_bytes"] += moved[to_device]
    mr.deallocate(address, BLOCKS * BLOCK_BYTES)
    return {"by_way": rows, "bytes_the_wrong_way": wrong_way_bytes, "unequal_moves": unequal}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    driver = cuda_driver(0)
    harness.require_managed_limit(driver.memory()[0])
    found = run(driver, arguments.steps)
    exact = found["unequal_moves"] == 0 and found["bytes_the_wrong_way"] == 0
    verdicts = {"every move counted to the byte": exact, "moves": arguments.steps}
    harness.write_json(arguments.json, "watching_exactness", {**found, "verdicts": verdicts})


if __name__ == "__main__":
    main()
