# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A workbench over the simulator: what is measured on a machine that is known to the nanosecond."""

from __future__ import annotations

from typing import Literal

from rmm_uvm.simulator import Access, Machine, Simulator, recorded, sequential

PAGE_BYTES = 4096


class SimulatorWorkbench:
    """The machine itself answers for copies of pinned memory, the simulator for all else."""

    has_discard = True
    devices = 1

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.simulator = Simulator(machine)
        self.device_bytes = machine.device_bytes
        self.most_managed_bytes = 0

    def seconds(self) -> float:
        return self.simulator.seconds

    def synchronize(self) -> None:
        self.simulator.synchronize()

    def allocate_managed(self, nbytes: int) -> int:
        address = self.simulator.allocate_managed(nbytes)
        managed_bytes = self.simulator.counters().managed_bytes
        self.most_managed_bytes = max(self.most_managed_bytes, managed_bytes)
        return address

    def free_managed(self, address: int, nbytes: int) -> None:
        self.simulator.free_managed(address)

    def allocate_device(self, nbytes: int) -> int:
        return self.simulator.allocate_device(nbytes)

    def free_device(self, address: int) -> None:
        self.simulator.free_device(address)

    def prefetch(self, address: int, nbytes: int, where: Literal["device", "host"]) -> None:
        self.simulator.prefetch(address, nbytes, gpu=None if where == "host" else 0)

    def discard(self, address: int, nbytes: int) -> None:
        self.simulator.discard(address, nbytes)

    def discard_and_prefetch(self, address: int, nbytes: int) -> None:
        self.simulator.discard_and_prefetch(address, nbytes)

    def nothing(self) -> None:
        self.simulator.kernel([])

    def keep_busy(self, seconds: float) -> None:
        self.simulator.kernel([], compute_seconds=seconds)

    def touch(self, address: int, nbytes: int, stride_bytes: int) -> None:
        pattern = sequential()
        if stride_bytes > PAGE_BYTES:
            pattern = recorded(range(0, nbytes // PAGE_BYTES, stride_bytes // PAGE_BYTES))
        self.simulator.kernel([Access(address, nbytes, pattern, write=True)])

    def write(self, address: int, nbytes: int) -> None:
        self.simulator.kernel([Access(address, nbytes, write=True)])

    def read(self, address: int, nbytes: int) -> None:
        self.simulator.kernel([Access(address, nbytes)])

    def cpu_touch(self, address: int, nbytes: int) -> None:
        self.simulator.cpu_touch(address, nbytes, write=True)

    def copy_seconds(self, nbytes: int, where: Literal["device", "host"]) -> float:
        machine = self.machine
        to_device = where == "device"
        rate = machine.to_device_bytes_per_ns if to_device else machine.to_host_bytes_per_ns
        return nbytes / rate / 1e9

    def duplex_seconds(self, nbytes: int) -> float:
        machine = self.machine
        alone = (machine.to_device_bytes_per_ns + machine.to_host_bytes_per_ns) / 2
        return nbytes / (alone * machine.duplex_fraction) / 1e9

    def small_copy_seconds(self, nbytes: int, count: int) -> float:
        one = self.machine.copy_ns / 1e9 + self.copy_seconds(nbytes, "device")
        return count * one

    def remote_read_seconds(self, nbytes: int) -> float:
        return (self.machine.launch_ns + nbytes / self.machine.remote_bytes_per_ns) / 1e9
