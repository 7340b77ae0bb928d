# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Where figures of other processes come from: boards, counters, and NVML.

Each seam is a callable that answers with plain values, so that everything above is tested without a
GPU. What is not there is a reason, never an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rmm_uvm.errors import UvmError

__all__ = ["Candidate", "Counters", "DeviceMemory", "Published", "Seams", "real_seams"]


class Counters(Protocol):
    """Counters of another process, attached; see `rmm_uvm._lib.cuda.ProcessCounters`."""

    def read(self) -> Mapping[str, int]:
        """Return totals since attaching."""

    def wait(self, timeout_seconds: float) -> bool:
        """Return whether the process has ended, and let go of it if so."""

    def close(self) -> None:
        """Let go of the process."""


@dataclass(frozen=True)
class Candidate:
    """A process that uses CUDA.

    Parameters
    ----------
    pid : int
        Its number.
    name : str
        Of the executable, without its folder.
    command : str
        Its command line.
    user : str
        Who runs it.
    attachable : bool
        This process may attach to it.
    reason : str
        Why not; empty when attachable.
    """

    pid: int
    name: str
    command: str = ""
    user: str = ""
    attachable: bool = True
    reason: str = ""


@dataclass(frozen=True)
class Published:
    """What one monitor of a process publishes of one device.

    Parameters
    ----------
    pid : int
        The process.
    name : str
        Of its program.
    device_id : int
        CUDA ordinal in that process.
    time_seconds : float
        When it was published, since the monitor began.
    figures : mapping of str to int or float
        By the names of `rmm_uvm.watch.snapshot.Snapshot`; what is not known is missing or None.
    """

    pid: int
    name: str
    device_id: int
    time_seconds: float
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceMemory:
    """Memory of one device, by all processes.

    Parameters
    ----------
    index : int
        In NVML's order.
    name, uuid : str
        As NVML names it.
    used_bytes, total_bytes : int
        Bytes.
    free_bytes : int
        Bytes; used and free may leave out what the driver keeps.
    """

    index: int
    name: str
    uuid: str
    used_bytes: int
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Seams:
    """The four ways to see something.

    Parameters
    ----------
    processes : callable
        () -> all processes that use CUDA.
    attach : callable
        (pid, faults) -> `Counters`; raises `UvmError` in one line.
    published : callable
        () -> what processes publish.
    devices : callable
        () -> (memory of all devices, why there is none).
    close : callable
        Lets go of NVML.
    """

    processes: Callable[[], Sequence[Candidate]]
    attach: Callable[[int, bool], Counters]
    published: Callable[[], Sequence[Published]]
    devices: Callable[[], tuple[Sequence[DeviceMemory], str]]
    close: Callable[[], None] = lambda: None


def real_seams() -> Seams:
    """Return the seams of this machine."""
    nvml = _NvmlReader()
    return Seams(_processes, _attach, _published, nvml.read)


def _processes() -> Sequence[Candidate]:
    from rmm_uvm.watch.process import cuda_processes

    return [
        Candidate(each.pid, each.name, each.command, each.user, each.attachable, each.reason)
        for each in cuda_processes()
    ]


def _attach(pid: int, faults: bool) -> Counters:  # noqa: FBT001 - a seam, never called by users
    from rmm_uvm._lib.cuda import ProcessCounters

    counters: Counters = ProcessCounters(pid, faults=faults)
    return counters


def _published() -> Sequence[Published]:

    return []


class _NvmlReader:
    """Memory of all devices through NVML, opened at the first look."""

    def __init__(self) -> None:
        self._nvml: Any = None

    def read(self) -> tuple[Sequence[DeviceMemory], str]:
        """Return the devices, or why there are none."""
        from rmm_uvm._lib.cuda import Nvml

        if self._nvml is None:
            self._nvml = Nvml()
        available = self._nvml.available
        if not available:
            return (), available.reason
        found = []
        try:
            for index, device in enumerate(self._nvml.devices()):
                used, free, total = self._nvml.memory(device.uuid)
                found.append(DeviceMemory(index, device.name, device.uuid, used, free, total))
        except UvmError as error:
            return found, str(error)
        return found, ""
