# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Five programs in little, as what they allocate and touch, for checking advice on them.

Each runs against any memory resource on any simulated device, always in the same way. Their peaks
are between 300 and 600 MiB.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rmm_uvm

MIB = 1 << 20
FITTING_SECONDS = 0.2
MACHINE = "h200-pcie5"  # what a simulated device is when nothing else is asked for


class Memory:
    """Memory of a resource on a simulated device, and touches as kernels would make them.

    Parameters
    ----------
    mr : rmm.mr.DeviceMemoryResource
        Whence it comes.
    device : SimulatedDevice
        What is touched.
    stage : callable
        Marks stages; `rmm_uvm.stage`, or what does nothing.
    """

    def __init__(self, mr: Any, device: Any, stage: Callable[[str], Any]) -> None:
        self._mr, self._device = mr, device
        self.stage = stage
        self._sizes: dict[int, int] = {}

    def made(self, nbytes: int) -> int:
        """Allocate and fill; return the address."""
        address = self._mr.allocate(nbytes)
        self._sizes[address] = nbytes
        self._device.touch(address, nbytes, write=True)
        return int(address)

    def read(self, address: int, first_byte: int = 0, nbytes: int | None = None) -> None:
        """Read an allocation, or a part of it."""
        self._device.touch(address + first_byte, nbytes or self._sizes[address] - first_byte)

    def write(self, address: int) -> None:
        """Write an allocation."""
        self._device.touch(address, self._sizes[address], write=True)

    def free(self, *addresses: int) -> None:
        """Free allocations."""
        for address in addresses:
            self._mr.deallocate(address, self._sizes.pop(address))

    def free_all(self) -> None:
        """Free what is left."""
        self.free(*self._sizes)


def etl_loop(memory: Memory) -> None:
    """Load a part, clean it, aggregate it; keep a little of each."""
    for number in range(6):
        with memory.stage("load"):
            raw = memory.made(160 * MIB)
        with memory.stage("clean"):
            clean = memory.made(140 * MIB)
            memory.read(raw)
            memory.write(clean)
            memory.free(raw)
        with memory.stage("aggregate"):
            work = memory.made(96 * MIB)
            memory.read(clean)
            memory.made((8 + number) * MIB)
            memory.free(work, clean)


def hash_join(memory: Memory) -> None:
    """Build a table, probe it at random places with a large side, gather the result."""
    chosen = random.Random(1)
    with memory.stage("build"):
        build = memory.made(128 * MIB)
        table = memory.made(96 * MIB)
        memory.read(build)
        memory.write(table)
    with memory.stage("probe"):
        probe = memory.made(192 * MIB)
        for part in range(24):
            memory.read(probe, part * 8 * MIB, 8 * MIB)
            for _ in range(20):
                memory.read(table, chosen.randrange(96 * 16) * MIB // 16, MIB // 16)
    with memory.stage("gather"):
        joined = memory.made(160 * MIB)
        memory.read(build)
        memory.free(table, build, probe)
        memory.read(joined)


def growing_frame(memory: Memory) -> None:
    """Append a column again and again, going over what is there now and then."""
    columns = []
    for number in range(24):
        with memory.stage("append"):
            columns.append(memory.made(20 * MIB))
        if number % 6 == 5:
            with memory.stage("go over"):
                for column in columns:
                    memory.read(column)


def training_loop(memory: Memory) -> None:
    """Go over the same data in every round, with work space that comes and goes."""
    with memory.stage("load"):
        data = [memory.made(48 * MIB) for _ in range(6)]
        gradients = memory.made(24 * MIB)
    for _ in range(8):
        with memory.stage("round"):
            histograms = memory.made(16 * MIB)
            for part in data:
                memory.read(part)
            memory.write(gradients)
            memory.write(histograms)
            memory.free(histograms)


def random_small(memory: Memory) -> None:
    """Allocate, read and free small pieces at random, with up to 2000 alive."""
    chosen = random.Random(2)
    alive: list[int] = []
    for _ in range(6000):
        if alive and (len(alive) >= 2000 or chosen.random() < 0.35):
            memory.free(alive.pop(chosen.randrange(len(alive))))
        else:
            alive.append(memory.made(chosen.choice([4096, 65536, MIB // 4, MIB // 2])))
        if alive and chosen.random() < 0.3:
            memory.read(chosen.choice(alive))


PROGRAMS: dict[str, Callable[[Memory], None]] = {
    "etl loop": etl_loop,
    "hash join": hash_join,
    "growing frame": growing_frame,
    "training-like loop": training_loop,
    "random small": random_small,
}


@dataclass(frozen=True)
class Row:
    """One program on one card: driver work with the defaults and with the advised settings."""

    program: str
    device_bytes: int
    peak_bytes: int
    settings: Mapping[str, Any]
    default_seconds: float
    advised_seconds: float

    @property
    def ratio(self) -> float:
        """Time with the advised settings over that with the defaults."""
        return self.advised_seconds / self.default_seconds if self.default_seconds else 1.0


def compared(name: str, folder: Path) -> list[Row]:
    """Record a program where it fits, plan it, and run it on every card both ways.

    Parameters
    ----------
    name : str
        One of `PROGRAMS`.
    folder : Path
        Where its trace may lie.
    """
    trace = folder / f"{name.replace(' ', '-')}.trace"
    run(name, "4GiB", monitor={"trace": trace, "on_finding": None})
    plan = rmm_uvm.plan(trace, machine=MACHINE, fitting_seconds=FITTING_SECONDS)
    return [
        Row(
            program=name,
            device_bytes=card.device_bytes,
            peak_bytes=plan.workload.peak_live_bytes,
            settings=card.settings.keywords(),
            default_seconds=run(name, card.device_bytes),
            advised_seconds=run(name, card.device_bytes, **card.settings.keywords()),
        )
        for card in plan.cards
    ]


def run(name: str, device_memory: int | str, **settings: Any) -> float:
    """Run a program in the pool that `rmm_uvm.reinitialize` installs; return modelled seconds.

    Without a budget: a plan is of the kernel driver.
    """
    device = rmm_uvm.simulated_device(device_memory)
    settings = {"monitor": False, "device_budget": None, **settings}
    stage = rmm_uvm.stage if settings["monitor"] else contextlib.nullcontext
    with rmm_uvm.reinitialize(driver=device, libraries=(), **settings) as uvm:
        memory = Memory(uvm.devices[0].managed_mr, device, stage)
        PROGRAMS[name](memory)
        memory.free_all()
    return device.statistics()["modelled_ns"] / 1e9
