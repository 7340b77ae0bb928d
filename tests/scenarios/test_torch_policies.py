# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The committed table of training steps is what the policies do, and says what has to hold."""

from __future__ import annotations

import pytest

from rmm_uvm.torch.shadow_program import Program
from rmm_uvm.torch.shadow_uses import Use

from .residency_scripts import committed, script

policies = script("torch_policies")
document = script("_torch_policy_document")
ideal = script("_torch_ideal")
KEPT = committed("torch_policies")
MODELS = script("_torch_models").NAMES
MIB = 1 << 20


def test_table_has_every_case_once() -> None:
    cases = [(row["model"], row["factor"], row["way"]) for row in KEPT["rows"]]
    ways = [way.name for way in policies.WAYS] + [policies.IDEAL]
    assert sorted(cases) == sorted(
        (model, factor, way) for model in MODELS for factor in policies.FACTORS for way in ways
    )


def test_verdicts_are_those_of_the_rows_and_all_hold() -> None:
    assert KEPT["verdicts"] == policies.verdicts(KEPT["rows"], KEPT["models"])
    assert all(KEPT["verdicts"].values())


def test_card_on_which_the_known_order_loses_is_smaller_than_one_kernel() -> None:
    # docs/training-policies.md says why.
    slower = policies.slower_than_on_demand(KEPT["rows"])
    assert slower == KEPT["slower_than_on_demand"] == [["lstm", 3.0]]
    lstm = KEPT["models"]["lstm"]
    assert lstm["most_used_bytes"] > 0.9 * lstm["peak_bytes"]


def test_verdicts_of_a_slow_known_order_and_a_slow_ideal_are_missed() -> None:
    rows = [dict(row) for row in KEPT["rows"]]
    for row in rows:
        if row["way"] in (policies.KNOWN, policies.IDEAL):
            row["seconds"] *= 100
    missed = [name for name, held in policies.verdicts(rows, KEPT["models"]).items() if not held]
    assert missed == [
        "known order is never slower than on-demand where every kernel fits on the card",
        "nothing is faster than the ideal",
    ]
    assert not policies.verdicts(KEPT["rows"][1:], KEPT["models"])["every row is there"]


def test_document_says_what_the_committed_result_says() -> None:
    text = document.DOCUMENT.read_text()
    assert document.document_with(text, KEPT) == text, (
        "run: python benchmarks/torch_policies.py --write"
    )
    slower = [{**row, "seconds": row["seconds"] + 1} for row in KEPT["rows"]]
    assert document.document_with(text, {**KEPT, "rows": slower}) != text


def test_figures_computed_again_are_about_the_committed_ones() -> None:
    program = policies.record("alexnet")
    for way in (*policies.WAYS, None):
        name = policies.IDEAL if way is None else way.name
        kept = next(
            row
            for row in KEPT["rows"]
            if (row["model"], row["factor"], row["way"]) == ("alexnet", 2.0, name)
        )
        again = policies.row("alexnet", program, 2.0, way)
        # Other versions of torch have other operators.
        for figure in ("seconds", "to_device_bytes", "to_host_bytes", "hit_rate"):
            assert again[figure] == pytest.approx(kept[figure], rel=0.05), (name, figure)


def using(program: Program, *allocations: int, nbytes: int = MIB, fresh: bool = False) -> None:
    """Let one kernel of a second write whole allocations."""
    uses = [Use(one, 0, nbytes, writes=True, fresh=fresh) for one in allocations]
    program.kernel(uses, 1.0)


def three_in_turn() -> Program:
    """Return a program that makes three allocations and uses them in turn: 0 1 2 0 1 2."""
    program = Program()
    for _ in range(3):
        using(program, program.allocate(MIB), fresh=True)
    for _ in range(3):
        for one in range(3):
            using(program, one)
    return program


def test_ideal_of_a_round_through_three_with_room_for_two_is_beladys() -> None:
    program = three_in_turn()
    least = ideal.least(program, 2 * MIB, 0, len(program.events))
    # Of nine uses after the first three, the second, fourth, sixth and eighth miss.
    assert least.to_device_bytes == 4 * MIB
    assert least.present_bytes == 5 * MIB
    assert least.compute_seconds == 12.0


def test_ideal_with_room_for_all_moves_nothing() -> None:
    program = three_in_turn()
    least = ideal.least(program, 3 * MIB, 0, len(program.events))
    assert (least.to_device_bytes, least.to_host_bytes) == (0, 0)


def test_ideal_drops_what_is_dead_and_copies_what_is_not() -> None:
    def to_host(*, freed: bool) -> int:
        program = Program()
        first = program.allocate(MIB)
        using(program, first, fresh=True)
        using(program, program.allocate(MIB), fresh=True)
        if freed:
            program.free(first)
        return int(ideal.least(program, MIB, 0, len(program.events)).to_host_bytes)

    assert to_host(freed=False) == MIB
    assert to_host(freed=True) == 0


def test_ideal_of_a_kernel_larger_than_the_card_moves_the_rest_each_time() -> None:
    program = Program()
    pair = [program.allocate(MIB), program.allocate(MIB)]
    using(program, *pair, fresh=True)
    using(program, *pair)
    least = ideal.least(program, MIB, 0, len(program.events))
    assert least.to_device_bytes == MIB
    assert least.wanted_bytes == 2 * MIB
