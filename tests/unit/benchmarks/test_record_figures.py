# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Result files side by side: what is equal, what is slower, what is missing."""

from __future__ import annotations

from .scripts import script

figures = script("benchmarks", "common/record_figures")

ROWS = [
    {"program": "etl", "factor": 1.5, "seconds": 2.0, "moved_bytes": 100},
    {"program": "etl", "factor": 2.0, "seconds": 3.0, "moved_bytes": 200},
]


def test_equal_figures_are_compared_and_nothing_is_told() -> None:
    found = figures.compared({"rows": ROWS}, {"rows": ROWS}, clocked=False)

    assert found.compared == 8
    assert (found.different, found.farthest, found.median_ratio) == ({}, None, None)


def test_simulated_figure_that_is_a_little_off_differs() -> None:
    now = [ROWS[0], {**ROWS[1], "seconds": 3.0000001}]

    found = figures.compared({"rows": ROWS}, {"rows": now}, clocked=False)

    assert found.different == {"rows/etl factor 2.0/seconds": (3.0, 3.0000001)}
    assert found.farthest == ("rows/etl factor 2.0/seconds", 3.0000001 / 3)


def test_row_that_is_gone_differs() -> None:
    found = figures.compared({"rows": ROWS}, {"rows": ROWS[:1]}, clocked=False)

    assert found.different["rows/etl factor 2.0/seconds"] == (3.0, None)


def test_environment_is_not_compared() -> None:
    one, other = ({"environment": {"date": date}, "peak": 1} for date in ("today", "later"))

    assert figures.compared(one, other, clocked=False).different == {}


def test_times_and_rates_count_as_slower_each_their_way() -> None:
    recorded = {"seconds": {"ours": [1.0, 2.0, 3.0]}, "gb_per_second": 50.0, "rounds": 3}
    now = {"seconds": {"ours": [9.0, 3.0, 2.0]}, "gb_per_second": 25.0, "rounds": 9}

    found = figures.compared(recorded, now, clocked=True)

    assert found.ratios == {"seconds/ours": 1.5, "gb_per_second": 2.0}
    assert found.worst == ("gb_per_second", 2.0)
    assert found.slower(1.75) == {"gb_per_second": 2.0}


def test_faster_times_are_no_regression() -> None:
    found = figures.compared({"seconds": 2.0}, {"seconds": 0.5}, clocked=True)

    assert found.slower(1.5) == {}


def test_time_that_is_gone_differs() -> None:
    recorded = {"seconds": {"ours": 1.0, "theirs": 2.0}, "calls_per_second": 5.0, "rounds": 3}

    found = figures.compared(recorded, {"seconds": {"ours": 1.0, "theirs": None}}, clocked=True)

    assert found.compared == 1
    assert found.different == {"seconds/theirs": (2.0, None), "calls_per_second": (5.0, None)}


def test_bound_that_is_judged_no_more_differs() -> None:
    recorded = {"verdicts": {"fast": {"reached": True}, "small": False}}

    found = figures.compared(recorded, {"verdicts": {"small": False}}, clocked=True)

    assert (found.compared, found.judged) == (0, 1)
    assert found.different == {"verdicts/fast": ("judged", None)}


def test_part_by_the_clock_of_simulated_figures_may_differ() -> None:
    recorded = {"rows": ROWS, "speed": {"seconds": 1.0}}
    now = {"rows": ROWS, "speed": {"seconds": 1.2}}

    found = figures.compared(recorded, now, clocked=False, clocked_parts=("speed",))

    assert found.different == {}
    assert found.ratios == {"speed/seconds": 1.2}


def test_missed_bounds_are_those_that_are_not_reached() -> None:
    verdicts = {"fast": {"reached": True}, "small": {"reached": False}, "right": False, "all": True}

    assert figures.missed({"verdicts": verdicts}) == {"small", "right"}
    assert figures.missed({}) == set()


def test_rows_in_another_order_are_compared_by_their_settings() -> None:
    rows = [{"threads": threads, "calls_per_second": 100.0 / threads} for threads in (1, 2, 8)]

    found = figures.compared({"threads": rows}, {"threads": rows[::-1]}, clocked=True)

    assert set(found.ratios.values()) == {1.0}
    assert len(found.ratios) == 3


def test_spreads_of_google_benchmark_are_no_figures() -> None:
    rows = [{"aggregate_name": name, "real_time": 5.0} for name in ("median", "stddev", "cv")]

    assert figures.compared({"benchmarks": rows}, {"benchmarks": rows}, clocked=True).compared == 1
