# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a prefetch of resident memory can refresh its place in the eviction order.

Seeing the order itself takes an eviction, hence a full card, which this program never causes. What
can be seen safely is whether such a call reaches the kernel driver and visits every 2 MiB block,
which is where its source refreshes the block (``uvm_migrate.c``). If the call never got there, it
could not refresh anything.
"""

from __future__ import annotations

import resource
from time import perf_counter_ns
from typing import Any

from .answer import Answer, Question
from .figures import line
from .session import BLOCK_BYTES, Session

BLOCK_COUNTS = (1, 4, 16, 64, 256)
TARGET_NS = 60_000_000
SYSTEM_SHARE_AT_LEAST = 0.5
GROWTH_AT_LEAST = 4


def conclude(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the verdict on the sign; the order itself stays open."""
    slope, intercept = line([r["block_count"] for r in rows], [r["call_ns"] for r in rows])
    fewest, most = rows[0], rows[-1]
    in_kernel = most["system_share"] >= SYSTEM_SHARE_AT_LEAST
    visits = in_kernel and most["call_ns"] > GROWTH_AT_LEAST * fewest["call_ns"]
    return {
        "order_refreshed": "open",
        "reason": "seeing it needs an eviction, and so a full card",
        "call_reaches_the_kernel_driver": in_kernel,
        "ns_per_resident_block": round(slope),
        "fixed_ns": round(intercept),
        "sign": "consistent with a visit to every block" if visits else "no sign of a visit",
        "bytes_moved": sum(row["bytes_moved"] for row in rows),
    }


def ask(session: Session) -> Answer:
    """Prefetch resident memory over and over; split its time into user and system."""
    rows = []
    with session.managed_blocks(BLOCK_COUNTS[-1] * BLOCK_BYTES) as region:
        session.fill(region, BLOCK_COUNTS[-1] * BLOCK_BYTES, 1)
        for block_count in BLOCK_COUNTS:
            rows.append(_repeat(session, region, block_count))
    return Answer(rows, conclude(rows))


def _repeat(session: Session, region: int, block_count: int) -> dict[str, Any]:
    moved_before = sum(session.counters.read())
    used_before = resource.getrusage(resource.RUSAGE_THREAD)
    calls, start = 0, perf_counter_ns()
    while perf_counter_ns() - start < TARGET_NS:
        session.prefetch(region, block_count * BLOCK_BYTES, session.on_device)
        calls += 1
    elapsed_ns = perf_counter_ns() - start
    used = resource.getrusage(resource.RUSAGE_THREAD)
    session.synchronize()
    system_seconds = used.ru_stime - used_before.ru_stime
    user_seconds = used.ru_utime - used_before.ru_utime
    return {
        "block_count": block_count,
        "calls": calls,
        "call_ns": elapsed_ns / calls,
        "user_seconds": user_seconds,
        "system_seconds": system_seconds,
        "system_share": system_seconds / max(system_seconds + user_seconds, 1e-9),
        "bytes_moved": sum(session.counters.read()) - moved_before,
    }


QUESTION = Question(
    "eviction_order",
    "Does a prefetch of resident memory refresh its place in the eviction order?",
    "Indirect: time per resident block and the share of it spent in the kernel.",
    ask,
)
