# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Few warnings of many findings: soon, with the worst, once a minute, and none is lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm import errors
from rmm_uvm.dask.cluster.gathering import (
    GATHER_SECONDS,
    QUIET_SECONDS,
    Gathered,
    Said,
    WarningGatherer,
    gather,
)
from rmm_uvm.dask.worker.events import FindingEvent
from rmm_uvm.recording.finding import WARNING_OF

EVENT = FindingEvent(
    "eviction", "EvictionWarning", "pages leave", device_id=0, value=1.0, worker="tcp://a"
)


def event(worker: str = "tcp://a", value: float = 1.0, kind: str = "eviction") -> FindingEvent:
    category = WARNING_OF[kind].__name__
    return dataclasses.replace(EVENT, worker=worker, value=value, kind=kind, category=category)


class FakeLoop:
    """Calls back when its time has come."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: dict[object, tuple[float, Callable[[], object]]] = {}

    def call_later(self, delay: float, callback: Callable[[], object]) -> object:
        place = object()
        self.calls[place] = (self.now + delay, callback)
        return place

    def remove_timeout(self, timeout: object) -> None:
        del self.calls[timeout]

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self.calls:
            place = min(self.calls, key=lambda one: self.calls[one][0])
            when, callback = self.calls[place]
            if when > end:
                break
            del self.calls[place]
            self.now = max(when, self.now)
            callback()
        self.now = end


def gatherer() -> tuple[FakeLoop, list[Said], WarningGatherer]:
    loop, said = FakeLoop(), []
    return loop, said, WarningGatherer(loop, said.append, lambda: loop.now)


def test_finding_of_one_worker_is_said_after_a_moment_with_its_place() -> None:
    loop, said, hearing = gatherer()
    hearing.hear(event().to_dict())
    assert said == []
    loop.advance(GATHER_SECONDS)

    assert said == [Said(errors.EvictionWarning, "on tcp://a (device 0): pages leave")]


def test_findings_of_several_workers_are_said_once_with_the_worst() -> None:
    loop, said, hearing = gatherer()
    for worker, value in (("tcp://a", 2.0), ("tcp://b", 5.0), ("tcp://c", 3.0), ("tcp://b", 1.0)):
        hearing.hear(event(worker, value).to_dict())
    loop.advance(GATHER_SECONDS)

    (only,) = said
    assert only.text == "on 3 workers, at worst on tcp://b (device 0): pages leave"


def test_kind_that_goes_on_is_said_once_a_minute() -> None:
    loop, said, hearing = gatherer()
    for _ in range(int(5 * QUIET_SECONDS)):
        hearing.hear(event().to_dict())
        loop.advance(1.0)

    assert len(said) == 5


def test_kinds_are_said_apart() -> None:
    loop, said, hearing = gatherer()
    hearing.hear(event().to_dict())
    hearing.hear(event(kind="footprint").to_dict())
    loop.advance(GATHER_SECONDS)

    assert len(said) == 2


def test_messages_of_others_are_passed_over() -> None:
    loop, said, hearing = gatherer()
    hearing.hear({"action": "begin"})
    hearing.hear("text")
    loop.advance(2 * QUIET_SECONDS)

    assert said == []
    assert loop.calls == {}


def test_closing_says_what_waits_and_then_nothing() -> None:
    loop, said, hearing = gatherer()
    hearing.hear(event().to_dict())
    hearing.close()
    assert len(said) == 1

    hearing.close()
    hearing.hear(event(kind="footprint").to_dict())
    loop.advance(2 * QUIET_SECONDS)
    assert len(said) == 1
    assert loop.calls == {}


def test_what_was_said_is_forgotten_when_it_may_be_said_again() -> None:
    state, said = gather({}, event(), 0.0)
    state, said = gather(state, None, GATHER_SECONDS)
    assert len(said) == 1
    assert state

    state, said = gather(state, None, GATHER_SECONDS + QUIET_SECONDS)
    assert (state, said) == ({}, [])


events = st.tuples(
    st.floats(0, 100), st.sampled_from("abc"), st.sampled_from(["eviction", "footprint"])
)


@given(st.lists(events, max_size=30))
def test_every_kind_that_was_found_is_said_and_seldom(heard: list[tuple[float, str, str]]) -> None:
    loop, said, hearing = gatherer()
    for wait, worker, kind in heard:
        loop.advance(wait)
        hearing.hear(event(worker, kind=kind).to_dict())
    hearing.close()

    assert {one.category for one in said} == {WARNING_OF[kind] for _, _, kind in heard}
    for kind in ("eviction", "footprint"):
        n_said = sum(one.category is WARNING_OF[kind] for one in said)
        assert n_said <= loop.now / QUIET_SECONDS + 2  # the last one because it was closed


@given(st.lists(events, min_size=1, max_size=30))
def test_kinds_are_never_said_twice_within_a_minute(heard: list[tuple[float, str, str]]) -> None:
    state: dict[tuple[str, str], Gathered] = {}
    now, said_at = 0.0, {"eviction": -1e9, "footprint": -1e9}
    workers: dict[str, set[str]] = {"eviction": set(), "footprint": set()}
    for wait, worker, kind in heard:
        now += wait
        before = {key[0] for key, one in state.items() if one.worst is not None}
        state, said = gather(state, event(worker, kind=kind), now)
        workers[kind].add(worker)
        after = {key[0] for key, one in state.items() if one.worst is not None}
        spoken = (before | {kind}) - after
        assert len(spoken) == len(said)
        for one in spoken:
            assert now >= said_at[one] + QUIET_SECONDS
            said_at[one] = now
            if len(workers[one]) > 1:
                assert any(f"on {len(workers[one])} workers" in text.text for text in said)
            workers[one] = set()
