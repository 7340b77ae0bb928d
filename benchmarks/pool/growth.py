# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How long calls take beside 1,000 to 1,000,000 live allocations, stages and recorded events.

    python benchmarks/pool/growth.py [--counts 1000,10000] --json FILE [--write]

Over a simulated device with a budget that everything fits, and without a monitor, so that what is
measured is the call. Each figure is the median of some calls. `--write` puts the table into
docs/growth.md. Needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rmm_uvm
from rmm_uvm.trace import read_rmm_log
from rmm_uvm.trace.log_lines import HEADER

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common import harness
from benchmarks.common.document import with_part

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "growth.md"
BEGIN, END = "<!-- begin: written by benchmarks/pool/growth.py --write -->", "<!-- end -->"
COUNTS = (1_000, 10_000, 100_000, 1_000_000)
SMALL_BYTES, LARGE_BYTES = 512, 64 << 20
MOST_GROWTH = 10.0  # to the largest count from the second, as of which no call looks at everything
STEPS = 51


def median_seconds(call: Callable[[], object], times: int = STEPS) -> float:
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def calls(mr: Any, large: int, live: list[int]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the calls that are measured, by name."""
    choose = random.Random(1)
    inside = (large + (32 << 20), 1024)

    def pin() -> None:
        with rmm_uvm.pin((large, LARGE_BYTES), mr=mr):
            pass

    yield "allocate and free 512 B", lambda: mr.deallocate(mr.allocate(512), 512)
    yield "allocate and free 4 MiB", lambda: mr.deallocate(mr.allocate(4 << 20), 4 << 20)
    yield "touch of an allocation", lambda: rmm_uvm.touch((large, 1024), mr=mr)
    yield "touch of a slice", lambda: rmm_uvm.touch(inside, mr=mr)
    yield (
        "touch of a slice of a small one",
        lambda: rmm_uvm.touch((choose.choice(live) + 256, 128), mr=mr),
    )
    yield "prefetch of a slice", lambda: rmm_uvm.prefetch(inside, mr=mr)
    yield "pin and unpin", pin
    yield "allocation_at", lambda: mr.allocation_at(inside[0])
    yield "allocation_at of foreign memory", lambda: mr.allocation_at(large - 1)
    yield "residency_statistics", lambda: rmm_uvm.residency_statistics(mr)
    yield "statistics of a pool", lambda: mr.statistics()


def of_live_allocations(counts: list[int]) -> dict[str, dict[int, float]]:
    """Return seconds by call and number of live allocations."""
    mr = rmm_uvm.managed_pool(
        driver=rmm_uvm.simulated_device("8GiB"), initial_pool_size="2GiB", device_budget="4GiB"
    )
    large = mr.allocate(LARGE_BYTES)
    live: list[int] = []
    found: dict[str, dict[int, float]] = {}
    for count in counts:
        live += [mr.allocate(SMALL_BYTES) for _ in range(count - len(live))]
        for name, call in calls(mr, large, live):
            call()
            found.setdefault(name, {})[count] = median_seconds(call)
    for address in live:
        mr.deallocate(address, SMALL_BYTES)
    mr.deallocate(large, LARGE_BYTES)
    return found


def of_stages(counts: list[int]) -> dict[int, float]:
    """Return seconds that a stage takes after so many."""
    found = {}
    with rmm_uvm.monitor(driver="simulated:64MiB", on_finding=None, publish=False):
        done = 0
        for count in counts:
            while done < count:
                with rmm_uvm.stage(f"stage {done % 100}"):
                    done += 1

            def stage() -> None:
                with rmm_uvm.stage("one more"):
                    pass

            found[count] = median_seconds(stage)
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


def measured(counts: list[int]) -> dict[str, Any]:
    """Return the result, verdicts included."""
    found = of_live_allocations(counts)
    found["a stage"] = of_stages(counts)
    found["reading a log, an event"], found["report of a log, an event"] = of_events(counts)
    first, last = counts[min(1, len(counts) - 1)], counts[-1]
    return {
        "counts": counts,
        "microseconds": {
            name: {str(count): round(seconds * 1e6, 3) for count, seconds in by.items()}
            for name, by in found.items()
        },
        "verdicts": {
            f"{name}, {last:,} / {first:,}": harness.judged(by[last] / by[first], MOST_GROWTH)
            for name, by in found.items()
        },
    }


def table(result: dict[str, Any]) -> str:
    """Return the table of the document."""
    counts = [str(count) for count in result["counts"]]
    head = " | ".join(f"{int(count):,}" for count in counts)
    lines = [f"| call | {head} |", "|---|" + "--:|" * len(counts)]
    for name, by in result["microseconds"].items():
        lines.append(f"| {name} | " + " | ".join(f"{by[count]:,.2f}" for count in counts) + " |")
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
