# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The least that a program has to move past a budget, and the least time that takes on this GPU.

    RMM_UVM_MANAGED_LIMIT=24GiB python benchmarks/past_the_edge/bound.py --json FILE
        [--programs merge-and-sort,cudf] [--budget 4GiB] [--factors 2.3,1.5]

A round is recorded with everything resident: allocations, frees, and what calls of libcudf use. By
Belady's rule over that order, dead data without a copy, so many bytes must move each way
(benchmarks/training/ideal.py). The link's rates are those of the way that is taken, measured here:
memory of a pool with a budget leaves, and comes back, by `rmm_uvm.evict` and `rmm_uvm.prefetch`.
The least time has both ways at once, and everything else behind them.
"""

from __future__ import annotations

import argparse
import bisect
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import rmm

import rmm_uvm
from rmm_uvm.integrations.seen.libcudf import observe
from rmm_uvm.planner.trials.uses import Use
from rmm_uvm.support.units import parse_bytes
from rmm_uvm.torch.shadow.program import Free, Given, Kernel, Make, Program

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.past_the_edge.programs import PROGRAMS
from benchmarks.training.ideal import Least, least

WARM_UP_BYTES = 64 << 20
PROBE_BYTES = 2 << 30
PROBES = 5
ROUNDS = 4  # the third counts: those before tell where things are, the last one what it needs


class Recorder:
    """Notes allocations, frees and announced uses, in their order.

    Parameters
    ----------
    upstream_mr : rmm.mr.DeviceMemoryResource
        Where memory comes from; `mr` is what a program allocates from. In the place of a
        `ManagedResidency` it is told what is used.
    """

    all_present = False
    budget = None

    def __init__(self, upstream_mr: Any) -> None:
        self.events: list[Any] = []
        self._upstream = upstream_mr
        self._addresses: list[int] = []  # ascending, of what is alive
        self._alive: dict[int, tuple[int, int]] = {}  # number and bytes, by address
        self._made = 0
        self.mr = rmm.mr.CallbackMemoryResource(self._allocate, self._deallocate)

    def touch_all(self, uses: Any, _stream: int = 0, only_read: bool = False) -> None:  # noqa: FBT001, FBT002
        """Note that these are used by one call."""
        used: dict[int, int] = {}
        for address, nbytes, _owner in uses:
            place = bisect.bisect_right(self._addresses, address) - 1
            if place < 0:
                continue
            first = self._addresses[place]
            number, length = self._alive[first]
            if address < first + length:
                used[number] = min(length, used.get(number, 0) + nbytes)
        if used:
            found = [
                Use(number, 0, nbytes, not only_read, fresh=False)
                for number, nbytes in used.items()
            ]
            self.events.append(Kernel(tuple(found), 0.0))

    def _allocate(self, nbytes: int, stream: Any) -> int:
        address = int(self._upstream.allocate(nbytes, stream))
        number, self._made = self._made, self._made + 1
        bisect.insort(self._addresses, address)
        self._alive[address] = number, nbytes
        self.events += [
            Make(number, nbytes),
            Given(Use(number, 0, nbytes, writes=True, fresh=True)),
        ]
        return address

    def _deallocate(self, address: int, nbytes: int, stream: Any) -> None:
        number, _ = self._alive.pop(address)
        self._addresses.pop(bisect.bisect_left(self._addresses, address))
        self.events.append(Free(number))
        self._upstream.deallocate(address, nbytes, stream)


def recorded(name: str, data_bytes: int) -> tuple[list[Any], int, int]:
    """Return the events of some rounds of a program, and where the last but one is among them."""
    kind = PROGRAMS[name]
    pool = rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), 2 * data_bytes // 256 * 256)
    recorder = Recorder(pool)
    previous = rmm.mr.get_current_device_resource()
    rmm.mr.set_current_device_resource(recorder.mr)
    undo = observe([recorder])  # type: ignore[list-item] # it is told as a residency is
    begins = []
    try:
        program = kind(data_bytes, kind.PIECES)
        program.make()
        for _ in range(ROUNDS):
            begins.append(len(recorder.events))
            for number in range(program.operations):
                program.operation(number)
        program.drop()
    finally:
        undo()
        rmm.mr.set_current_device_resource(previous)
    return recorder.events, begins[-2], begins[-1]


def rates(driver: Any, budget_bytes: int) -> dict[str, float]:
    """Return bytes a second each way, as a budget's manager moves them; medians."""
    mr = rmm_uvm.managed_pool(
        driver=driver, device_budget=budget_bytes, maximum_pool_size=2 * budget_bytes
    )
    nbytes = min(PROBE_BYTES, budget_bytes // 2)
    buffer = rmm.DeviceBuffer(size=nbytes, mr=mr)
    seconds: dict[str, list[float]] = {"to_host": [], "to_device": []}
    import cupy

    words = cupy.ndarray(
        nbytes // 8,
        cupy.uint64,
        cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(buffer.ptr, nbytes, buffer), 0),
    )
    for _ in range(PROBES):
        words.fill(7)
        for way, move in (("to_host", rmm_uvm.evict), ("to_device", rmm_uvm.prefetch)):
            cupy.cuda.runtime.deviceSynchronize()
            begin = time.perf_counter()
            move(buffer, mr=mr)
            cupy.cuda.runtime.deviceSynchronize()
            seconds[way].append(time.perf_counter() - begin)
    return {f"{way}_bytes_per_second": nbytes / statistics.median(s) for way, s in seconds.items()}


def row_of(
    name: str, found: Least, budget_bytes: int, data_bytes: int, link: dict[str, float]
) -> dict[str, Any]:
    """Return the row of a program."""
    ways = {
        "to_device": found.to_device_bytes / link["to_device_bytes_per_second"],
        "to_host": found.to_host_bytes / link["to_host_bytes_per_second"],
    }
    return {
        "program": name,
        "budget_bytes": budget_bytes,
        "data_bytes": data_bytes,
        "to_device_bytes": found.to_device_bytes,
        "to_host_bytes": found.to_host_bytes,
        "wanted_bytes": found.wanted_bytes,
        "link_seconds": max(ways.values()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", default="merge-and-sort,cudf")
    parser.add_argument("--factors", default="2.3,1.5", help="of each, data in budgets")
    parser.add_argument("--budget", default="4GiB")
    parser.add_argument("--json", type=Path, required=True)
    asked = parser.parse_args()
    budget_bytes = parse_bytes(asked.budget, name="--budget")
    driver = rmm_uvm.cuda_driver(0)
    harness.require_managed_limit(driver.memory()[0])
    rows = []
    link: dict[str, float] = {}
    for name, factor in zip(asked.programs.split(","), asked.factors.split(","), strict=True):
        data_bytes = int(budget_bytes * float(factor))
        small = PROGRAMS[name](WARM_UP_BYTES, 1)
        small.make()
        for number in range(small.operations):
            small.operation(number)
        small.drop()
        events, first, end = recorded(name, data_bytes)
        link = link or rates(driver, budget_bytes)
        found = least(Program(events=events), budget_bytes, first, end)
        rows.append(row_of(name, found, budget_bytes, data_bytes, link))
        print({**rows[-1], **link})
    results = {"rates": link, "rows": rows}
    harness.write_json(asked.json, "past_the_edge_bound", results, harness.environment())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
