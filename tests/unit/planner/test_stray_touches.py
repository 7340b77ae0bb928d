# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Touches of what is not live: recordings that begin in the middle of a run have them."""

from __future__ import annotations

from pathlib import Path

import pytest

import rmm_uvm
from rmm_uvm.errors import DataError
from rmm_uvm.planner.workload.events import ALLOCATE, FREE, TOUCH, Slab
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.trace import TraceWriter

from .test_workload import BASE, MIB, columns, traced


def test_touches_of_what_is_not_live_are_left_out_and_counted(tmp_path: Path) -> None:
    def program(writer: TraceWriter) -> None:
        writer.touched(0, BASE + 64 * MIB, 4096)  # from before the recording
        writer.allocated(0, BASE, MIB)
        writer.allocated(0, BASE + 2 * MIB, MIB)
        writer.flush()
        writer.touched(0, BASE + MIB // 2, 2 * MIB)  # of both, and of what lies between
        writer.touched(0, BASE - 4096, 8192, write=True)
        writer.touched(0, BASE + MIB, MIB)
        writer.freed(0, BASE, MIB)
        writer.touched(0, BASE, MIB, by_cpu=True)
        writer.touched(0, BASE + 3 * MIB - 1, 1)

    workload = load_workload(path := traced(tmp_path, program))

    assert columns(workload, "kind", "address", "nbytes") == [
        (ALLOCATE, BASE, MIB),
        (ALLOCATE, BASE + 2 * MIB, MIB),
        (TOUCH, BASE + MIB // 2, 2 * MIB),
        (TOUCH, BASE, 4096),
        (FREE, BASE, MIB),
        (TOUCH, BASE + 3 * MIB - 1, 1),
    ]
    assert workload.slabs == (Slab(BASE, 4 * MIB),)
    assert workload.remarks == (
        "touches of memory that was not live, in whole or in part, allocated before or freed: 4 "
        "(the first is record 1)",
    )
    with pytest.raises(DataError, match="touches of memory that was not live"):
        load_workload(path, strict=True)


def test_recording_that_touches_only_what_is_not_live_has_no_assumed_touches(
    tmp_path: Path,
) -> None:
    def program(writer: TraceWriter) -> None:
        writer.allocated(0, BASE, MIB)
        writer.touched(0, BASE + MIB, 4096)

    workload = load_workload(traced(tmp_path, program))
    assert columns(workload, "kind") == [(ALLOCATE,)]
    assert not workload.touches_assumed


def test_allocations_of_all_parts_are_known_to_touches(tmp_path: Path) -> None:
    def program(writer: TraceWriter) -> None:
        for number in range(40_000):
            writer.allocated(0, BASE + 4096 * number, 4096)
            if number % 3:
                writer.freed(0, BASE + 4096 * number, 4096)
            elif number % 2 and number > 30_000:
                writer.freed(0, BASE + 4096 * (number - 30_000), 4096)
        for number in range(40_000):
            writer.touched(0, BASE + 4096 * number + 1, 4)

    workload = load_workload(traced(tmp_path, program))
    touched = workload.events[workload.events["kind"] == TOUCH]["address"]
    kept = [number for number in range(0, 40_000, 3) if number % 2 == 0 or number > 10_000]
    assert touched.tolist() == [BASE + 4096 * number + 1 for number in kept]


@pytest.mark.parametrize("announced", [False, True])
def test_plan_of_a_recording_that_begins_in_mid_run_tells_of_its_touches(
    tmp_path: Path, announced: bool
) -> None:
    def program(writer: TraceWriter) -> None:
        writer.touched(0, BASE - 64 * MIB, MIB, write=True)
        writer.allocated(0, BASE, 32 * MIB)
        writer.touched(0, BASE - 16 * MIB, 32 * MIB, write=True)
        writer.allocated(0, BASE + 64 * MIB, 8 * MIB)
        writer.freed(0, BASE + 64 * MIB, 8 * MIB)
        writer.touched(0, BASE + 64 * MIB, MIB)

    plan = rmm_uvm.plan(traced(tmp_path, program), ["16MiB"], announced=announced)
    assert any("touches of memory that was not live" in note for note in plan.notes)
    assert plan.working_set.nbytes == 16 * MIB
