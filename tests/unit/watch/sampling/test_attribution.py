# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Causes over time: rows that stay few, last totals, sources that refuse."""

from __future__ import annotations

from typing import Any

import pytest

import rmm_uvm
from rmm_uvm.drivers import UvmDriver
from rmm_uvm.machine.device_info import Availability
from rmm_uvm.recording.recorded import CAUSES
from rmm_uvm.watch.sampling import attribution
from rmm_uvm.watch.sampling.attribution import Attribution

YES, NO = Availability(available=True), Availability(available=False, reason="held by another")


class FakeEvents:
    """Events whose bytes grow by one at each look, and by a thousand when they are stopped."""

    def __init__(self, answer: Availability = YES) -> None:
        self.answer = answer
        self.bytes = 0
        self.stopped = 0

    def start(self) -> Availability:
        return self.answer

    def stop(self) -> None:
        self.stopped += 1
        self.bytes += 1000

    def read(self) -> Any:
        self.bytes += 1
        by_cause = dict.fromkeys(CAUSES, self.bytes)
        others = dict.fromkeys(attribution.COLUMNS, 0)
        return {**others, "host_to_device_bytes": by_cause, "device_to_host_bytes": by_cause}

    def busiest(self, most: int) -> list[tuple[int, int, int]]:
        return [(4096, self.bytes, 0)][:most]


def watched(*events: FakeEvents) -> Attribution:
    driver: UvmDriver = rmm_uvm.simulated_device("64MiB")
    sources = iter(events)
    return Attribution(dict.fromkeys(range(len(events)), driver), lambda _: (next(sources), YES))


def test_looks_are_rows_of_each_device() -> None:
    causes = watched(FakeEvents(), FakeEvents())
    causes.look(0.5)
    causes.look(1.0)

    recorded = causes.recorded()

    assert causes.available
    assert recorded is not None
    assert [row[:2] for row in recorded["rows"]] == [[0.5, 0], [0.5, 1], [1.0, 0], [1.0, 1]]


def test_stop_keeps_the_complete_totals_and_is_idempotent() -> None:
    events = FakeEvents()
    causes = watched(events)
    causes.look(0.5)
    causes.stop(1.0)
    causes.stop(2.0)
    causes.look(3.0)

    recorded = causes.recorded()
    assert recorded is not None
    assert [row[0] for row in recorded["rows"]] == [0.5, 1.0]
    assert recorded["rows"][-1][2] > 1000
    assert events.stopped == 1
    assert causes.busiest()[0][1] > 1000


def test_source_that_refuses_is_a_reason_and_no_rows() -> None:
    causes = watched(FakeEvents(NO), FakeEvents())
    causes.look(0.5)

    assert causes.available == NO
    assert causes.latest(0) is None
    assert causes.latest(1) is not None
    assert watched(FakeEvents(NO)).recorded() is None


def test_no_driver_tells_no_causes() -> None:
    causes = Attribution({})

    assert not causes.available
    causes.look(0.5)
    causes.stop(1.0)
    assert (causes.recorded(), causes.busiest()) == (None, ())


def test_many_looks_are_thinned_and_keep_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "_MOST_ROWS", 10)
    causes = watched(FakeEvents())
    for number in range(200):
        causes.look(number * 0.5)
    causes.stop(100.0)

    recorded = causes.recorded()
    assert recorded is not None
    times = [row[0] for row in recorded["rows"]]
    assert len(times) <= 11
    assert times == sorted(times)
    assert times[0] < 20
    assert times[-1] == 100.0
