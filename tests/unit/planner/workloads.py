# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Workloads made by hand, and a replay that follows a rule one can compute in one's head."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rmm_uvm.planner.workload.events import ALLOCATE, FREE, REPLAY_DTYPE, TOUCH, Slab, Workload
from rmm_uvm.planner.workload.result import OutOfMemory, ReplayResult, StageResult, Timeline

MIB = 1 << 20
GIB = 1 << 30
BASE = 0x7F00_0000_0000
KINDS = {"allocate": ALLOCATE, "free": FREE, "touch": TOUCH}


@dataclass(frozen=True)
class Machine:
    """What a plan wants of a machine profile."""

    name: str = "test-machine"
    gpu: str = "a GPU"
    link: str = "a link"
    measured: bool = True
    memory_bytes_per_ns: float = 4000.0
    third_tier: None = None

    @property
    def label(self) -> str:
        return "measured" if self.measured else "published only"


def event(kind: str, offset: int, nbytes: int, seconds: float, stage: int = 0) -> tuple[int, ...]:
    """Return one row of `REPLAY_DTYPE`."""
    return KINDS[kind], 0, stage, 0, BASE + offset, nbytes, round(seconds * 1e9)


def workload(
    events: Iterable[tuple[int, ...]],
    *,
    peak_bytes: int,
    seconds: float = 10.0,
    stages: tuple[str, ...] = ("",),
    **others: Any,
) -> Workload:
    """Return a workload of these events; all else is plain, or given."""
    rows = np.array(list(events), REPLAY_DTYPE)
    allocated = rows[rows["kind"] == ALLOCATE]
    end = int((rows["address"] + rows["nbytes"]).max()) if len(rows) else BASE
    slab = Slab(BASE, -(-(end - BASE) // (2 * MIB)) * 2 * MIB)
    given = {
        "events": rows,
        "slabs": (slab,),
        "stages": stages,
        "source": Path("etl.trace"),
        "kind": "trace",
        "touches_assumed": True,
        "peak_live_bytes": peak_bytes,
        "allocated_bytes": int(allocated["nbytes"].sum()),
        "allocations": len(allocated),
        "seconds": seconds,
        "device_name": "NVIDIA H200",
        "device_bytes": 139 * GIB,
        "settings": {},
    }
    return Workload(**{**given, **others})


def etl(peak_bytes: int = 10 * GIB, seconds: float = 10.0, **others: Any) -> Workload:
    """Return a workload that loads a half of its peak, joins it to another, and frees all."""
    half = peak_bytes // 2
    events = [
        event("allocate", 0, half, 0.0, 1),
        event("touch", 0, half, 0.0, 1),
        event("allocate", half, half, seconds * 0.4, 2),
        event("touch", half, half, seconds * 0.4, 2),
        event("free", 0, half, seconds * 0.8, 2),
        event("free", half, half, seconds, 2),
    ]
    stages = others.pop("stages", ("", "load", "join"))
    if len(stages) == 1:
        events = [(*row[:2], 0, *row[3:]) for row in events]
    return workload(events, peak_bytes=peak_bytes, seconds=seconds, stages=stages, **others)


@dataclass
class FakeReplay:
    """Moves what exceeds the card in, and out, at a GB/s; mode and threshold change that by a rule.

    Attributes
    ----------
    factors : dict
        Time of a mode, or of a threshold, over that of the defaults.
    calls : list of tuple
        Capacity, mode, threshold, policy, host bytes and stages of every call.
    """

    factors: dict[Any, float] = field(default_factory=dict)
    runs_out_below_bytes: int = 0
    host_needed_bytes: int = 0
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def __call__(
        self,
        workload: Workload,
        machine: Any,
        *,
        device_bytes: int,
        prefetch: str,
        driver: Any,
        policy: str,
        host_bytes: int | None,
        progress: Any,
    ) -> ReplayResult:
        self.calls.append((device_bytes, prefetch, driver, policy, host_bytes, workload.stages))
        if progress is not None:
            progress(len(workload.events), len(workload.events))
        over = max(workload.peak_live_bytes - device_bytes, 0)
        seconds = over * 2 / 1e9 * self.factors.get(prefetch, 1.0) * self.factors.get(driver, 1.0)
        dropped = over // 2 if policy == "discard-dead" else 0
        last = len(workload.stages) - 1
        stages = tuple(
            StageResult(
                name,
                migration_seconds=seconds * (n == last),
                to_device_bytes=over * (n == last),
                to_host_bytes=0,
                evicted_bytes=over * (n == last),
                peak_live_bytes=workload.peak_live_bytes * (n + 1) // (last + 1),
            )
            for n, name in enumerate(workload.stages)
        )
        out = device_bytes < self.runs_out_below_bytes
        out |= host_bytes is not None and host_bytes < self.host_needed_bytes
        return ReplayResult(
            device_bytes=device_bytes,
            recorded_seconds=workload.seconds,
            migration_seconds=seconds - dropped / 1e9,
            to_device_bytes=over,
            to_host_bytes=over - dropped,
            evicted_bytes=over,
            evicted_blocks=over >> 21,
            dropped_bytes=dropped,
            gpu_faults=over >> 16,
            peak_resident_bytes=min(device_bytes, workload.peak_live_bytes),
            peak_live_bytes=workload.peak_live_bytes,
            host_page_bytes=over,
            stages=stages,
            timeline=timeline(workload, device_bytes),
            out_of_memory=OutOfMemory(3, workload.stages[last], 5 * MIB) if out else None,
        )


def timeline(workload: Workload, device_bytes: int) -> Timeline:
    """Return live bytes at every event, and as many resident as fit."""
    events = workload.events
    sign = np.where(events["kind"] == ALLOCATE, 1, np.where(events["kind"] == FREE, -1, 0))
    live = np.cumsum(sign * events["nbytes"].astype(np.int64)).astype(np.uint64)
    nothing = np.zeros(len(live), np.uint64)
    return Timeline(
        events["time_ns"] / 1e9, live, np.minimum(live, np.uint64(device_bytes)), nothing, nothing
    )
