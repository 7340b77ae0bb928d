# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""From figures to constants: the recorded ones give the shipped machine, missing ones say so."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmm_uvm.simulator.measuring import MeasuredFigures, Timing, derive
from rmm_uvm.simulator.measuring.derivation import (
    Call,
    PrefetchCost,
    Ramp,
    fitted_ramp,
    prefetches_to_device,
)
from rmm_uvm.simulator.measuring.measure import machine_of
from rmm_uvm.support.machine_files import Machine, load_machine
from rmm_uvm.support.machine_profile import CONSTANTS

from .recorded_figures import GIB, H200, MIB, at

SHIPPED = load_machine("h200-pcie5")
# A machine unlike the one that is measured: what is equal to it was taken from it.
BASE = load_machine("v100-pcie3")

# Each is held by what it is there for, below.
PREFETCH = {"block_to_device_ns", "prefetch_ramp_ns", "prefetch_ramp_blocks"}
NOT_PINNED_DOWN = {"unmap_ns"}
# Not recorded on the H200, or not told apart by the figures.
NOT_MEASURED = {
    *("memory_bytes_per_ns", "copy_ns", "duplex_fraction", "peer_bytes_per_ns"),
    *("peer_remote_bytes_per_ns", "fault_ns", "fault_block_ns", "duplicate_fraction"),
    *("outstanding_faults", "batch_faults", "launch_ns"),
}


@pytest.mark.parametrize(
    "name", [name for name in CONSTANTS if name not in PREFETCH | NOT_PINNED_DOWN | NOT_MEASURED]
)
def test_derive_recorded_h200_is_the_shipped_machine(name: str) -> None:
    # What is not recorded is the H200's, so that it does not disturb what is.
    derived = derive(H200, SHIPPED)[name]
    assert not derived.source.startswith("taken from")
    # Most figures were written down with two digits.
    assert derived.value == pytest.approx(getattr(SHIPPED, name), rel=0.0501)


@pytest.mark.parametrize("name", sorted(NOT_MEASURED))
def test_derive_what_was_not_recorded_is_the_other_machines_and_says_so(name: str) -> None:
    derived = derive(H200, BASE)[name]
    assert derived.value == getattr(BASE, name)
    assert derived.source.startswith("taken from v100-pcie3: ")


def cost_on(machine: Machine) -> PrefetchCost:
    copy_ns = machine.copy_ns + (2 << 20) / machine.to_device_bytes_per_ns
    return PrefetchCost(machine.call_ns, machine.resident_block_ns, copy_ns)


@pytest.mark.parametrize(
    "call",
    prefetches_to_device(H200),
    ids=lambda call: f"{call.timing.nbytes >> 20}MiB, {call.has_ramp}",
)
@pytest.mark.parametrize(("is_derived", "error"), [(False, 0.12), (True, 0.1)])
def test_recorded_prefetches_are_what_the_shipped_and_the_derived_machine_take(
    call: Call, is_derived: bool, error: float
) -> None:
    machine = SHIPPED
    if is_derived:
        machine = machine_of(H200, SHIPPED, name="derived", gpu="NVIDIA H200", driver="")
    ramp = Ramp(machine.block_to_device_ns, machine.prefetch_ramp_ns, machine.prefetch_ramp_blocks)
    cost, blocks = cost_on(machine), call.timing.blocks
    modelled_ns = (
        cost.total_ns(blocks, ramp)
        if call.has_ramp
        else cost.without_ramp_ns(blocks, ramp.block_ns)
    )
    assert modelled_ns == pytest.approx(call.timing.seconds * 1e9, rel=error)


def test_shipped_unmapping_lies_between_what_the_recorded_streams_give() -> None:
    fastest, slowest = (
        derive(dataclasses.replace(H200, fault_stream=Timing(2 * GIB, s)), SHIPPED)["unmap_ns"]
        for s in (0.157, 0.173)
    )
    assert fastest.value < SHIPPED.unmap_ns < slowest.value


def test_derive_without_any_figure_is_the_other_machine() -> None:
    derived = derive(MeasuredFigures(device_bytes=GIB, devices=2), BASE)
    expected = BASE.constants() | {"device_bytes": GIB}
    assert {name: one.value for name, one in derived.items()} == expected
    taken = [name for name, one in derived.items() if one.source.startswith("taken from ")]
    assert taken == [name for name in CONSTANTS if name != "device_bytes"]


def test_derive_one_gpu_has_no_peers() -> None:
    derived = derive(MeasuredFigures(device_bytes=GIB, devices=1), SHIPPED)
    assert derived["peer_bytes_per_ns"].value == derived["peer_remote_bytes_per_ns"].value == 0
    assert "no peer" in derived["peer_bytes_per_ns"].source


def test_derive_impossible_measurement_is_not_believed() -> None:
    # Populating cannot take less than the passes over what is there already.
    figures = dataclasses.replace(H200, prefetch_fresh=Timing(2 * GIB, 1e-6))
    derived = derive(figures, SHIPPED)["populate_block_ns"]
    assert derived.value == SHIPPED.populate_block_ns
    assert derived.source.startswith("taken from h200-pcie5: the measurement gave -87")


def refilling(on_device_seconds: float) -> MeasuredFigures:
    """Return figures with another time of discard-and-prefetch; two passes are 0.9 ms of it."""
    timing = Timing(2 * GIB, on_device_seconds)
    return dataclasses.replace(H200, discard_and_prefetch_on_device=timing)


@pytest.mark.parametrize(("milliseconds", "value"), [(3.1, 2148), (0.85, 0.0), (0.7, 0.0)])
def test_derive_what_is_left_of_two_figures_is_nothing_where_noise_hides_it(
    milliseconds: float, value: float
) -> None:
    derived = derive(refilling(milliseconds / 1e3), SHIPPED)["refill_block_ns"]
    assert derived.value == pytest.approx(value, rel=0.01)
    assert derived.source.startswith("measured")


def test_derive_what_is_left_of_two_figures_far_below_nothing_is_not_believed() -> None:
    derived = derive(refilling(0.4e-3), SHIPPED)["refill_block_ns"]
    assert derived.value == SHIPPED.refill_block_ns
    assert derived.source.startswith("taken from h200-pcie5: the measurement gave -")


def test_derive_duplex_faster_than_either_alone_is_one() -> None:
    figures = dataclasses.replace(H200, duplex=at(60))
    assert derive(figures, SHIPPED)["duplex_fraction"].value == 1.0


def test_derive_sparse_faults_split_batch_and_block() -> None:
    # 20 us a batch, 7 us a block, 100 ns a fault; a stream has three batches of 102 faults a block.
    block_ns = 3 * (20_000 + 102 * 100 + 7_000) + (2 << 20) / SHIPPED.memory_bytes_per_ns
    figures = dataclasses.replace(
        H200,
        first_touch=Timing(2 * MIB, (4_000 + 20_000 + 7_100) / 1e9),
        first_touches=Timing(128 * MIB, (4_000 + 20_000 + 64 * 7_100) / 1e9),
        first_touch_stream=Timing(2 * GIB, 1024 * block_ns / 1e9),
    )
    derived = derive(figures, SHIPPED)
    assert derived["fault_block_ns"].value == pytest.approx(7_000)
    assert derived["batch_ns"].value == pytest.approx(20_000)


timings = st.builds(
    Timing, st.integers(1, 4 * GIB), st.floats(0, 1e4, allow_nan=False)
)  # zero seconds: a clock that stands still


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                one.name
                for one in dataclasses.fields(MeasuredFigures)
                if one.name
                not in ("device_bytes", "devices", "launch", "prefetch_calls", "queued_prefetches")
            ]
        ),
        timings,
    ),
    st.lists(timings, max_size=4),
)
def test_derive_any_figures_give_a_machine(figures: dict[str, Timing], calls: list[Timing]) -> None:
    whole = MeasuredFigures(device_bytes=GIB, queued_prefetches=tuple(calls), **figures)  # type: ignore[arg-type]
    machine = machine_of(whole, SHIPPED, name="any", gpu="any", driver="")
    assert machine.label == "measured"
    assert list(machine.sources) == list(CONSTANTS)


def test_figures_as_json_have_every_field() -> None:
    plain = json.loads(json.dumps(H200.to_dict()))
    assert list(plain) == [one.name for one in dataclasses.fields(MeasuredFigures)]
    assert plain["discard"] == {"nbytes": 2 * GIB, "seconds": 6.4e-3}
    assert len(plain["prefetch_calls"]) == 3
    assert plain["small_copy"] is None


# --- the ramp ----------------------------------------------------------------------------------


@given(st.floats(1e3, 200e3), st.floats(50e3, 1e6), st.floats(2, 20), st.floats(10e3, 200e3))
@settings(max_examples=15)
def test_ramp_of_modelled_calls_gives_them_again(
    block_ns: float, ramp_ns: float, ramp_blocks: float, copy_ns: float
) -> None:
    cost = PrefetchCost(call_ns=2e3, pass_ns=440, copy_ns=copy_ns)
    true = Ramp(block_ns, ramp_ns, ramp_blocks)
    counts = (1, 8, 32, 512)
    calls = [Call(Timing(n * 2 * MIB, cost.total_ns(n, true) / 1e9), True) for n in counts]
    without = [(n, cost.without_ramp_ns(n, block_ns)) for n in counts]
    calls += [Call(Timing(n * 2 * MIB, ns / 1e9), False) for n, ns in without]
    found = fitted_ramp(calls, cost)
    assert found is not None
    for n, ns in without:
        assert cost.without_ramp_ns(n, found.block_ns) == pytest.approx(ns, rel=0.03)
        assert cost.total_ns(n, found) == pytest.approx(cost.total_ns(n, true), rel=0.03)


def test_ramp_of_calls_without_one_is_next_to_nothing() -> None:
    cost = PrefetchCost(call_ns=0, pass_ns=0, copy_ns=0)
    calls = [Call(Timing(n * 2 * MIB, n * 40e-6), True) for n in (1, 8, 32, 512)]
    found = fitted_ramp(calls, cost)
    assert found is not None
    assert found.block_ns == pytest.approx(40e3, rel=0.01)
    assert found.ramp_ns < 1e3


def test_prefetch_behind_slow_copies_takes_what_they_take() -> None:
    cost = PrefetchCost(call_ns=2e3, pass_ns=500, copy_ns=190e3)
    assert cost.without_ramp_ns(1, 40e3) == 2e3 + 40e3 + 190e3
    assert cost.without_ramp_ns(10, 40e3) == 2e3 + 40.5e3 + 10 * 190e3


def test_prefetch_before_fast_copies_takes_the_work_and_the_last_copy_or_pass() -> None:
    cost = PrefetchCost(call_ns=2e3, pass_ns=500, copy_ns=7e3)
    assert cost.without_ramp_ns(1, 40e3) == 2e3 + 40e3 + 7e3
    assert cost.without_ramp_ns(100, 40e3) == 2e3 + 100 * 40.5e3 + 100 * 500


@pytest.mark.parametrize(
    "calls",
    [
        (),
        (Timing(2 * MIB, 1e-4), Timing(16 * MIB, 1e-3)),
        (Timing(2 * MIB, 1e-4),) * 3,
        (Timing(2 * MIB, 0), Timing(16 * MIB, 1e-3), Timing(64 * MIB, 1e-2)),
    ],
)
def test_ramp_of_too_few_or_timeless_calls_is_not_fitted(calls: tuple[Timing, ...]) -> None:
    listed = [Call(timing, True) for timing in calls]
    assert fitted_ramp(listed, PrefetchCost(2e3, 440, 39e3)) is None


def test_ramp_of_calls_that_have_none_is_not_fitted() -> None:
    calls = [Call(Timing(n * 2 * MIB, n * 40e-6), False) for n in (1, 8, 32, 512)]
    assert fitted_ramp(calls, PrefetchCost(2e3, 440, 39e3)) is None
