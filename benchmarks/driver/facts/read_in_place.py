# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What it costs to map memory on the host for the GPU, and to read it where it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .answer import Answer, Question
from .kernels import Kernels
from .session import BLOCK_BYTES, MIB, Session

SIZE_BYTES = 512 * MIB
CALL_BYTES = {"a block": BLOCK_BYTES, "32 MiB": 32 * MIB, "all": SIZE_BYTES}
REPEATS = 3
WORDS = SIZE_BYTES // 8
ORDERS = {"in order": 1, "scattered": 40_503_973}  # odd: coprime to a power of two
ACCESSED_BY, UNSET_ACCESSED_BY = 5, 6  # CUmem_advise


def conclude(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return microseconds a block of each way, and what a reading in place moves."""
    blocks = SIZE_BYTES // BLOCK_BYTES
    found: dict[str, Any] = {
        "us_per_block": {
            row["what"]: round(row["total_ns"]["median"] / blocks / 1000, 2) for row in rows
        }
    }
    in_place = [row for row in rows if "in place" in row["what"]]
    found["reading_in_place_moves_bytes"] = max(row["htod_bytes"]["maximum"] for row in in_place)
    return found


def ask(session: Session) -> Answer:
    """Map, read and unmap memory on the host; read it by page faults and after a prefetch."""
    rows = list(_measured(session, Kernels.load(session)))
    return Answer(rows, conclude(rows))


def _measured(session: Session, kernels: Kernels) -> Iterator[dict[str, Any]]:
    with session.managed_blocks(SIZE_BYTES) as region:
        session.fill(region, SIZE_BYTES, 1)

        def to_host() -> None:
            session.move(region, SIZE_BYTES, session.on_host)

        def advise(what: int, call_bytes: int) -> None:
            for offset in range(0, SIZE_BYTES, call_bytes):
                session.cuda("cuMemAdvise", region + offset, call_bytes, what, session.on_device)

        def read(stride: int) -> None:
            kernels.read(region, WORDS, stride, session.stream)
            session.synchronize()

        def nothing() -> None:
            pass

        for order, stride in ORDERS.items():
            yield _timed(session, f"by page faults, {order}", to_host, lambda s=stride: read(s))
            yield _timed(session, f"on the device, {order}", nothing, lambda s=stride: read(s))
        to_host()
        fetch = lambda: session.move(region, SIZE_BYTES, session.on_device)  # noqa: E731
        yield _timed(session, "prefetched to the device", to_host, fetch)
        yield _timed(session, "prefetched to the host", fetch, to_host)
        for name, call_bytes in CALL_BYTES.items():
            maps = lambda n=call_bytes: advise(ACCESSED_BY, n)  # noqa: E731
            unmaps = lambda n=call_bytes: advise(UNSET_ACCESSED_BY, n)  # noqa: E731
            yield _timed(session, f"mapped, {name} a call", unmaps, maps)
            yield _timed(session, f"mapped again, {name} a call", maps, maps)
            yield _timed(session, f"unmapped, {name} a call", maps, unmaps)
        advise(ACCESSED_BY, SIZE_BYTES)
        for order, stride in ORDERS.items():
            yield _timed(session, f"in place, {order}", nothing, lambda s=stride: read(s))
        fetch()
        yield _timed(session, "prefetched to the host, mapped", fetch, to_host)
        advise(UNSET_ACCESSED_BY, SIZE_BYTES)


def _timed(
    session: Session, what: str, prepare: Callable[[], object], act: Callable[[], object]
) -> dict[str, Any]:
    return {"what": what, **session.timed(act, REPEATS, prepare)}


QUESTION = Question(
    "read_in_place",
    "What does it cost to map memory on the host, and to read it there, beside moving it?",
    "512 MiB, mapped in calls of three lengths, and read in order and scattered; 3 runs each.",
    ask,
)
