# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Traces: bytes and nanoseconds for an event, and the rate at which they are read.

    python benchmarks/watching/trace_cost.py --json FILE

Programs allocate from our chain on a simulated device, with and without a trace in turn; the cost
of an event is half of what an allocate-and-free pair takes longer, in processor time, of the
fastest round each: other programs only ever add. Nothing needs a GPU: tracing is the same with one.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import rmm_uvm
import rmm_uvm.trace

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness

SLICE = 500  # pairs in a round: short, so that some rounds run undisturbed
Steps = Iterator[tuple[int, int]]  # bytes to allocate, and after how many further ones to free


def loop(count: int) -> Steps:
    """Yield the same eight columns in every round: a training loop, or batches of one size."""
    for step in range(count):
        yield (1 + step % 8) * 800_000, 8


def columns(count: int) -> Steps:
    """Yield columns of many thousand different lengths, as joins and filters make them."""
    generator = random.Random(11)
    for _ in range(count):
        yield 8 * generator.randrange(1, 1 << 18), generator.choice((1, 2, 5, 30))


def sizes(count: int) -> Steps:
    """Yield 256 bytes to 16 MiB, log-uniform, 64 alive, the oldest freed: nothing repeats."""
    generator = random.Random(11)
    for _ in range(count):
        yield int(2 ** generator.uniform(8, 24)), 64


def run(mr: rmm_uvm.mr.UvmResourceAdaptor, steps: list[tuple[int, int]]) -> float:
    """Return nanoseconds of processor time for an allocate-and-free pair."""
    due: list[list[tuple[int, int]]] = [[] for _ in range(len(steps) + 65)]
    begin = time.thread_time_ns()
    for step, (nbytes, keep) in enumerate(steps):
        due[step + keep].append((mr.allocate(nbytes), nbytes))
        for address, freed in due[step]:
            mr.deallocate(address, freed)
    elapsed = time.thread_time_ns() - begin
    for rest in due[len(steps) :]:
        for address, freed in rest:
            mr.deallocate(address, freed)
    return elapsed / len(steps)


def cost_ns(
    mr: rmm_uvm.mr.UvmResourceAdaptor, steps: list[tuple[int, int]], rounds: int, folder: Path
) -> float:
    """Return nanoseconds of an event."""
    without, traced = [], []
    with rmm_uvm.trace.TraceWriter(folder / "cost.uvmtrace", {}, overwrite=True) as writer:
        for _ in range(rounds):
            without.append(run(mr, steps))
            writer.observe(mr)
            traced.append(run(mr, steps))
            mr.observe(None)
    return (min(traced) - min(without)) / 2


def measure(
    program: Callable[[int], Steps], count: int, rounds: int, folder: Path
) -> dict[str, float]:
    """Return the figures of one program."""
    mr = rmm_uvm.managed_pool(driver="simulated:8GiB", initial_pool_size="4GiB")
    steps = list(program(count))
    path = folder / f"{program.__name__}.uvmtrace"
    writer = rmm_uvm.trace.TraceWriter(path, {})
    run(mr, steps)
    writer.observe(mr)
    run(mr, steps)
    mr.observe(None)
    writer.close()
    counts = writer.counts
    begin = time.perf_counter()
    trace = rmm_uvm.trace.read(path)
    seconds = time.perf_counter() - begin
    assert len(trace.events) == counts["allocations"] + counts["frees"]
    return {
        "events": len(trace.events),
        "bytes_of_a_pair": round(path.stat().st_size / counts["allocations"], 2),
        "ns_of_an_event": round(cost_ns(mr, steps[:SLICE], rounds, folder), 1),
        "events_read_per_second": round(len(trace.events) / seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = {
            program.__name__: measure(program, arguments.count, arguments.rounds, Path(folder))
            for program in (loop, columns, sizes)
        }
    worst = {
        name: max(figures[name] for figures in programs.values())
        for name in ("bytes_of_a_pair", "ns_of_an_event")
    }
    slowest = min(figures["events_read_per_second"] for figures in programs.values())
    verdicts = {
        "bytes of an allocation and its free": {
            "most": worst["bytes_of_a_pair"],
            "must_be_at_most": 12,
            "reached": worst["bytes_of_a_pair"] <= 12,
        },
        "nanoseconds of an event": {
            "most": worst["ns_of_an_event"],
            "must_be_at_most": 150,
            "reached": worst["ns_of_an_event"] <= 150,
        },
        "seconds to read a million events": {
            "most": round(1e6 / slowest, 3),
            "must_be_at_most": 5,
            "reached": 1e6 / slowest <= 5,
        },
    }
    harness.write_json(arguments.json, "trace_cost", {"programs": programs, "verdicts": verdicts})


if __name__ == "__main__":
    main()
