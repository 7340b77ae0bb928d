# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Which lines are to blame, of traffic that is made up; real programs are in tests/scenarios."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rmm_uvm.recording.line_traffic import CallPath, LineTraffic, MovedBytes, ProgramLine
from rmm_uvm.report import Report
from rmm_uvm.report.as_dict import as_dict
from rmm_uvm.report.culprits import Fault, culprits
from rmm_uvm.report.page import page
from rmm_uvm.residency.statistics import ResidencyStatistics

from . import recordings

MIB = 1 << 20
RUN = 12  # stretches
LEAKING = (8,) * RUN


def one_of(
    number: int,
    allocated: tuple[int, ...],
    held: tuple[int, ...] = (),
    at_top: tuple[int, ...] | None = None,
    *,
    evicted: int = 0,
    returned: int = 0,
    came: int = 0,
) -> CallPath:
    """Return what a line did; MiB, by stretch."""
    held = held or allocated
    at_top = held if at_top is None else at_top
    padded = [(*each, *(0,) * (RUN - len(each))) for each in (allocated, held, at_top)]
    by_stretch = [tuple(nbytes * MIB for nbytes in each) for each in padded]
    moved = MovedBytes(
        brought_bytes=(came + returned) * MIB,
        evicted_bytes=evicted * MIB,
        returned_bytes=returned * MIB,
    )
    return CallPath((number,), 0, 1, 0, sum(by_stretch[1]), moved, *by_stretch)


def traffic(*paths: CallPath, peak: int = 100, peak_stretch: int = RUN - 1) -> LineTraffic:
    lines = tuple(ProgramLine("/me/etl.py", n, "main", f"step {n}") for n in range(len(paths)))
    return LineTraffic("all of it", lines, paths, (), peak * MIB, peak_stretch)


def blamed(lines: LineTraffic) -> list[tuple[int, Fault]]:
    return [(one.line.line.number, one.fault) for one in culprits(lines) if one.line.line]


def as_dict_of(lines: LineTraffic) -> dict[str, Any]:
    return as_dict(dataclasses.replace(recordings.fitting(), lines=lines))["lines"]


OTHER = one_of(1, (1,) * RUN, (1,))  # allocates all the time, keeps nothing, and stays


@pytest.mark.parametrize(("returned", "found"), [(25, [(0, Fault.RETURNS)]), (24, [])])
def test_memory_comes_back_from_more_than_all_of_it_on(
    returned: int, found: list[tuple[int, Fault]]
) -> None:
    table = one_of(0, (24,), returned=returned)
    assert blamed(traffic(table, OTHER)) == found


def test_memory_that_the_cpu_takes_is_told_as_such() -> None:
    table = one_of(0, (24,), evicted=30, returned=72)
    told = []
    for read_back in (30, 42):
        moved = dataclasses.replace(table.moved, read_back_bytes=read_back * MIB)
        again = dataclasses.replace(table, moved=moved)
        lines = traffic(again, OTHER, dataclasses.replace(again, lines=(2,)))
        told.append(as_dict_of(lines)["culprits"][0]["told"])
        text = Report(dataclasses.replace(recordings.fitting(), lines=lines)).text(100)
        assert ("take turns on the device" in text) is (read_back == 30)
    assert told == [
        "its memory comes back 3 times, 72.00 MiB in all",
        "its memory comes back 3 times, 72.00 MiB in all; the CPU uses it in between",
    ]


@pytest.mark.parametrize(("others", "found"), [(36, [(0, Fault.RETURNS)]), (72, [])])
def test_a_function_that_allocates_for_all_has_the_table_of_one_caller(
    others: int, found: list[tuple[int, Fault]]
) -> None:
    table = dataclasses.replace(one_of(0, (24,), evicted=72, returned=72), lines=(0, 1))
    rest = dataclasses.replace(one_of(0, (99,) * RUN, (9,), returned=others), lines=(0, 2))
    lines = traffic(table, rest)
    lines = dataclasses.replace(lines, lines=(lines.lines[0], *lines.lines))
    assert [each for each in blamed(lines) if each[1] is Fault.RETURNS] == found


def test_many_allocations_that_come_back_once_each_are_no_culprit() -> None:
    parts = one_of(0, (24,) * RUN, (24,), returned=24 * RUN)
    assert blamed(traffic(parts, OTHER)) == []


def test_what_comes_for_the_first_time_is_nobodys_fault() -> None:
    assert blamed(traffic(one_of(0, (24,) * RUN, (24,), came=24 * RUN), OTHER)) == []


@pytest.mark.parametrize(
    ("held", "found"),
    [
        (LEAKING, True),
        ((0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8), True),  # after the data were loaded
        ((8, 0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 0), True),  # now and then
        ((8,) * 6, False),  # half of the run: loading
        ((48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 48), False),  # twice
        ((0, 0, 0, 0, 0, 96), False),  # at once
    ],
)
def test_a_line_grows_that_holds_memory_of_each_quarter_of_a_long_time(
    held: tuple[int, ...], found: bool
) -> None:
    line = one_of(0, held, evicted=60)
    growing = (0, Fault.GROWS) in blamed(traffic(line, OTHER))
    assert growing is found


def test_what_a_line_frees_does_not_hide_that_it_grows() -> None:
    assert blamed(traffic(one_of(0, (50,) * RUN, LEAKING, evicted=60), OTHER))[0] == (
        0,
        Fault.GROWS,
    )


def test_a_cache_that_grows_and_is_read_is_told_to_grow() -> None:
    cache = one_of(0, LEAKING, evicted=300, returned=300)
    assert blamed(traffic(cache, OTHER)) == [(0, Fault.GROWS)]


def test_one_long_call_is_a_peak_and_no_growth() -> None:
    # Nobody else allocates meanwhile.
    assert blamed(traffic(one_of(0, LEAKING, evicted=60), one_of(1, (4,)))) == [(0, Fault.PEAK)]


def test_a_leak_that_nearly_fits_is_none() -> None:
    assert blamed(traffic(one_of(0, LEAKING, evicted=9), OTHER, peak=1000)) == []


def test_the_peak_is_of_the_largest_line_that_still_allocated_then() -> None:
    table = one_of(0, (64,), evicted=30)
    merge, sum_ = one_of(1, (0,) * 5 + (40,)), one_of(2, (0,) * 5 + (1,))
    assert blamed(traffic(table, merge, sum_, peak_stretch=5)) == [(1, Fault.PEAK)]
    # Of what is away less than a twentieth: it nearly fitted.
    nearly = dataclasses.replace(table, moved=MovedBytes(evicted_bytes=4 * MIB))
    assert blamed(traffic(nearly, merge, sum_, peak_stretch=5)) == []
    # What comes from the host is what the program works on.
    loaded = one_of(1, (0,) * 5 + (40,), came=40)
    assert blamed(traffic(table, loaded, sum_, peak_stretch=5)) == [(2, Fault.PEAK)]


def test_a_line_that_many_call_has_no_more_than_it_had_at_a_time() -> None:
    # One after the other, and each is freed before the next: what a function or a recursion does.
    calls = [
        one_of(0, (0,) * n + (30,), at_top=(0,) * n + (30 * (n == RUN - 1),), evicted=10)
        for n in range(RUN)
    ]
    calls = [dataclasses.replace(call, lines=(0, n)) for n, call in enumerate(calls)]
    merge = one_of(1, (0,) * (RUN - 1) + (60,))
    lines = traffic(*calls, merge, peak=90)
    lines = dataclasses.replace(lines, lines=(*lines.lines[:2], *lines.lines[:RUN]))
    assert blamed(lines) == [(1, Fault.PEAK)]
    sums = {one.line.number: one.peak_bytes for one in lines.by_line() if one.line}
    assert sums == {0: 30 * MIB, 1: 60 * MIB}
    # At the run's peak all of them count, whatever each had alone.
    kept = [dataclasses.replace(call, at_top=call.held) for call in calls]
    grown = dataclasses.replace(lines, paths=(*kept, OTHER))
    assert blamed(grown) == [(0, Fault.GROWS)]
    assert grown.by_line()[0].peak_bytes == 30 * RUN * MIB


def test_the_peak_is_told_by_what_there_was_then() -> None:
    before = one_of(0, (80,), at_top=(10,), evicted=30)
    merge = one_of(1, (0,) * 5 + (90,), at_top=(0,) * 5 + (40,))
    lines = traffic(before, merge, peak=50, peak_stretch=5)
    told = [one["told"] for one in as_dict_of(lines)["culprits"]]
    assert told == ["it makes the peak: 40.00 MiB of the 50.00 MiB that are allocated then"]


def test_a_peak_of_an_earlier_cell_is_not_blamed_for_a_later_one() -> None:
    before = traffic(one_of(0, (64,), evicted=30), OTHER, peak=65, peak_stretch=0)
    later = traffic(one_of(0, (64,), evicted=60), OTHER, peak=65, peak_stretch=0)
    assert blamed(before) == [(0, Fault.PEAK)]
    assert blamed(later.since(before)) == []
    higher = dataclasses.replace(later, peak_bytes=80 * MIB)
    assert blamed(higher.since(before)) == [(0, Fault.PEAK)]


def test_the_worst_line_comes_first_and_small_ones_are_left_out() -> None:
    small = one_of(0, (1,), returned=3)
    table = one_of(1, (10,), evicted=80, returned=80)
    worse = one_of(2, (40,), evicted=90, returned=90)
    lines = traffic(small, table, worse, one_of(3, (1,) * RUN, (1,)))
    assert blamed(lines) == [(2, Fault.RETURNS), (1, Fault.RETURNS)]
    recording = dataclasses.replace(recordings.fitting(), lines=lines)
    text = " ".join(Report(recording).text(100).split())
    assert "look here first 1. etl.py:2 in main: step 2 its memory comes back 2 times, " in text
    assert "2. etl.py:1 in main: step 1 its memory comes back 8 times, 80.00 MiB in all" in text
    assert "take turns on the device: together they have 50.00 MiB." in text
    assert "nothing to do" not in text
    assert as_dict(recording)["verdict"] == ""
    failed = dataclasses.replace(recording, failure="it died")
    assert as_dict(failed)["verdict"] == "it died"
    assert [one["line"] for one in as_dict(recording)["lines"]["culprits"]] == [2, 1]


def test_memory_of_no_known_line_is_not_blamed() -> None:
    unknown = dataclasses.replace(one_of(0, (10,), evicted=80, returned=80), lines=(), users=None)
    assert culprits(traffic(unknown, OTHER)) == ()


def test_recordings_of_former_versions_blame_nobody() -> None:
    moved = MovedBytes(brought_bytes=90 * MIB, evicted_bytes=90 * MIB)
    assert culprits(traffic(CallPath((0,), 0, 1, 0, 10 * MIB, moved))) == ()


def test_a_page_begins_with_the_line_to_look_at() -> None:
    culprit = traffic(one_of(0, (24,), returned=72), OTHER)
    none = traffic(one_of(0, (24,), came=24), OTHER)
    titles = [
        [one.title for one in page(dataclasses.replace(recordings.fitting(), lines=each)).sections]
        for each in (culprit, none)
    ]
    assert titles[0][:2] == ["Look here first", "Which line"]
    assert titles[1][:2] == ["What to do", "Which line"]


@pytest.mark.parametrize(
    ("held", "at_top", "found"),
    [
        (LEAKING, None, [(0, Fault.GROWS)]),
        ((0, 0, 0, 0, 0, 96), None, [(0, Fault.PEAK)]),  # at once
        (LEAKING, (0,) * RUN, [(0, Fault.PEAK)]),  # freed before the peak, and little of it left
    ],
)
def test_a_function_that_allocates_for_all_has_the_leak_of_one_caller(
    held: tuple[int, ...], at_top: tuple[int, ...] | None, found: list[tuple[int, Fault]]
) -> None:
    leak = dataclasses.replace(one_of(0, held, at_top=at_top, evicted=10), lines=(0, 1))
    rest = dataclasses.replace(one_of(0, (9,) * RUN, (9,), evicted=200), lines=(0, 2))
    last = dataclasses.replace(one_of(0, (0,) * (RUN - 1) + (9,)), lines=(0, 3))
    lines = traffic(leak, rest, last)
    lines = dataclasses.replace(lines, lines=(lines.lines[0], *lines.lines))
    assert blamed(lines) == found
    if found[0][1] is Fault.GROWS:
        (culprit,) = culprits(lines)
        assert culprit.line.moved.evicted_bytes == 10 * MIB
        assert culprit.paths == (leak,)


@pytest.mark.parametrize(("peak", "named"), [(120, True), (121, False)])
def test_a_leak_of_a_tenth_of_the_peak_is_named_beside_more_that_moves(
    peak: int, named: bool
) -> None:
    table = one_of(1, (60,), evicted=900, returned=900)
    leak = one_of(0, (1,) * RUN, evicted=10)
    found = blamed(traffic(leak, table, one_of(2, (1,) * RUN, (1,)), peak=peak))
    assert found == [(1, Fault.RETURNS), *[(0, Fault.GROWS)] * named]


def test_a_budget_is_called_small_where_all_fits_beside_what_others_hold() -> None:
    lines = traffic(one_of(0, (24,), returned=72), OTHER)  # of a peak of 100
    recording = dataclasses.replace(recordings.fitting(), lines=lines)
    (device,) = recording.devices

    def says(capacity: int, **budget: int) -> bool:
        held = dataclasses.replace(device, capacity_bytes=capacity * MIB)
        kept = {name: nbytes * MIB for name, nbytes in {"budget_bytes": 50, **budget}.items()}
        counts = dataclasses.asdict(ResidencyStatistics.of_none()) | kept
        budgets = {device.device_id: counts} if budget else {}
        changed = dataclasses.replace(recording, devices=(held,), budgets=budgets)
        assert [one["line"] for one in as_dict(changed)["lines"]["culprits"]] == [0]
        return "What is small is the budget of 50.00 MiB. In the budget: 1. " in " ".join(
            Report(changed).text(100).split()
        )

    assert not says(120)  # without a budget
    assert says(120, unmanaged_bytes=0)
    assert not says(110, unmanaged_bytes=0)  # 7/8 of it are too small
    assert not says(120, unmanaged_bytes=4, hidden_bytes=4)
    assert says(130, unmanaged_bytes=4, hidden_bytes=4)


def test_a_budget_that_is_nearly_the_device_is_not_called_small() -> None:
    lines = traffic(one_of(0, (24,), returned=72), OTHER)
    recording = dataclasses.replace(recordings.fitting(), lines=lines)
    (device,) = recording.devices

    def says(budget: int) -> bool:
        held = dataclasses.replace(device, capacity_bytes=128 * MIB)
        counts = dataclasses.asdict(ResidencyStatistics.of_none()) | {"budget_bytes": budget * MIB}
        changed = dataclasses.replace(
            recording, devices=(held,), budgets={device.device_id: counts}
        )
        return "What is small is the budget" in Report(changed).text(100)

    assert says(112)
    assert not says(113)
