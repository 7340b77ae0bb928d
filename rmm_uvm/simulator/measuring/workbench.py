# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The seam between measuring and a GPU.

Covers the operations and a clock. Does not say what is done with them
(`rmm_uvm.simulator.measuring.procedure`). `rmm_uvm.simulator.measuring.gpu.GpuWorkbench` is the
real one; tests have another, over the simulator.
"""

from __future__ import annotations

from typing import Literal, Protocol

__all__ = ["Workbench"]


class Workbench(Protocol):
    """A device, one stream of it, memory and kernels.

    Operations are issued in order and may return before they are done, except where it says
    otherwise; `synchronize` waits. Addresses are multiples of 2 MiB. Not thread-safe.
    """

    @property
    def device_bytes(self) -> int:
        """Device memory, total."""

    @property
    def devices(self) -> int:
        """GPUs that the process sees."""

    @property
    def has_discard(self) -> bool:
        """Whether the two discard calls work."""

    def seconds(self) -> float:
        """Return the time; only differences mean something."""

    def synchronize(self) -> None:
        """Wait until everything that was issued is done."""

    # Memory.
    def allocate_managed(self, nbytes: int) -> int:
        """Allocate managed memory that nobody has touched. Raises MemoryError."""

    def free_managed(self, address: int, nbytes: int) -> None:
        """Free it; waits for what uses it."""

    def allocate_device(self, nbytes: int) -> int:
        """Allocate device memory. Raises MemoryError."""

    def free_device(self, address: int) -> None:
        """Free it."""

    # Commands.
    def prefetch(self, address: int, nbytes: int, where: Literal["device", "host"]) -> None:
        """Migrate."""

    def discard(self, address: int, nbytes: int) -> None:
        """Drop contents."""

    def discard_and_prefetch(self, address: int, nbytes: int) -> None:
        """Drop contents, and have memory on the device."""

    # Programs.
    def nothing(self) -> None:
        """Launch an empty kernel."""

    def keep_busy(self, seconds: float) -> None:
        """Launch a kernel that lasts so long."""

    def touch(self, address: int, nbytes: int, stride_bytes: int) -> None:
        """Launch a kernel that reads and writes a word at every stride, upwards."""

    def write(self, address: int, nbytes: int) -> None:
        """Launch a kernel that writes every word, upwards, and reads none."""

    def read(self, address: int, nbytes: int) -> None:
        """Launch a kernel that reads every byte."""

    def cpu_touch(self, address: int, nbytes: int) -> None:
        """Write to every page by the CPU; done when it returns."""

    # Pinned memory: each returns seconds.
    def copy_seconds(self, nbytes: int, where: Literal["device", "host"]) -> float:
        """Time one copy."""

    def duplex_seconds(self, nbytes: int) -> float:
        """Time two copies at once, one each way, of `nbytes` each."""

    def small_copy_seconds(self, nbytes: int, count: int) -> float:
        """Time `count` queued copies to the device, all together."""

    def remote_read_seconds(self, nbytes: int) -> float:
        """Time a kernel that reads pinned host memory, its launch included."""
