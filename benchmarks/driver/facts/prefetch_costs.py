# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Cost of prefetching memory that is partly there, not yet anywhere, or discarded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import Any

from .answer import Answer, Question
from .figures import growth_exponent, line, summary
from .session import BLOCK_BYTES, MIB, Ranges, Session

GIB = 1 << 30
REPEATS = 5
MIXED_BLOCKS = 32
FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
RANGE_COUNTS = (1, 8, 64, 512)
DISCARD_AND_PREFETCH, PREFETCH_BATCH = (
    "cuMemDiscardAndPrefetchBatchAsync",
    "cuMemPrefetchBatchAsync",
)


def timed(session: Session, issue: Callable[[], None]) -> dict[str, float]:
    """Return the time of the call, the time to completion, and the bytes moved."""
    before = session.counters.read()
    start = perf_counter_ns()
    issue()
    returned = perf_counter_ns()
    session.synchronize()
    done = perf_counter_ns()
    moved = session.counters.read().since(before)
    return {
        "call_ns": returned - start,
        "total_ns": done - start,
        "htod_bytes": moved.htod_bytes,
        "dtoh_bytes": moved.dtoh_bytes,
    }


def folded(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Return a summary of repeated `timed` results, key by key."""
    return {key: summary([run[key] for run in runs]) for key in runs[0]}


def mixed_layouts(fraction: float) -> dict[str, list[tuple[int, int]]]:
    """Return what lies on the host, as (offset, size), in three layouts of 32 blocks."""
    count = round(fraction * MIXED_BLOCKS)
    spread = {index * MIXED_BLOCKS // count for index in range(count)} if count else set()
    part_bytes = round(fraction * BLOCK_BYTES)
    return {
        "first blocks": [(0, count * BLOCK_BYTES)] if count else [],
        "spread blocks": [(block * BLOCK_BYTES, BLOCK_BYTES) for block in sorted(spread)],
        "part of every block": [
            (block * BLOCK_BYTES, part_bytes) for block in range(MIXED_BLOCKS) if part_bytes
        ],
    }


def conclude_mixed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return whether only missing bytes moved, and what a block costs either way."""
    spread = [row for row in rows if row["layout"] == "spread blocks"]
    on_host = [row["host_bytes"] / BLOCK_BYTES for row in spread]
    slope, intercept = line(on_host, [row["total_ns"]["median"] for row in spread])
    resident_ns = min(row["total_ns"]["median"] for row in rows if not row["host_bytes"])
    return {
        "moves_only_what_is_missing": all(
            row["htod_bytes"]["minimum"] == row["htod_bytes"]["maximum"] == row["host_bytes"]
            for row in rows
        ),
        "added_ns_per_missing_block": round(slope),
        "fitted_ns_with_none_missing": round(intercept),
        "ns_per_resident_block": round(resident_ns / MIXED_BLOCKS),
    }


def ask_mixed(session: Session) -> Answer:
    """Prefetch 64 MiB of which a fraction lies on the host."""
    size_bytes = MIXED_BLOCKS * BLOCK_BYTES
    rows = []
    with session.managed_blocks(size_bytes) as region:
        session.fill(region, size_bytes, 1)
        session.move(region, size_bytes, session.on_host)
        bring_back = partial(session.prefetch, region, size_bytes, session.on_device)
        for fraction in FRACTIONS:
            for layout, on_host in mixed_layouts(fraction).items():
                runs = []
                for _ in range(REPEATS):
                    session.move(region, size_bytes, session.on_device)
                    for offset, part_bytes in on_host:
                        session.prefetch(region + offset, part_bytes, session.on_host)
                    session.synchronize()
                    runs.append(timed(session, bring_back))
                host_bytes = sum(part_bytes for _, part_bytes in on_host)
                row = {"layout": layout, "host_fraction": fraction, "host_bytes": host_bytes}
                rows.append({**row, **folded(runs)})
    return Answer(rows, conclude_mixed(rows))


def conclude_batches(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return cost per range of each way, and whether discard-and-prefetch copied anything."""
    discards = [row for row in rows if row["way"].startswith("discard")]
    ways = dict.fromkeys((row["way"], row["resident"]) for row in rows)
    per_range = {}
    for way, resident in ways:
        mine = [row for row in rows if (row["way"], row["resident"]) == (way, resident)]
        counts = [row["range_count"] for row in mine]
        slope, intercept = line(counts, [row["total_ns"]["median"] for row in mine])
        per_range[f"{way}, {resident}"] = {
            "ns_per_range": round(slope),
            "fixed_ns": round(intercept),
        }
    return {
        "discard_and_prefetch_moves_no_bytes": all(
            row["htod_bytes"]["maximum"] == row["dtoh_bytes"]["maximum"] == 0 for row in discards
        ),
        "largest_htod_bytes": max(row["htod_bytes"]["maximum"] for row in discards),
        "cost": per_range,
    }


def ask_batches(session: Session) -> Answer:
    """Make 1 to 512 blocks usable on the GPU in five ways, from both places."""
    rows = []
    most = min(RANGE_COUNTS[-1], session.budget.limit_bytes // BLOCK_BYTES - 1)
    with session.managed_blocks(most * BLOCK_BYTES) as region:
        session.fill(region, most * BLOCK_BYTES, 1)
        session.move(region, most * BLOCK_BYTES, session.on_host)
        for count in (count for count in RANGE_COUNTS if count <= most):
            for resident in ("host", "device"):
                start = session.on_host if resident == "host" else session.on_device
                for way, issue in _ways(session, region, count).items():
                    runs = []
                    for _ in range(REPEATS - 2 * (count == RANGE_COUNTS[-1])):
                        session.move(region, count * BLOCK_BYTES, start)
                        runs.append(timed(session, issue))
                    row = {"way": way, "resident": resident, "range_count": count}
                    rows.append({**row, **folded(runs)})
    return Answer(rows, conclude_batches(rows))


def _ways(session: Session, region: int, count: int) -> dict[str, Callable[[], None]]:
    blocks = [(region + index * BLOCK_BYTES, BLOCK_BYTES) for index in range(count)]
    together, singles = Ranges(blocks), [Ranges([block]) for block in blocks]
    to = session.on_device

    def one_by_one(call: str) -> None:
        for single in singles:
            session.batch_to(call, single, to)

    def prefetches() -> None:
        for pointer, size_bytes in blocks:
            session.prefetch(pointer, size_bytes, to)

    return {
        "discard-and-prefetch, one batch": lambda: session.batch_to(
            DISCARD_AND_PREFETCH, together, to
        ),
        "discard-and-prefetch, one call a block": lambda: one_by_one(DISCARD_AND_PREFETCH),
        "prefetch, one batch": lambda: session.batch_to(PREFETCH_BATCH, together, to),
        "prefetch, one call a block": prefetches,
        "prefetch, one call": lambda: session.prefetch(region, count * BLOCK_BYTES, to),
    }


def conclude_fresh(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how the first prefetch of a slab grows with its size, and what small calls cost."""
    whole = [row for row in rows if row["way"] == "one call"]
    sizes = [row["slab_bytes"] for row in whole]
    medians = [row["total_ns"]["median"] for row in whole]
    exponent = growth_exponent(sizes, medians) if len(sizes) > 1 else None
    small = {row["slab_bytes"]: row for row in rows if row["way"] == "2 MiB calls"}
    return {
        "growth_exponent": exponent,
        "proportional_to_size": None if exponent is None else abs(exponent - 1) < 0.1,
        "bytes_per_second": {
            str(s): round(s / ns * 1e9) for s, ns in zip(sizes, medians, strict=True)
        },
        "small_calls_over_one_call": {
            str(size): round(small[size]["total_ns"]["median"] / whole_ns, 3)
            for size, whole_ns in zip(sizes, medians, strict=True)
            if size in small
        },
        "moves_no_bytes": all(row["htod_bytes"]["maximum"] == 0 for row in rows),
    }


def _prefetch_in_steps(session: Session, slab: int, size_bytes: int, step_bytes: int) -> None:
    for offset in range(0, size_bytes, step_bytes):
        session.prefetch(slab + offset, step_bytes, session.on_device)


def ask_fresh(session: Session) -> Answer:
    """Prefetch slabs that no processor has touched, as a pool does when it grows."""
    rows = []
    for size_bytes in (64 * MIB, GIB, 4 * GIB, 8 * GIB):
        if size_bytes > session.budget.limit_bytes:
            continue
        for way, step_bytes in (("one call", size_bytes), ("2 MiB calls", BLOCK_BYTES)):
            runs = []
            for _ in range(3):
                with session.managed(size_bytes) as slab:
                    populate = partial(_prefetch_in_steps, session, slab, size_bytes, step_bytes)
                    runs.append(timed(session, populate))
            rows.append({"slab_bytes": size_bytes, "way": way, **folded(runs)})
    return Answer(rows, conclude_fresh(rows))


QUESTIONS = (
    Question(
        "mixed_prefetch",
        "What does a prefetch of a partly resident range cost, and what does it move?",
        "64 MiB with 0 to 100 % on the host in three layouts, 5 runs each; time and counters.",
        ask_mixed,
    ),
    Question(
        "batch_costs",
        "What does making N blocks usable cost by discard-and-prefetch and by prefetch?",
        "1, 8, 64 and 512 blocks of 2 MiB, resident on host or device, five ways, 3-5 runs each.",
        ask_batches,
    ),
    Question(
        "fresh_slab",
        "What does populating a fresh slab cost, does it scale, and what do 2 MiB calls cost?",
        "First prefetch of a new allocation of 64 MiB, 1, 4 and 8 GiB, 3 runs each.",
        ask_fresh,
    ),
)
