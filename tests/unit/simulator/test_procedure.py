# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Measuring simulated machines: what comes out is the machine that went in."""

from __future__ import annotations

import dataclasses
import math

import pytest

from rmm_uvm.simulator.measuring import MeasuredFigures, Timing
from rmm_uvm.simulator.measuring.measure import machine_of
from rmm_uvm.simulator.measuring.procedure import take_figures
from rmm_uvm.support.machine_files import Machine, load_machine, shipped_names

from .simulator_workbench import SimulatorWorkbench

REGION_BYTES = 1 << 30
# Driver time that shows in no figure, or not in one alone, where copies take longer than it.
HIDDEN = (
    *("block_to_device_ns", "prefetch_ramp_blocks", "prefetch_ramp_ns"),
    *("block_to_host_ns", "host_page_ns"),
)
NOT_MEASURED = (
    *("peer_bytes_per_ns", "peer_remote_bytes_per_ns", "fault_ns", "duplicate_fraction"),
    *("outstanding_faults", "batch_faults"),
)
# One fault after the other, without a driver: nothing of it is what a card's figures would show.
CARDS = [name for name in shipped_names() if name != "uvm-smart"]


def figures_of(machine: Machine, rounds: int = 1) -> MeasuredFigures:
    return take_figures(SimulatorWorkbench(machine), REGION_BYTES, rounds=rounds)


def measured(machine: Machine) -> Machine:
    """Measure a machine, with one beside it that has nothing right that can be measured."""
    wrong = {
        name: value * 2 if name != "duplex_fraction" else 0.5
        for name, value in machine.constants().items()
        if name not in NOT_MEASURED
    }
    base = machine.replace(name="base", **wrong)
    return machine_of(figures_of(machine), base, name="found", gpu=machine.gpu, driver="")


@pytest.mark.parametrize("name", CARDS)
def test_measured_machine_is_the_one_that_is_simulated(name: str) -> None:
    machine = load_machine(name)
    found = measured(machine)
    for constant, value in machine.constants().items():
        if constant not in (*HIDDEN, *NOT_MEASURED):
            expected = pytest.approx(value, rel=0.05, abs=1)
            assert getattr(found, constant) == expected, constant


@pytest.mark.parametrize("name", CARDS)
def test_measured_machine_measures_like_the_one_that_is_simulated(name: str) -> None:
    machine = load_machine(name)
    true, again = figures_of(machine), figures_of(measured(machine))
    for one in dataclasses.fields(MeasuredFigures):
        a, b = getattr(true, one.name), getattr(again, one.name)
        for x, y in (
            zip(a, b, strict=True)
            if isinstance(a, tuple) and not isinstance(a, Timing)
            else [(a, b)]
        ):
            if isinstance(x, Timing):
                assert y.seconds == pytest.approx(x.seconds, rel=0.07), one.name


@pytest.mark.parametrize(
    ("name", "largest_mib"), [("h200-pcie5", 64), ("v100-pcie3", 64), ("gh200-c2c", 16)]
)
def test_calls_that_find_their_stream_idle_are_no_queued_ones(name: str, largest_mib: int) -> None:
    # Behind the link of a GH200 the second pass over 64 MiB outlasts the copies.
    figures = figures_of(load_machine(name))
    sizes = [timing.nbytes >> 20 for timing in figures.queued_prefetches]
    assert sizes == [size for size in (2, 8, 16, 64) if size <= largest_mib]


@pytest.mark.parametrize("name", ["h200-pcie5", "rtx5090-pcie5", "gh200-c2c"])
def test_ramp_of_queued_prefetches_is_found_again(name: str) -> None:
    machine = load_machine(name)
    found = measured(machine)
    for blocks in (1, 8, 16, 64):
        expected = machine.prefetch_ramp_ns * (1 - math.exp(-blocks / machine.prefetch_ramp_blocks))
        ramp_ns = found.prefetch_ramp_ns * (1 - math.exp(-blocks / found.prefetch_ramp_blocks))
        assert ramp_ns == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("name", ["h200-pcie5", "rtx5090-pcie5", "gh200-c2c"])
def test_measured_machine_with_fast_copies_shows_what_hides_elsewhere(name: str) -> None:
    machine = load_machine(name)
    found = measured(machine)
    assert found.block_to_host_ns == pytest.approx(machine.block_to_host_ns, rel=0.01)
    assert found.host_page_ns == pytest.approx(machine.host_page_ns, rel=0.01)


def test_measured_machine_with_slow_copies_says_what_they_hide() -> None:
    # A base whose work hides behind the copies as well is as good as any other.
    machine = load_machine("v100-pcie3")
    found = machine_of(figures_of(machine), machine, name="found", gpu=machine.gpu, driver="")
    assert (
        found.sources["block_to_host_ns"] == "taken from v100-pcie3: hidden behind the copies here"
    )
    assert found.host_page_ns == pytest.approx(machine.host_page_ns, rel=0.01)


def test_procedure_holds_no_more_than_the_region_and_evicts_nothing() -> None:
    bench = SimulatorWorkbench(load_machine("h200-pcie5"))
    take_figures(bench, REGION_BYTES, rounds=2)
    counters = bench.simulator.counters()
    assert bench.most_managed_bytes == REGION_BYTES
    assert counters.evicted_blocks == 0
    assert (counters.managed_bytes, counters.device_bytes) == (0, 0)


def test_procedure_takes_every_figure_and_rounds_do_not_disturb_one_another() -> None:
    machine = load_machine("h200-pcie5")
    one, three = figures_of(machine), figures_of(machine, rounds=3)
    assert None not in dataclasses.asdict(one).values()
    for field in dataclasses.fields(MeasuredFigures):
        a, b = getattr(one, field.name), getattr(three, field.name)
        if isinstance(a, Timing):
            assert b.nbytes == a.nbytes
            assert b.seconds == pytest.approx(a.seconds, rel=1e-6), field.name


class FailingWorkbench(SimulatorWorkbench):
    """Fails the n-th kernel."""

    kernels_left = 0

    def touch(self, address: int, nbytes: int, stride_bytes: int) -> None:
        self.kernels_left -= 1
        if self.kernels_left < 0:
            raise MemoryError("no more kernels")
        super().touch(address, nbytes, stride_bytes)


@pytest.mark.parametrize("kernels", range(6))
def test_procedure_that_fails_frees_what_it_holds(kernels: int) -> None:
    bench = FailingWorkbench(load_machine("h200-pcie5"))
    bench.kernels_left = kernels
    with pytest.raises(MemoryError, match="no more kernels"):
        take_figures(bench, REGION_BYTES, rounds=1)
    assert bench.simulator.counters().managed_bytes == 0
