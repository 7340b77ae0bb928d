# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that use everything public at once, beside others that are killed.

To those of `company.py` come budgets that change, adaptors of RMM above and below, signals,
monitors that look often, processes that share the board, and every operation of tests/anomalies
while calls of its driver fail. Threads work while the main thread does all this, but for forks,
which tests/integration/test_forks_and_signals.py has beside threads: a child of a program of many
threads finds locks of other libraries as they were.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import rmm
from hypothesis.stateful import initialize, invariant, rule

import rmm_uvm
from rmm_uvm.errors import (
    ConfigurationError,
    MonitorWarning,
    NeighborWarning,
    UvmError,
    UvmWarning,
)
from rmm_uvm.harvest import read_board
from rmm_uvm.mr import ManagedMemoryResource, UvmResourceAdaptor
from rmm_uvm.residency import Budget

from ..anomalies.harness import Operation, _clear, driver_call
from ..anomalies.installing import INSTALLING, WITHOUT_DRIVER
from ..anomalies.operations import OPERATIONS
from ..leftovers import Before
from ..named_threads import becomes_true, thread_ids
from ..support.known_contents import Buffer
from . import unseen
from .choices import (
    CALLS,
    CODES,
    DEVICE_BYTES,
    MIB,
    POLICIES,
    budgets_bytes,
    numbers,
    only_if,
    sizes_bytes,
    stream_of,
    streams,
)
from .company import Plan, ProgramsWithThreads, plans_of_a_thread
from .machine import BEGINNINGS

_APART_BYTES = 24 * MIB
_CANNOT = (NeighborWarning, MonitorWarning)  # what these say is not to come by itself
_MOST_NEIGHBORS = 2
_OFTEN_SECONDS = 0.001
_NEIGHBOR_SECONDS = 120  # one that nobody kills ends by itself
# Those that install would end the installation of the program beside them.
APART: list[Operation] = [
    each
    for each in (*WITHOUT_DRIVER, *INSTALLING, *OPERATIONS)
    if not each.name.startswith(("reinitialize", "restore"))
]
ABOVE: dict[str, Callable[[Any], Any]] = {
    "statistics": rmm.mr.StatisticsResourceAdaptor,
    "tracking": rmm.mr.TrackingResourceAdaptor,
    "limiting": lambda mr: rmm.mr.LimitingResourceAdaptor(mr, _APART_BYTES),
    "failures": lambda mr: rmm.mr.FailureCallbackResourceAdaptor(mr, lambda _nbytes: False),
}
BELOW: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda mr: mr,
    "statistics": rmm.mr.StatisticsResourceAdaptor,
    "limiting": lambda mr: rmm.mr.LimitingResourceAdaptor(mr, _APART_BYTES),
    "another of ours": UvmResourceAdaptor,
}

for _name in rmm_uvm.__all__:  # the handler of a signal cannot wait for an import that it is in
    getattr(rmm_uvm, _name)
_TRACING = [each for each in APART if each.name.startswith(("monitor", "snapshot", "stop"))]


def _pool_below(mr: Any) -> Any:
    """Return the adaptor of ours that is highest in a chain, or None."""
    while mr is not None and not isinstance(mr, UvmResourceAdaptor):
        mr = getattr(mr, "upstream_mr", None)
    return mr


class Chaos(ProgramsWithThreads):
    """Any program of all that is public, which leaves no thread and no file behind either."""

    patience_seconds: ClassVar[float] = 10.0  # with a thread that ends
    signal_seconds: ClassVar[float] = _OFTEN_SECONDS  # from one to the next
    operations: ClassVar[int] = 0  # of all programs of this process

    def __init__(self) -> None:
        self._before = Before(self.patience_seconds)
        self._threads = self.thread_ids()
        self._resource = rmm.mr.get_per_device_resource(0)
        self._above: dict[int, Any] = {}  # by the address of a buffer: what it was asked of
        self._apart: list[Any] = []
        self._beside: list[int] = []
        self._watching: Any = None
        self._operating = False  # with calls that fail
        self._numbers = itertools.count()  # of traces
        super().__init__()
        warnings.simplefilter("always", UvmWarning)
        warnings.showwarning = self._warned  # until it ends
        self._operated = Path(tempfile.mkdtemp(dir=self._folder))
        self._ends.callback(self._nobody_is_left_on_the_board)
        self._ends.callback(self._kill_neighbors)
        self._ends.callback(lambda: rmm.mr.set_per_device_resource(0, self._resource))

    @initialize(
        features=st.fixed_dictionaries(
            {name: st.booleans() for name in ("direct_migration", "discard")}
        ),
        monitored=st.booleans(),
        ipc=st.booleans(),
        may_fail=st.booleans(),
        **BEGINNINGS,
    )
    def begin(
        self,
        features: dict[str, bool],
        monitored: bool,
        ipc: bool,
        may_fail: bool,
        **asked: Any,
    ) -> None:
        """Begin on a device that may lack something, and install whatever there is."""
        self.may_fail = may_fail
        self.make_device(**features)
        if monitored:
            self.installs["monitor"] = {"interval_seconds": _OFTEN_SECONDS, "on_finding": None}
        self.installs["ipc_pool_size"] = MIB if ipc else None
        self.install(**asked)

    def _warned(self, message: Warning | str, category: type[Warning], *_: Any) -> None:
        if not (self.failed or self._operating) and issubclass(category, _CANNOT):
            unseen.note(f"{category.__name__} where no call failed: {message}")

    def install(self, *arguments: Any, **named: Any) -> None:
        """Install with an IPC pool, where that is asked for and the device has room."""
        try:
            super().install(*arguments, **named)
        except ConfigurationError as error:  # what is alive lies there: before anything changed
            if "ipc_pool_size" not in str(error):
                raise
            self.installs["ipc_pool_size"] = None
            super().install(*arguments, **named)

    @rule(chosen=st.integers(0, (1 << 32) - 1), steps=st.integers(30, 120))
    @only_if(lambda self: rmm_uvm.current_installation() is not None)
    def come_and_go(self, chosen: int, steps: int) -> None:
        """Have small and large buffers come, go and be used, until they need more than a budget."""
        choose = random.Random(chosen)
        for _ in range(steps):
            what, number = choose.random(), choose.randrange(1 << 16)
            if what < 0.25:
                self.allocate(choose.randrange(1, 700), 0)
            elif what < 0.5:
                self.allocate(choose.randrange(MIB, 4 * MIB), 0)
            elif what < 0.75 and self.live:
                self.free(number, 0)
            elif self.live:
                self.announce(number, 0)
        Chaos.operations += steps

    # Budgets

    @rule(
        budget_bytes=st.none() | budgets_bytes,
        whole=st.booleans(),
        policy=st.sampled_from(POLICIES),
        follows=st.booleans(),
        on_board=st.booleans(),
        in_place=st.booleans(),
    )
    @only_if(lambda self: self.pools)
    def set_budget(
        self, budget_bytes: int | None, whole: bool, follows: bool, on_board: bool, **asked: Any
    ) -> None:
        """Start, change or end the budget of the latest pool."""
        budget: Any = budget_bytes
        if budget_bytes is not None and whole:
            board = str(self._folder) if on_board else None
            budget = Budget(
                budget_bytes,
                neighbors=self.neighbors[:1] or None,
                board=board,
                follows=follows,
                copy_beside=True,
                **asked,
            )
        self.pinned = True  # what was pinned is not any more; what came before may be more
        with self._driver_may_fail():
            self.pools[-1].set_budget(budget)

    # Adaptors

    @rule(above=st.sampled_from([*ABOVE]))
    @only_if(lambda self: self.pools)
    def put_above(self, above: str) -> None:
        """Put one of RMM's adaptors over the resource of now."""
        made = ABOVE[above](rmm.mr.get_per_device_resource(0))
        rmm.mr.set_per_device_resource(0, made)

    @rule(nbytes=sizes_bytes, stream=streams)
    @only_if(lambda self: self.pools)
    def allocate_above(self, nbytes: int, stream: int) -> None:
        """Allocate from the resource of now: perhaps an adaptor, over an earlier pool."""
        mr = rmm.mr.get_per_device_resource(0)
        pool = _pool_below(mr)
        if pool is None:
            return
        with contextlib.suppress(MemoryError):
            buffer = self.buffers(pool, mr.allocate(nbytes, stream_of(stream)), nbytes)
            self._above[buffer.address] = mr
            self.live.append(buffer)
            self._write(buffer)

    def _deallocate(self, buffer: Buffer, stream: int) -> None:
        assert not buffer.changed_anywhere
        mr = self._above.pop(buffer.address, buffer.mr)
        mr.deallocate(*buffer.region, stream_of(stream))

    @rule(below=st.sampled_from([*BELOW]))
    def make_a_pool_apart(self, below: str) -> None:
        """Put an adaptor of ours over RMM's, or make room for another one."""
        if self._apart:
            self._apart.clear()
            self._forget_empty_pools()
            return
        with self._driver_may_fail():
            managed = ManagedMemoryResource(self.device)
            pool = rmm.mr.PoolMemoryResource(managed, 4 * MIB, _APART_BYTES)
            self._apart.append(UvmResourceAdaptor(BELOW[below](pool)))
        self.pools[:0] = self._apart

    def _forget_empty_pools(self) -> None:
        """Keep those that something holds: adaptors above them do, and what will be put back."""
        current = rmm_uvm.current_installation()
        before = [] if current is None else [each.previous_mr for each in current.devices]
        tops = [rmm.mr.get_per_device_resource(0), *self._above.values(), *before]
        used = [*self._apart, *filter(None, map(_pool_below, tops))]
        used += [buffer.mr for buffer in self.live]
        used += [] if current is None else [current.managed_mr]
        self.pools = list(dict.fromkeys(reversed(used)))[::-1]  # the installed one is the last

    # Others

    @rule()
    @only_if(lambda self: self._watching is None)
    def watch_closely(self) -> None:
        """Watch with everything that a monitor may be asked for, a thousand times a second."""
        with self._driver_may_fail():
            self._watching = rmm_uvm.monitor(
                driver=self.device,
                on_finding=None,
                interval_seconds=_OFTEN_SECONDS,
                history=100,
                attribution=True,
                faults=True,
                trace=self._folder / f"{next(self._numbers)}.trace",
            ).start()

    @rule()
    @only_if(lambda self: self._watching is not None)
    def report_and_stop(self) -> None:
        watching, self._watching = self._watching, None
        watching.snapshot()
        watching.stop()
        watching.report().save_json(self._folder / "report.json")

    @rule()
    @only_if(lambda self: len(self._beside) < _MOST_NEIGHBORS)
    def neighbor_begins(self) -> None:
        """Begin a process that shares the board, and claims what it can."""
        reading, writing = os.pipe()
        self._beside.append(self._begin_neighbor(reading, writing))
        os.close(writing)
        with os.fdopen(reading, "rb") as ready:
            told = ready.read()
        assert told == b"", told.decode()

    def _begin_neighbor(self, reading: int, writing: int) -> int:
        child = os.fork()
        if child == 0:
            os.close(reading)
            work_until_killed(str(self._folder), writing)
        return child

    @rule(number=numbers)
    @only_if(lambda self: self._beside)
    def neighbor_is_killed(self, number: int) -> None:
        killed = self._beside.pop(number % len(self._beside))
        os.kill(killed, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(killed, 0)[1])
        assert status == -signal.SIGKILL, f"a neighbour ended with {status} by itself"
        assert killed not in read_board(self._folder).processes

    def _kill_neighbors(self) -> None:
        while self._beside:
            self.neighbor_is_killed(0)

    def _nobody_is_left_on_the_board(self) -> None:
        for folder in (self._folder, self._operated):
            assert read_board(folder).processes == ()

    @rule(
        operation=st.sampled_from(APART),
        call=st.sampled_from(CALLS),
        code=st.sampled_from(CODES),
        skip=st.integers(0, 3),
    )
    def operation_apart(self, operation: Operation, call: str, code: str, skip: int) -> None:
        """Do one on a device of its own, of which a call fails."""
        if self._watching is not None and operation in _TRACING:
            return  # one trace is written at a time
        self._operating = True
        try:
            self._operate(operation, call, code, skip)
        finally:
            self._operating = False

    def _operate(self, operation: Operation, call: str, code: str, skip: int) -> None:
        world = operation.world(self._operated)
        subject = operation.arrange(world)
        try:
            with driver_call(call, code, skip)(world) as was_met:
                result = operation.act(world, subject)
        except (UvmError, MemoryError) as error:
            assert was_met()
            _clear(error)
        else:
            operation.undo(world, subject, result)
        assert world.changed() == []
        operation.end(world, subject)

    # All at once

    def _disturb(self, what: str, number: int) -> None:
        """Do what a main thread may do while others work."""
        budget_bytes = (8 + 2 * (number % 8)) * MIB
        if what == "install":
            self.install(budget_bytes, POLICIES[number % 4], (1,), True, {}, "auto")
        elif what == "end the budget":
            self.set_budget(None, False, False, False)
        elif what == "follow":
            self.set_budget(budget_bytes, True, True, True, policy="lru")
        elif what == "watch":
            (self.report_and_stop if self._watching else self.watch_closely)()
        elif what == "kill":
            self._kill_neighbors()
        else:
            self.operation_apart(APART[number % len(APART)], "prefetch", "driver_error", 0)

    disturbances = st.lists(
        st.tuples(
            st.sampled_from(("install", "end the budget", "follow", "watch", "kill", "operate")),
            st.integers(0, 1000),
        ),
        min_size=1,
        max_size=4,
    )

    @rule(
        plans=st.lists(plans_of_a_thread, min_size=1, max_size=4),
        disturbances=disturbances,
        signals=st.booleans(),
    )
    @only_if(lambda self: rmm_uvm.current_installation() is not None)
    def all_at_once(
        self, plans: list[Plan], disturbances: list[tuple[str, int]], signals: bool
    ) -> None:
        """Have threads work while this one does something else, perhaps under signals."""

        def disturb() -> None:
            for each in disturbances:
                self._disturb(*each)

        with self._signals() if signals else contextlib.nullcontext():
            self.work_together(plans, disturb)
        self._forget_empty_pools()
        Chaos.operations += sum(map(len, plans)) + len(disturbances)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Send signals all the time, whose handler allocates, uses and frees."""

        def handle(*_: object) -> None:
            mr = self.pools[-1]
            try:
                address = mr.allocate(5000)
                with self._driver_may_fail():
                    rmm_uvm.touch((address, 5000), mr=mr)
                mr.deallocate(address, 5000)
            except MemoryError:
                pass
            except Exception:
                unseen.note(f"in the handler of a signal\n{traceback.format_exc()}")

        before = signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, self.signal_seconds, self.signal_seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    @invariant()
    def nothing_went_wrong_unseen(self) -> None:
        Chaos.operations += 1  # once after each step
        unseen.nothing_was_noted()

    @invariant()
    def no_call_failed_by_itself(self) -> None:
        """See that nothing of ours gave up, as our own threads do where C++ throws."""
        for pool in () if self.failed else self.pools:
            kept = pool.managed_mr.residency
            for told in (kept.statistics(), kept.residency() or {}):
                assert not told.get("failed_calls"), told["last_failure"]

    def teardown(self) -> None:
        try:
            if self._watching is not None:
                self.report_and_stop()
            self._kill_neighbors()
            self._apart.clear()
            self.driver_is_well_again()
            self.free_all()
            rmm_uvm.restore()
            rmm.mr.set_per_device_resource(0, self._resource)
        finally:
            super().teardown()
        self._above.clear()
        left = self._before.left_behind()
        assert not left, f"left behind: {left}"
        ended = becomes_true(lambda: self.thread_ids() <= self._threads, self.patience_seconds)
        assert ended, "threads were left behind"
        unseen.nothing_was_noted()

    def thread_ids(self) -> set[int]:
        """Return the kernel's numbers of the threads that are there, and have to end."""
        return thread_ids()


def work_until_killed(board: str, ready: int) -> None:
    """Use a budget that takes what it can of neighbours, without an end; say if that fails."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_NEIGHBOR_SECONDS)
        unseen.note_exceptions()
        mr = rmm_uvm.managed_pool(
            driver=rmm_uvm.simulated_device(DEVICE_BYTES, neighbors=2),
            initial_pool_size=16 * MIB,
            maximum_pool_size=32 * MIB,
            device_budget=Budget(8 * MIB, neighbors=[1, 2], board=board),
        )
        parts = [(mr.allocate(2 * MIB), 2 * MIB) for _ in range(12)]
        for part in parts:
            rmm_uvm.touch(part, mr=mr)
        os.close(ready)
        while True:
            for part in parts:
                rmm_uvm.touch(part, mr=mr)
                time.sleep(_OFTEN_SECONDS)
            unseen.nothing_was_noted()
    except BaseException:
        traceback.print_exc()  # who began it reads no more once it is ready
        os.write(ready, traceback.format_exc().encode())
    finally:
        os._exit(1)
