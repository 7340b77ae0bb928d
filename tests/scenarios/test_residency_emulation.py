# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""A budget that acts like a smaller card is slower and faster where a smaller card is."""

from __future__ import annotations

from typing import Any

import pytest

from .residency_scripts import BENCHMARKS, committed, script

emulation = script("residency/emulation")
card_module = script("residency/policy_card")
KEPT = committed("residency_emulation")
COUNTING = emulation.counting(KEPT["rows"])
DOCUMENT = (BENCHMARKS.parent / "docs" / "measure" / "policies.md").read_text()


def prefetched_bytes(way: Any) -> int:
    """Return what is prefetched where one use is announced on a card that lacks nothing."""
    card = card_module.Card(64 * card_module.MIB, way, 32 * card_module.MIB)
    address = card.make(8 * card_module.MIB)
    card.send_out(address)
    before = card.prefetcher.statistics()["prefetched_bytes"]
    card.make(8 * card_module.MIB)
    card.read(address)
    return int(card.prefetcher.statistics()["prefetched_bytes"] - before)


@pytest.mark.parametrize(
    ("program", "factor"), [("fir", 2.0), ("training", 1.1), ("etl", 1.25), ("hash join", 3.0)]
)
def test_figures_computed_again_are_the_committed_ones(program: str, factor: float) -> None:
    kept = next(r for r in KEPT["rows"] if (r["program"], r["factor"]) == (program, factor))
    assert emulation.compared(program, factor) == kept


@pytest.mark.parametrize("same", ["program", "factor"])
def test_factors_and_programs_are_in_the_order_of_the_kernel_driver(same: str) -> None:
    assert emulation.out_of_order(KEPT["rows"], same) == [] == KEPT["out_of_order"][same]
    assert len(COUNTING) == 27


@pytest.mark.parametrize("same", ["program", "factor"])
def test_turned_order_is_found(same: str) -> None:
    turned = [{**row, "emulated_seconds": -row["emulated_seconds"]} for row in COUNTING]
    assert emulation.out_of_order(turned, same)


def test_bytes_and_faults_are_those_of_the_kernel_driver() -> None:
    assert all(map(emulation.moves_the_same, COUNTING))
    assert max(
        abs(row[f"emulated_{what}"] / row[f"driver_{what}"] - 1)
        for row in COUNTING
        for what in ("to_device_bytes", "to_host_bytes", "faults")
    ) == pytest.approx(0.017, abs=5e-4)
    assert "within 1.7 %" in DOCUMENT


@pytest.mark.parametrize("what", ["to_device_bytes", "to_host_bytes", "faults"])
def test_other_bytes_or_faults_are_found(what: str) -> None:
    row = COUNTING[0]
    assert not emulation.moves_the_same({**row, f"emulated_{what}": 1.04 * row[f"driver_{what}"]})


PREFETCHED = emulation.counting(KEPT["prefetched_rows"])
BYTES = emulation.BYTES


@pytest.mark.parametrize(
    ("program", "factor"),
    [("fir", 2.0), ("hash join", 1.1), ("hash join", 2.0), ("etl", 1.25)],
)
def test_figures_with_the_adaptor_computed_again_are_the_committed_ones(
    program: str, factor: float
) -> None:
    rows = {(row["program"], row["factor"]): row for row in KEPT["prefetched_rows"]}
    assert emulation.compared(program, factor, adaptor=True) == rows[program, factor]


def test_bytes_with_the_adaptor_are_those_of_the_kernel_driver_with_it() -> None:
    assert emulation.others_prefetched(PREFETCHED) == KEPT["other_bytes_prefetched"] == []
    assert len(PREFETCHED) == 27
    most = max(
        abs(row[f"emulated_{what}"] / row[f"driver_{what}"] - 1)
        for row in PREFETCHED
        for what in BYTES
    )
    ratios = sorted(row["ratio"] for row in PREFETCHED)
    assert most == pytest.approx(0.013, abs=5e-4)
    assert [round(ratio, 2) for ratio in (ratios[0], *ratios[-2:])] == [0.91, 1.06, 1.11]


def test_card_that_the_data_just_fill_lacks_the_watermark() -> None:
    (row,) = (r for r in PREFETCHED if (r["program"], r["factor"]) == ("hash join", 2.0))
    budget = {**card_module.FAULT_DRIVEN, "low_bytes": row["budget_bytes"]}
    card = emulation.Card(
        emulation.ROOMY_BYTES,
        card_module.Way("no watermark", budget, adaptor=True),
        emulation.pool_bytes("hash join"),
        budget_bytes=row["budget_bytes"],
    )
    emulation.PROGRAMS["hash join"](card)
    moved = emulation.taken(card, "driver")
    assert all(moved[f"driver_{what}"] == row[f"driver_{what}"] for what in BYTES)


def test_kernel_driver_takes_less_time_with_the_adaptor() -> None:
    alone = {(row["program"], row["factor"]): row["driver_seconds"] for row in COUNTING}
    for row in PREFETCHED:
        assert row["driver_seconds"] < alone[row["program"], row["factor"]]


@pytest.mark.parametrize("what", BYTES)
def test_other_bytes_with_the_adaptor_are_found(what: str) -> None:
    row = {**PREFETCHED[0], f"emulated_{what}": 1.04 * PREFETCHED[0][f"driver_{what}"]}
    assert len(emulation.others_prefetched([row])) == 1


def test_time_is_a_little_less_than_with_the_kernel_driver() -> None:
    ratios = sorted(row["ratio"] for row in COUNTING)
    assert (round(ratios[0], 2), round(ratios[-1], 2)) == (0.91, 0.94)
    assert "0.91 to 0.94 of its time" in DOCUMENT


def test_neither_side_prefetches() -> None:
    for row in KEPT["rows"]:
        assert row["driver_prefetched_bytes"] == row["emulated_prefetched_bytes"] == 0


def test_kernel_driver_alone_is_told_of_no_use() -> None:
    assert prefetched_bytes(card_module.Way("driver", prefetch="never")) == 0


def test_kernel_driver_with_prefetches_is_told_of_uses() -> None:
    assert prefetched_bytes(card_module.Way("driver, prefetching")) >= 8 << 20


def test_rows_with_an_allocation_above_the_budget_count_for_nothing() -> None:
    wrong = [row for row in KEPT["rows"] if row["too_large"]]
    assert {row["program"] for row in wrong} == {"etl", "hash join"}
    # What does not fit into a budget is not held back on a large card.
    for row in wrong:
        assert all(row[f"emulated_{what}"] < row[f"driver_{what}"] for what in BYTES)
