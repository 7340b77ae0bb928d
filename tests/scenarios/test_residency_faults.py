# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What is told of faults: where the program was, and what had left there."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from .residency_scripts import script

faults = script("residency/faults")
MIB = 1 << 20


class Counts:
    """Counters that a test sets, and what goes on."""

    def __init__(self) -> None:
        self.now: dict[str, Any] = {**dict.fromkeys(faults.COUNTED, 0), "foresees": False}
        self.place = "load:1"

    def rise(self, place: str, **more: int) -> None:
        self.place = place
        for name, nbytes in more.items():
            self.now[name] += nbytes


def test_what_rose_between_two_looks_is_entered_where_the_program_was() -> None:
    counts = Counts()
    moments = faults.Moments(lambda: dict(counts.now), lambda: counts.place)
    counts.rise("load:1", evicted_bytes=8 * MIB)
    moments.look()
    counts.rise("join:7 merge", faulted_bytes=4 * MIB, evicted_bytes=2 * MIB)
    moments.look()
    (line,) = moments.lines()  # where nothing faulted there is nothing to tell
    assert line.split() == [
        *("0", "as", "lru", "join:7", "merge"),
        *("faulted", "4", "evicted", "2", "fetched", "0", "dropped", "0"),
    ]


def test_iterations_and_belief_are_told_apart() -> None:
    counts = Counts()
    moments = faults.Moments(lambda: dict(counts.now), lambda: counts.place)
    for iteration, foresees in ((1, False), (2, False), (2, True)):
        moments.iteration, counts.now["foresees"] = iteration, foresees
        counts.rise("join:7", faulted_bytes=MIB)
        moments.look()
    assert [line[:10] for line in moments.lines()] == ["1 as lru  ", "2 as lru  ", "2 believed"]


def test_work_is_watched_to_its_end_and_its_error_comes_through() -> None:
    counts = Counts()
    moments = faults.Moments(lambda: dict(counts.now), lambda: counts.place)
    faults.watched(moments, lambda: counts.rise("join:7", faulted_bytes=MIB))
    assert sum(here["faulted_bytes"] for here in moments.found.values()) == MIB

    def fail() -> None:
        raise ValueError("a step failed")

    with pytest.raises(ValueError, match="a step failed"):
        faults.watched(moments, fail)


def test_place_outside_of_any_step_is_elsewhere() -> None:
    assert faults.place_of(sys._getframe()) == "elsewhere"
    assert faults.place_of(None) == "elsewhere"


def test_counters_that_are_not_there_count_as_nothing() -> None:
    counts = Counts()
    counts.now["faulted_bytes"] = None  # bytes are not counted here
    moments = faults.Moments(lambda: dict(counts.now), lambda: counts.place)
    moments.look()
    assert moments.lines() == []
