# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of broken transfers comes back, and not too soon."""

from __future__ import annotations

import asyncio
import gc
import weakref

from rmm_uvm.dask.comm.quarantine import Quarantine
from rmm_uvm.errors import DriverError

from .fakes import FakeClock


class Mark:
    def __init__(self, *, done: bool = False, error: Exception | None = None) -> None:
        self.is_done, self.error = done, error

    def done(self) -> bool:
        if self.error is not None:
            raise self.error
        return self.is_done


class Thing:
    pass


def test_quarantine_gives_back_when_the_time_is_over_and_not_before() -> None:
    clock, given_back = FakeClock(), []
    quarantine = Quarantine(5.0, clock)
    quarantine.put(lambda: given_back.append("a"))
    clock.now = 3.0
    quarantine.put(lambda: given_back.append("b"))
    quarantine.collect()
    assert given_back == []
    clock.now = 5.0
    quarantine.collect()
    assert given_back == ["a"]
    assert len(quarantine) == 1
    clock.now = 8.0
    quarantine.collect()
    assert given_back == ["a", "b"]
    assert len(quarantine) == 0


def test_quarantine_waits_for_copies_that_are_not_done() -> None:
    clock, given_back, mark = FakeClock(), [], Mark()
    quarantine = Quarantine(5.0, clock)
    quarantine.put(lambda: given_back.append("a"), mark)
    clock.now = 100.0
    quarantine.collect()
    assert given_back == []
    mark.is_done = True
    quarantine.collect()
    assert given_back == ["a"]


def test_quarantine_does_not_wait_for_copies_that_failed() -> None:
    clock, given_back = FakeClock(), []
    quarantine = Quarantine(5.0, clock)
    quarantine.put(lambda: given_back.append("a"), Mark(error=DriverError("lost")))
    clock.now = 5.0
    quarantine.collect()
    assert given_back == ["a"]


def test_quarantine_keeps_things_alive_until_then() -> None:
    clock, thing = FakeClock(), Thing()
    quarantine, gone = Quarantine(5.0, clock), weakref.ref(thing)
    quarantine.keep(thing)
    del thing
    gc.collect()
    assert gone() is not None
    clock.now = 5.0
    quarantine.collect()
    gc.collect()
    assert gone() is None


def test_quarantine_in_an_event_loop_needs_no_collecting() -> None:
    async def run() -> None:
        given_back = asyncio.Event()
        Quarantine(0.001).put(given_back.set)
        await asyncio.wait_for(given_back.wait(), 30)

    asyncio.run(run())


def test_quarantine_in_an_event_loop_comes_back_to_copies_that_were_not_done() -> None:
    async def run() -> None:
        given_back, mark = asyncio.Event(), Mark()
        quarantine = Quarantine(0.001)
        quarantine.put(given_back.set, mark)
        await asyncio.sleep(0.005)
        assert not given_back.is_set()
        mark.is_done = True
        await asyncio.wait_for(given_back.wait(), 30)

    asyncio.run(run())
