# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Who runs a prefetch whose stream is busy, when, and whom it stalls.

A kernel keeps stream S busy for 50 ms. A prefetch of host-resident memory goes behind it, while an
empty kernel is launched over and over on stream T. The byte counters say when the prefetch ran, the
scheduler's figures of each thread say who ran it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from .answer import Answer, Question
from .kernels import Kernels
from .libcuda import NOT_READY
from .session import BLOCK_BYTES, MIB, Session

SPIN_NS = 50_000_000
SIZE_BYTES = 256 * MIB
WATCH_NS = 20_000_000
STALLED_NS = 500_000

Issue = Callable[[Session, int], None]


def thread_run_ns() -> dict[str, int]:
    """Return the time on a processor of every thread of this process, by "id name"."""
    run_ns = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            run_ns[f"{task.name} {name}"] = int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended, or no schedstat
            continue
    return run_ns


def nothing(session: Session, region: int) -> None:
    """Issue nothing: the control."""


def one_call(session: Session, region: int) -> None:
    """Prefetch the region in one call."""
    session.prefetch(region, SIZE_BYTES, session.on_device)


def block_calls(session: Session, region: int) -> None:
    """Prefetch the region in 2 MiB calls."""
    for offset in range(0, SIZE_BYTES, BLOCK_BYTES):
        session.prefetch(region + offset, BLOCK_BYTES, session.on_device)


def launch_times(
    session: Session, kernels: Kernels, start_ns: int
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
    """Launch on the other stream until the main one has long been idle.

    Returns
    -------
    launches : list of (started, launch, until done), all in ns
    counted : list of (time, host-to-device bytes), one entry for each change seen
    """
    launches, counted = [], [(0, session.counters.read().htod_bytes)]
    idle_since = 0
    stream_query = session.cuda.function("cuStreamQuery")
    while not idle_since or perf_counter_ns() - idle_since < WATCH_NS:
        begin = perf_counter_ns()
        kernels.nothing(session.other_stream)
        launched = perf_counter_ns()
        session.cuda("cuStreamSynchronize", session.other_stream)
        done = perf_counter_ns()
        launches.append((begin - start_ns, launched - begin, done - begin))
        htod_bytes = session.counters.read().htod_bytes
        if htod_bytes != counted[-1][1]:
            counted.append((done - start_ns, htod_bytes))
        if not idle_since:
            status = stream_query(session.stream)
            if status != NOT_READY:
                session.check("cuStreamQuery", status)
                idle_since = perf_counter_ns()
    return launches, counted


def run_case(
    session: Session, kernels: Kernels, region: int, issue: Issue, *, busy: bool, launching: bool
) -> dict[str, Any]:
    """Issue behind a busy or an idle stream while launching, or while asleep."""
    session.move(region, SIZE_BYTES, session.on_host)
    counted_before = session.counters.read().htod_bytes
    threads_before = thread_run_ns()
    start = perf_counter_ns()
    if busy:
        kernels.spin(SPIN_NS, session.stream)
    called = perf_counter_ns()
    issue(session, region)
    returned = perf_counter_ns()
    row: dict[str, Any] = {
        "call_ns": returned - called,
        "htod_bytes_at_return": session.counters.read().htod_bytes - counted_before,
    }
    if launching:
        launches, counted = launch_times(session, kernels, start)
        longest = max(launches, key=lambda launch: launch[1])
        row |= {
            "launch_count": len(launches),
            "longest_launch_ns": longest[1],
            "longest_launch_at_ns": longest[0],
            "longest_launch_until_done_ns": max(launch[2] for launch in launches),
            "launches_stalled": sum(launch[1] > STALLED_NS for launch in launches),
            "counter_first_rise_ns": counted[1][0] if len(counted) > 1 else None,
            "counter_last_rise_ns": counted[-1][0] if len(counted) > 1 else None,
        }
    else:
        # Asleep, so that whatever runs meanwhile runs on a thread of its own.
        time.sleep((2 * SPIN_NS + WATCH_NS) / 1e9)
        row["stream_idle_after_sleep"] = session.cuda.function("cuStreamQuery")(session.stream) == 0
        row["htod_bytes_while_asleep"] = session.counters.read().htod_bytes - counted_before
        grown = {
            thread: run - threads_before.get(thread, 0) for thread, run in thread_run_ns().items()
        }
        main = next((run for thread, run in grown.items() if _is_caller(thread)), None)
        others = {thread: run for thread, run in grown.items() if not _is_caller(thread)}
        row |= {"caller_run_ns": main, "other_threads_run_ns": others}
    session.synchronize()
    row["htod_bytes"] = session.counters.read().htod_bytes - counted_before
    return row


def _is_caller(thread: str) -> bool:
    return int(thread.split()[0]) == threading.get_native_id()


def conclude(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return who ran the deferred prefetch, when, and the longest launch it held up."""
    asleep, control = rows["busy, one call, asleep"], rows["busy, no prefetch, launching"]
    asleep_control = rows["busy, no prefetch, asleep"]
    added = {
        thread: run - asleep_control["other_threads_run_ns"].get(thread, 0)
        for thread, run in asleep["other_threads_run_ns"].items()
    }
    busiest = max(added, key=lambda thread: added[thread], default=None)
    moved_asleep = asleep["htod_bytes_while_asleep"] == asleep["htod_bytes"] > 0
    if asleep["htod_bytes_at_return"]:
        runs_on = "the calling thread, inside the call"
    elif not moved_asleep:
        runs_on = "the calling thread, in a later call"
    elif busiest is not None and added[busiest] > 1_000_000:
        runs_on = "another thread of this process"
    else:
        runs_on = "no thread of this process that the scheduler's figures show"
    launching = rows["busy, one call, launching"]
    small = rows["busy, 2 MiB calls, launching"]
    return {
        "runs_on": runs_on,
        "busiest_other_thread": busiest and busiest.split(maxsplit=1)[-1],
        "busiest_other_thread_added_run_ns": added.get(busiest) if busiest else None,
        "runs_after_the_stream_got_there": (launching["counter_first_rise_ns"] or 0) >= SPIN_NS,
        "longest_launch_ns": {
            "no prefetch": control["longest_launch_ns"],
            "one call of 256 MiB": launching["longest_launch_ns"],
            "2 MiB calls": small["longest_launch_ns"],
        },
        "stalls_launches_on_other_streams": launching["longest_launch_ns"]
        > max(STALLED_NS, 5 * control["longest_launch_ns"]),
        "call_ns": {name: row["call_ns"] for name, row in rows.items()},
    }


def ask(session: Session) -> Answer:
    """Run every case once after a warm-up."""
    kernels = Kernels.load(session)
    rows = {}
    with session.managed_blocks(SIZE_BYTES) as region:
        session.fill(region, SIZE_BYTES, 1)
        session.move(region, SIZE_BYTES, session.on_host)  # the first one allocates host pages
        issues: dict[str, Issue] = {
            "no prefetch": nothing,
            "one call": one_call,
            "2 MiB calls": block_calls,
        }
        for name, issue in issues.items():
            for launching in (True, False):
                key = f"busy, {name}, {'launching' if launching else 'asleep'}"
                rows[key] = run_case(
                    session, kernels, region, issue, busy=True, launching=launching
                )
        rows["idle, one call, launching"] = run_case(
            session, kernels, region, one_call, busy=False, launching=True
        )
    return Answer({"process_id": os.getpid(), "cases": rows}, conclude(rows))


QUESTION = Question(
    "deferred_prefetch",
    "Where does a prefetch behind a busy stream run, when, and whom does it stall?",
    "256 MiB behind a 50 ms kernel; launches on another stream timed, threads' run times read.",
    ask,
)
