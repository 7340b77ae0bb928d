# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How long calls take beside 1,000 to 1,000,000 allocations, streams, blocks, uses and stages.

    python benchmarks/pool/growth.py [--counts 1000,10000] --json FILE [--write]

Over a simulated device, and without a monitor but where stages are counted, so that what is
measured is the call. Beside live allocations everything fits the budget; streams, blocks and uses
are past it. Each figure is the median of some calls, or what a call takes for each of what it is
about. `--write` puts the table into
docs/measure/growth.md. Needs no GPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rmm
from rmm.pylibrmm.stream import Stream

import rmm_uvm
from rmm_uvm.mr import UvmResourceAdaptor
from rmm_uvm.residency import Budget
from rmm_uvm.support.units import VA_BLOCK_BYTES
from rmm_uvm.trace import read_rmm_log
from rmm_uvm.trace.log_lines import HEADER

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.document import with_part

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "measure" / "growth.md"
BEGIN, END = "<!-- begin: written by benchmarks/pool/growth.py --write -->", "<!-- end -->"
COUNTS = (1_000, 10_000, 100_000, 1_000_000)
SMALL_BYTES, LARGE_BYTES = 512, 64 << 20
MOST_GROWTH = 10.0  # to the largest count from the second, as of which no call looks at everything
STEPS = 51

Found = dict[str, dict[int, float]]  # seconds, by call and count


def median_seconds(call: Callable[[], object], times: int = STEPS) -> float:
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def in_all(call: Callable[[], object], things: int) -> float:
    """Return the seconds that one call about so many things takes for each of them."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) / things


def pool_of(pool_bytes: int, budget: Budget) -> UvmResourceAdaptor:
    """Return a pool that need not fit this machine."""
    slab = rmm_uvm.mr.ManagedMemoryResource(rmm_uvm.simulated_device(pool_bytes), budget=budget)
    return UvmResourceAdaptor(rmm.mr.PoolMemoryResource(slab, pool_bytes, pool_bytes))


class Handle:
    """A stream as other libraries hand it over: the simulated device only tells them apart."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.number


def pinned(mr: Any, address: int, nbytes: int) -> None:
    with rmm_uvm.pin((address, nbytes), mr=mr):
        pass


def calls(mr: Any, large: int, live: list[int]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the calls that are measured beside live allocations, by name."""
    choose = random.Random(1)
    inside = (large + (32 << 20), 1024)
    yield "allocate and free 512 B", lambda: mr.deallocate(mr.allocate(512), 512)
    yield "allocate and free 4 MiB", lambda: mr.deallocate(mr.allocate(4 << 20), 4 << 20)
    yield "touch of an allocation", lambda: rmm_uvm.touch((large, 1024), mr=mr)
    yield "touch of a slice", lambda: rmm_uvm.touch(inside, mr=mr)
    yield (
        "touch of a slice of a small one",
        lambda: rmm_uvm.touch((choose.choice(live) + 256, 128), mr=mr),
    )
    yield "prefetch of a slice", lambda: rmm_uvm.prefetch(inside, mr=mr)
    yield "pin and unpin", lambda: pinned(mr, large, LARGE_BYTES)
    yield "allocation_at", lambda: mr.allocation_at(inside[0])
    yield "allocation_at of foreign memory", lambda: mr.allocation_at(large - 1)
    yield "residency_statistics", lambda: rmm_uvm.residency_statistics(mr)
    yield "statistics of a pool", mr.statistics


def of_live_allocations(counts: list[int]) -> Found:
    """Return seconds by call and number of live allocations."""
    mr = rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device("8GiB"), initial_pool_size="2GiB", device_budget="4GiB"
    )
    large = mr.allocate(LARGE_BYTES)
    live: list[int] = []
    found: Found = {}
    for count in counts:
        live += [mr.allocate(SMALL_BYTES) for _ in range(count - len(live))]
        for name, call in calls(mr, large, live):
            call()
            found.setdefault(name, {})[count] = median_seconds(call)
    for address in live:
        mr.deallocate(address, SMALL_BYTES)
    mr.deallocate(large, LARGE_BYTES)
    return found


def stream_calls(
    mr: Any, used: int, streams: list[Stream]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the calls that are measured in one of many streams after the other, by name."""
    turn = itertools.cycle(range(len(streams)))

    def allocate_and_free(allocates: int, frees: int) -> None:
        address = mr.allocate(SMALL_BYTES, streams[allocates])
        mr.deallocate(address, SMALL_BYTES, streams[frees])

    yield "allocate and free in a stream", lambda: allocate_and_free(*[next(turn)] * 2)
    yield "allocate, and free in another", lambda: allocate_and_free(next(turn), -next(turn))
    yield (
        "touch in a stream",
        lambda: rmm_uvm.touch((used, SMALL_BYTES), mr=mr, stream=streams[next(turn)]),
    )


def of_streams(counts: list[int]) -> Found:
    """Return seconds by call and number of streams, each of which has freed and used memory.

    Past the budget, so that frees are fenced and uses marked.
    """
    blocks = 64
    mr = pool_of(4 << 30, Budget(blocks * VA_BLOCK_BYTES))
    full = [mr.allocate(VA_BLOCK_BYTES) for _ in range(2 * blocks)]
    streams: list[Stream] = []
    found: Found = {}
    for count in counts:
        more = [Stream(Handle(0x1000 + number)) for number in range(len(streams), count)]
        live = [mr.allocate(SMALL_BYTES, stream) for stream in more]
        for address, stream in zip(live, more, strict=True):
            rmm_uvm.touch((full[0], SMALL_BYTES), mr=mr, stream=stream)
            mr.deallocate(address, SMALL_BYTES, stream)
        streams += more
        for name, call in stream_calls(mr, full[0], streams):
            found.setdefault(name, {})[count] = median_seconds(call)
    for address in full:
        mr.deallocate(address, VA_BLOCK_BYTES)
    return found


def of_blocks(counts: list[int]) -> Found:
    """Return seconds by call and number of blocks that a budget keeps, of which all are taken."""
    found: Found = {}
    for count in counts:
        for name, seconds in of_a_full_budget(count):
            found.setdefault(name, {})[count] = seconds
    return found


def of_a_full_budget(count: int) -> Iterator[tuple[str, float]]:
    """Yield calls that have others leave, and what they take; the last ones a block.

    No thread makes room beforehand, so that the whole work is in the call.
    """
    nbytes = VA_BLOCK_BYTES
    pool_bytes = (2 * count + 8 * STEPS) * nbytes  # what is requested stays
    mr = pool_of(pool_bytes, Budget(count * nbytes, background=False))
    residency = mr.managed_mr.residency
    live = [mr.allocate(nbytes) for _ in range(count + count // 4)]
    away, there = itertools.cycle(live), itertools.cycle(reversed(live))
    new: list[int] = []

    def allocate() -> None:
        new.append(mr.allocate(nbytes))

    def left_bytes() -> int:
        told = rmm_uvm.residency_statistics(mr)
        return told.evicted_bytes + told.dropped_bytes

    def making_room(call: Callable[[], object]) -> float:
        begin = left_bytes()
        while left_bytes() == begin:  # there may be room for some, or blocks that were freed
            call()
        begin = left_bytes()
        seconds = median_seconds(call)
        if left_bytes() - begin < STEPS * nbytes:
            raise RuntimeError(f"beside {count} blocks fewer left than came")
        return seconds

    def buffers(some: list[int]) -> list[tuple[int, int]]:
        return [(address, nbytes) for address in some]

    yield "touch that makes room", making_room(lambda: rmm_uvm.touch((next(away), nbytes), mr=mr))
    yield (
        "prefetch that makes room",
        making_room(lambda: rmm_uvm.prefetch((next(away), nbytes), mr=mr)),
    )
    yield "request that makes room", making_room(allocate)
    yield "free", median_seconds(lambda: mr.deallocate(new.pop(), nbytes))
    yield "evict", median_seconds(lambda: rmm_uvm.evict((next(there), nbytes), mr=mr))
    yield (
        "advise",
        median_seconds(lambda: rmm_uvm.advise((next(there), nbytes), read_mostly=True, mr=mr)),
    )
    for address in live:
        rmm_uvm.advise((address, nbytes), read_mostly=False, mr=mr)
    half = live[: count // 2]
    rmm_uvm.prefetch(buffers(half), mr=mr)
    with rmm_uvm.pin(buffers(half), mr=mr):
        yield "request, half of the blocks pinned", making_room(allocate)
    yield (
        "touch of all at once, a block",
        in_all(lambda: rmm_uvm.touch(buffers(live[-count:]), mr=mr), count),
    )
    yield "request, all blocks announced", making_room(allocate)
    yield "confirm_present, a block", in_all(residency.confirm_present, count)
    yield (
        "evict of half at once, a block",
        in_all(lambda: rmm_uvm.evict(buffers(half), mr=mr), len(half)),
    )

    def halve() -> None:
        mr.set_budget(count // 2 * nbytes)
        residency.run_pending()

    yield "set_budget to half, a block", in_all(halve, count)
    yield "set_budget to None, a block", in_all(lambda: mr.set_budget(None), count)
    for address in live + new:
        mr.deallocate(address, nbytes)


def of_rounds(counts: list[int]) -> dict[int, float]:
    """Return seconds that a touch takes on average in a round of so many, of 64 buffers."""
    found = {}
    for count in counts:
        mr = pool_of(512 << 20, Budget(48 * VA_BLOCK_BYTES))
        live = [mr.allocate(VA_BLOCK_BYTES) for _ in range(64)]
        order = random.Random(1).choices(live, k=count)

        def a_round(mr: Any = mr, order: list[int] = order) -> None:
            for address in order:
                rmm_uvm.touch((address, VA_BLOCK_BYTES), mr=mr)
            mr.managed_mr.residency.flush()

        a_round()  # from the second one on it is foreseen
        found[count] = in_all(a_round, count)
        for address in live:
            mr.deallocate(address, VA_BLOCK_BYTES)
    return found


def of_stages(counts: list[int]) -> Found:
    """Return seconds by call after so many stages."""
    found: Found = {}
    with rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None, publish=False) as monitor:
        done = 0
        for count in counts:
            while done < count:
                with rmm_uvm.stage(f"stage {done % 100}"):
                    done += 1

            def stage() -> None:
                with rmm_uvm.stage("one more"):
                    pass

            for name, call in (
                ("a stage", stage),
                ("snapshot", monitor.snapshot),
                ("window", monitor.window),
            ):
                found.setdefault(name, {})[count] = median_seconds(call)
            found.setdefault("report as text, a stage", {})[count] = in_all(
                lambda: str(monitor.report()), count
            )
    return found


def of_events(counts: list[int]) -> tuple[dict[int, float], dict[int, float]]:
    """Return seconds that reading a log, and a report of it, take for each of so many events."""
    pair = (
        b"1,10:00:00.000001,allocate,0x7f0000000000,1048576,0x0\n"
        b"1,10:00:00.000001,free,0x7f0000000000,1048576,0x0\n"
    )
    reading, reporting = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.csv")
        path.write_bytes(HEADER + b"\n" + pair)
        read_rmm_log(path).recording()  # imports what it needs
        for count in counts:
            path.write_bytes(HEADER + b"\n" + pair * (count // 2))
            begin = time.perf_counter()
            trace = read_rmm_log(path)
            read = time.perf_counter()
            trace.recording()
            reading[count] = (read - begin) / count
            reporting[count] = (time.perf_counter() - read) / count
    return reading, reporting


def sections(counts: list[int]) -> Iterator[tuple[str, Found]]:
    """Yield what grows, and the calls beside it with their seconds by count."""
    yield "beside live allocations of 512 B", of_live_allocations(counts)
    yield "with streams", of_streams(counts)
    yield "with blocks of 2 MiB in a full budget", of_blocks(counts)
    yield "with uses in a round", {"touch": of_rounds(counts)}
    yield "after stages", of_stages(counts)
    reading, reporting = of_events(counts)
    yield (
        "for events in a log of RMM, an event",
        {"reading a log": reading, "report of a log": reporting},
    )


def measured(counts: list[int]) -> dict[str, Any]:
    """Return the result, verdicts included."""
    found = dict(sections(counts))
    first, last = counts[min(1, len(counts) - 1)], counts[-1]
    return {
        "counts": counts,
        "microseconds": {
            section: {
                name: {str(count): round(seconds * 1e6, 3) for count, seconds in by.items()}
                for name, by in rows.items()
            }
            for section, rows in found.items()
        },
        "verdicts": {
            f"{name}, {section}, {last:,} / {first:,}": harness.judged(
                by[last] / by[first], MOST_GROWTH
            )
            for section, rows in found.items()
            for name, by in rows.items()
        },
    }


def table(result: dict[str, Any]) -> str:
    """Return the table of the document."""
    counts = [str(count) for count in result["counts"]]
    head = " | ".join(f"{int(count):,}" for count in counts)
    lines = [f"| call | {head} |", "|---|" + "--:|" * len(counts)]
    for section, rows in result["microseconds"].items():
        lines.append(f"| **{section}** |" + " |" * len(counts))
        for name, by in rows.items():
            lines.append(
                f"| {name} | " + " | ".join(f"{by[count]:,.2f}" for count in counts) + " |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)))
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    result = measured([int(count) for count in options.counts.split(",")])
    harness.write_json(options.json, "growth", result)
    if options.write:
        kept = json.loads(options.json.read_text())
        text = DOCUMENT.read_text()
        DOCUMENT.write_text(with_part(text, DOCUMENT, BEGIN, END, table(kept)))


if __name__ == "__main__":
    main()
