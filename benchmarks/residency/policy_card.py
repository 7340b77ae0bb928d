# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated card that is too small, and the ways to keep a program's memory on it.

True oversubscription: what the card does not hold is on the host, whoever moves it there. Figures
are those of the card itself, not of the ledger, and alike for all ways; nothing runs in threads, so
that they are the same at every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import rmm

from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.residency import Budget
from rmm_uvm.residency.budget import DEFAULT_POLICY
from rmm_uvm.simulator import DriverSettings, load_machine
from rmm_uvm.simulator.card import simulated_card
from rmm_uvm.support.settings import PrefetchMode

MIB = 1 << 20
BLOCK_BYTES = 2 * MIB
MACHINE = "h200-pcie5"
# One piece of an eviction: the budget is exact but for what is in flight, and the simulated card
# has no page tables and takes memory block by block. On a GPU it is more: 128 MiB at a time.
MARGIN_BYTES = 2 * BLOCK_BYTES


@dataclass(frozen=True)
class Way:
    """How memory is kept on a card: by the kernel driver alone, or under a budget.

    `budget` are arguments of `rmm_uvm.residency.Budget`; None for no budget. `neighbours` is
    whether the kernel driver brings what lies beside a page fault. `adaptor` is whether allocations
    are prefetched as by `rmm.mr.PrefetchResourceAdaptor`, and `calls` whether uses are prefetched,
    as cuDF's calls do with that adaptor: every time, since neither knows what is on the card.
    """

    name: str
    budget: Mapping[str, Any] | None = None
    prefetch: PrefetchMode = "auto"
    neighbours: bool = True
    adaptor: bool = False
    calls: bool = False

    @property
    def announces(self) -> bool:
        """Whether uses are announced. Without a budget an announced use is a prefetch."""
        return self.budget is not None or self.prefetch != "never"

    @property
    def of_allocations(self) -> PrefetchMode:
        """What the pool is told: a budget ranks anew what the adaptor prefetches."""
        return "always" if self.adaptor and self.budget is not None else self.prefetch


FAULT_DRIVEN: Mapping[str, Any] = {
    "policy": "fifo",
    "discard_dead": False,
    "fetch": False,
    "ahead": False,
}
# The kernel driver, which prefetches by itself, with what libraries prefetch, and its emulation.
# Ratios that are told are over the fastest of these on a card.
DRIVER_ALONE = "driver"
BASELINES = (
    *(DRIVER_ALONE, "driver, RMM's prefetches", "driver, cuDF's prefetches", "driver, prefetching"),
    *("fault-driven", "fault-driven, RMM's prefetches"),
)
CHOICES = ("fifo", "lru", "correlation", "correlation, ahead", "repeat", "repeat, ahead")
WAYS = (
    Way(DRIVER_ALONE, prefetch="never"),
    Way("driver, RMM's prefetches", prefetch="never", adaptor=True),
    Way("driver, cuDF's prefetches", prefetch="never", adaptor=True, calls=True),
    Way("driver, prefetching"),
    Way("fault-driven", FAULT_DRIVEN),
    Way("fault-driven, RMM's prefetches", FAULT_DRIVEN, adaptor=True),
    Way("fifo", {"policy": "fifo"}),
    Way("lru", {"policy": "lru"}),
    *(
        Way(f"{policy}{', ahead' if ahead else ''}", {"policy": policy, "ahead": ahead})
        for policy in ("correlation", "repeat")
        for ahead in (False, True)
    ),
    Way("default, copying the dead", {"discard_dead": False}),
    Way("default, not fetching", {"fetch": False, "discard_dead": False}),
    Way("default, dropping without fetching", {"fetch": False}),
)
DEFAULT_NAME = next(
    way.name
    for way in WAYS
    if way.budget is not None
    and (way.budget.get("policy"), way.budget.get("ahead", True))
    == (DEFAULT_POLICY, Budget(1 << 30).ahead)
)


# As where migrations are direct, which the simulated device need not tell from others.
PIECES: dict[str, Any] = {"piece_bytes": 8 << 20, "fetch_bytes": 32 << 20}


@dataclass(frozen=True)
class Figures:
    """What one program took on one card.

    Attributes
    ----------
    seconds : float
        Modelled time of the kernel driver's work; computing takes none.
    to_device_bytes, to_host_bytes : int
        Copied each way.
    dropped_bytes : int
        Discarded by us in place of being copied.
    driver_evicted_bytes : int
        Copied out by the kernel driver for want of room.
    hit_rate : float
        Share of the bytes of announced uses that were on the card already.
    prediction_rate : float or None
        Share of the last uses that came as predicted; None without a predictor.
    """

    seconds: float
    to_device_bytes: int
    to_host_bytes: int
    dropped_bytes: int
    driver_evicted_bytes: int
    hit_rate: float
    prediction_rate: float | None


def whole_blocks(nbytes: float) -> int:
    """Return `nbytes`, rounded down to blocks of 2 MiB."""
    return int(nbytes) // BLOCK_BYTES * BLOCK_BYTES


@dataclass
class Card:
    """Memory on a small card, as programs use it.

    Parameters
    ----------
    device_bytes : int
        Memory of the card.
    way : Way
        How it is kept.
    pool_bytes : int
        First slab of RMM's pool, which may grow.
    budget_bytes : int, optional
        By default what the card has, less a margin.
    make_pool : callable, optional
        Another pool over the managed resource.
    machine : str
        Machine profile.
    """

    device_bytes: int
    way: Way
    pool_bytes: int
    budget_bytes: int | None = None
    make_pool: Callable[[Any], Any] | None = None
    machine: str = MACHINE
    _sizes: dict[int, int] = field(default_factory=dict)
    _fresh: int | None = None
    _wanted_bytes: int = 0
    _present_bytes: int = 0

    def __post_init__(self) -> None:
        self.device = simulated_card(
            load_machine(self.machine),
            DriverSettings(prefetch=self.way.neighbours),
            self.device_bytes,
            None,
            kernels_take_time=False,
        )
        budget = None
        if self.way.budget is not None:
            budget_bytes = self.budget_bytes or self.device_bytes - MARGIN_BYTES
            budget = Budget(budget_bytes, background=False, **PIECES, **self.way.budget)
        managed = ManagedMemoryResource(self.device, prefetch=self.way.prefetch, budget=budget)
        make_pool = self.make_pool or (lambda mr: rmm.mr.PoolMemoryResource(mr, self.pool_bytes))
        self.mr = UvmResourceAdaptor(make_pool(managed), prefetch=self.way.of_allocations)
        self.prefetcher = managed.prefetcher

    def make(self, nbytes: int) -> int:
        """Allocate and write."""
        address = self.allocate(nbytes)
        self.use(address, nbytes, write=True)
        return address

    def allocate(self, nbytes: int) -> int:
        """Allocate; the next use is not announced, since an allocation says as much."""
        address = int(self.mr.allocate(nbytes))
        self._sizes[address] = nbytes
        self._fresh = address
        if self.way.adaptor:
            self.device.prefetch(address, nbytes)
        self.prefetcher.run_pending()
        return address

    def use(self, address: int, nbytes: int, first_byte: int = 0, *, write: bool = False) -> None:
        """Announce a use of a part of an allocation, and let a kernel do it."""
        first = address + first_byte
        if self._fresh != address:
            self._wanted_bytes += nbytes
            self._present_bytes += self.device.resident_bytes(first, nbytes)
            if self.way.announces:
                self.prefetcher.touch(first, nbytes, address)
            if self.way.calls:
                self.device.prefetch(first, nbytes)
        self._fresh = None
        self.device.touch(first, nbytes, write=write)
        self.prefetcher.run_pending()

    def read(self, address: int, first_byte: int = 0, nbytes: int | None = None) -> None:
        """Read an allocation, or a part of it."""
        self.use(address, nbytes or self._sizes[address] - first_byte, first_byte)

    def write(self, address: int) -> None:
        """Read and write an allocation."""
        self.use(address, self._sizes[address], write=True)

    def free(self, address: int) -> None:
        """Free an allocation."""
        self.mr.deallocate(address, self._sizes.pop(address))
        self._fresh = None
        self.prefetcher.run_pending()

    def send_out(self, address: int) -> None:
        """Send an allocation to the host, as if it had come from there."""
        self.prefetcher.evict(address, self._sizes[address])

    def figures(self) -> Figures:
        """Return what it took until now."""
        counts = self.device.statistics()
        kept = self.prefetcher.residency() or {}
        predictions = kept.get("predictions", 0)
        return Figures(
            seconds=counts["modelled_ns"] / 1e9,
            to_device_bytes=counts["host_to_device_bytes"],
            to_host_bytes=counts["device_to_host_bytes"],
            dropped_bytes=kept.get("dropped_bytes", 0),
            driver_evicted_bytes=counts["evicted_bytes"],
            hit_rate=self._present_bytes / max(self._wanted_bytes, 1),
            prediction_rate=kept["predicted"] / predictions if predictions else None,
        )
