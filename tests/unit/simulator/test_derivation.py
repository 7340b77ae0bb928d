# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""From figures to constants: the recorded ones give the shipped machine, missing ones say so."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmm_uvm.simulator.constants import CONSTANTS
from rmm_uvm.simulator.machine import load_machine
from rmm_uvm.simulator.measuring import Figures, Timing, derive
from rmm_uvm.simulator.measuring.measure import machine_of
from rmm_uvm.simulator.measuring.ramp import Ramp, fitted_ramp

from .recorded_figures import GIB, H200, MIB, at

SHIPPED = load_machine("h200-pcie5")
# A machine unlike the one that is measured: what is equal to it was taken from it.
BASE = load_machine("v100-pcie3")

# Each is held by what it is there for, below.
RAMP = {"prefetch_ramp_ns", "prefetch_ramp_blocks"}
NOT_PINNED_DOWN = {"unmap_ns"}
# Not recorded on the H200, or not told apart by the figures.
NOT_MEASURED = {
    *("memory_bytes_per_ns", "copy_ns", "duplex_fraction", "peer_bytes_per_ns"),
    *("peer_remote_bytes_per_ns", "fault_ns", "fault_block_ns", "duplicate_fraction"),
    *("outstanding_faults", "batch_faults", "launch_ns"),
}


@pytest.mark.parametrize(
    "name", [name for name in CONSTANTS if name not in RAMP | NOT_PINNED_DOWN | NOT_MEASURED]
)
def test_derive_recorded_h200_is_the_shipped_machine(name: str) -> None:
    # What is not recorded is the H200's, so that it does not disturb what is.
    derived = derive(H200, SHIPPED)[name]
    assert not derived.source.startswith("taken from")
    assert derived.value == pytest.approx(getattr(SHIPPED, name), rel=0.05)


@pytest.mark.parametrize("name", sorted(NOT_MEASURED))
def test_derive_what_was_not_recorded_is_the_other_machines_and_says_so(name: str) -> None:
    derived = derive(H200, BASE)[name]
    assert derived.value == getattr(BASE, name)
    assert derived.source.startswith("taken from v100-pcie3: ")


@pytest.mark.parametrize("call", H200.prefetch_calls, ids=lambda call: f"{call.nbytes >> 20}MiB")
def test_shipped_ramp_gives_the_recorded_calls(call: Timing) -> None:
    ramp = Ramp(SHIPPED.block_to_device_ns, SHIPPED.prefetch_ramp_ns, SHIPPED.prefetch_ramp_blocks)
    last_copy_ns = SHIPPED.copy_ns + (2 << 20) / SHIPPED.to_device_bytes_per_ns
    passes_ns = 2 * SHIPPED.resident_block_ns if call.blocks > 1 else 0.0
    modelled_ns = (
        SHIPPED.call_ns
        + last_copy_ns
        + call.blocks * (ramp.block_ns + passes_ns)
        + ramp.extra_ns(call.blocks)
    )
    assert modelled_ns == pytest.approx(call.seconds * 1e9, rel=0.15)


def test_shipped_unmapping_lies_between_what_the_recorded_streams_give() -> None:
    fastest, slowest = (
        derive(dataclasses.replace(H200, fault_stream=Timing(2 * GIB, s)), SHIPPED)["unmap_ns"]
        for s in (0.157, 0.173)
    )
    assert fastest.value < SHIPPED.unmap_ns < slowest.value


def test_derive_without_any_figure_is_the_other_machine() -> None:
    derived = derive(Figures(device_bytes=GIB, devices=2), BASE)
    expected = BASE.constants() | {"device_bytes": GIB}
    assert {name: one.value for name, one in derived.items()} == expected
    taken = [name for name, one in derived.items() if one.source.startswith("taken from ")]
    assert taken == [name for name in CONSTANTS if name != "device_bytes"]


def test_derive_one_gpu_has_no_peers() -> None:
    derived = derive(Figures(device_bytes=GIB, devices=1), SHIPPED)
    assert derived["peer_bytes_per_ns"].value == derived["peer_remote_bytes_per_ns"].value == 0
    assert "no peer" in derived["peer_bytes_per_ns"].source


def test_derive_impossible_measurement_is_not_believed() -> None:
    # Populating cannot take less than the passes over what is there already.
    figures = dataclasses.replace(H200, prefetch_fresh=Timing(2 * GIB, 1e-6))
    derived = derive(figures, SHIPPED)["populate_block_ns"]
    assert derived.value == SHIPPED.populate_block_ns
    assert derived.source.startswith("taken from h200-pcie5: the measurement gave -87")


def test_derive_duplex_faster_than_either_alone_is_one() -> None:
    figures = dataclasses.replace(H200, duplex=at(60))
    assert derive(figures, SHIPPED)["duplex_fraction"].value == 1.0


def test_derive_sparse_faults_split_batch_and_block() -> None:
    # 20 us a batch, 7 us a block, 100 ns a fault; a stream has three batches of 102 faults a block.
    block_ns = 3 * (20_000 + 102 * 100 + 7_000)
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


@given(
    st.dictionaries(
        st.sampled_from(
            [
                one.name
                for one in dataclasses.fields(Figures)
                if one.name not in ("device_bytes", "devices", "launch", "prefetch_calls")
            ]
        ),
        timings,
    ),
    st.lists(timings, max_size=4),
)
def test_derive_any_figures_give_a_machine(figures: dict[str, Timing], calls: list[Timing]) -> None:
    whole = Figures(device_bytes=GIB, prefetch_calls=tuple(calls), **figures)  # type: ignore[arg-type]
    machine = machine_of(whole, SHIPPED, name="any", gpu="any", driver="")
    assert machine.label == "measured"
    assert list(machine.sources) == list(CONSTANTS)


def test_figures_as_json_have_every_field() -> None:
    plain = json.loads(json.dumps(H200.to_dict()))
    assert list(plain) == [one.name for one in dataclasses.fields(Figures)]
    assert plain["discard"] == {"nbytes": 2 * GIB, "seconds": 6.4e-3}
    assert len(plain["prefetch_calls"]) == 3
    assert plain["small_copy"] is None


# --- the ramp ----------------------------------------------------------------------------------


@given(st.floats(10e3, 200e3), st.floats(50e3, 1e6), st.floats(2, 20), st.floats(0, 50e3))
def test_ramp_of_modelled_calls_is_found(
    block_ns: float, ramp_ns: float, ramp_blocks: float, fixed_ns: float
) -> None:
    true = Ramp(block_ns, ramp_ns, ramp_blocks)
    calls = [
        Timing(n * 2 * MIB, (fixed_ns + n * (block_ns + 880) + true.extra_ns(n)) / 1e9)
        for n in (1, 8, 32, 512)
    ]
    found = fitted_ramp(calls, fixed_ns, 880)
    assert found is not None
    assert found.block_ns == pytest.approx(block_ns, rel=0.02)
    for call in calls:
        modelled_ns = fixed_ns + call.blocks * (found.block_ns + 880) + found.extra_ns(call.blocks)
        assert modelled_ns == pytest.approx(call.seconds * 1e9, rel=0.01)


def test_ramp_of_calls_without_one_is_none_at_all() -> None:
    calls = [Timing(n * 2 * MIB, n * 40e-6) for n in (1, 8, 32, 512)]
    found = fitted_ramp(calls, 0, 0)
    assert found is not None
    assert found.block_ns == pytest.approx(40e3, rel=0.01)
    assert found.extra_ns(1) < 1e3


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
    assert fitted_ramp(calls, 0, 0) is None
