# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Hints at lines: which line is named, that following the hint saves, and where none may come."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.planner.advice.line_hints import hints_at_lines
from rmm_uvm.planner.afterwards import with_remedies
from rmm_uvm.planner.workload.loading import load_workload
from rmm_uvm.recording.recorded import Recording

MIB = 1 << 20
Program = Callable[[SimulatedDevice, int, str], None]


def use(card: SimulatedDevice, *data: rmm.DeviceBuffer) -> None:
    for one in data:
        card.touch(one.ptr, one.size, write=True)


def orders(nbytes: int) -> rmm.DeviceBuffer:
    return rmm.DeviceBuffer(size=nbytes)


def counts(nbytes: int) -> rmm.DeviceBuffer:
    return rmm.DeviceBuffer(size=nbytes)


def sorts(card: SimulatedDevice, unit: int, hint: str) -> None:
    """Sort with a large temporary, which dies; what lives is used again and again."""
    kept = [orders(6 * unit) for _ in range(8)]
    for _ in range(4):
        space = counts(40 * unit)
        use(card, space)
        del space
        if hint == "trim":
            rmm_uvm.trim()
        for _ in range(3):
            use(card, *kept)


def sorts_first(card: SimulatedDevice, unit: int, hint: str) -> None:
    """Sort first, and then load what lives, in other sizes."""
    kept: list[rmm.DeviceBuffer] = []
    for _ in range(4):
        space = counts(48 * unit)
        use(card, space)
        del space
        if hint == "trim":
            rmm_uvm.trim()
        kept = kept or [orders(9 * unit) for _ in range(5)]
        for _ in range(3):
            use(card, *reversed(kept))


def joins(card: SimulatedDevice, unit: int, hint: str) -> None:
    """Use a large table now and then, and small ones all the time."""
    table = orders(40 * unit)
    small = [counts(8 * unit) for _ in range(4)]
    for _ in range(4):
        use(card, table)
        if hint == "evict":
            rmm_uvm.evict(table)
        for _ in range(5):
            use(card, *small)


def joins_last(card: SimulatedDevice, unit: int, hint: str) -> None:
    """Load the large table last, and use it in the middle of each round."""
    small = [orders(9 * unit) for _ in range(4)]
    table = counts(36 * unit)
    for _ in range(5):
        for _ in range(3):
            use(card, *small)
        use(card, table)
        if hint == "evict":
            rmm_uvm.evict(table)
        for _ in range(3):
            use(card, *small)


def scans(card: SimulatedDevice, unit: int, hint: str) -> None:
    """Go over more than fits."""
    first, second = orders(30 * unit), counts(2 * unit)
    last = orders(40 * unit)
    for _ in range(6):
        for one in (first, second, last):
            if hint == "touch" and one is not second:
                rmm_uvm.touch(one)
            use(card, one)


def fits(card: SimulatedDevice, unit: int, hint: str) -> None:
    """Go over what fits."""
    table, other = orders(20 * unit), counts(20 * unit)
    for _ in range(6):
        use(card, table, other)


def sorts_what_fits(card: SimulatedDevice, unit: int, hint: str) -> None:
    """Sort with a temporary beside which all that lives has room."""
    kept = [orders(3 * unit) for _ in range(8)]
    for _ in range(4):
        space = counts(20 * unit)
        use(card, space)
        del space
        use(card, *kept)


def streams(card: SimulatedDevice, unit: int, hint: str) -> None:
    """Go once over more than fits, one part after the other."""
    for _ in range(12):
        use(card, orders(20 * unit))


def ran(program: Program, folder: Path, unit: int, budget: str | None, hint: str = "") -> Recording:
    card = rmm_uvm.simulated_device(64 * unit)
    with rmm_uvm.reinitialize(
        driver=card,
        libraries=(),
        monitor=False,
        device_budget=budget,
        initial_pool_size=64 * unit,
        maximum_pool_size=192 * unit,  # as on a GPU, where the host has not a hundred times as much
    ):
        with rmm_uvm.monitor(
            driver=card, trace=folder / f"{hint}.trace", on_finding=None, lines=True
        ) as m:
            program(card, unit, hint)
        return dataclasses.replace(
            m.recording(), about={"modelled_ns": str(card.statistics()["modelled_ns"])}
        )


def told(recording: Recording, folder: Path) -> dict[tuple[str, str], float]:
    """Return how many times less it takes, by hint and function."""
    found, _ = with_remedies(recording, folder / ".trace", "auto")
    named = [
        (re.search(r" in (\w+) .*rmm_uvm\.(touch|evict|trim)", one.remedy), one.value)
        for one in found.findings
    ]
    return {(match[2], match[1]): value for match, value in named if match}


@pytest.mark.parametrize(
    ("program", "unit", "budget", "hint", "line"),
    [
        (sorts, MIB, "auto", "trim", "counts"),
        (sorts, 2 * MIB, None, "trim", "counts"),
        (sorts_first, MIB, None, "trim", "counts"),
        (sorts_first, 2 * MIB, "auto", "trim", "counts"),
        (joins, MIB, None, "evict", "orders"),
        (joins, 2 * MIB, None, "evict", "orders"),
        (joins_last, MIB, None, "evict", "counts"),
        (joins_last, 2 * MIB, None, "evict", "counts"),
        (scans, MIB, "auto", "touch", "orders"),
        (scans, 2 * MIB, "auto", "touch", "orders"),
    ],
)
def test_hint_at_a_line_saves_where_it_is_given(
    program: Program, unit: int, budget: str | None, hint: str, line: str, tmp_path: Path
) -> None:
    recording = ran(program, tmp_path, unit, budget)
    found = told(recording, tmp_path)
    assert found[hint, line] > 1.03
    followed = ran(program, tmp_path, unit, budget, hint)
    before, after = (float(one.about["modelled_ns"]) for one in (recording, followed))
    assert after < 0.97 * before


@pytest.mark.parametrize("program", [fits, sorts_what_fits, streams])
@pytest.mark.parametrize("unit", [MIB, 2 * MIB])
@pytest.mark.parametrize("budget", ["auto", None])
def test_program_without_a_fault_gets_no_hint(
    program: Program, unit: int, budget: str | None, tmp_path: Path
) -> None:
    assert told(ran(program, tmp_path, unit, budget), tmp_path) == {}


def test_hint_that_helps_nobody_is_not_told(tmp_path: Path) -> None:
    # All uses are alike: what leaves early has to come back as early.
    assert not {"evict", "trim"} & {
        hint for hint, _ in told(ran(scans, tmp_path, MIB, "auto"), tmp_path)
    }


def test_lines_of_other_allocations_give_no_hint_about_their_uses(tmp_path: Path) -> None:
    recording = ran(joins, tmp_path, MIB, None)
    workload = load_workload(tmp_path / ".trace")
    assert recording.lines is not None
    hints = {one.hint for one in hints_at_lines(recording.lines, workload)}
    assert hints == {"touch", "evict", "trim"}
    others = dataclasses.replace(
        recording.lines,
        objects=tuple(
            dataclasses.replace(one, number=one.number + 1) for one in recording.lines.objects
        ),
    )
    assert {one.hint for one in hints_at_lines(others, workload)} == {"trim"}
    guessed = dataclasses.replace(workload, touches_assumed=True)
    assert "evict" not in {one.hint for one in hints_at_lines(recording.lines, guessed)}
    unknown = [one.what for one in hints_at_lines(None, workload)]
    assert unknown[0] == ("give back dead memory once what has 40.00 MiB is freed: rmm_uvm.trim()")


def test_what_is_freed_again_and_again_is_not_trimmed_after(tmp_path: Path) -> None:
    def program(card: SimulatedDevice, unit: int, hint: str) -> None:
        for _ in range(101):
            use(card, orders(20 * unit))
        use(card, counts(unit))

    recording = ran(program, tmp_path, MIB, "auto")
    (trim,) = hints_at_lines(recording.lines, load_workload(tmp_path / ".trace"))
    assert trim.what.startswith("give back dead memory once what test_line_hints.py:")
    assert trim.what.endswith(" in counts allocates is freed: rmm_uvm.trim()")
    assert trim.allocations == {102}
