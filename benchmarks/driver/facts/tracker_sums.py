# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Exactness and sums of the byte counters, and whether freeing memory moves bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from .answer import Answer, Question
from .figures import summary
from .kernel_counters import Moved, Tracker
from .libcuda import Location
from .session import BLOCK_BYTES, MIB, Session

SIZE_BYTES = 8 * MIB
PAGE_BYTES = 4096


def conclude_sums(measured: dict[str, Any]) -> dict[str, Any]:
    """Return whether sums match and whether each counter met what the step must move."""
    steps = measured["steps"]
    exact = [step for step in steps if step["expected"] is not None]
    return {
        "per_gpu_trackers_add_up": all(
            tuple(step["all"]) == tuple(map(sum, zip(*step["per_gpu"].values(), strict=True)))
            for step in steps
        ),
        "exact_to_the_byte": all(tuple(step["all"]) == step["expected"] for step in exact),
        "steps_checked_for_exactness": len(exact),
        "gpus": measured["gpu_count"],
        "self_test_median_ns": measured["open_and_self_test_ns"]["median"],
    }


def ask_sums(session: Session) -> Answer:
    """Move memory in several ways and read all trackers around each."""
    gpu_count = ctypes.c_int()
    session.cuda("cuDeviceGetCount", ctypes.byref(gpu_count))
    opening = []
    for _ in range(5):
        start = perf_counter_ns()
        session.open_tracker()
        opening.append(perf_counter_ns() - start)
    trackers = {"all": session.open_tracker()}
    uvm_fd = trackers["all"].uvm_fd
    for device in range(gpu_count.value):
        # Without a self-test: the bytes that it moves are this session's GPU's, not every GPU's.
        tracker = Tracker(uvm_fd, session.uuid(device))
        trackers[f"gpu {device}"] = tracker
    try:
        with session.managed_blocks(SIZE_BYTES) as region:
            steps = [
                {"step": name, "expected": expected, **_around(trackers, step)}
                for name, expected, step in _steps(session, region, gpu_count.value)
            ]
    finally:
        for tracker in trackers.values():
            tracker.close()
    measured = {
        "gpu_count": gpu_count.value,
        "open_and_self_test_ns": summary(opening),
        "steps": steps,
    }
    return Answer(measured, conclude_sums(measured))


def _around(trackers: dict[str, Tracker], step: Callable[[], None]) -> dict[str, Any]:
    before = {name: tracker.read() for name, tracker in trackers.items()}
    step()
    moved = {name: tracker.read().since(before[name]) for name, tracker in trackers.items()}
    return {"all": moved.pop("all"), "per_gpu": moved}


def _steps(
    session: Session, region: int, gpu_count: int
) -> list[tuple[str, Moved | None, Callable[[], None]]]:
    def touch_by_gpu() -> None:
        session.cuda("cuMemsetD8Async", region, 2, SIZE_BYTES, session.stream)
        session.synchronize()

    def touch_by_cpu() -> None:
        ctypes.memset(region, 3, PAGE_BYTES)

    def to(place: Location, size_bytes: int = SIZE_BYTES) -> Callable[[], None]:
        return lambda: session.move(region, size_bytes, place)

    host, device = session.on_host, session.on_device
    steps: list[tuple[str, Moved | None, Callable[[], None]]] = [
        ("populate by prefetch", Moved(0, 0), to(device)),
        ("first write by the GPU", Moved(0, 0), touch_by_gpu),
        ("prefetch to host", Moved(0, SIZE_BYTES), to(host)),
        ("prefetch to host again", Moved(0, 0), to(host)),
        ("prefetch one page to device", Moved(PAGE_BYTES, 0), to(device, PAGE_BYTES)),
        ("prefetch the rest to device", Moved(SIZE_BYTES - PAGE_BYTES, 0), to(device)),
        ("prefetch one page to host", Moved(0, PAGE_BYTES), to(host, PAGE_BYTES)),
        ("prefetch that page back", Moved(PAGE_BYTES, 0), to(device)),
        # How much a CPU touch brings along is the kernel driver's choice.
        ("CPU writes one page", None, touch_by_cpu),
        ("prefetch to host after the touch", None, to(host)),
        ("GPU writes host-resident memory", Moved(SIZE_BYTES, 0), touch_by_gpu),
    ]
    for other in range(gpu_count):
        if other == session.ordinal:
            continue
        session.retain_context(other)
        place = Location.device(other)
        steps += [
            (f"prefetch to host before gpu {other}", None, to(host)),
            (f"prefetch host to gpu {other}", None, to(place)),
            (f"prefetch gpu {other} to gpu {session.ordinal}", None, to(device)),
        ]
    return steps


def conclude_reuse(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return whether freeing and allocating again moved no byte."""
    return {
        "free_moves_no_bytes": all(not any(row["free"]) for row in rows),
        "allocating_again_moves_no_bytes": all(not any(row["allocate_and_use"]) for row in rows),
        "same_address_again": [row["same_address"] for row in rows],
    }


def ask_reuse(session: Session) -> Answer:
    """Free resident memory, allocate as much again, use it, and read the counters."""
    rows = []
    for resident in ("device", "host"):
        place = session.on_device if resident == "device" else session.on_host
        with session.managed(16 * BLOCK_BYTES) as first:
            session.fill(first, 16 * BLOCK_BYTES, 4)
            session.move(first, 16 * BLOCK_BYTES, place)
            before_free = session.counters.read()
        freed = session.counters.read()
        with session.managed(16 * BLOCK_BYTES) as second:
            session.fill(second, 16 * BLOCK_BYTES, 5)
            used = session.counters.read()
        rows.append(
            {
                "resident_before": resident,
                "free": freed.since(before_free),
                "allocate_and_use": used.since(freed),
                "same_address": first == second,
            }
        )
    return Answer(rows, conclude_reuse(rows))


QUESTIONS = (
    Question(
        "tracker_sums",
        "Do per-GPU byte counters add up to the all-processors one, and are they exact?",
        "Prefetches, GPU and CPU touches of 8 MiB; each tracker is read around each step.",
        ask_sums,
    ),
    Question(
        "free_and_allocate_again",
        "Do freeing and allocating again move bytes?",
        "32 MiB resident on device or host is freed and allocated again; counters around it.",
        ask_reuse,
    ),
)
