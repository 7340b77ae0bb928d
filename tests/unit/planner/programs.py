# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs to record and replay: written by hand, or random through the real chain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.planner.trials.replaying import replay
from rmm_uvm.planner.workload.events import (
    ALLOCATE,
    FREE,
    REPLAY_DTYPE,
    TOUCH,
    WRITES,
    Slab,
    Workload,
)
from rmm_uvm.planner.workload.result import ReplayResult
from rmm_uvm.simulator import load_machine

MIB = 1 << 20
BLOCK_BYTES = 2 * MIB
BASE = 1 << 46  # of recorded slabs: no address of this process
MODES = ("auto", "always", "never")
POLICIES = ("driver", "discard-dead")
MACHINE = load_machine("h200-pcie5")

# A replay counts the driver's time alone: the kernels' own is in the recording.
DRIVER_ONLY = {**MACHINE.constants(), "memory_bytes_per_ns": math.inf, "launch_ns": 0.0}

Event = tuple[int, int, int, int, int, int, int]  # fields of REPLAY_DTYPE

sizes_bytes = st.one_of(
    st.integers(1, 700),
    st.integers(1, 4 * MIB),
    st.sampled_from([256, 4096, 2 * MIB - 256, 2 * MIB, 2 * MIB + 1, 6 * MIB + 257]),
)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), sizes_bytes),
        st.tuples(st.sampled_from(["free", "read", "write", "cpu"]), st.integers(0, 63)),
    ),
    max_size=60,
)
Actions = Sequence[tuple[str, int]]


class Recorder:
    """A program on the real chain over a simulated device, and the events that it makes."""

    def __init__(self, device: SimulatedDevice, pool_bytes: int, prefetch: Any) -> None:
        self.device = device
        self.mr = rmm_uvm.managed_pool(
            driver=device,
            initial_pool_size=pool_bytes,
            maximum_pool_size=pool_bytes,
            prefetch=prefetch,
            device_budget=None,  # a plan is of the kernel driver
        )
        self.live: list[tuple[int, int]] = []
        self.events: list[Event] = []
        self.pool_bytes = pool_bytes
        # The first piece of a fresh pool lies where its slab begins.
        probe = self.mr.upstream_mr.allocate(256)
        self.slab = Slab(probe, pool_bytes)
        self.mr.upstream_mr.deallocate(probe, 256)

    def run(self, actions: Actions) -> None:
        """Do all actions; one that cannot be done (pool full, nothing live) is left out."""
        for action, number in actions:
            if action == "allocate":
                self._allocate(number)
            elif self.live:
                self._use(action, number % len(self.live))

    def _note(self, kind: int, flags: int, address: int, nbytes: int) -> None:
        self.events.append((kind, flags, 0, 0, address, nbytes, 1000 * len(self.events)))

    def _allocate(self, nbytes: int) -> None:
        try:
            address = self.mr.allocate(nbytes)
        except MemoryError:
            return
        self.live.append((address, nbytes))
        self._note(ALLOCATE, 0, address, nbytes)

    def _use(self, action: str, index: int) -> None:
        address, nbytes = self.live[index]
        if action == "free":
            del self.live[index]
            self._note(FREE, 0, address, nbytes)
            self.mr.deallocate(address, nbytes)
        elif action == "cpu":
            self._note(TOUCH, 2, address, nbytes)
            self.device.cpu_touch(address, nbytes)
        else:
            self._note(TOUCH, WRITES if action == "write" else 0, address, nbytes)
            self.device.touch(address, nbytes, write=action == "write")

    def close(self) -> None:
        """Free what is live, without noting it."""
        for address, nbytes in self.live:
            self.mr.deallocate(address, nbytes)
        self.live.clear()


def workload_of(
    events: Iterable[Event], slabs: Sequence[Slab], stages: tuple[str, ...] = ("",)
) -> Workload:
    """Return a workload of events, its figures counted event by event."""
    array = np.array(list(events), dtype=REPLAY_DTYPE)
    allocated = array[array["kind"] == ALLOCATE]["nbytes"]
    signs = {ALLOCATE: 1, FREE: -1, TOUCH: 0}
    live, peak = 0, 0
    for event in array:
        live += signs[int(event["kind"])] * int(event["nbytes"])
        peak = max(peak, live)
    return Workload(
        events=array,
        slabs=tuple(slabs),
        stages=stages,
        source=Path("program.trace"),
        kind="trace",
        touches_assumed=False,
        peak_live_bytes=peak,
        allocated_bytes=int(allocated.sum()),
        allocations=len(allocated),
        seconds=int(array["time_ns"][-1]) / 1e9 if len(array) else 0.0,
    )


def by_hand(
    *lines: tuple[int, int, float, float], slab_blocks: int, stages: tuple[str, ...] = ("",)
) -> Workload:
    """Return a workload of (kind, flags, first block, blocks) in one slab, 1 us apart."""
    events = [
        (kind, flags, 0, 0, BASE + int(first * BLOCK_BYTES), int(count * BLOCK_BYTES), 1000 * at)
        for at, (kind, flags, first, count) in enumerate(lines)
    ]
    return workload_of(events, [Slab(BASE, slab_blocks * BLOCK_BYTES)], stages)


def replayed(workload: Workload, blocks: int, **how: Any) -> ReplayResult:
    """Replay on a card of so many blocks."""
    return replay(workload, MACHINE, device_bytes=blocks * BLOCK_BYTES, **how)
