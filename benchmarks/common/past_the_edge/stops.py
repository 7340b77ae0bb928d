# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The judge that asks the driver's counter: a twin of a run that stops and ends at a moment.

There the budget is ended, and all live memory is prefetched to the device: what moved in was away,
and the rest was resident. Then dead memory is sent to the host: what moved out was resident with
its contents; discarded pages do not move. Nothing is as it was afterwards, so a twin ends there,
and each moment has a twin of its own.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common.past_the_edge.memory import Memory
from benchmarks.common.past_the_edge.ranges import bytes_of, without


def look_at_stop(memory: Memory) -> dict[str, Any]:
    """Return what is resident now, by the counter and by the page tables; disturbs everything."""
    memory.synchronize()
    told: dict[str, Any] = {"moved_bytes": list(memory.moved())}
    memory.end_budget()
    memory.synchronize()
    live = memory.live_pages()
    dead = without(memory.seen_pages, live)
    by_page_tables = None if memory.blind else memory.not_on_host(live)
    came_bytes = memory.moved()[0]
    if refused_bytes := memory.send(live, "device"):
        raise SystemExit(f"{refused_bytes} bytes of live memory could not be brought in")
    came_bytes = memory.moved()[0] - came_bytes
    left_bytes = memory.moved()[1]
    gone_bytes = memory.send(dead, "host")
    left_bytes = memory.moved()[1] - left_bytes
    return {
        **told,
        "live_bytes": bytes_of(live),
        "live_away_bytes": came_bytes,
        "live_resident_bytes": bytes_of(live) - came_bytes,
        "dead_bytes": bytes_of(dead) - gone_bytes,
        "dead_resident_bytes": left_bytes,
        "live_resident_by_page_tables_bytes": by_page_tables,
    }
