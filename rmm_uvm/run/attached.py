# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Watches a command from outside: the counters of its processes, and device memory.

Works for any program, and for all processes of a command together. What a Python process among them
records of itself is more, and is preferred; see `rmm_uvm.run.child`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from rmm_uvm.errors import UvmError
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.machine.process_facts import descendants
from rmm_uvm.recording.recorded import RecordedDevice, Recording
from rmm_uvm.recording.sample import SAMPLE_DTYPE, Known
from rmm_uvm.support.units import format_bytes
from rmm_uvm.top.seams import AttachedCounters, Seams

if TYPE_CHECKING:
    from rmm_uvm.watch.sampling.nvml import GpuMemory

__all__ = ["Follower"]

_SEARCH_SECONDS = 0.25  # /proc is read for new processes no more often than this
_HISTORY = 86_400
_TOTALS = ("host_to_device_bytes", "device_to_host_bytes", "cpu_faults", "gpu_faults")


@dataclass
class _Followed:
    name: str
    counters: AttachedCounters
    totals: dict[str, int] = field(default_factory=dict)
    ended: bool = False


class Follower:
    """Follows all processes of a command.

    Parameters
    ----------
    seams : Seams
        How to see them.
    faults : bool
        Count faults too.
    interval_seconds : float
        Between two samples, for the record.
    clock : callable
        () -> seconds, that never goes back.
    tree : callable
        PID -> the process and all below it.

    Notes
    -----
    For one thread. A process' counters rise from the moment at which it is found, which is when it
    has opened CUDA and at most a quarter of a second later. All its devices are taken together.
    """

    def __init__(
        self,
        seams: Seams,
        *,
        faults: bool,
        interval_seconds: float,
        clock: Callable[[], float],
        tree: Callable[[int], set[int]] = descendants,
    ) -> None:
        self._seams = seams
        self._faults = faults
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._tree = tree
        self._began = datetime.now(UTC).isoformat(timespec="seconds")
        self._begin_seconds = clock()
        self._searched_seconds = float("-inf")
        self._followed: dict[int, _Followed] = {}
        self._refused: dict[int, str] = {}
        self._samples: deque[np.void] = deque(maxlen=_HISTORY)
        self._taken = 0
        self._devices: Sequence[GpuMemory] = ()
        self._devices_reason = ""
        self._sum = dict.fromkeys((*_TOTALS, "evicted_bytes_estimate"), 0)
        self._was_full = False

    def look(self, root_pid: int) -> None:
        """Find new processes of the command, and take a sample."""
        now = self._clock()
        if now - self._searched_seconds >= _SEARCH_SECONDS:
            self._searched_seconds = now
            self._search(root_pid)
        self._sample(now)

    def finish(self) -> None:
        """Let go of everything."""
        if self._followed:
            self._sample(self._clock())
        for each in self._followed.values():
            each.counters.close()

    def others(self, own_pid: int | None) -> list[str]:
        """Return a line for each followed process but one, and for those that could not be."""
        lines = [
            f"also PID {pid} {each.name}: {format_bytes(each.totals['host_to_device_bytes'])} to "
            f"the device, {format_bytes(each.totals['device_to_host_bytes'])} to the host"
            for pid, each in self._followed.items()
            if pid != own_pid and each.totals
        ]
        return lines + [
            f"PID {pid} was not watched: {reason}"
            for pid, reason in self._refused.items()
            if pid != own_pid
        ]

    def recording(self) -> Recording:
        """Return what was seen, of all processes together."""
        samples = np.zeros(len(self._samples), SAMPLE_DTYPE)
        for place, row in enumerate(self._samples):
            samples[place] = row
        attached = bool(self._followed)
        why = "; ".join(dict.fromkeys(self._refused.values()))
        return Recording(
            samples=samples,
            devices=tuple(_facts_of(each) for each in self._devices[:1]),
            sources={
                "kernel_counters": Availability(
                    attached, "" if attached else why or "the command did not use CUDA"
                ),
                "nvml": Availability(bool(self._devices), self._devices_reason),
            },
            began=self._began,
            interval_seconds=self._interval_seconds,
            lost_samples=self._taken - len(self._samples),
            settings={"watched": "from outside, all processes of the command together"},
        )

    def _search(self, root_pid: int) -> None:
        ours: set[int] | None = None
        for candidate in self._seams.processes():
            pid = candidate.pid
            if pid in self._followed or pid in self._refused or pid == os.getpid():
                continue
            ours = self._tree(root_pid) if ours is None else ours
            if pid not in ours:
                continue
            try:
                counters = self._seams.attach(pid, self._faults)
            except UvmError as error:
                self._refused[pid] = str(error)
            else:
                self._followed[pid] = _Followed(candidate.name, counters)

    def _sample(self, now_seconds: float) -> None:
        self._devices, self._devices_reason = self._seams.devices()
        before = self._sum["device_to_host_bytes"]
        for each in self._followed.values():
            if each.ended:
                continue
            each.ended = each.counters.wait(0.0)
            totals = {name: int(each.counters.read().get(name, 0)) for name in _TOTALS}
            for name in _TOTALS:
                self._sum[name] += totals[name] - each.totals.get(name, 0)
            each.totals = totals
        known = Known(0)
        if self._followed:
            known |= Known.COUNTERS | (Known.FAULTS if self._faults else Known(0))
        row: dict[str, Any] = dict(self._sum)
        if self._devices:
            device = self._devices[0]
            if device.full or self._was_full:
                self._sum["evicted_bytes_estimate"] += self._sum["device_to_host_bytes"] - before
                row["evicted_bytes_estimate"] = self._sum["evicted_bytes_estimate"]
            self._was_full = device.full
            if device.used_bytes is not None:
                known |= Known.DEVICE
                row["device_used_bytes"] = device.used_bytes
        if not known:
            return
        row["time_ns"] = round(max(0.0, now_seconds - self._begin_seconds) * 1e9)
        row["device_id"] = self._devices[0].index if self._devices else 0
        row["known"] = int(known)
        sample = np.zeros(1, SAMPLE_DTYPE)
        for name, value in row.items():
            sample[name] = value
        self._samples.append(sample[0])
        self._taken += 1


def _facts_of(device: GpuMemory) -> RecordedDevice:
    total_bytes = device.total_bytes or 0
    return RecordedDevice(device.index, device.name, device.uuid, total_bytes, total_bytes)
