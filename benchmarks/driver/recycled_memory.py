# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Recycled memory whose pages lie on the host: what making it usable again costs.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/driver/recycled_memory.py --json FILE

In a slab, one large free range lies between two live neighbours that share its edge blocks. The
slab is moved to the host, as an eviction would, and the range is allocated anew: ours discards the
blocks that are all dead and moves the two edges; RMM's adaptor moves everything. Timed until the
stream is done; then a kernel writes all of it, and the neighbours' checksums are checked.

With "busy" the stream still computes when the range is allocated: then nothing may be discarded,
and both move everything. The time of that kernel is taken off.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import cupy
import rmm

from rmm_uvm.drivers import cuda_driver

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.chains import make_chain

POOL_BYTES = 3 << 30
# Odd sizes: neither end of the free range is a block boundary.
NEIGHBOUR_BYTES = (5 << 20) + 256 * 3
RANGE_BYTES = (2 << 30) + 256 * 5
BUSY_SECONDS = 0.02
_SPIN = cupy.RawKernel(
    """
extern "C" __global__ void spin(long long ns) {
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begin < ns);
}""",
    "spin",
)


def view(address: int, nbytes: int, owner: object) -> cupy.ndarray:
    """Return memory as bytes in CuPy."""
    memory = cupy.cuda.UnownedMemory(address, nbytes, owner)
    return cupy.ndarray((nbytes,), cupy.uint8, cupy.cuda.MemoryPointer(memory, 0))


class Recycling:
    """One chain with a free range between two live neighbours."""

    def __init__(self, chain: rmm.mr.DeviceMemoryResource, *, busy: bool = False) -> None:
        self.chain, self.busy = chain, busy
        self.below = chain.allocate(NEIGHBOUR_BYTES)
        self.range = chain.allocate(RANGE_BYTES)
        self.above = chain.allocate(NEIGHBOUR_BYTES)
        for address, value in ((self.below, 17), (self.above, 201)):
            view(address, NEIGHBOUR_BYTES, chain)[...] = value
        self.htod_bytes: list[int] = []
        self.intact = True

    def __call__(self) -> float:
        """Free, move to the host, allocate anew; return the seconds of the last."""
        view(self.range, RANGE_BYTES, self.chain)[...] = 255
        cupy.cuda.Device().synchronize()
        self.chain.deallocate(self.range, RANGE_BYTES)
        begin_address = self.below
        length = self.above + NEIGHBOUR_BYTES - begin_address
        DRIVER.prefetch(begin_address, length, "host")
        DRIVER.synchronize()
        moved = DRIVER.migrated_bytes()[0]
        begin = time.perf_counter()
        if self.busy:
            _SPIN((1,), (1,), (cupy.int64(BUSY_SECONDS * 1e9),))
        self.range = self.chain.allocate(RANGE_BYTES)
        DRIVER.synchronize()
        seconds = time.perf_counter() - begin - (BUSY_SECONDS if self.busy else 0)
        self.htod_bytes.append(DRIVER.migrated_bytes()[0] - moved)
        view(self.range, RANGE_BYTES, self.chain)[...] = 1
        for address, value in ((self.below, 17), (self.above, 201)):
            self.intact &= bool((view(address, NEIGHBOUR_BYTES, self.chain) == value).all())
        return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    harness.require_managed_limit(DRIVER.memory()[0])
    runs = {
        f"{name}{', busy' if busy else ''}": Recycling(
            make_chain(name, POOL_BYTES, DRIVER), busy=busy
        )
        for name in ("rmm-prefetch", "managed")
        for busy in (False, True)
    }
    seconds = harness.interleaved(runs, arguments.rounds)
    ours = runs["managed"]
    two_blocks = 2 * (2 << 20)
    verdicts = {
        "ours / Prefetch(Pool(Managed))": harness.judged(
            harness.ratio(seconds, "managed", "rmm-prefetch"), 0.3
        ),
        "host-to-device bytes, ours": {
            "most": max(ours.htod_bytes),
            "must_be_at_most": two_blocks,
            "reached": max(ours.htod_bytes) <= two_blocks,
        },
        "busy: ours / Prefetch(Pool(Managed))": harness.judged(
            harness.ratio(seconds, "managed, busy", "rmm-prefetch, busy"), 1.05
        ),
        "neighbours intact": all(run.intact for run in runs.values()),
    }
    harness.write_json(
        arguments.json,
        "recycled_memory",
        {
            "range_bytes": RANGE_BYTES,
            "seconds": seconds,
            "medians": harness.medians(seconds),
            "host_to_device_bytes": {name: run.htod_bytes for name, run in runs.items()},
            "our_statistics": ours.chain.statistics(),
            "verdicts": verdicts,
        },
    )


if __name__ == "__main__":
    DRIVER = cuda_driver(0)
    main()
