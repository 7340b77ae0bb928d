# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The moment at which a byte counter rises: when a copy is submitted, or when it is done.

A second thread reads the counter in a loop while a prefetch runs. Copies over an idle bus finish
right after they are submitted, so the same is done with the copy engine kept busy by a copy from
pinned memory: if the counter is then full well before the stream is done, it counts submissions.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

from .answer import Answer, Question
from .kernel_counters import Tracker
from .libcuda import DevicePointer, Location, Pointer
from .session import MIB, Session

SIZE_BYTES = 256 * MIB
REPEATS = 5
EARLY_FRACTION = 0.05


class Watch:
    """A thread that notes each value of a tracker's byte sum with the time it was first seen."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._stop = False
        self.seen: list[tuple[int, int]] = [(perf_counter_ns(), sum(tracker.read()))]
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._thread.join()

    def _run(self) -> None:
        while not self._stop:
            value = sum(self._tracker.read())
            if value != self.seen[-1][1]:
                self.seen.append((perf_counter_ns(), value))


@contextmanager
def quick_thread_switches() -> Iterator[None]:
    """Let a waiting Python thread in after 10 us and not after 5 ms."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


@contextmanager
def pinned_copy(session: Session) -> Iterator[tuple[int, Pointer]]:
    """Lend plain device memory and pinned host memory of the same size."""
    device, host = DevicePointer(), Pointer()
    session.cuda("cuMemAlloc", ctypes.byref(device), SIZE_BYTES)
    try:
        session.cuda("cuMemAllocHost", ctypes.byref(host), SIZE_BYTES)
        try:
            yield device.value, host
        finally:
            session.cuda("cuStreamSynchronize", session.other_stream)
            session.cuda("cuMemFreeHost", host)
    finally:
        session.cuda("cuMemFree", device)


def watch_once(session: Session, region: int, to: Location) -> dict[str, Any]:
    """Prefetch while watching; times are in ns after the call began."""
    with Watch(session.counters) as watch:
        start = perf_counter_ns()
        session.prefetch(region, SIZE_BYTES, to)
        returned = perf_counter_ns() - start
        session.synchronize()
        done = perf_counter_ns() - start
        at_completion = sum(session.counters.read()) - watch.seen[0][1]
    rises = [(seen - start, value - watch.seen[0][1]) for seen, value in watch.seen[1:]]
    return {
        "call_ns": returned,
        "done_ns": done,
        "first_rise_ns": rises[0][0] if rises else None,
        "last_rise_ns": rises[-1][0] if rises else None,
        "bytes_at_return": max((value for at, value in rises if at <= returned), default=0),
        "bytes_at_completion": at_completion,
        "bytes_at_last": rises[-1][1] if rises else 0,
        "values_seen": len(rises),
    }


def conclude(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return whether counters lead the stream's completion, and whether they are full at it."""
    busy = [
        (row["done_ns"] - row["last_rise_ns"]) / row["done_ns"]
        for row in rows
        if row["bus"] == "busy" and row["last_rise_ns"] is not None
    ]
    full = all(row["bytes_at_completion"] == SIZE_BYTES for row in rows)
    if not full:
        moment = "after completion"
    elif busy and min(busy) > EARLY_FRACTION:
        moment = "at submission"
    elif busy and max(busy) <= EARLY_FRACTION:
        moment = "at completion, as far as this resolves"
    else:
        moment = "not decided"
    return {
        "counter_rises": moment,
        "full_when_the_stream_is_done": full,
        "full_when_the_call_returns": all(row["bytes_at_return"] == SIZE_BYTES for row in rows),
        "lead_over_completion_fraction_busy": [round(lead, 4) for lead in sorted(busy)],
    }


def ask(session: Session) -> Answer:
    """Watch prefetches both ways on an idle and on a busy bus."""
    rows: list[dict[str, Any]] = []
    with session.managed_blocks(SIZE_BYTES) as region, quick_thread_switches():
        session.fill(region, SIZE_BYTES, 1)
        session.move(region, SIZE_BYTES, session.on_host)
        with pinned_copy(session) as (device, host):
            for bus in ("idle", "busy"):
                for _ in range(REPEATS):
                    for direction, to in (("htod", session.on_device), ("dtoh", session.on_host)):
                        if bus == "busy" and direction == "htod":
                            for _ in range(4):
                                session.cuda(
                                    "cuMemcpyHtoDAsync",
                                    device,
                                    host,
                                    SIZE_BYTES,
                                    session.other_stream,
                                )
                        row = watch_once(session, region, to)
                        session.cuda("cuStreamSynchronize", session.other_stream)
                        if bus == "idle" or direction == "htod":
                            rows.append({"bus": bus, "direction": direction, **row})
    return Answer(rows, conclude(rows))


QUESTION = Question(
    "counter_moment",
    "Does a byte counter rise when a copy is submitted or when it is complete?",
    "A thread reads the counter during prefetches of 256 MiB, bus idle and kept busy by pinned "
    "copies; the last rise is compared with the stream's completion.",
    ask,
)
