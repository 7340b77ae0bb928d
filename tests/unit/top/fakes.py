# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that are not there: counters, boards and devices that a test sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rmm_uvm.errors import AvailabilityError
from rmm_uvm.harvest import BoardView
from rmm_uvm.top.seams import PublishedDevice, Seams
from rmm_uvm.watch.sampling.nvml import GpuMemory
from rmm_uvm.watch.sampling.process import CudaProcess

GIB = 2**30
NOBODY_JOINED = BoardView(False, "no process has joined a board", "/dev/shm/board", (), ())


class FakeClock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class FakeCounters:
    """Counters of one process."""

    def __init__(self) -> None:
        self.totals = {
            "host_to_device_bytes": 0,
            "device_to_host_bytes": 0,
            "cpu_faults": 0,
            "gpu_faults": 0,
        }
        self.ended = False
        self.closed = 0

    def read(self) -> Mapping[str, int]:
        return dict(self.totals)

    def wait(self, timeout_seconds: float) -> bool:
        assert timeout_seconds == 0
        return self.ended

    def close(self) -> None:
        self.closed += 1


@dataclass
class FakeMachine:
    """All seams, with what a test puts there."""

    candidates: list[CudaProcess] = field(default_factory=list)
    board: list[PublishedDevice] = field(default_factory=list)
    memory: list[GpuMemory] = field(default_factory=list)
    no_devices: str = ""
    harvest: BoardView = NOBODY_JOINED
    counters: dict[int, FakeCounters] = field(default_factory=dict)
    attached: list[tuple[int, bool]] = field(default_factory=list)

    def process(self, pid: int, name: str = "program", **facts: str) -> FakeCounters:
        """Add a process that can be attached to."""
        self.candidates.append(CudaProcess(pid, name, **facts))  # type: ignore[arg-type]
        self.counters[pid] = FakeCounters()
        return self.counters[pid]

    def seams(self) -> Seams:
        def attach(pid: int, faults: bool) -> FakeCounters:
            if pid not in self.counters:
                raise AvailabilityError(f"process {pid} does not use CUDA")
            self.attached.append((pid, faults))
            return self.counters[pid]

        return Seams(
            processes=lambda: [c for c in self.candidates if not self._ended(c.pid)],
            attach=attach,
            published=lambda: list(self.board),
            devices=lambda: (list(self.memory), self.no_devices),
            harvest=lambda: self.harvest,
        )

    def _ended(self, pid: int) -> bool:
        return pid in self.counters and self.counters[pid].ended


def device(used_gib: float = 12, total_gib: float = 139, index: int = 0) -> GpuMemory:
    """Return a device with so much of it in use."""
    used, total = int(used_gib * GIB), int(total_gib * GIB)
    return GpuMemory(index, f"GPU-{index}", "NVIDIA H200", used, total - used, total)
