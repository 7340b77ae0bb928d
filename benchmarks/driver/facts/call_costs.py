# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Cost of the cheap driver calls, and which are refused while some stream captures."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from .answer import Answer, Question
from .figures import summary
from .libcuda import (
    ATTACH_GLOBAL,
    BLOCKING,
    CAPTURE_MODES,
    EVENT_NO_TIMING,
    LEGACY_HANDLE,
    LEGACY_STREAM,
    NON_BLOCKING,
    PER_THREAD_HANDLE,
    SUCCESS,
    CudaError,
    DevicePointer,
    Pointer,
    Stream,
)
from .session import BLOCK_BYTES, Session

CALLS_PER_BATCH, BATCHES = 300, 11

Call = tuple[str, tuple[Any, ...]]


def per_call_ns(session: Session, calls: list[Call]) -> dict[str, float]:
    """Time a sequence of prepared calls, in ns for one pass over the sequence."""
    prepared = [(session.cuda.function(name), arguments) for name, arguments in calls]
    figures = []
    for _ in range(BATCHES):
        start = perf_counter_ns()
        for _ in range(CALLS_PER_BATCH):
            for function, arguments in prepared:
                if function(*arguments) != SUCCESS:
                    raise CudaError(calls[0][0], "an error while it was timed")
        figures.append((perf_counter_ns() - start) / CALLS_PER_BATCH)
        session.synchronize()
        session.cuda("cuStreamSynchronize", LEGACY_STREAM)
    return summary(figures)


def _counter_read_ns(session: Session) -> dict[str, float]:
    figures = []
    for _ in range(BATCHES):
        start = perf_counter_ns()
        for _ in range(CALLS_PER_BATCH):
            session.counters.read()
        figures.append((perf_counter_ns() - start) / CALLS_PER_BATCH)
    return summary(figures)


def _capture_queries(stream: Stream) -> dict[str, Call]:
    state, identity = ctypes.c_int(), ctypes.c_uint64()
    is_capturing = (stream, ctypes.pointer(state))
    info = (stream, ctypes.pointer(state), ctypes.pointer(identity), None, None, None, None)
    return {
        "is capturing": ("cuStreamIsCapturing", is_capturing),
        "capture info": ("cuStreamGetCaptureInfo", info),
    }


def ask_costs(session: Session) -> Answer:
    """Time calls with prepared arguments; the foreign call itself is measured beside them."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    version, mode, old = ctypes.c_int(), ctypes.c_int(CAPTURE_MODES["relaxed"]), Pointer()
    event, second = (session.create_event(EVENT_NO_TIMING) for _ in range(2))
    ours, other = session.stream, session.other_stream
    hop: list[Call] = [
        ("cuEventRecord", (event, LEGACY_STREAM)),
        ("cuStreamWaitEvent", (ours, event, 0)),
    ]
    hop_back: list[Call] = [
        ("cuEventRecord", (second, ours)),
        ("cuStreamWaitEvent", (LEGACY_STREAM, second, 0)),
    ]
    sequences: dict[str, list[Call]] = {
        "foreign call (cuDriverGetVersion)": [("cuDriverGetVersion", (ctypes.pointer(version),))],
        "cuMemGetInfo": [("cuMemGetInfo", (ctypes.pointer(free), ctypes.pointer(total)))],
        "cuThreadExchangeStreamCaptureMode, twice": [
            ("cuThreadExchangeStreamCaptureMode", (ctypes.pointer(mode),))
        ]
        * 2,
        "cuCtxPushCurrent and cuCtxPopCurrent": [
            ("cuCtxPushCurrent", (session.context,)),
            ("cuCtxPopCurrent", (ctypes.pointer(old),)),
        ],
        "event record": [("cuEventRecord", (event, ours))],
        "event record and wait": [
            ("cuEventRecord", (event, ours)),
            ("cuStreamWaitEvent", (other, event, 0)),
        ],
        "legacy to ours and back, two events": hop + hop_back,
    }
    streams = {
        "non-blocking": ours,
        "0": LEGACY_STREAM,
        "0x1": LEGACY_HANDLE,
        "0x2": PER_THREAD_HANDLE,
    }
    for name, stream in streams.items():
        for query, call in _capture_queries(stream).items():
            sequences[f"{query}, stream {name}"] = [call]
    rows: dict[str, Any] = {}
    for name, calls in sequences.items():
        try:
            rows[name] = per_call_ns(session, calls)
        except CudaError as error:
            rows[name] = {"error": str(error)}
    rows["counter page, read from Python"] = _counter_read_ns(session)
    return Answer(rows, conclude_costs(rows))


def conclude_costs(rows: dict[str, Any]) -> dict[str, Any]:
    """Return the driver's own share of each sequence in ns; None where it failed."""
    base = rows["foreign call (cuDriverGetVersion)"]["median"]
    calls_of = {"and": 2, "twice": 2, "two events": 4}
    net: dict[str, Any] = {"foreign_call_ns": round(base)}
    for name, row in rows.items():
        count = max((n for word, n in calls_of.items() if word in name), default=1)
        if name.startswith("counter page"):
            net[name] = round(row["median"])
        elif not name.startswith("foreign call"):
            net[name] = round(row["median"] - count * base) if "median" in row else None
    return net


def _trials(session: Session, capturing: Stream) -> dict[str, Callable[[], str]]:
    cuda = session.cuda
    event = session.create_event(EVENT_NO_TIMING)
    trials: dict[str, Callable[[], str]] = {"nothing": lambda: "CUDA_SUCCESS"}
    streams = {
        "the capturing stream": capturing,
        "0": LEGACY_STREAM,
        "0x1": LEGACY_HANDLE,
        "0x2": PER_THREAD_HANDLE,
        "another blocking stream": session.blocking_stream,
        "another non-blocking stream": session.stream,
    }
    for name, stream in streams.items():
        for query, (call, arguments) in _capture_queries(stream).items():
            trials[f"{query}, {name}"] = lambda c=call, a=arguments: cuda.status(c, *a)  # type: ignore[misc]
    for name in ("0", "0x1", "another blocking stream", "another non-blocking stream"):
        stream = streams[name]
        trials[f"event record, {name}"] = lambda s=stream: cuda.status("cuEventRecord", event, s)  # type: ignore[misc]
    trials["event query"] = lambda: cuda.status("cuEventQuery", event)
    trials["cuMemGetInfo"] = lambda: cuda.status(
        "cuMemGetInfo", ctypes.pointer(ctypes.c_size_t()), ctypes.pointer(ctypes.c_size_t())
    )
    return trials


def _memory_trials(session: Session, region: int) -> dict[str, Callable[[], str]]:
    # Asked for here, since asking during a capture is one of the calls on trial.
    free_bytes = session.free_bytes()

    def allocate() -> str:
        session.budget.check(BLOCK_BYTES, free_bytes)
        pointer = DevicePointer()
        arguments = (ctypes.byref(pointer), BLOCK_BYTES, ATTACH_GLOBAL)
        status = session.cuda.status("cuMemAllocManaged", *arguments)
        if pointer.value:
            session.budget.add(pointer.value, BLOCK_BYTES)
            allocated.append(pointer.value)
        return status

    allocated: list[int] = []

    def prefetch(stream: Stream) -> Callable[[], str]:
        arguments = (region, BLOCK_BYTES, session.on_device, 0, stream)
        return lambda: session.cuda.status("cuMemPrefetchAsync", *arguments)

    def free() -> str:
        if not allocated:
            return "nothing was allocated"
        status = session.cuda.status("cuMemFree", allocated[-1])
        if status == "CUDA_SUCCESS":
            session.budget.remove(allocated.pop())
        return status

    return {
        "managed allocation": allocate,
        "free of managed memory": free,
        "prefetch, another non-blocking stream": prefetch(session.stream),
        "prefetch, stream 0": prefetch(LEGACY_STREAM),
    }


def ask_capture(session: Session) -> Answer:
    """Make each call in a capture of its own, then see whether the capture is still whole."""
    rows = []
    with session.managed_blocks(BLOCK_BYTES) as region:
        session.fill(region, BLOCK_BYTES, 1)
        for kind, flags in (("blocking", BLOCKING), ("non-blocking", NON_BLOCKING)):
            capturing = session.create_stream(flags)
            trials = _trials(session, capturing) | _memory_trials(session, region)
            for mode, number in CAPTURE_MODES.items():
                for name, trial in trials.items():
                    session.cuda("cuStreamBeginCapture", capturing, number)
                    graph = Pointer()
                    try:
                        status = trial()
                    finally:
                        end = session.cuda.status(
                            "cuStreamEndCapture", capturing, ctypes.byref(graph)
                        )
                        if graph.value:
                            session.cuda("cuGraphDestroy", graph)
                    row = {"capturing": kind, "mode": mode, "call": name, "status": status}
                    rows.append({**row, "end_of_capture": end})
            # Whatever a refused free left behind is given back outside of any capture.
            free = trials["free of managed memory"]
            while free() == "CUDA_SUCCESS":
                pass
    return Answer(rows, conclude_capture(rows))


def grouped(rows: list[dict[str, Any]], key: str) -> dict[str, dict[str, str]]:
    """Return, for each call, each status other than success and the captures it was seen in."""
    captures = {f"{row['capturing']} {row['mode']}" for row in rows}
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row[key].startswith("CUDA_ERROR"):
            seen = found.setdefault(row["call"], {}).setdefault(row[key], [])
            seen.append(f"{row['capturing']} {row['mode']}")
    return {
        call: {
            status: "every capture" if len(seen) == len(captures) else ", ".join(seen)
            for status, seen in statuses.items()
        }
        for call, statuses in found.items()
    }


def conclude_capture(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return which calls are refused and which break the capture, by kind of capture."""
    broken = grouped(rows, "end_of_capture")
    queries = [call for call in broken if call.startswith(("is capturing", "capture info"))]
    return {
        "refused": grouped(rows, "status"),
        "breaks_the_capture": broken,
        "queries_that_break_it": queries,
    }


QUESTIONS = (
    Question(
        "call_costs",
        "What do the calls cost that an allocation may have to make?",
        "11 batches of 300 calls with prepared arguments, from Python through ctypes; the median "
        "less that of a trivial driver call. The counter page figure is an upper bound.",
        ask_costs,
    ),
    Question(
        "calls_during_capture",
        "Which calls are refused, or break the capture, while another stream is capturing?",
        "Each call in a capture of its own, three modes, blocking and non-blocking stream.",
        ask_capture,
    ),
)
