# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What would have helped a run: which ways are tried, and which of them are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rmm_uvm.planner.advice.announced import Moved
from rmm_uvm.planner.advice.line_hints import LineHint
from rmm_uvm.planner.advice.remedies import AsItRan, remedies
from rmm_uvm.planner.outcome import AnnouncedWay

GIB = 1 << 30
TOUCH = "announce what kernels use next: rmm_uvm.touch"
BUDGET = 'keep a budget: device_budget="auto"'

Seconds = Callable[[AnnouncedWay, bool], float | None]


def ran(**changed: Any) -> AsItRan:
    """Return a run of 10 s of computing that lacks half a card."""
    facts = {
        "device_id": 0,
        "capacity_bytes": 4 * GIB,
        "peak_bytes": 6 * GIB,
        "slab_bytes": 6 * GIB,
        "prefetch": "auto",
        "budget_bytes": 3 * GIB,
        "eviction": "repeat",
        "announced": True,
        "grows": False,
        "compute_seconds": 10.0,
        "seconds": 30.0,
        "machine": "h200-pcie5",
    }
    return AsItRan(**{**facts, **changed})


def told(run: AsItRan, seconds: Seconds) -> list[str]:
    def tries(
        capacity_bytes: int,
        host_bytes: int | None,
        way: AnnouncedWay,
        compute_seconds: float,
        *,
        announces: bool,
        hint: LineHint | None = None,
    ) -> Moved | None:
        assert hint is None
        assert (capacity_bytes, host_bytes, compute_seconds) == (4 * GIB, None, 10.0)
        waited = seconds(way, announces)
        return None if waited is None else Moved(waited, int(waited) * GIB, GIB)

    return [each.remedy for each in remedies(run, tries)]


def test_run_that_waits_for_nothing_has_no_remedy() -> None:
    assert told(ran(), lambda way, announces: 0.3) == []
    assert told(ran(), lambda way, announces: None) == []


def test_what_saves_most_comes_first_and_parts_last() -> None:
    def seconds(way: AnnouncedWay, announces: bool) -> float:
        return {"repeat": 9.0, "lru": 5.0, "fifo": 4.0}.get(way.eviction or "", 9.0)

    assert told(ran(), seconds) == [
        'eviction="fifo"',
        'eviction="lru"',
        "process the data in 2 parts",
    ]


def test_at_most_three_are_told_and_none_that_saves_less_than_three_hundredths() -> None:
    def seconds(way: AnnouncedWay, announces: bool) -> float:
        return 9.0 if way.eviction == "repeat" and way.prefetch == "auto" else 8.5

    assert told(ran(grows=True), seconds) == []
    assert len(told(ran(grows=True), lambda *way: seconds(*way) - 2 * (seconds(*way) < 9))) == 3


@pytest.mark.parametrize("grows", [True, False])
def test_data_that_grow_to_the_end_are_not_to_be_processed_in_parts(grows: bool) -> None:
    assert told(ran(grows=grows), lambda way, announces: 9.0) == (
        [] if grows else ["process the data in 2 parts"]
    )


def test_run_that_announces_nothing_is_done_again_without_and_with_announcements() -> None:
    run = ran(announced=False, grows=True)
    assert told(run, lambda way, announces: 2.0 if announces else 9.0) == [TOUCH]
    assert told(run, lambda way, announces: 9.0) == []


def test_budget_is_tried_where_there_is_none_and_never_another_policy() -> None:
    run = ran(budget_bytes=None, grows=True)

    def seconds(way: AnnouncedWay, announces: bool) -> float:
        assert way.eviction in {None, "repeat"}
        assert announces
        assert way.budget_bytes in {None, 4 * GIB * 15 // 16}
        return 2.0 if way.budget_bytes else 9.0

    assert told(run, seconds) == [BUDGET]
    quiet = run._replace(announced=False)
    assert told(quiet, lambda way, announces: 2.0 if announces else 9.0) == [
        f'keep a budget, device_budget="auto", and {TOUCH}'
    ]


@pytest.mark.parametrize(("mode", "other"), [("auto", "never"), ("always", "auto")])
def test_other_prefetch_modes_are_tried(mode: Any, other: str) -> None:
    def seconds(way: AnnouncedWay, announces: bool) -> float:
        return 1.0 if way.prefetch == other else 9.0

    assert told(ran(prefetch=mode, grows=True), seconds) == [f'prefetch="{other}"']


def test_way_that_runs_out_of_memory_is_no_remedy() -> None:
    def seconds(way: AnnouncedWay, announces: bool) -> float | None:
        return 9.0 if way.eviction == "repeat" else None

    assert told(ran(grows=True), seconds) == []


def test_finding_says_what_it_took_and_what_it_takes() -> None:
    def tries(*_: Any, announces: bool, hint: LineHint | None = None) -> Moved:
        return Moved(2.0, GIB, GIB) if announces else Moved(30.0, 9 * GIB, 8 * GIB)

    first, parts = remedies(ran(announced=False), tries)
    assert (first.kind, first.device_id, first.time_seconds) == ("replayed", 0, 30.0)
    assert first.value == pytest.approx(40 / 12)
    assert first.message == (
        "done again on a model (h200-pcie5) it takes 12.0 s in place of 40.0 s, and moves "
        "2.00 GiB in place of 17.00 GiB"
    )
    assert parts.message == (
        "each would fit if memory shrinks with the part, and nothing would move: 10.0 s of "
        "computing, where the run takes 40.0 s on a model (h200-pcie5)"
    )


def test_best_hint_at_a_line_is_told_in_place_of_what_asks_for_more() -> None:
    hints = (
        LineHint("touch at a line", "touch", frozenset({1})),
        LineHint("evict at a line", "evict", frozenset({1})),
    )
    waited = {"touch": 4.0, "evict": 8.0}

    def tries(*_: Any, announces: bool, hint: LineHint | None = None) -> Moved:
        seconds = (every if announces else 9.0) if hint is None else waited[hint.hint]
        return Moved(seconds, GIB, GIB)

    def said(run: AsItRan) -> list[str]:
        return [each.remedy for each in remedies(run, tries)]

    quiet = ran(announced=False, grows=True, hints=hints)
    every = 4.0
    assert said(quiet) == ["touch at a line", "evict at a line"]
    every = 1.0
    assert said(quiet) == [TOUCH, "touch at a line", "evict at a line"]
    every = 9.0
    assert said(quiet._replace(announced=True)) == ["evict at a line"]


def test_hint_at_a_line_is_among_three_that_save_more() -> None:
    def tries(
        _: int, __: int | None, way: AnnouncedWay, ___: float, *, announces: bool, hint: Any = None
    ) -> Moved:
        if hint is not None:
            return Moved(6.0, GIB, GIB)
        return Moved(9.0 if (way.prefetch, way.eviction) == ("auto", "repeat") else 1.0, GIB, GIB)

    run = ran(hints=(LineHint("evict at a line", "evict", frozenset({1})),))
    found = [each.remedy for each in remedies(run, tries)]
    assert len(found) == 3
    assert found[-1] == "evict at a line"


def test_run_of_which_nothing_moves_has_no_remedy() -> None:
    def tries(*_: Any, announces: bool, hint: LineHint | None = None) -> Moved:
        return Moved(0.0 if announces else 9.0, 0, 0)

    assert remedies(ran(announced=False), tries) == ()


@pytest.mark.parametrize(
    ("others_bytes", "larger"), [(0, 15 * GIB // 4), (GIB // 2, 105 * GIB // 32)]
)
def test_larger_budget_is_tried_as_far_as_others_leave_room(others_bytes: int, larger: int) -> None:
    def seconds(way: AnnouncedWay, announces: bool) -> float:
        assert way.budget_bytes in {3 * GIB, larger}
        return 1.0 if way.budget_bytes == larger else 9.0

    run = ran(grows=True, others_bytes=others_bytes)
    assert told(run, seconds) == ['keep a larger budget: device_budget="auto"']
    assert told(run._replace(budget_bytes=larger), lambda way, announces: 9.0) == []
    assert told(run._replace(others_bytes=GIB), lambda way, announces: way.budget_bytes / GIB) == []
