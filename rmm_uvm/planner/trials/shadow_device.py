# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated card that a torch program's memory lies on.

The pool, the budget and its decisions are real; pages, the link and time are modelled. Nothing
runs in threads, so that equal programs take the same at every run.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import rmm

from rmm_uvm.errors import ConfigurationError
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.planner.trials.shadow_statistics import ShadowStatistics
from rmm_uvm.planner.trials.uses import Use
from rmm_uvm.residency.budget import Budget
from rmm_uvm.simulator import DriverSettings, Machine
from rmm_uvm.simulator.card import simulated_card
from rmm_uvm.support.units import VA_BLOCK_BYTES

if TYPE_CHECKING:
    from rmm_uvm.support.settings import PrefetchMode
    from rmm_uvm.trace import TraceWriter

__all__ = ["ShadowDevice"]

T = TypeVar("T")
_PIECE_BYTES, _FETCH_BYTES = 8 << 20, 32 << 20  # as where migrations are direct


class ShadowDevice:
    """A card, a managed pool on it, and a clock; a `Receiver`. Not thread-safe.

    Parameters
    ----------
    device_bytes : int
        Memory of the card; rounded down to blocks of 2 MiB.
    machine : Machine
        Its rates.
    budget : Budget or None
        None: the kernel driver alone decides. Its thread's work is done after each kernel.
    prefetch : {"auto", "always", "never"}
        Without a budget: whether uses are announced, which then fetches what is away.
    driver : DriverSettings
        Parameters of the kernel driver.
    pool_bytes : int, optional
        First slab of the pool; by default half of the card. It grows.
    paced : bool
        The budget's thread goes on piece by piece while kernels compute, as far as the link has
        time, and a kernel may find that it came too late. Else all that the thread would do is
        done at once after each kernel, and only its time is beside the kernels'.
    host_bytes : int, optional
        Host memory for what leaves the card; by default without limit.

    Raises
    ------
    ConfigurationError
        If the card has less than one block.
    MemoryError
        If the process has no addresses left.
    """

    def __init__(
        self,
        device_bytes: int,
        machine: Machine,
        budget: Budget | None = None,
        *,
        prefetch: PrefetchMode = "auto",
        driver: DriverSettings | None = None,
        pool_bytes: int | None = None,
        paced: bool = False,
        host_bytes: int | None = None,
    ) -> None:
        if device_bytes < VA_BLOCK_BYTES:
            raise ConfigurationError(f"device_bytes is {device_bytes}: a card has at least 2 MiB")
        self.device = simulated_card(
            machine, driver or DriverSettings(), device_bytes, host_bytes, kernels_take_time=False
        )
        if budget is not None:
            budget = dataclasses.replace(
                budget,
                background=False,
                piece_bytes=budget.piece_bytes or _PIECE_BYTES,
                fetch_bytes=budget.fetch_bytes or _FETCH_BYTES,
            )
        managed = ManagedMemoryResource(self.device, prefetch=prefetch, budget=budget)
        first_bytes = pool_bytes or max(device_bytes // 2, VA_BLOCK_BYTES)
        pool = rmm.mr.PoolMemoryResource(
            managed, -(-first_bytes // VA_BLOCK_BYTES) * VA_BLOCK_BYTES
        )
        self.mr = UvmResourceAdaptor(pool, prefetch=prefetch)
        self._managed = managed.residency
        # Without a budget an announced use is a prefetch.
        self._announces = budget is not None or prefetch != "never"
        self._paced = paced
        self._sizes: dict[int, int] = {}
        self._clock_seconds = self._compute_seconds = 0.0
        self._counted_ns = 0
        # When the link is free, and what it does on the side: bytes that had been asked for ahead
        # before each piece of work, and when that is done.
        self._link_seconds = 0.0
        self._on_the_side: deque[tuple[int, float]] = deque()
        self._wanted_bytes = self._present_bytes = 0
        self._kernels = self._used_bytes = self._most_used_bytes = 0

    def observe(self, writer: TraceWriter | None) -> None:
        """Let a trace know of all allocations, frees and uses from now on, or no longer."""
        self.mr.observe(writer)
        self.device.observe(writer)

    def allocate(self, nbytes: int) -> int:
        """Allocate; return the address.

        Raises
        ------
        MemoryError
            If the pool cannot grow; nothing changed.
        """
        address = int(self.mr.allocate(nbytes))
        self._sizes[address] = nbytes
        self._wait()
        self._do_background_work()
        return address

    def free(self, allocation: int) -> None:
        """Free; what the budget does about it hides behind the next kernel."""
        self.mr.deallocate(allocation, self._sizes.pop(allocation))
        self._do_background_work()

    def given(self, use: Use) -> None:
        """Have contents there that came before the program; nothing counts but the room."""
        self.device.touch(use.allocation + use.first_byte, use.nbytes, write=True)
        self._wait()

    def cpu_touch(self, address: int, nbytes: int, *, write: bool) -> None:
        """Let the CPU read, or read and write; kernels wait until it has."""
        self.device.cpu_touch(address, nbytes, write=write)
        self._wait()

    def kernel(self, uses: Sequence[Use], compute_seconds: float) -> None:
        """Announce what a kernel uses, let it use that, and let its time pass."""
        wanted = [
            (use.allocation + use.first_byte, use.nbytes, use.allocation)
            for use in uses
            if not use.fresh
        ]
        for address, nbytes, _ in wanted:
            self._wanted_bytes += nbytes
            self._present_bytes += self.device.resident_bytes(address, nbytes)
        if self._announces and wanted:
            self._managed.touch_all(wanted)
        for use in uses:
            self.device.touch(use.allocation + use.first_byte, use.nbytes, write=use.writes)
        self._wait()
        self._wait_for_what_was_fetched_ahead()
        self._do_background_work(compute_seconds)
        self._clock_seconds += compute_seconds
        self._compute_seconds += compute_seconds
        used_bytes = sum(use.nbytes for use in uses)
        self._kernels += 1
        self._used_bytes += used_bytes
        self._most_used_bytes = max(self._most_used_bytes, used_bytes)

    @property
    def ahead_bytes(self) -> int:
        """How far ahead the budget fetches now; 0 without a budget."""
        return self._ahead("ahead_bytes")

    def _new_ns(self) -> int:
        counted, self._counted_ns = self._counted_ns, self.device.statistics()["modelled_ns"]
        return self._counted_ns - counted

    def _wait(self) -> None:
        """Let the time of new work pass, after what the link does already."""
        if taken_ns := self._new_ns():
            begin_seconds = max(self._clock_seconds, self._link_seconds)
            self._clock_seconds = self._link_seconds = begin_seconds + taken_ns / 1e9

    def _ahead(self, name: str) -> int:
        kept: Any = self._managed.residency() or {}
        return int(kept.get(name, 0))

    def _wait_for_what_was_fetched_ahead(self) -> None:
        """Wait for the link as far as this kernel uses what it brings; it comes in order of use."""
        if not self._on_the_side:
            return
        used_bytes = self._ahead("ahead_used_bytes")
        while self._on_the_side and self._on_the_side[0][0] < used_bytes:
            _, done_seconds = self._on_the_side.popleft()
            self._clock_seconds = max(self._clock_seconds, done_seconds)

    def _do_background_work(self, compute_seconds: float = 0.0) -> None:
        if not self._announces:
            return
        if not self._paced:
            self._do_beside(self._managed.run_pending)
            return
        end_seconds = self._clock_seconds + compute_seconds
        more = True
        while more and max(self._link_seconds, self._clock_seconds) < end_seconds:
            more = self._do_beside(self._managed.run_pending_piece)

    def _do_beside(self, work: Callable[[], T]) -> T:
        """Do work whose time the link takes beside the program's."""
        fetched_bytes = self._ahead("fetched_ahead_bytes")
        done = work()
        if taken_ns := self._new_ns():
            begin_seconds = max(self._clock_seconds, self._link_seconds)
            self._link_seconds = begin_seconds + taken_ns / 1e9
            self._on_the_side.append((fetched_bytes, self._link_seconds))
        return done

    def statistics(self) -> ShadowStatistics:
        """Return what everything took until now."""
        counts = self.device.statistics()
        kept: Any = self._managed.residency() or {}
        return ShadowStatistics(
            seconds=self._clock_seconds,
            compute_seconds=self._compute_seconds,
            migration_seconds=counts["modelled_ns"] / 1e9,
            to_device_bytes=counts["host_to_device_bytes"],
            to_host_bytes=counts["device_to_host_bytes"],
            dropped_bytes=kept.get("dropped_bytes", 0),
            wanted_bytes=self._wanted_bytes,
            present_bytes=self._present_bytes,
            kernels=self._kernels,
            gpu_faults=counts["gpu_faults"],
            to_third_tier_bytes=counts["to_third_tier_bytes"],
            from_third_tier_bytes=counts["from_third_tier_bytes"],
            used_bytes=self._used_bytes,
            most_used_bytes=self._most_used_bytes,
            live_bytes=self.mr.get_allocated_bytes(),
            peak_bytes=self.mr.peak_bytes,
        )
