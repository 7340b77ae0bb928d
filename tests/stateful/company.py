# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that fork in the middle of anything, and programs whose threads all want the pool."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import signal
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import hypothesis.strategies as st
from hypothesis.stateful import rule

import rmm_uvm

from ..support.known_contents import Buffer
from . import unseen
from .choices import numbers, only_if, sizes_bytes, stream_of, streams
from .machine import Programs

_CHILD_SECONDS = 60  # a child that hangs is ended
ACTIONS = ("allocate", "allocate", "free", "write", "touch", "prefetch", "evict", "pin", "advise")
Plan = list[tuple[str, int, int, int]]  # each an action, a number, a size and a stream
plans_of_a_thread = st.lists(
    st.tuples(st.sampled_from(ACTIONS), numbers, sizes_bytes, streams), min_size=2, max_size=8
)


def in_child(work: Callable[[], None]) -> str:
    """Do it in a fork of this process; return what went wrong there, "" for nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _work_and_end(work, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as told:
        text = told.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status == 0 else f"status {status} {text}"


def _work_and_end(work: Callable[[], None], writing: int) -> NoReturn:
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.register(signal.SIGALRM, writing, chain=True)  # says where it hangs, and ends
        signal.alarm(_CHILD_SECONDS)
        gc.disable()  # what is garbage is the parent's
        work()
        unseen.nothing_was_noted()
        status = 0
    except BaseException:
        os.write(writing, traceback.format_exc().encode())
    finally:
        os._exit(status)


class ForkingPrograms(Programs):
    """Children go on with what there was, on a device of their own; the parent sees nothing."""

    @rule(
        sizes=st.lists(sizes_bytes, min_size=1, max_size=3),
        number=numbers,
        stream=streams,
        again=st.booleans(),
    )
    def fork(self, **asked: Any) -> None:
        wrong = in_child(lambda: self.go_on(**asked))
        assert not wrong, wrong

    def _write_all(self) -> None:  # apart: a variable that stays would keep a pool
        for buffer in self.live:
            self.writes += 1
            buffer.write(self.writes)

    def go_on(self, sizes: list[int], number: int, stream: int, again: bool) -> None:
        """Read, write, allocate, use and free, as a child; perhaps its child does so, too."""
        assert self.monitor is None or not self.monitor.running
        self.contents_are_as_written()
        self._write_all()
        # A budget's thread is not here: requests make room by themselves.
        if rmm_uvm.current_installation() is not None:
            for nbytes in sizes:
                self.allocate(nbytes, stream)
        if self.live:
            self.announce(number, stream)
            self.evict(number, stream)
            self.prefetch(number + 1, stream)
            self.write(number)
            self.free(number + 1, stream)
        self.managed_bytes_add_up()
        self.device_and_host_hold_what_is_there()
        self.contents_are_as_written()
        if again:
            wrong = in_child(lambda: self.go_on(sizes, number + 1, stream, again=False))
            assert not wrong, wrong


class ProgramsWithThreads(ForkingPrograms):
    """Budgets are kept by a thread of theirs, and threads of the program share the pool."""

    background = True
    unordered = True

    @rule(plans=st.lists(plans_of_a_thread, min_size=2, max_size=4))
    @only_if(lambda self: rmm_uvm.current_installation() is not None)
    def threads(self, plans: list[Plan]) -> None:
        self.work_together(plans)

    def work_together(
        self, plans: list[Plan], meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """Do each plan in a thread of its own, and something else in this one."""
        together = threading.Barrier(len(plans) + 1)

        def work(plan: Plan, first: int) -> list[Buffer]:
            together.wait()
            return self.work(plan, first)

        begins = [self.writes + 50 * number for number in range(len(plans))]
        self.writes += 50 * len(plans)
        for pool in self.pools:  # beside one, those of the other threads and of a signal's handler
            before = self.beside.get(id(pool), 0)
            self.beside[id(pool)] = max(before, len(plans) + 1)
        with ThreadPoolExecutor(len(plans)) as executor:
            left = executor.map(work, plans, begins)
            together.wait()
            meanwhile()
            for each in left:
                self.live += each

    def work(self, plan: Plan, first: int) -> list[Buffer]:
        """Do in one thread what is planned, with memory of its own; return what is left of it."""
        mr, live = self.pools[-1], list[Buffer]()
        for step, (action, number, nbytes, stream) in enumerate(plan):
            if action == "allocate" or not live:
                with contextlib.suppress(MemoryError):
                    live.append(self.buffers(mr, mr.allocate(nbytes, stream_of(stream)), nbytes))
                    self.use(live[-1], write=True)
                    live[-1].write(first + step)
                continue
            buffer = live[number % len(live)]
            assert not buffer.changed
            if action == "free":
                live.remove(buffer)
                assert not buffer.changed_anywhere
                mr.deallocate(*buffer.region, stream_of(stream))
            elif action == "write":
                self.use(buffer, write=True)
                buffer.write(first + step)
            elif action == "pin":
                with rmm_uvm.pin(buffer.region, mr=mr):
                    self.pinned = True
                    self.use(buffer)
            else:
                named = {"preferred": "host"} if action == "advise" else {"stream": stream}
                with self._driver_may_fail():
                    getattr(rmm_uvm, action)(buffer.region, mr=mr, **named)
                self.use(buffer)
        return live
