# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Faults that others hide: a leak behind one function or beside a large table, a small budget."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import rmm

import rmm_uvm
from rmm_uvm.drivers import SimulatedDevice
from rmm_uvm.recording.recorded import Recording
from rmm_uvm.report import Report
from rmm_uvm.report.as_dict import as_dict

MIB = 1 << 20
Program = Callable[[SimulatedDevice, int], None]


def use(card: SimulatedDevice, *data: rmm.DeviceBuffer) -> None:
    for one in data:
        card.touch(one.ptr, one.size, write=True)


def new(nbytes: int) -> rmm.DeviceBuffer:
    return rmm.DeviceBuffer(size=nbytes)


def columns(nbytes: int, number: int) -> list[rmm.DeviceBuffer]:
    return [new(nbytes) for _ in range(number)]


def days(card: SimulatedDevice, unit: int) -> None:
    """Keep what each day gives; one function allocates everything."""
    kept = []
    for _ in range(60):
        use(card, *columns(4 * unit, 2))
        kept.append(new(2 * unit))
        use(card, kept[-1])


def rounds(card: SimulatedDevice, unit: int) -> None:
    """Load first, in the same function, and keep a little before the work of each round."""
    table, kept = new(20 * unit), []
    for _ in range(50):
        kept.append(columns(unit, 3))
        use(card, *kept[-1], table, *columns(2 * unit, 3))


def steps(card: SimulatedDevice, unit: int) -> None:
    """Keep nothing: the function that allocates everything makes a peak."""
    table = new(30 * unit)
    for number in range(40):
        use(card, *columns(4 * unit, 2))
        if number == 20:
            joined = new(50 * unit)
            use(card, table, joined)


def log(nbytes: int) -> rmm.DeviceBuffer:
    return rmm.DeviceBuffer(size=nbytes)


def looks_up(card: SimulatedDevice, unit: int) -> None:
    """Use a large table in each round, and keep a little of each."""
    table, kept = new(56 * unit), []
    for _ in range(40):
        use(card, table, *columns(8 * unit, 2))
        kept.append(log(unit // 2))
        use(card, kept[-1])


def looks_up_first(card: SimulatedDevice, unit: int) -> None:
    """Keep a little before each use of a table, in other sizes."""
    kept, table = [], new(44 * unit)
    for _ in range(30):
        kept.append(log(unit))
        use(card, kept[-1], *columns(14 * unit, 2), table)


def looks_up_only(card: SimulatedDevice, unit: int) -> None:
    """Use a large table in each round, and keep the last of what is small."""
    table = new(56 * unit)
    for _ in range(40):
        use(card, table, *columns(8 * unit, 2))
        last = log(unit // 2)
        use(card, last)


def ran(program: Program, unit: int, budget: Any = None, card_units: int = 64) -> Recording:
    card = rmm_uvm.simulated_device(card_units * unit)
    with (
        rmm_uvm.reinitialize(
            driver=card,
            libraries=(),
            monitor=False,
            device_budget=budget,
            initial_pool_size=64 * unit,
            maximum_pool_size=512 * unit,
        ),
        rmm_uvm.monitor(driver=card, on_finding=None, lines=True) as m,
    ):
        program(card, unit)
        return m.recording()


def named(recording: Recording) -> list[tuple[str, str]]:
    return [(one["function"], one["fault"]) for one in as_dict(recording)["lines"]["culprits"]]


UNITS = pytest.mark.parametrize("unit", [MIB, 3 * MIB])


@UNITS
@pytest.mark.parametrize(("program", "caller"), [(days, "days"), (rounds, "rounds")])
def test_leak_through_the_function_that_allocates_everything_grows(
    program: Program, caller: str, unit: int
) -> None:
    recording = ran(program, unit)
    assert named(recording) == [("new", "grows")]
    text = " ".join(Report(recording).text(300).split())
    assert re.search(rf"grows all through the run.*\(called by \S+ in {caller}", text)


@UNITS
def test_peak_through_the_function_that_allocates_everything_is_no_leak(unit: int) -> None:
    assert named(ran(steps, unit)) == [("new", "makes the peak")]


@UNITS
@pytest.mark.parametrize("program", [looks_up, looks_up_first])
def test_small_leak_beside_a_large_table_is_named_after_it(program: Program, unit: int) -> None:
    found = named(ran(program, unit))
    assert found[0] == ("new", "comes back")
    assert ("log", "grows") in found


@UNITS
def test_small_data_beside_a_large_table_are_not_named(unit: int) -> None:
    assert "log" not in dict(named(ran(looks_up_only, unit)))


@UNITS
@pytest.mark.parametrize("program", [looks_up_only, steps])
def test_budget_that_is_smaller_than_the_card_is_told_before_the_lines(
    program: Program, unit: int
) -> None:
    small = "look here first All of it fits on the device. What is small is the budget of"
    # Of a card that holds no more the data are too large.
    for card_units, is_small in ((256, True), (48, False)):
        recording = ran(program, unit, budget=32 * unit, card_units=card_units)
        assert named(recording)
        assert (small in " ".join(Report(recording).text(100).split())) is is_small
