# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Where a program runs that a plan was made for: a GPU, or a simulated device with as much room.

A run makes its pool, and is over when the device has done all of its work. What a pool costs when
it is freed does not count.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import rmm_uvm
from benchmarks.common.gpu_arrays import GpuArrays
from rmm_uvm.simulator import DriverSettings
from rmm_uvm.simulator.card import simulated_card

Program = Callable[[Any], None]
ROOM_BYTES = 24 << 30


@dataclass(frozen=True)
class Run:
    """What one run took: seconds, bytes copied each way, and words that were not as written."""

    seconds: float
    to_device_bytes: int
    to_host_bytes: int
    wrong_words: int


class Place(Protocol):
    """Where programs run."""

    background: bool
    """Whether budgets are kept by a thread too."""
    checked: bool
    """Whether contents are checked."""

    def run(self, program: Program, settings: Mapping[str, Any]) -> Run:
        """Run a program in a pool of `rmm_uvm.managed_pool` with these settings."""


class GpuPlace:
    """The first GPU. Arrays are checked whenever they are read."""

    background, checked = True, True

    def __init__(self, passes: int) -> None:
        self._driver, self._passes = rmm_uvm.cuda_driver(0), passes

    def run(self, program: Program, settings: Mapping[str, Any]) -> Run:
        """Run; time is this machine's."""
        import cupy

        synchronize = cupy.cuda.runtime.deviceSynchronize
        before = self._driver.migrated_bytes()
        synchronize()
        begin = time.perf_counter()
        mr = rmm_uvm.managed_pool(driver=self._driver, **settings)
        synchronize()
        made_seconds = time.perf_counter() - begin
        arrays = GpuArrays(mr, self._passes)  # kernels are compiled here
        synchronize()
        begin = time.perf_counter()
        program(arrays)
        wrong_words = arrays.finish()
        took_seconds = time.perf_counter() - begin
        after = self._driver.migrated_bytes()
        moved = [b - a for a, b in zip(before, after, strict=True)]
        del arrays, mr
        gc.collect()
        return Run(made_seconds + took_seconds, moved[0], moved[1], wrong_words)


class SimulatedArrays:
    """Memory of a pool on a simulated device, used as `Arrays` of `residency/programs.py` says.

    Parameters
    ----------
    mr : UvmResourceAdaptor
        Whence it comes.
    device : SimulatedDevice
        What is touched.
    announce : bool
        Announce uses; a recording needs none.
    """

    def __init__(self, mr: Any, device: Any, *, announce: bool = True) -> None:
        self._mr, self._device, self._announce = mr, device, announce
        self._prefetcher = mr.managed_mr.residency
        self._sizes: dict[int, int] = {}

    def make(self, nbytes: int) -> int:
        """Allocate and write."""
        address = int(self._mr.allocate(nbytes))
        self._sizes[address] = nbytes
        self._device.touch(address, nbytes, write=True)
        self._prefetcher.run_pending()
        return address

    def read(self, handle: int, first_byte: int = 0, nbytes: int | None = None) -> None:
        """Announce, then read all of it, or a part."""
        self._use(handle, first_byte, nbytes or self._sizes[handle] - first_byte, write=False)

    def write(self, handle: int) -> None:
        """Announce, then read and write all of it."""
        self._use(handle, 0, self._sizes[handle], write=True)

    def free(self, handle: int) -> None:
        """Free."""
        self._mr.deallocate(handle, self._sizes.pop(handle))

    def _use(self, handle: int, first_byte: int, nbytes: int, *, write: bool) -> None:
        if self._announce:
            self._prefetcher.touch(handle + first_byte, nbytes, handle)
        self._device.touch(handle + first_byte, nbytes, write=write)
        self._prefetcher.run_pending()


class SimulatedPlace:
    """A fresh simulated device for every run; time is modelled, contents are none.

    Parameters
    ----------
    machine : Machine
        Profile of the device.
    device_bytes : int
        Its memory.
    """

    background, checked = False, False

    def __init__(self, machine: Any, device_bytes: int = ROOM_BYTES) -> None:
        self._machine, self._device_bytes = machine, device_bytes

    def run(self, program: Program, settings: Mapping[str, Any]) -> Run:
        """Run; nothing is in threads, so that it is the same at every run."""
        device = simulated_card(self._machine, DriverSettings(), self._device_bytes, None)
        program(SimulatedArrays(rmm_uvm.managed_pool(driver=device, **settings), device))
        counts = device.statistics()
        return Run(
            counts["modelled_ns"] / 1e9,
            counts["host_to_device_bytes"],
            counts["device_to_host_bytes"],
            0,
        )


def record(program: Program, settings: Mapping[str, Any], trace: Any, machine: Any) -> None:
    """Record a program on a simulated device with room for it, touches and all."""
    device = simulated_card(machine, DriverSettings(), ROOM_BYTES, None)
    recording = {"trace": trace, "on_finding": None}
    with rmm_uvm.reinitialize(
        driver=device, libraries=(), monitor=recording, **settings
    ) as installed:
        mr = installed.devices[0].managed_mr
        program(SimulatedArrays(mr, device, announce=False))
