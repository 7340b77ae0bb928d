# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Sources of figures of other processes: boards, counters, and NVML.

Each seam is a callable that answers with plain values, so that everything above is tested without a
GPU. What is not there is a reason, never an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rmm_uvm.harvest import BoardView
    from rmm_uvm.watch.sampling.nvml import GpuMemory
    from rmm_uvm.watch.sampling.process import CudaProcess

__all__ = [
    "AttachedCounters",
    "PublishedDevice",
    "Seams",
]


class AttachedCounters(Protocol):
    """Counters of another process, attached; see `rmm_uvm._lib.cuda.ProcessCounters`."""

    def read(self) -> Mapping[str, int]:
        """Return totals since attaching."""

    def wait(self, timeout_seconds: float) -> bool:
        """Return whether the process has ended, and let go of it if so."""

    def close(self) -> None:
        """Let go of the process."""


@dataclass(frozen=True)
class PublishedDevice:
    """Figures that one monitor of a process publishes about one device.

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

    processes: Callable[[], Sequence[CudaProcess]]
    attach: Callable[[int, bool], AttachedCounters]
    published: Callable[[], Sequence[PublishedDevice]]
    devices: Callable[[], tuple[Sequence[GpuMemory], str]]
    harvest: Callable[[], BoardView]
