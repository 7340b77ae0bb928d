# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Device memory of all processes, through NVML: plain values for views and reports.

Creates no CUDA context. Does not cover what moves: NVML does not know of managed memory's pages.
"""

from __future__ import annotations

import dataclasses

from rmm_uvm._lib.cuda import Nvml
from rmm_uvm.errors import AvailabilityError

__all__ = ["FULL_FRACTION", "GpuMemory", "GpuProcess", "gpu_memory"]

FULL_FRACTION = 0.02
"""As the sampler has it: an eviction is what leaves while less than this share is free."""


@dataclasses.dataclass(frozen=True)
class GpuProcess:
    """A process that computes on a device.

    Parameters
    ----------
    pid : int
        In a container it may be the host's number.
    used_bytes : int or None
        Device memory that it holds; None if it is not told.
    """

    pid: int
    used_bytes: int | None


@dataclasses.dataclass(frozen=True)
class GpuMemory:
    """The memory of one device at one moment.

    Parameters
    ----------
    index : int
        NVML's number, which may be another than CUDA's.
    uuid : str
        "GPU-...".
    name : str
    used_bytes, free_bytes, total_bytes : int or None
        Of all processes; `total_bytes` is what the card has. None if it is not told.
    processes : tuple of GpuProcess
        In order of their PID; empty if they are not told.
    """

    index: int
    uuid: str
    name: str
    used_bytes: int | None
    free_bytes: int | None
    total_bytes: int | None
    processes: tuple[GpuProcess, ...] = ()

    @property
    def full(self) -> bool:
        """Whether so little is free that what comes in pushes other pages out."""
        if self.free_bytes is None or self.total_bytes is None:
            return False
        return self.free_bytes < FULL_FRACTION * self.total_bytes


def gpu_memory(nvml: Nvml | None = None) -> tuple[GpuMemory, ...]:
    """Read the memory of every device, once.

    Parameters
    ----------
    nvml : Nvml, optional
        Kept by callers that ask often; a new one by default.

    Returns
    -------
    tuple of GpuMemory
        In NVML's order.

    Raises
    ------
    AvailabilityError
        If there is no NVML here.

    Notes
    -----
    Thread-safe. A new `nvml` has to be initialised first, which takes longer than reading.
    """
    nvml = Nvml() if nvml is None else nvml
    return tuple(
        GpuMemory(index, uuid, name, *_memory(nvml, uuid), _processes(nvml, uuid))
        for index, (uuid, name) in enumerate(nvml.devices())
    )


def _memory(nvml: Nvml, uuid: str) -> tuple[int | None, int | None, int | None]:
    """Return used, free and total bytes; a part of a divided device may not tell them."""
    try:
        return nvml.memory(uuid)
    except AvailabilityError:
        return None, None, None


def _processes(nvml: Nvml, uuid: str) -> tuple[GpuProcess, ...]:
    """Return who computes on a device, as far as it is told."""
    try:
        found = nvml.processes(uuid)
    except AvailabilityError:
        return ()
    return tuple(GpuProcess(pid, used_bytes) for pid, used_bytes in sorted(found))
