# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The policy: a program that waits since its data do not fit the budget, and one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from rmm_uvm.errors import BudgetWarning
from rmm_uvm.recording.finding import WARNING_OF, Finding
from rmm_uvm.watch.judging.policy import Context, PolicyState, evaluate
from rmm_uvm.watch.judging.thresholds import Thresholds

from .samples import DEVICE, GIB, Samples
from .test_policy_budget import budget

WAITS = {"waited_seconds": 0.2, "waited_for_room_seconds": 0.05, "fetched_bytes": GIB}


class Program:
    """A program under a budget that is looked at twice a second; what it counts grows."""

    def __init__(self, thresholds: Thresholds | None = None, **levels: Any) -> None:
        self.samples = Samples(footprint_bytes=6 * GIB)
        self.thresholds = thresholds or Thresholds()
        self.levels = {"policy": "repeat", "foresees": True, **levels}
        self.counts: dict[str, Any] = {}
        self.state = PolicyState()
        self.looked = 0

    def run(self, seconds: float, **growth: Any) -> list[Finding]:
        found: list[Finding] = []
        for _ in range(round(seconds * 2)):
            self.samples.add(5)
            for name, more in growth.items():
                self.counts[name] = self.counts.get(name, 0) + more
            new = self.samples.array()[self.looked :]
            self.looked += len(new)
            context = Context(
                DEVICE, prefetch="auto", budget=budget(**{**self.levels, **self.counts})
            )
            self.state, more_found = evaluate(self.state, new, context, self.thresholds)
            found += more_found
        return found


def test_program_that_waits_for_its_budget_is_told_once_with_the_cause() -> None:
    (finding,) = Program().run(50, **WAITS)
    assert finding.kind == "waiting"
    assert WARNING_OF[finding.kind] is BudgetWarning
    assert finding.threshold == 0.25
    assert 5 < finding.time_seconds < 10  # as soon as 2.5 s of 10 are gone
    assert finding.message == (
        "the program waited 2.6 s of the last 6.5 s because its data do not fit the budget of "
        "4.00 GiB (threshold 25%): 13.00 GiB came back, 2.2 times the 6.00 GiB that are allocated, "
        "and it waited mostly for data to come"
    )
    assert finding.remedy == (
        "say what is used next (rmm_uvm.touch, rmm_uvm.prefetch) and what is not (rmm_uvm.evict), "
        "or work on less data at a time"
    )


def test_twin_that_fits_hears_nothing() -> None:
    assert Program().run(50) == []
    # Nor where new memory is made usable, while nothing moves.
    assert Program().run(50, waited_seconds=0.4, renewed_bytes=GIB) == []


def test_little_waiting_is_nothing_to_speak_of() -> None:
    assert Program().run(50, waited_seconds=0.1, fetched_bytes=GIB) == []


def test_a_burst_is_over_before_anybody_hears_of_it() -> None:
    program = Program()
    assert program.run(5, **WAITS) == []
    assert program.run(50) == []


def test_what_was_waited_before_the_monitor_began_does_not_count() -> None:
    program = Program()
    program.counts = {"waited_seconds": 1000.0, "fetched_bytes": 100 * GIB}
    assert program.run(50) == []


def test_it_is_told_again_only_after_a_pause_and_once_it_was_over() -> None:
    program = Program()
    assert len(program.run(30, **WAITS)) == 1
    assert program.run(60, **WAITS) == []  # it never was over
    assert program.run(15) == []
    assert len(program.run(30, **WAITS)) == 1


def test_another_pool_begins_anew() -> None:
    program = Program()
    program.run(4, **WAITS)
    program.counts = {}
    assert program.run(4, **WAITS) == []


@pytest.mark.parametrize(
    ("levels", "growth", "words"),
    [
        ({}, {"waited_for_room_seconds": 0.2}, "and it waited mostly for other live data to leave"),
        # A long wait is told when it ends, and began before the window.
        ({}, {"waited_seconds": 2.0}, "the program waited 1.0 s of the last 1.0 s because"),
        ({"policy": "lru"}, {}, 'or let the order of uses be learnt (eviction="repeat"), or work'),
        ({"foresees": False}, {}, 'or try eviction="lru", or work on less data at a time'),
        (
            {"unmanaged_bytes": 10 * GIB},
            {},
            "free what others hold of the device, 10.00 GiB, or say what is used next",
        ),
    ],
)
def test_cause_and_remedies_are_those_of_the_program(
    levels: dict[str, Any], growth: dict[str, Any], words: str
) -> None:
    (finding,) = Program(**levels).run(20, **{**WAITS, **growth})
    assert words in str(finding)


def test_less_data_comes_last() -> None:
    (finding,) = Program(policy="lru").run(20, **WAITS)
    assert finding.remedy.endswith("work on less data at a time")


def test_threshold_can_be_changed_and_switched_off() -> None:
    assert Program(Thresholds().changed(waiting_fraction=0.5)).run(50, **WAITS) == []
    assert Program(Thresholds(waiting_fraction=None)).run(50, **WAITS) == []
    chosen = Thresholds.from_environment({"RMM_UVM_WARN_WAITING": "0.1"})
    assert (chosen.waiting_fraction, chosen.waiting_rearm_fraction) == (0.1, 0.05)


def test_long_window_keeps_a_bounded_number_of_looks() -> None:
    program = Program(Thresholds(waiting_window_seconds=10.0))
    for _ in range(300):
        program.samples.add(1, seconds=0.01)
        program.run(0.5, **WAITS)
    assert len(program.state.budget_looks) < 70
