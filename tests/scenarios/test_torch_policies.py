# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The committed table of training steps is what the policies do, and says what has to hold."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from rmm_uvm.planner.trials.uses import Use
from rmm_uvm.torch.shadow.program import Program

from .documents import span
from .residency_scripts import committed, script

policies = script("training/policies")
document = script("training/policy_document")
ideal = script("training/ideal")
KEPT = committed("torch_policies")
MODELS = script("training/models").NAMES
MIB = 1 << 20
DRIVER = policies.DRIVER


FASTEST = "the fastest baseline"
CASES = list(itertools.product(MODELS, policies.DTYPES))


def test_table_has_every_case_once() -> None:
    cards = [(row["model"], row["dtype"], row["factor"], row["way"]) for row in KEPT["rows"]]
    ways = [way.name for way in policies.WAYS] + [policies.IDEAL]
    assert policies.DTYPES == ("fp32", "bf16")
    assert cards == [
        (*case, factor, way) for case in CASES for factor in policies.FACTORS for way in ways
    ]
    assert [policies.case_of(one) for one in KEPT["models"]] == CASES


def test_verdicts_are_those_of_the_rows_and_all_hold() -> None:
    assert KEPT["verdicts"] == policies.verdicts(KEPT["rows"], KEPT["models"])
    assert all(KEPT["verdicts"].values())


def test_card_on_which_the_known_order_loses_is_smaller_than_one_kernel() -> None:
    # docs/measure/training-policies.md says why.
    slower = policies.slower_than([policies.ON_DEMAND], KEPT["rows"])
    assert slower == KEPT["slower_than_on_demand"]
    assert policies.slower_than(policies.BASELINES, KEPT["rows"]) == KEPT["slower_than_a_baseline"]
    assert slower == [["lstm", "fp32", 3.0], ["lstm", "bf16", 3.0]]
    assert {model for model, *_ in KEPT["slower_than_a_baseline"]} == {"lstm"}
    for one in KEPT["models"]:
        if one["model"] == "lstm":
            assert one["most_used_bytes"] > 0.9 * one["peak_bytes"]


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
    # Also in one type alone.
    slow = [{**row, "seconds": row["seconds"] * (1 + 99 * is_slow(row))} for row in KEPT["rows"]]
    found = policies.slower_than([policies.ON_DEMAND], slow)
    assert ["gpt2", "bf16", 2.0] in found
    assert ["gpt2", "fp32", 2.0] not in found


@pytest.mark.parametrize(
    ("figure", "left_out"), [("dtype", "bf16"), ("model", "lstm"), ("factor", 4.0)]
)
def test_part_without_a_type_a_model_or_a_factor_has_not_every_row(
    figure: str, left_out: Any
) -> None:
    rows = [row for row in KEPT["rows"] if row[figure] != left_out]
    assert 0 < len(rows) < len(KEPT["rows"])
    found = policies.verdicts(rows, KEPT["models"])
    assert [name for name, held in found.items() if not held] == ["every row is there"]


@pytest.mark.parametrize("part", [["--dtypes", "bf16"], ["--models", "lstm", "gpt2"]])
def test_part_replaces_neither_the_committed_result_nor_the_document(
    part: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = ["--json", str(tmp_path / "part.json")]
    refused = {"needs --json": part, "needs --json, and not": [*part, "--json", policies.RESULT]}
    refused["cannot be written to training-policies.md"] = [*part, *elsewhere, "--write"]
    for why, words in refused.items():
        with pytest.raises(SystemExit) as caught:
            policies.main([str(word) for word in words])
        assert caught.value.code == 2
        assert why in capsys.readouterr().err
    assert policies.asked([*part, *elsewhere]).json == tmp_path / "part.json"
    # All of them, also by name, may.
    for every in ([], ["--models", *reversed(MODELS), "--dtypes", "bf16", "fp32"]):
        asked = policies.asked([*every, "--write"])
        assert (asked.json, asked.write) == (policies.RESULT, True)


def seconds_with_fastest() -> dict[tuple[Any, ...], float]:
    """Return the committed seconds of each card's ways, and of its fastest baseline."""
    seconds: dict[tuple[Any, ...], float] = {
        (*policies.case_of(row), row["factor"], row["way"]): row["seconds"] for row in KEPT["rows"]
    }
    for case, factor in itertools.product(CASES, policies.FACTORS):
        baselines = (seconds[(*case, factor, way)] for way in policies.BASELINES)
        seconds[(*case, factor, FASTEST)] = min(baselines)
    return seconds


def is_slow(row: dict[str, Any]) -> bool:
    return policies.case_of(row) == ("gpt2", "bf16") and row["way"] == policies.KNOWN


def test_document_says_what_the_committed_result_says() -> None:
    text = document.DOCUMENT.read_text()
    assert document.document_with(text, KEPT) == text, (
        "run: python benchmarks/training/policies.py --write"
    )
    slower = [{**row, "seconds": row["seconds"] + 1} for row in KEPT["rows"]]
    assert document.document_with(text, {**KEPT, "rows": slower}) != text
    for case in CASES:
        model, dtype = case
        part = text.partition(f"### {model}\n")[2].partition("###")[0]
        assert part.count(f"\n| {dtype} |") == len(policies.FACTORS)


def test_bf16_is_told_beside_fp32() -> None:
    text = " ".join(document.DOCUMENT.read_text().split())
    facts = {policies.case_of(one): one for one in KEPT["models"]}
    memory, computing = (
        span(facts[model, "bf16"][of] / facts[model, "fp32"][of] for model in MODELS)
        for of in ("peak_bytes", "compute_seconds")
    )
    assert f"takes {memory} of the memory that it takes in FP32, and {computing} of the" in text
    seconds = seconds_with_fastest()
    longest = max(
        seconds["lstm", "bf16", factor, policies.KNOWN] / seconds["lstm", "bf16", factor, FASTEST]
        for factor in policies.FACTORS
    )
    assert f"in BF16 take up to {longest:.2f} times as long as the fastest baseline" in text


def test_prefetched_allocations_are_the_fastest_baseline_on_most_cards() -> None:
    seconds = seconds_with_fastest()
    cards = list(itertools.product(CASES, policies.FACTORS))
    prefetched = sum(
        seconds[(*case, factor, policies.ADAPTOR)] == seconds[(*case, factor, FASTEST)]
        for case, factor in cards
    )
    text = " ".join(document.DOCUMENT.read_text().split())
    assert f"the fastest baseline on {prefetched} of {len(cards)} cards" in text


def test_driver_prefetch_is_faster_than_single_pages_on_every_card() -> None:
    seconds = seconds_with_fastest()
    for (*card, way), taken in seconds.items():
        if way == DRIVER:
            assert taken < seconds[(*card, policies.ON_DEMAND)]


def test_allocations_are_prefetched_on_a_prefetching_card() -> None:
    counts = []
    for kind in (policies.ShadowDevice, policies.PrefetchingCard):
        card = kind(8 * MIB, policies.load_machine(policies.MACHINE), None, prefetch="never")
        address = card.allocate(4 * MIB)
        card.kernel([Use(address, 0, 4 * MIB, writes=True, fresh=True)], 0.0)
        counts.append(card.device.statistics()["gpu_faults"])
    alone, prefetched = counts
    assert alone > 0 == prefetched


@pytest.mark.parametrize("dtype", policies.DTYPES)
def test_figures_computed_again_are_about_the_committed_ones(dtype: str) -> None:
    case = ("alexnet", dtype)
    program = policies.record("alexnet", dtype=dtype)
    for way in (*policies.WAYS, None):
        name = policies.IDEAL if way is None else way.name
        kept = next(
            row
            for row in KEPT["rows"]
            if (policies.case_of(row), row["factor"], row["way"]) == (case, 2.0, name)
        )
        again = policies.row(case, program, 2.0, way)
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
