# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The view of one look at all processes, as plain values; JSON is made of the same."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rmm_uvm.harvest import BoardView
from rmm_uvm.top.program import program_name

if TYPE_CHECKING:
    from rmm_uvm.watch.sampling.nvml import GpuMemory

__all__ = ["BUDGET_FIGURES", "FIGURES", "SCHEMA_VERSION", "ProcessRow", "View"]

FIGURES = (
    "footprint_bytes",
    "resident_bytes",
    "capacity_bytes",
    "host_to_device_bytes",
    "device_to_host_bytes",
    "evicted_bytes_estimate",
    "cpu_faults",
    "gpu_faults",
)
"""Levels and totals of a row, by the names that who is watched has for them."""

BUDGET_FIGURES = (
    "budget_bytes",
    "overshoot_bytes",
    "harvested_bytes",
    "peak_harvested_bytes",
    "given_back_bytes",
)
"""The same of its budget, where there is one."""

_OF_DEVICE = ("index", "name", "uuid", "used_bytes", "free_bytes", "total_bytes")

SCHEMA_VERSION = 1
"""The version of the JSON: grows when a name goes or changes its meaning, not when one is added."""


@dataclass(frozen=True)
class ProcessRow:
    """One process on one device; None is what is not known.

    Parameters
    ----------
    pid, name, command, user
        The process, by the name that the kernel has; the command line is quoted as a shell's.
    source : {"published", "attached", ""}
        It says so itself, or its counters do; "" when nothing is seen.
    reason : str
        Why nothing is seen; empty when something is.
    exited : bool
        It has ended; figures are its last.
    device_id : int or None
        CUDA ordinal in that process; None: all of its devices together.
    simulated : bool
        Its device is a model, and nothing of this machine's.
    footprint_bytes, resident_bytes, capacity_bytes : int or None
        Levels.
    host_to_device_bytes, device_to_host_bytes, evicted_bytes_estimate : int or None
        Totals since it was watched first: by itself, or by this command.
    budget_bytes, overshoot_bytes : int or None
        Most device memory that the process gave its managed memory, and what faulted in beside it.
    harvested_bytes, peak_harvested_bytes, given_back_bytes : int or None
        Of its blocks, on other devices now and at most, and what left those for their owners.
    cpu_faults, gpu_faults : int or None
        Totals.
    in_bytes_per_second, out_bytes_per_second, faults_per_second : float or None
        To the device, to the host, and faults of both, since the look before.
    history : tuple of (float, float)
        Age in seconds, 0 now, and bytes each way a second: of the last minute, oldest first.
    """

    pid: int
    name: str
    command: str = ""
    user: str = ""
    source: Literal["published", "attached", ""] = ""
    reason: str = ""
    exited: bool = False
    device_id: int | None = None
    simulated: bool = False
    footprint_bytes: int | None = None
    resident_bytes: int | None = None
    capacity_bytes: int | None = None
    host_to_device_bytes: int | None = None
    device_to_host_bytes: int | None = None
    evicted_bytes_estimate: int | None = None
    budget_bytes: int | None = None
    overshoot_bytes: int | None = None
    harvested_bytes: int | None = None
    peak_harvested_bytes: int | None = None
    given_back_bytes: int | None = None
    cpu_faults: int | None = None
    gpu_faults: int | None = None
    in_bytes_per_second: float | None = None
    out_bytes_per_second: float | None = None
    faults_per_second: float | None = None
    history: tuple[tuple[float, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all but the history, by name; the process is called as its program is."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain["name"] = program_name(self.name, self.command)
        del plain["history"]
        return plain


@dataclass(frozen=True)
class View:
    """One look.

    Parameters
    ----------
    processes : tuple of ProcessRow
        Busiest first.
    devices : tuple of GpuMemory
        By index.
    devices_reason : str
        Why there are none, or not all.
    time : str
        When, ISO 8601, local.
    interval_seconds : float
        Between two looks.
    harvest : BoardView or None
        Who offers and who holds idle memory of which device; None if nobody looked.
    """

    processes: tuple[ProcessRow, ...] = ()
    devices: tuple[GpuMemory, ...] = ()
    devices_reason: str = ""
    time: str = ""
    interval_seconds: float = 1.0
    harvest: BoardView | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``rmm-uvm top --json`` prints.

        Examples
        --------
        >>> View(time="2026-11-21T12:00:00+00:00").to_dict()["processes"]
        []
        """
        return {
            "version": SCHEMA_VERSION,
            "time": self.time,
            "interval_seconds": self.interval_seconds,
            "processes": [row.to_dict() for row in self.processes],
            "devices": [
                {name: getattr(device, name) for name in _OF_DEVICE} for device in self.devices
            ],
            "devices_reason": self.devices_reason,
            "harvest": None if self.harvest is None else _plain(self.harvest),
        }


def _plain(board: BoardView) -> dict[str, Any]:
    """Return a board by name, with what follows for each device."""
    devices = [
        {
            **dataclasses.asdict(device),
            "offered_bytes": device.offered_bytes,
            "claimed_bytes": device.claimed_bytes,
            "busy": device.busy,
        }
        for device in board.devices
    ]
    return {**dataclasses.asdict(board), "devices": devices}
