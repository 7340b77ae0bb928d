# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Any program: whatever it asks of pools, hints, neighbours and monitors, in whatever order.

Pools are made and left while memory of them is alive; calls of the driver fail. After every step
all contents are as written, and all accounts add up.
"""

from __future__ import annotations

import contextlib
import gc
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import rmm_uvm
from rmm_uvm._lib import limits
from rmm_uvm.errors import DriverError
from rmm_uvm.residency import Budget
from rmm_uvm.watch.snapshot import Snapshot

from ..support.known_contents import Buffer
from .choices import (
    CALLS,
    CODES,
    DEVICE_BYTES,
    MIB,
    MOST_BYTES,
    MOST_REQUEST_BYTES,
    POLICIES,
    POOL_BYTES,
    budgets_bytes,
    numbers,
    only_if,
    sizes_bytes,
    stream_of,
    streams,
)

# How a program begins.
BEGINNINGS: dict[str, Any] = dict(
    budget_bytes=st.none() | budgets_bytes,
    policy=st.sampled_from(POLICIES),
    neighbors=st.sampled_from([(), (1,), (1, 2)]),
    on_board=st.booleans(),
    settings=st.fixed_dictionaries(
        {
            name: st.booleans()
            for name in (
                *("in_place", "copy_beside", "multipath", "ahead", "discard_dead"),
                "keep_copies",
            )
        }
    ),
    prefetch=st.sampled_from(["auto", "always", "never"]),
)


class Programs(RuleBasedStateMachine):
    """A program on a device with two neighbours, and pools one after the other."""

    background = False
    unordered = False  # see `only_if`
    neighbors: ClassVar[tuple[int, ...]] = (1, 2)  # other devices
    buffers: ClassVar[type[Buffer]] = Buffer
    may_fail = True  # calls of the driver

    def __init__(self) -> None:
        super().__init__()
        self._ends = contextlib.ExitStack()
        gc.collect()  # what an earlier program left as garbage goes now, not in the middle of this
        self._counted_before = limits._account.used_bytes
        self._folder = Path(self._ends.enter_context(tempfile.TemporaryDirectory()))
        # Findings are told as warnings, whenever.
        self._ends.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        self._ends.callback(rmm_uvm.restore)
        self.make_device()
        self.installs: dict[str, Any] = {"monitor": False}  # more of what is asked for
        self.pools: list[Any] = []  # the installed one last
        self.live: list[Buffer] = []
        self.pins: list[tuple[Buffer, Any]] = []
        self.pinned = False  # at any time
        # By pool: requests of other threads beside one, at most, at any time.
        self.beside: dict[int, int] = {}
        self.monitor: Any = None
        self.seen: Snapshot | None = None
        self.began_bytes = (0, 0)  # what had left when the monitor began: before, and after
        self.failing = 0
        self.failed = False  # at any time, for whatever reason
        self.writes = 0

    def make_device(self, **features: bool) -> None:
        """Make the device that the program runs on."""
        self.device = rmm_uvm.simulated_device(DEVICE_BYTES, backing=True, neighbors=2, **features)

    def use(self, buffer: Buffer, *, write: bool = False, on_host: bool = False) -> None:
        """Have a kernel or the host read a buffer, or be about to write it."""
        (self.device.cpu_touch if on_host else self.device.touch)(*buffer.region, write=write)

    def compare_books(self, **expected: int) -> None:
        """Compare the books that the device itself keeps."""
        found = self.device.statistics()
        assert min(found.values()) >= 0
        assert found["resident_bytes"] <= DEVICE_BYTES
        assert {name: found[name] for name in expected} == expected

    @contextlib.contextmanager
    def _driver_may_fail(self) -> Iterator[None]:
        """Let what a test had planned to fail be raised: by nothing else."""
        try:
            yield
        except (DriverError, MemoryError):
            if not self.failing:
                raise

    def _one(self, number: int) -> Buffer:
        return self.live[number % len(self.live)]

    # Pools

    @initialize(**BEGINNINGS)
    def begin(self, **asked: Any) -> None:
        self.install(**asked)

    def install(
        self,
        budget_bytes: int | None,
        policy: str,
        neighbors: tuple[int, ...],
        on_board: bool,
        settings: dict[str, bool],
        prefetch: str,
    ) -> None:
        budget = None
        if budget_bytes is not None:
            budget = Budget(
                budget_bytes,
                policy,
                neighbors=[each for each in neighbors if each in self.neighbors] or None,
                board=str(self._folder) if on_board else None,
                background=self.background,
                **settings,
            )
        with self._driver_may_fail():
            rmm_uvm.reinitialize(
                "16MiB",
                POOL_BYTES,
                driver=self.device,
                device_budget=budget,
                prefetch=prefetch,
                libraries=(),
                **self.installs,
            )
        self._forget_empty_pools()
        current = rmm_uvm.current_installation()
        if current is not None and current.managed_mr not in self.pools:
            self.pools.append(current.managed_mr)

    @rule(
        budget_bytes=st.none() | budgets_bytes,
        policy=st.sampled_from(POLICIES),
        neighbors=st.sampled_from([(), (2,)]),
        prefetch=st.sampled_from(["auto", "always", "never"]),
    )
    def change_the_budget(self, **asked: Any) -> None:
        if sum(pool.managed_mr.slab_bytes for pool in self.pools) + POOL_BYTES > MOST_BYTES:
            self.free_all()
        self.install(on_board=False, settings={}, **asked)

    @rule()
    @only_if(lambda self: len(self.live) > 8)
    def restore(self) -> None:
        rmm_uvm.restore()
        self._forget_empty_pools()

    def _forget_empty_pools(self) -> None:
        current = rmm_uvm.current_installation()
        used = [buffer.mr for buffer in self.live]
        used += [] if current is None else [current.managed_mr]
        self.pools = [pool for pool in self.pools if pool in used]

    # Memory

    @rule(nbytes=sizes_bytes, stream=streams)
    @only_if(lambda self: rmm_uvm.current_installation() is not None)
    def allocate(self, nbytes: int, stream: int = 0) -> None:
        mr = self.pools[-1]
        try:
            address = mr.allocate(nbytes, stream_of(stream))
        except MemoryError:  # the pool is full, or in pieces
            return
        buffer = self.buffers(mr, address, nbytes)
        self.live.append(buffer)
        self._write(buffer)

    @rule(sizes=st.lists(sizes_bytes, min_size=3, max_size=8))
    @only_if(lambda self: rmm_uvm.current_installation() is not None)
    def allocate_many(self, sizes: list[int]) -> None:
        for nbytes in sizes:
            self.allocate(nbytes)

    def _write(self, buffer: Buffer) -> None:
        self.writes += 1
        self.use(buffer, write=True)
        buffer.write(self.writes)

    @rule(number=numbers, stream=streams)
    @only_if(lambda self: self.live)
    def free(self, number: int, stream: int = 0) -> None:
        buffer = self._one(number)
        if not any(pinned is buffer for pinned, _ in self.pins):
            self.live.remove(buffer)
            self._deallocate(buffer, stream)
            self._forget_empty_pools()

    def _deallocate(self, buffer: Buffer, stream: int) -> None:
        assert not buffer.changed_anywhere
        buffer.mr.deallocate(*buffer.region, stream_of(stream))

    def free_all(self) -> None:
        while self.pins:
            self.unpin()
        while self.live:
            self.free(0)

    @rule(number=numbers)
    @only_if(lambda self: self.live)
    def write(self, number: int) -> None:
        self._write(self._one(number))

    @rule(number=numbers, write=st.booleans())
    @only_if(lambda self: self.live)
    def use_on_the_host(self, number: int, write: bool) -> None:
        buffer = self._one(number)
        self.use(buffer, write=write, on_host=True)
        if write:
            self.writes += 1
            buffer.write(self.writes)

    # Hints

    def _hint(self, hint: Callable[..., Any], number: int, **arguments: Any) -> Any:
        buffer = self._one(number)
        with self._driver_may_fail():
            return hint(buffer.region, mr=buffer.mr, **arguments)

    @rule(number=numbers, stream=streams)
    @only_if(lambda self: self.live)
    def announce(self, number: int, stream: int) -> None:
        self._hint(rmm_uvm.touch, number, stream=stream)
        self.use(self._one(number))

    @rule(rounds=st.integers(1, 4), stream=streams)
    @only_if(lambda self: self.live)
    def read_all_in_turn(self, rounds: int, stream: int) -> None:
        for number in range(rounds * len(self.live)):
            buffer = self._one(number)
            address, nbytes = buffer.region
            uses = ((address, nbytes, address),)
            buffer.mr.managed_mr.residency.touch_all(uses, stream, only_read=True)
            self.use(buffer)

    @rule(rounds=st.integers(1, 4))
    @only_if(lambda self: self.live)
    def use_all_in_turn(self, rounds: int) -> None:
        for number in range(rounds * len(self.live)):
            self.announce(number, stream=0)

    @rule(stream=streams)
    @only_if(lambda self: self.live)
    def announce_all_together(self, stream: int) -> None:
        for pool in self.pools:
            regions = [buffer.region for buffer in self.live if buffer.mr is pool]
            with self._driver_may_fail():
                rmm_uvm.touch(regions, mr=pool, stream=stream)

    @rule(number=numbers, stream=streams)
    @only_if(lambda self: self.live)
    def prefetch(self, number: int, stream: int) -> None:
        self._hint(rmm_uvm.prefetch, number, stream=stream)

    @rule(number=numbers, stream=streams)
    @only_if(lambda self: self.live)
    def evict(self, number: int, stream: int) -> None:
        hinted = self._hint(rmm_uvm.evict, number, stream=stream)
        if hinted is not None:
            assert hinted.nbytes == self._one(number).nbytes
            assert min(hinted.moved_bytes, hinted.left_bytes, hinted.stayed_bytes) >= 0

    @rule(
        number=numbers,
        read_mostly=st.sampled_from([None, True, False]),
        preferred=st.sampled_from(["device", "host", "none"]),
    )
    @only_if(lambda self: self.live)
    def advise(self, number: int, read_mostly: bool | None, preferred: str) -> None:
        advised = self._hint(rmm_uvm.advise, number, read_mostly=read_mostly, preferred=preferred)
        assert advised.refused_bytes >= 0
        assert self.failing or not advised.refused_bytes

    @rule(number=numbers)
    @only_if(lambda self: self.live)
    def pin(self, number: int) -> None:
        buffer = self._one(number)
        context = rmm_uvm.pin(buffer.region, mr=buffer.mr)
        context.__enter__()
        self.pins.append((buffer, context))
        self.pinned = True

    @rule()
    @only_if(lambda self: self.pins)
    def unpin(self) -> None:
        self.pins.pop(0)[1].__exit__(None, None, None)

    @rule()
    @only_if(lambda self: self.pools)
    def do_what_is_pending(self) -> None:
        for pool in self.pools:
            pool.managed_mr.residency.run_pending()

    # Others

    @rule(neighbor=st.sampled_from([1, 2]), used_mib=st.integers(0, 64))
    @only_if(lambda self: self.may_fail)
    def owner_takes(self, neighbor: int, used_mib: int) -> None:
        self.device.occupy_neighbor(neighbor, used_mib * MIB)
        self.failed = True  # a call that sends something there may find no room

    @rule(neighbor=st.sampled_from([1, 2]), fraction=st.sampled_from([0.0, 0.5, 1.0]))
    def neighbor_works(self, neighbor: int, fraction: float) -> None:
        self.device.set_neighbor_load(
            neighbor, kernel_fraction=fraction, memory_fraction=fraction, link_fraction=fraction
        )

    @rule(call=st.sampled_from(CALLS), code=st.sampled_from(CODES), skip=st.integers(0, 3))
    @only_if(lambda self: self.may_fail)
    def driver_call_will_fail(self, call: str, code: str, skip: int) -> None:
        self.device.fail_call(call, code, skip=skip)
        self.failing += 1
        self.failed = True

    @rule()
    @only_if(lambda self: self.failing)
    def driver_is_well_again(self) -> None:
        self.device.cancel_failures()
        self.failing = 0

    @rule()
    @only_if(lambda self: self.monitor is None)
    def watch(self) -> None:
        before = self._left_bytes()
        with self._driver_may_fail():
            self.monitor = rmm_uvm.monitor(
                driver=self.device, on_finding=None, publish=False, interval_seconds=3600.0
            ).start()
        self.seen = None
        self.began_bytes = before, self._left_bytes()

    def _left_bytes(self) -> int:
        return self.device.migrated_bytes()[1]

    @rule()
    @only_if(lambda self: self.monitor is not None)
    def stop_watching(self) -> None:
        monitor, self.monitor = self.monitor, None
        with self._evicting(monitor):
            monitor.stop()

    @contextlib.contextmanager
    def _evicting(self, monitor: Any) -> Iterator[None]:
        """Compare what a monitor saw last with the device; a thread may evict meanwhile."""
        least_bytes = self._left_bytes() - self.began_bytes[1]
        yield
        seen_bytes = monitor.snapshot(fresh=False).device_to_host_bytes
        assert least_bytes <= seen_bytes <= self._left_bytes() - self.began_bytes[0]

    # What holds at all times

    @invariant()
    def contents_are_as_written(self) -> None:
        assert [buffer.region for buffer in self.live if buffer.changed] == []

    @invariant()
    def managed_bytes_add_up(self) -> None:
        slab_bytes = sum(pool.managed_mr.slab_bytes for pool in self.pools)
        self.compare_books(managed_bytes=slab_bytes)
        assert limits._account.used_bytes - self._counted_before == slab_bytes
        for pool in self.pools:
            live_bytes = sum(buffer.nbytes for buffer in self.live if buffer.mr is pool)
            assert pool.get_allocated_bytes() == live_bytes <= pool.peak_bytes

    @invariant()
    def device_and_host_hold_what_is_there(self) -> None:
        for pool in self.pools:
            nbytes = pool.managed_mr.slab_bytes
            kept = pool.managed_mr.residency.residency()
            if kept is not None:
                assert min(each for each in kept.values() if isinstance(each, int)) >= 0
                assert kept["resident_bytes"] <= max(nbytes, kept["peak_resident_bytes"])
                assert kept["pinned_bytes"] <= nbytes
                assert kept["harvested_bytes"] <= kept["peak_harvested_bytes"]
                # Whole blocks, and more than one of them may have memory for the same block.
                assert kept["harvested_bytes"] <= len(self.neighbors) * DEVICE_BYTES
                assert kept["neighbor_bytes"] + kept["uncopied_bytes"] <= kept["evicted_bytes"]
                assert kept["kept_copy_bytes"] <= kept["resident_bytes"]
                came_bytes = kept["fetched_bytes"] + kept["fetched_ahead_bytes"]
                assert kept["from_neighbor_bytes"] <= came_bytes
                assert kept["present_bytes"] <= kept["wanted_bytes"]
                assert kept["ahead_used_bytes"] <= kept["fetched_ahead_bytes"]
                assert kept["predicted"] <= kept["predictions"]
                if not (self.pinned or kept["failed_calls"]):
                    # What each holds until it is served may be more than a budget together.
                    beside = self.beside.get(id(pool), 0)
                    assert kept["over_budget"] == 0 or beside
                    # What a program used without a word is there before it is found.
                    most_bytes = max(kept["budget_bytes"], kept["too_large_bytes"])
                    most_bytes += beside * MOST_REQUEST_BYTES
                    assert kept["peak_resident_bytes"] <= most_bytes + kept["found_bytes"]

    @invariant()
    @precondition(lambda self: self.monitor is not None)
    def what_is_watched_only_grows(self) -> None:
        with self._evicting(self.monitor):
            snapshot = self.monitor.snapshot()
        if self.seen is not None:
            window = self.monitor.window(self.seen)
            assert min(window.device_to_host_bytes, window.host_to_device_bytes) >= 0
        self.seen = snapshot

    def teardown(self) -> None:
        with self._ends:
            self.driver_is_well_again()
            self.free_all()
            if self.monitor is not None:
                self.stop_watching()
            rmm_uvm.restore()
            self.pools.clear()
            gc.collect()
            self.compare_books(managed_bytes=0, resident_bytes=0)
            assert limits._account.used_bytes == self._counted_before
