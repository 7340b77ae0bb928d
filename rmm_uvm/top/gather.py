# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Keeping an eye on processes: whom to attach to, whom to believe, when to let go."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rmm_uvm.errors import UvmError
from rmm_uvm.machine.process_facts import is_alive, name_of
from rmm_uvm.top.seams import AttachedCounters, PublishedDevice, Seams
from rmm_uvm.top.track import Track
from rmm_uvm.top.view import BUDGET_FIGURES, FIGURES, ProcessRow, View
from rmm_uvm.watch.sampling.nvml import GpuMemory
from rmm_uvm.watch.sampling.process import CudaProcess

__all__ = ["Gatherer"]

# A process that publishes once a second is held up when it has not for so long.
_STALE_SECONDS = 5.0


@dataclass
class _Target:
    """One attached process."""

    candidate: CudaProcess
    counters: AttachedCounters
    track: Track = field(default_factory=Track)
    evicted_bytes: int = 0
    exited: bool = False


class Gatherer:
    """Looks at processes, and holds what is attached.

    Parameters
    ----------
    seams : Seams
        How to see them.
    pids : iterable of int
        These only; by default all that are seen.
    faults : bool
        Count faults of attached processes too.
    interval_seconds : float
        Between two looks, for the record.
    clock : callable
        () -> seconds, that never goes back.

    Notes
    -----
    For one thread. What a process publishes is preferred to attaching: only the process knows its
    footprint. An attached process must be let go soon after its end, since a tracker keeps its
    device memory alive: call `poll` at least once a second.
    """

    def __init__(
        self,
        seams: Seams,
        pids: Iterable[int] = (),
        *,
        faults: bool = False,
        interval_seconds: float = 1.0,
        clock: Callable[[], float],
    ) -> None:
        self._seams = seams
        self._pids = tuple(dict.fromkeys(pids))
        self._faults = faults
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._targets: dict[int, _Target] = {}
        self._refused: dict[int, CudaProcess] = {}
        self._tracks: dict[tuple[int, int], Track] = {}
        self._published: dict[int, dict[int, PublishedDevice]] = {}
        self._was_full = self._evicting = False
        self._evicted_known = False

    def require(self) -> list[str]:
        """Attach to the PIDs that were named; return one line for each that cannot be watched."""
        published = {each.pid for each in self._seams.published()}
        problems = []
        for pid in self._pids:
            if pid in published:
                continue
            try:
                self._attach(CudaProcess(pid, name_of(pid)))
            except UvmError as error:
                problems.append(str(error))
        return problems

    def look(self) -> View:
        """Return what there is to see now."""
        self.poll()
        devices, devices_reason = self._seams.devices()
        self._judge_full(devices)
        self._published = {}
        for each in self._seams.published():
            if self._pids and each.pid not in self._pids:
                continue
            by_device = self._published.setdefault(each.pid, {})
            # Of several monitors in a process the one that has watched the longest.
            if (other := by_device.get(each.device_id)) is None or (
                other.time_seconds < each.time_seconds
            ):
                by_device[each.device_id] = each
        for pid in self._published:
            self._let_go(pid)
        self._attach_new()
        rows = [*self._published_rows(), *self._attached_rows(), *self._refused_rows()]
        rows += self._gone_rows({row.pid for row in rows})
        rows.sort(key=lambda row: (-sum(rate for _, rate in row.history), row.pid))
        return View(
            tuple(rows),
            tuple(devices),
            devices_reason,
            datetime.now().astimezone().isoformat(timespec="seconds"),
            self._interval_seconds,
            self._seams.harvest(),
        )

    def poll(self) -> None:
        """Let go of processes that have ended."""
        for pid, target in list(self._targets.items()):
            if target.exited or not target.counters.wait(0.0):
                continue
            self._read(target)  # the last totals stay readable
            target.exited = True
            target.counters.close()
            if pid not in self._pids:
                del self._targets[pid]

    @property
    def all_ended(self) -> bool:
        """Whether PIDs were named and all of them have ended."""
        return bool(self._pids) and all(
            target.exited if (target := self._targets.get(pid)) else not is_alive(pid)
            for pid in self._pids
        )

    def close(self) -> None:
        """Let go of everything."""
        for pid in list(self._targets):
            self._let_go(pid)

    def _attach(self, candidate: CudaProcess) -> None:
        counters = self._seams.attach(candidate.pid, self._faults)
        self._targets[candidate.pid] = _Target(candidate, counters)

    def _let_go(self, pid: int) -> None:
        target = self._targets.pop(pid, None)
        if target is not None:
            target.counters.close()

    def _attach_new(self) -> None:
        seen = {each.pid: each for each in self._seams.processes()}
        self._refused = {pid: each for pid, each in self._refused.items() if pid in seen}
        for pid, candidate in seen.items():
            if pid in self._targets:
                self._targets[pid].candidate = candidate  # with command and user
                continue
            if pid == os.getpid() or pid in self._published or pid in self._refused:
                continue
            if self._pids and pid not in self._pids:
                continue
            if not candidate.attachable:
                self._refused[pid] = candidate
                continue
            try:
                self._attach(candidate)
            except UvmError as error:  # it has just ended, or may not be traced after all
                self._refused[pid] = dataclasses.replace(
                    candidate, attachable=False, reason=str(error)
                )

    def _judge_full(self, devices: Iterable[GpuMemory]) -> None:
        """Decide whether what leaves the device now is evicted, as the sampler does."""
        known = list(devices)
        # Of several devices it is not known which one an attached process uses.
        self._evicted_known = len(known) == 1
        full = self._evicted_known and known[0].full
        self._evicting, self._was_full = full or self._was_full, full

    def _read(self, target: _Target) -> None:
        figures: dict[str, Any] = dict(target.counters.read())
        if not self._faults:
            figures["cpu_faults"] = figures["gpu_faults"] = None
        before = target.track.figures.get("device_to_host_bytes")
        if before is not None and self._evicting:
            target.evicted_bytes += max(0, figures["device_to_host_bytes"] - before)
        figures["evicted_bytes_estimate"] = target.evicted_bytes if self._evicted_known else None
        now = self._clock()
        target.track.add(figures, now, now)

    def _published_rows(self) -> Iterable[ProcessRow]:
        now = self._clock()
        alive = {(pid, device) for pid, each in self._published.items() for device in each}
        self._tracks = {key: track for key, track in self._tracks.items() if key in alive}
        for pid, by_device in self._published.items():
            for device_id, each in by_device.items():
                track = self._tracks.setdefault((pid, device_id), Track())
                track.add(each.figures, each.time_seconds, now)
                row = _row(
                    track,
                    now,
                    pid=pid,
                    name=each.name,
                    command=each.command,
                    user=each.user,
                    source="published",
                    device_id=device_id,
                    simulated=bool(each.figures.get("simulated", False)),
                )
                yield row if each.age_seconds < _STALE_SECONDS else _without_rates(row)

    def _attached_rows(self) -> Iterable[ProcessRow]:
        for target in self._targets.values():
            if not target.exited:
                self._read(target)
            yield _row(
                target.track,
                self._clock(),
                pid=target.candidate.pid,
                name=target.candidate.name,
                command=target.candidate.command,
                user=target.candidate.user,
                source="attached",
                exited=target.exited,
            )

    def _refused_rows(self) -> Iterable[ProcessRow]:
        for each in self._refused.values():
            if each.pid not in self._published:
                yield ProcessRow(each.pid, each.name, each.command, each.user, reason=each.reason)

    def _gone_rows(self, shown: set[int]) -> Iterable[ProcessRow]:
        for pid in self._pids:
            if pid not in shown:
                ended = not is_alive(pid)
                reason = "it has ended" if ended else "it does not publish any more"
                yield ProcessRow(pid, name_of(pid), reason=reason, exited=ended)


def _without_rates(row: ProcessRow) -> ProcessRow:
    return dataclasses.replace(
        row, in_bytes_per_second=None, out_bytes_per_second=None, faults_per_second=None
    )


def _row(track: Track, now_seconds: float, **known: Any) -> ProcessRow:
    known.update((name, track.figures.get(name)) for name in FIGURES)
    budget = track.figures.get("budget")
    if isinstance(budget, dict):  # who publishes may be another version
        known.update((name, budget.get(name)) for name in BUDGET_FIGURES)
    row = ProcessRow(
        **known,
        in_bytes_per_second=track.in_bytes_per_second,
        out_bytes_per_second=track.out_bytes_per_second,
        faults_per_second=track.faults_per_second,
        history=track.history(now_seconds),
    )
    return _without_rates(row) if row.exited else row
