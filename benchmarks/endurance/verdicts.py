# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What `allocations.py` has to show: nothing grows, nothing slows down, nothing is lost."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.common.harness import judged, judged_at_least, judged_at_most

MIB = 1 << 20
SETTLED_FRACTION = 0.1  # of the run: until then memory that is taken once is taken
# A hundred million allocations that each lost a byte would make 86 MiB of the last nine tenths.
MOST_GROWTH_BYTES = MIB
MOST_SLOWDOWN = 1.25  # the last quarter over the first, in processor time
MOST_FRAGMENTATION = 1.1  # the second half over the first, of means
Row = Mapping[str, Any]


def verdicts_of(rows: Sequence[Row], end: Mapping[str, int], asked: int) -> dict[str, Any]:
    """Judge the rows of a run, and what was left after it."""
    settled = rows[int(len(rows) * SETTLED_FRACTION) :]
    half, quarter = len(rows) // 2, max(len(rows) // 4, 1)
    first, second = rows[: max(half, 1)], rows[half:]

    def mean(of: Sequence[Row], name: str) -> float:
        return statistics.fmean(row[name] for row in of)

    def grown(name: str) -> float:
        return float(max(row[name] for row in settled) - settled[0][name])

    def flat(name: str) -> bool:
        return len({row[name] for row in settled}) == 1

    slower = statistics.median(row["ns_an_allocation"] for row in rows[-quarter:])
    slower /= statistics.median(row["ns_an_allocation"] for row in rows[:quarter])
    return {
        "allocations": judged_at_least(rows[-1]["allocations"], asked),
        "resident memory of the process grew, bytes": judged_at_most(
            grown("rss_bytes"), MOST_GROWTH_BYTES
        ),
        "heap grew, bytes": judged_at_most(grown("heap_bytes"), MOST_GROWTH_BYTES),
        "open files stayed as many": flat("descriptors"),
        "threads stayed as many": flat("threads"),
        "the pool's slabs stayed as large": flat("slab_bytes"),
        "fragmentation, second half / first": judged(
            mean(second, "fragmentation_fraction") / mean(first, "fragmentation_fraction"),
            MOST_FRAGMENTATION,
        ),
        "blocks needed for the live bytes, second half / first": judged(
            (mean(second, "live_block_bytes") / mean(second, "live_bytes"))
            / (mean(first, "live_block_bytes") / mean(first, "live_bytes")),
            MOST_FRAGMENTATION,
        ),
        "time of an allocation, last quarter / first": judged(slower, MOST_SLOWDOWN),
        "memory moved both ways, and was dropped, in every part": all(
            min(row["to_device_bytes"], row["to_host_bytes"], row["dropped_bytes"]) > 0
            for row in rows
        ),
        "contents were looked at in every part": all(row["checks"] > 0 for row in rows),
        "no contents were lost": end["wrong"] == 0,
        "no allocations overlapped": all(row["overlaps"] == 0 for row in rows),
        "no call of the driver failed": all(row["failed_calls"] == 0 for row in rows),
        "everything is free in the end": all(
            end[name] == 0
            for name in ("allocated_bytes", "managed_bytes", "resident_bytes", "accounted_bytes")
        ),
    }
