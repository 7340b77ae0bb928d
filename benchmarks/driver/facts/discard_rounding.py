# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""How a discard rounds a range that does not start or end on a page.

Old contents often survive a discard, so seeing no change proves nothing. Here the loss is forced:
before the discard, the other side holds a stale copy (the byte ``STALE``) of every page while the
current contents are ``CURRENT``. After the discard the region is moved to that other side; the
kernel driver copies what is not discarded and leaves the rest, so a lost page shows ``STALE`` or
zeros. A whole-block discard (which must be lost) and no discard at all are the two controls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .answer import Answer, Question
from .libcuda import CudaError, Location
from .session import BLOCK_BYTES, MIB, Ranges, Session, batch_arguments

STALE, CURRENT = 0xA5, 0x5B
REGION_BYTES = 4 * BLOCK_BYTES
KIB = 1 << 10
GRANULES_BYTES = (1, 4 * KIB, 64 * KIB, BLOCK_BYTES)
DISCARD, DISCARD_AND_PREFETCH = "cuMemDiscardBatchAsync", "cuMemDiscardAndPrefetchBatchAsync"

Intervals = list[tuple[int, int]]

#: Ranges as (offset, size); two in one case share a page without either covering it.
CASES: tuple[Intervals, ...] = (
    [],
    [(0, BLOCK_BYTES)],
    [(0, 256)],
    [(4608, 256)],
    [(3, 1)],
    [(0, 4 * KIB)],
    [(4 * KIB, 4 * KIB)],
    [(256, 4 * KIB)],
    [(2 * KIB, 8 * KIB)],
    [(64 * KIB, 64 * KIB)],
    [(68 * KIB, 128 * KIB)],
    [(64 * KIB + 256, 192 * KIB)],
    [(BLOCK_BYTES - 10_000, 20_000)],
    [(BLOCK_BYTES - 1, BLOCK_BYTES + 2)],
    [(BLOCK_BYTES + 1, BLOCK_BYTES)],
    [(BLOCK_BYTES + 256, BLOCK_BYTES - 512)],
    [(MIB + 300, BLOCK_BYTES + 1000)],
    [(100, 3 * BLOCK_BYTES + 77)],
    [(0, 2 * KIB), (2 * KIB, 2 * KIB)],
    [(256, MIB), (MIB + 256, MIB - 256)],
)


def changed_intervals(changed: NDArray[np.bool_]) -> Intervals:
    """Return the runs of true values as (start, end), end exclusive."""
    flips = np.flatnonzero(changed[1:] != changed[:-1]) + 1
    edges = [0] * bool(changed[0]) + flips.tolist() + [len(changed)] * bool(changed[-1])
    return list(zip(edges[::2], edges[1::2], strict=True))


def merged(intervals: Intervals) -> Intervals:
    """Return the same bytes as sorted intervals that neither overlap nor touch."""
    result: Intervals = []
    for start, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def rounded(ranges: Intervals, granule_bytes: int, direction: str) -> Intervals:
    """Return the bytes lost if each range were rounded ``"inward"`` or ``"outward"``."""
    lost = []
    for offset, size in ranges:
        end = offset + size
        if direction == "inward":
            first, last = -(-offset // granule_bytes), end // granule_bytes
        else:
            first, last = offset // granule_bytes, -(-end // granule_bytes)
        lost.append((first * granule_bytes, last * granule_bytes))
    return merged(lost)


def outside_bytes(ranges: Intervals, changed: Intervals) -> int:
    """Return how many changed bytes no range asked for."""
    wanted = merged([(offset, offset + size) for offset, size in ranges])
    inside = sum(
        max(0, min(end, wanted_end) - max(start, wanted_start))
        for start, end in changed
        for wanted_start, wanted_end in wanted
    )
    return sum(end - start for start, end in changed) - inside


def conclude(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return, for each way of losing pages, which rounding explains every case."""
    conclusion: dict[str, Any] = {}
    for way in dict.fromkeys(row["way"] for row in rows):
        done = [row for row in rows if row["way"] == way and row["status"] == "CUDA_SUCCESS"]
        explained = [
            f"{direction} to {granule} B"
            for direction in ("inward", "outward")
            for granule in GRANULES_BYTES
            if all(row["changed"] == rounded(row["ranges"], granule, direction) for row in done)
        ]
        controls = {len(row["ranges"]): row for row in done if row["ranges"] in CASES[:2]}
        sees_loss = 1 in controls and controls[1]["changed"] == [(0, BLOCK_BYTES)]
        conclusion[way] = {
            "method_sees_a_loss": sees_loss,
            "method_sees_none_without_discard": 0 in controls and not controls[0]["changed"],
            "rounding": (explained or ["none of those tried"]) if sees_loss else "not shown",
            "bytes_outside_the_ranges_lost": sum(row["outside_bytes"] for row in done),
            "cases_refused": sum(row["way"] == way for row in rows) - len(done),
        }
    return conclusion


def ask(session: Session) -> Answer:
    """Discard every case in four ways and compare every byte."""
    ways: dict[str, tuple[bool, str, Location]] = {
        "discard on device, then moved to host": (True, DISCARD, session.on_host),
        "discard-and-prefetch device to host": (True, DISCARD_AND_PREFETCH, session.on_host),
        "discard on host, then moved to device": (False, DISCARD, session.on_device),
        "discard-and-prefetch host to device": (False, DISCARD_AND_PREFETCH, session.on_device),
    }
    rows = []
    with session.managed_blocks(REGION_BYTES) as region:
        for way, (on_device, call, to) in ways.items():
            prepare = _current_on_device if on_device else _current_on_host
            for ranges in CASES:
                row = _lose(session, region, ranges, call, to, prepare)
                rows.append({"way": way, "ranges": ranges, **row})
    return Answer(rows, conclude(rows))


def _current_on_device(session: Session, region: int) -> None:
    session.fill(region, REGION_BYTES, STALE)
    session.move(region, REGION_BYTES, session.on_host)
    session.fill(region, REGION_BYTES, CURRENT)


def _current_on_host(session: Session, region: int) -> None:
    session.fill(region, REGION_BYTES, STALE)
    session.move(region, REGION_BYTES, session.on_host)
    ctypes.memset(region, CURRENT, REGION_BYTES)


def _lose(
    session: Session,
    region: int,
    ranges: Intervals,
    call: str,
    to: Location,
    prepare: Callable[[Session, int], None],
) -> dict[str, Any]:
    prepare(session, region)
    before = session.counters.read()
    status = "CUDA_SUCCESS"
    if ranges:
        status = _discard(session, call, [(region + offset, size) for offset, size in ranges], to)
        session.synchronize()
    session.move(region, REGION_BYTES, to)
    moved = session.counters.read().since(before)
    session.move(region, REGION_BYTES, session.on_host)
    contents = np.ctypeslib.as_array((ctypes.c_ubyte * REGION_BYTES).from_address(region))
    changed = changed_intervals(contents != CURRENT)
    return {
        "status": status,
        "changed": changed,
        "outside_bytes": outside_bytes(ranges, changed),
        "bytes_not_copied": REGION_BYTES - sum(moved),
    }


def _discard(session: Session, call: str, ranges: Intervals, to: Location) -> str:
    batch = Ranges(ranges)
    if call == DISCARD:
        arguments: tuple[Any, ...] = (batch.pointers, batch.sizes, batch.count, 0, session.stream)
    else:
        arguments = batch_arguments(batch, to, session.stream)
    try:
        return session.cuda.status(call, *arguments)
    except CudaError as error:  # an older driver without this call
        return error.status


QUESTION = Question(
    "discard_rounding",
    "How does discard round an unaligned range, and are bytes outside of it ever lost?",
    "The destination holds stale copies, so that a page that is not copied shows; every byte of "
    "4 blocks is compared after 20 range sets x 4 ways.",
    ask,
)
