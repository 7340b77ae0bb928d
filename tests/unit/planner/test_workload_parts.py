# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of which reading a workload is made, each against a slow and simple twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm._lib.trace import LiveRanges
from rmm_uvm.planner.workload import stages
from rmm_uvm.planner.workload.events import REPLAY_DTYPE, EventRows
from rmm_uvm.planner.workload.slabs import CoveredBlocks
from rmm_uvm.planner.workload.stages import StageNumbers
from rmm_uvm.trace import EVENT_DTYPE

BLOCK = 2 << 20
BEGIN, END, REMARK = 0, 1, 2

_RANGES = st.lists(st.tuples(st.integers(0, 40 * BLOCK), st.integers(1, 5 * BLOCK)), max_size=20)


@given(st.lists(_RANGES, max_size=4))
def test_slabs_cover_the_blocks_of_all_ranges_and_no_others(
    parts: list[list[tuple[int, int]]],
) -> None:
    covered, blocks = CoveredBlocks(), set()
    for part in parts:
        rows = np.array(part, np.uint64).reshape(-1, 2)
        covered.add(rows[:, 0], rows[:, 1])
        for address, nbytes in part:
            blocks |= set(range(address // BLOCK, (address + nbytes - 1) // BLOCK + 1))

    slabs = covered.slabs()

    found = [
        block
        for slab in slabs
        for block in range(slab.address // BLOCK, (slab.address + slab.nbytes) // BLOCK)
    ]
    assert found == sorted(blocks)
    ends = [slab.address + slab.nbytes for slab in slabs]
    assert all(slab.address > end for slab, end in zip(slabs[1:], ends, strict=False))


def test_rows_grow_by_little_and_keep_their_order() -> None:
    rows, wanted = EventRows(), np.zeros(0, REPLAY_DTYPE)
    for count in (0, 1, 1023, 1, 5000, 3):
        part = np.zeros(count, REPLAY_DTYPE)
        part["address"] = np.arange(count) + len(wanted)
        part["kind"] = np.arange(count) % 3
        rows.extend(part)
        wanted = np.concatenate((wanted, part))
    rows.drop_kind(2)
    wanted = wanted[wanted["kind"] != 2]

    finished = rows.finished()
    assert len(rows) == len(wanted)
    assert (finished == wanted).all()
    with pytest.raises(ValueError, match="read-only"):
        finished["kind"] = 0


def stages_of(events: list[tuple[int, int]], marks: list[tuple[int, int, int, str]]) -> list[str]:
    """Return the names of the stages of events (time and thread)."""
    numbers = StageNumbers()
    times = np.array([time for time, _ in events], np.uint64)
    threads = np.array([thread for _, thread in events], np.uint32)
    found = numbers.of(times, threads, [(*mark, "name of the thread") for mark in marks])
    return [numbers.names[number] for number in found.tolist()]


def test_threads_without_a_stage_are_in_the_latest_that_runs() -> None:
    marks = [
        (10, 1, BEGIN, "load"),
        (20, 2, BEGIN, "train"),
        (25, 2, REMARK, "remark"),
        (30, 2, END, ""),
        (40, 1, END, ""),
    ]
    events = [(time, thread) for time in (5, 15, 25, 35, 45) for thread in (1, 2, 3)]
    none = "outside any stage"
    assert stages_of(events, marks) == [
        *(none, none, none),
        *("load", "load", "load"),
        *("load", "train", "train"),
        *("load", "load", "load"),
        *(none, none, none),
    ]


def test_stages_go_on_from_part_to_part_and_stray_ends_are_passed_over() -> None:
    numbers, thread = StageNumbers(), np.ones(1, np.uint32)

    def at(time: int, *marks: tuple[int, int, int, str, str]) -> str:
        return numbers.names[numbers.of(np.array([time], np.uint64), thread, marks)[0]]

    assert at(5, (1, 1, END, "", "")) == "outside any stage"
    assert at(15, (10, 1, BEGIN, "etl", "main")) == "etl"
    assert at(25) == "etl"
    assert at(35, (30, 1, BEGIN, "join", "main")) == "join"
    assert at(45, (40, 1, END, "", "")) == "etl"
    assert at(50, (50, 1, END, "", "")) == "outside any stage"


def test_stages_of_more_names_than_numbers_share_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_MOST_STAGES", 3)
    marks = [(10 * number, 1, BEGIN, f"stage {number}") for number in range(1, 6)]
    events = [(10 * number + 5, 1) for number in range(1, 6)]
    assert stages_of(events, marks) == ["stage 1", "stage 2", *(["other stages"] * 3)]


def test_more_threads_than_are_followed_count_as_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_MOST_THREADS", 1)
    marks = [(10, 1, BEGIN, "first"), (20, 2, BEGIN, "second")]
    assert stages_of([(25, 1), (25, 2), (30, 1)], [*marks, (27, 2, END, "")]) == [
        "first",
        "second",
        "first",
    ]


def test_live_ranges_take_whole_rows_only() -> None:
    rows = np.zeros(2, EVENT_DTYPE)
    rows["kind"], rows["bytes"] = [1, 2], 8
    followed = np.frombuffer(LiveRanges().follow(rows.tobytes()), EVENT_DTYPE)
    assert followed["id"].tolist() == [0, 0]
    assert LiveRanges().follow(b"") == b""
    with pytest.raises(ValueError, match="48 bytes each, not 47"):
        LiveRanges().follow(bytes(47))
