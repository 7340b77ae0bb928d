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

from rmm_uvm.harvest import BoardView

__all__ = [
    "FULL_FRACTION",
    "AttachedCounters",
    "Candidate",
    "DeviceMemory",
    "PublishedDevice",
    "Seams",
]

FULL_FRACTION = 0.02
"""As the sampler has it: an eviction is what leaves while less than this share is free."""


class AttachedCounters(Protocol):
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
class PublishedDevice:
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
    command : str
        Its command line.
    age_seconds : float
        Since it was published.
    user : str
        Who runs it.
    """

    pid: int
    name: str
    device_id: int
    time_seconds: float
    figures: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    age_seconds: float = 0.0
    user: str = ""


@dataclass(frozen=True)
class DeviceMemory:
    """Memory of one device, by all processes.

    Parameters
    ----------
    index : int
        In NVML's order.
    name, uuid : str
        As NVML names it.
    used_bytes, free_bytes, total_bytes : int or None
        Bytes; None where they are not told.
    """

    index: int
    name: str
    uuid: str
    used_bytes: int | None
    free_bytes: int | None
    total_bytes: int | None

    @property
    def full(self) -> bool:
        """Whether so little is free that what comes in pushes other pages out."""
        if self.free_bytes is None or self.total_bytes is None:
            return False
        return self.free_bytes < FULL_FRACTION * self.total_bytes


@dataclass(frozen=True)
class Seams:
    """The five ways to see something.

    Parameters
    ----------
    processes : callable
        () -> all processes that use CUDA.
    attach : callable
        (pid, faults) -> `AttachedCounters`; raises `UvmError` in one line.
    published : callable
        () -> what processes publish.
    devices : callable
        () -> (memory of all devices, why there is none).
    harvest : callable
        () -> who offers and who holds idle memory of which device.
    """

    processes: Callable[[], Sequence[Candidate]]
    attach: Callable[[int, bool], AttachedCounters]
    published: Callable[[], Sequence[PublishedDevice]]
    devices: Callable[[], tuple[Sequence[DeviceMemory], str]]
    harvest: Callable[[], BoardView]
