# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Discards behind a busy stream: do they take effect in their order? On a GPU.

    RMM_UVM_MANAGED_LIMIT=1GiB python benchmarks/driver/deferred_discards.py --json FILE
        [--rounds 25]

Each case writes 64 MiB after a discard that came before in the order of streams, moves them to the
host and reads them: what is not there was discarded after it had been written. Where the CPU
writes first, a kernel still runs in the stream that was handed the memory. Cases without a discard
of its own (discard-and-prefetch, evictions at the same time) are there for comparison.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

BYTES = 64 << 20
BUSY_NS = 10_000_000
BUSY_FOR_THE_CPU_NS = 200_000_000  # it writes the memory meanwhile
_SOURCE = r"""
typedef unsigned long long u64;
extern "C" __global__ void fill(u64* words, u64 count, u64 value)
{
  u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += stride)
    words[i] = value + i;
}
extern "C" __global__ void check(u64* words, u64 count, u64 value, u64* wrong)
{
  u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += stride)
    if (words[i] != value + i) atomicAdd(wrong, 1ULL);
}
extern "C" __global__ void spin(long long ns)
{
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begin < ns);
}
"""


class Bench:
    """Memory, streams and kernels."""

    def __init__(self) -> None:
        import cupy

        import rmm_uvm

        self.cupy = cupy
        self.driver = rmm_uvm.cuda_driver(0)
        harness.require_managed_limit(self.driver.memory()[0])
        kernels = cupy.RawModule(code=_SOURCE)
        self._fill, self._check, self._spin = map(kernels.get_function, ("fill", "check", "spin"))
        self._wrong = cupy.zeros(1, dtype=cupy.uint64)
        self.memory = rmm_uvm.mr.ManagedMemoryResource(self.driver, prefetch="never")
        self.address = self.memory.allocate(BYTES)
        self.main = cupy.cuda.Stream.null
        self.discards = cupy.cuda.Stream(non_blocking=True)
        self.evictions = cupy.cuda.Stream(non_blocking=True)

    def synchronize(self) -> None:
        """Wait for the device."""
        self.cupy.cuda.runtime.deviceSynchronize()

    def fill(self, value: int) -> None:
        """Write every word, in the main stream."""
        u64 = self.cupy.uint64
        self._fill((512,), (256,), (u64(self.address), u64(BYTES // 8), u64(value)))

    def fill_by_cpu(self, value: int) -> None:
        """Write every word, on the CPU."""
        words = (ctypes.c_uint64 * (BYTES // 8)).from_address(self.address)
        numpy.frombuffer(words, numpy.uint64)[:] = value + numpy.arange(BYTES // 8)

    def wrong(self, value: int) -> int:
        """Return how many words are not what `fill` wrote."""
        u64 = self.cupy.uint64
        self._wrong[0] = 0
        words = (u64(self.address), u64(BYTES // 8), u64(value), self._wrong)
        self._check((512,), (256,), words)
        self.synchronize()
        return int(self._wrong[0])

    def busy(self, ns: int = BUSY_NS) -> None:
        """Keep the main stream busy."""
        self._spin((1,), (1,), (self.cupy.int64(ns),))

    def order(self, later: Any, earlier: Any) -> None:
        """Let one stream wait for another."""
        event = self.cupy.cuda.Event(disable_timing=True)
        event.record(earlier)
        later.wait_event(event)

    def discard(self) -> None:
        """Discard, in the stream of discards."""
        self.driver.discard(self.address, BYTES, self.discards.ptr)

    def renew(self) -> None:
        """Discard and prefetch, in the main stream."""
        self.driver.discard_and_prefetch(self.address, BYTES, "device", 0)

    def renew_at_once(self) -> None:
        """Discard and prefetch, in the stream of discards, which is idle before and after it."""
        self.discards.synchronize()
        self.driver.discard_and_prefetch(self.address, BYTES, "device", self.discards.ptr)
        self.discards.synchronize()

    def evict(self) -> None:
        """Move to the host, in the stream of evictions."""
        self.driver.prefetch(self.address, BYTES, "host", self.evictions.ptr)


def idle(bench: Bench, value: int) -> None:
    """Discard on an idle stream, ordered."""
    bench.discard()
    bench.order(bench.main, bench.discards)
    bench.renew()
    bench.fill(value)


def busy_and_ordered(bench: Bench, value: int) -> None:
    """Discard behind a busy stream; what follows waits for its stream by an event."""
    bench.busy()
    bench.order(bench.discards, bench.main)
    bench.discard()
    bench.order(bench.main, bench.discards)
    bench.renew()
    bench.fill(value)


def busy_and_synchronized(bench: Bench, value: int) -> None:
    """Do the same, and the device is synchronized before what follows is issued."""
    bench.busy()
    bench.order(bench.discards, bench.main)
    bench.discard()
    bench.order(bench.main, bench.discards)
    bench.synchronize()
    bench.renew()
    bench.fill(value)


def busy_and_waited_for(bench: Bench, value: int) -> None:
    """Wait for what the discard is behind before it is issued: as the package does it."""
    bench.busy()
    bench.order(bench.discards, bench.main)
    bench.discards.synchronize()
    bench.discard()
    bench.order(bench.main, bench.discards)
    bench.synchronize()
    bench.renew()
    bench.fill(value)


def renewed_behind_a_busy_stream(bench: Bench, value: int) -> None:
    """Discard-and-prefetch behind a busy stream, evicted meanwhile."""
    bench.busy()
    bench.renew()
    bench.fill(value)
    for _ in range(4):
        time.sleep(random.random() * 4e-3)
        bench.evict()


def renewed_behind_a_busy_stream_and_written_by_the_cpu(bench: Bench, value: int) -> None:
    """Discard-and-prefetch behind a busy stream; the CPU writes before it gets there."""
    bench.busy(BUSY_FOR_THE_CPU_NS)
    bench.renew()
    bench.fill_by_cpu(value)


def renewed_at_once_and_written_by_the_cpu(bench: Bench, value: int) -> None:
    """Discard and prefetch on an idle stream, as the package does; the CPU writes at once."""
    bench.busy(BUSY_FOR_THE_CPU_NS)
    bench.renew_at_once()
    bench.fill_by_cpu(value)


def evicted_while_written(bench: Bench, value: int) -> None:
    """Evictions while a kernel writes."""
    bench.renew()
    bench.fill(value)
    bench.evict()
    bench.fill(value)
    bench.evict()


CASES: dict[str, tuple[Callable[[Bench, int], None], bool]] = {
    "discard on an idle stream": (idle, True),
    "discard behind a busy stream, ordered by events": (busy_and_ordered, False),
    "discard behind a busy stream, device synchronized after it": (busy_and_synchronized, False),
    "discard once its stream is idle": (busy_and_waited_for, True),
    "discard-and-prefetch behind a busy stream, evicted meanwhile": (
        renewed_behind_a_busy_stream,
        False,
    ),
    "discard-and-prefetch behind a busy stream, written by the CPU meanwhile": (
        renewed_behind_a_busy_stream_and_written_by_the_cpu,
        False,
    ),
    "discard-and-prefetch on an idle stream, written by the CPU at once": (
        renewed_at_once_and_written_by_the_cpu,
        True,
    ),
    "evicted while written": (evicted_while_written, True),
}
"""What is tried, and whether the package relies on it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    random.seed(1)
    bench = Bench()
    lost: dict[str, int] = {}
    for name, (case, _) in CASES.items():
        lost[name] = 0
        for number in range(arguments.rounds):
            value = 1000 * (number + 1)
            case(bench, value)
            bench.synchronize()
            bench.evict()
            bench.synchronize()
            lost[name] += bench.wrong(value) > 0
        print(f"{name}: {lost[name]} of {arguments.rounds}", flush=True)
    bench.memory.deallocate(bench.address, BYTES)
    verdicts = {name: lost[name] == 0 for name, (_, relied_on) in CASES.items() if relied_on}
    results = {"rounds": arguments.rounds, "lost_rounds": lost, "verdicts": verdicts}
    harness.write_json(arguments.json, "deferred_discards", results)
    raise SystemExit(harness.exit_status(verdicts))


if __name__ == "__main__":
    main()
