# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What training and embeddings took on a GPU: as the documents say, and what has to be reached.

That docs/training.md is what the result gives, test_benchmark_documents.py looks at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .residency_scripts import script

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
BY_HAND_FP32 = ("save_on_cpu", "fp32")


def kept(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return result


def document(name: str) -> str:
    return " ".join((RESULTS.parents[1] / "docs" / name).read_text().split())


def test_verdicts_of_training_are_those_of_its_rows() -> None:
    """So that test_readme_figures.py, which lists what is missed, judges what was measured."""
    result = kept("torch_training")
    assert result["verdicts"] == script("_training_verdicts").all_verdicts(result)


def test_training_past_the_budget_moved_memory_and_nothing_failed() -> None:
    for row in kept("torch_training")["rows"]:
        if "residency" not in row:
            continue
        assert row["residency"]["failed_calls"] == 0
        if row["way"] in ("managed", "fault-driven", "lazy", "eager"):
            assert (row["residency"]["evicted_bytes"] > 0) == (row["way"] != "managed")


def test_every_model_was_trained_in_every_way() -> None:
    """Also where some are left: those that are there are whole, or their reason is kept."""
    result = kept("torch_training")
    failed = {(one["model"], one["dtype"]) for one in result.get("failed", [])}
    ways: dict[tuple[str, str], set[tuple[float, str]]] = {}
    for row in result["rows"]:
        ways.setdefault((row["model"], row["dtype"]), set()).add((row["factor"], row["way"]))
    assert ways
    for case, there in ways.items():
        for factor in (1.25, 1.5, 2.0, 3.0):
            expected = {(factor, way) for way in ("fault-driven", "lazy", "eager")}
            assert expected <= there or case in failed, case


def test_losses_past_the_budget_are_those_of_the_run_that_fits() -> None:
    losses = kept("torch_training")["losses"]
    assert losses
    for row in losses:
        assert row["steps"] == 50
        assert row["evicted_bytes"] > 0
        if row.get("deterministic", True):
            assert row["equal_steps"] == 50
        else:
            assert row["operators"]
            assert row["largest_difference"] <= row["largest_difference_of_two_that_fit"]
            missed = row["equal_steps"] < row["equal_steps_of_two_that_fit"]
            # The one that is told below; test_readme_figures.py lists it.
            assert not missed or (row["model"], row["dtype"]) == ("unet3d", "fp32")


def span(figures: Iterable[float]) -> str:
    there = sorted(figures)
    return f"{there[0]:.2f} to {there[-1]:.2f}"


def trained() -> tuple[Any, dict[str, Any], str]:
    """Return rows to ask, the verdicts, and the document."""
    result = kept("torch_training")
    table = script("_training_verdicts").Table(result["rows"])
    return table, result["verdicts"], document("training.md")


def test_fitting_models_that_miss_their_bound_are_told_with_what_steps_differ_by() -> None:
    table, _, text = trained()
    ratios = {case: table.fits(case) for case in table.cases}
    missed = [case for case, ratio in ratios.items() if ratio > 1.02]
    others = [ratio for case, ratio in ratios.items() if case not in missed]
    assert (len(missed), len(others)) == (6, 16)
    assert f"six take {span(ratios[case] for case in missed)} times the shortest step" in text
    assert f"the other sixteen {span(others)}." in text
    native = {case: table.row(case, 0.0, "native") for case in table.cases}
    least = sorted(native[case]["least_seconds"] * 1e3 for case in missed)
    assert f"of the six take {least[0]:.0f} to {least[-1]:.0f} ms" in text
    for name in ("resnet50", "resnet101", "resnet152"):
        assert native[name, "bf16"]["seconds"] > native[name, "fp32"]["seconds"]
    spread = [native[case]["seconds"] / native[case]["least_seconds"] for case in missed]
    assert f"median step of the six takes {span(spread)} times the shortest" in text
    long = [ratios[case] for case in table.cases if native[case]["least_seconds"] > 0.07]
    assert len(long) == 5
    assert max(long) <= 1.01


def test_transformers_that_miss_the_larger_of_computing_and_link_are_told() -> None:
    table, verdicts, text = trained()
    found = {name: one for name, one in verdicts.items() if name.endswith("time / bound")}
    reached = [name for name, one in found.items() if one["reached"]]
    assert len(found) == 16
    assert reached == [
        f"{case} at 1.5x: time / bound" for case in ("bert bf16", "gpt2 bf16", "gpt2-medium fp32")
    ]
    at = {
        factor: [one["ratio"] for name, one in found.items() if f" {factor}x" in name]
        for factor in (1.25, 1.5)
    }
    assert f"At 1.25 all miss it, at {span(at[1.25])};" in text
    others = [ratio for ratio in at[1.5] if ratio > 1.25]
    assert len(others) == 5
    assert f"at 1.5 the other five take {span(others)}, most of all whisper-small." in text
    assert max(at[1.5]) == found["whisper-small bf16 at 1.5x: time / bound"]["ratio"]
    after_another = []
    for case in table.cases:
        for factor in at if case[0] in script("_training_verdicts").TRANSFORMERS else ():
            row = table.row(case, factor, "lazy")
            both_seconds = row["compute_seconds"] + row["link_seconds"]
            after_another.append(table.ours(case, factor) / both_seconds)
    assert sum(ratio < 1 for ratio in after_another) == 7
    assert f"and the others up to {max(after_another):.2f} of that" in text


def test_what_is_done_by_hand_is_told_beside_ours() -> None:
    table, _, text = trained()
    ratios = {
        (way, *case): table.in_memory_of(case, way) / table.row(case, 0.0, way)["seconds"]
        for way in ("save_on_cpu", "checkpointing")
        for case in table.cases
        if case[0] in script("_training_verdicts").TRANSFORMERS
    }
    assert all(ratio > 1 for (way, *_), ratio in ratios.items() if way == "checkpointing")
    single = [ratio for (way, _, dtype), ratio in ratios.items() if (way, dtype) == BY_HAND_FP32]
    assert len(single) == 4
    assert max(single) < 1
    assert f"faster than it in fp32 ({span(single)})" in text
    names = ("bert", "gpt2-medium", "gpt2", "whisper-small")
    bert, medium, gpt2, whisper = (ratios["save_on_cpu", name, "bf16"] for name in names)
    assert bert < 1 < medium
    assert f"in bf16 bert is ({bert:.2f})" in text
    assert f"are not ({medium:.2f}, {gpt2:.2f} and {whisper:.2f})" in text


def test_losses_that_are_not_equal_as_long_are_told() -> None:
    text = document("training.md")
    [row] = [
        one
        for one in kept("torch_training")["losses"]
        if one["equal_steps"] < one["equal_steps_of_two_that_fit"]
    ]
    assert f"two runs that fit agree for {row['equal_steps_of_two_that_fit']} steps" in text
    assert row["equal_steps"] == 0
    ours, theirs = row["largest_difference"], row["largest_difference_of_two_that_fit"]
    assert f"differ by {ours:.1e} at most, those that fit by {theirs:.1e}." in text


def test_where_copies_pay_and_where_they_cost_is_told() -> None:
    table, _, text = trained()
    decision = document("decisions/0016-copied-activations.md")
    ratios = {
        (*case, factor): ratio
        for factor in table.factors
        for case, ratio in table.copies_over_lazy(factor).items()
    }
    assert len(ratios) == 88
    faster = f"in {sum(ratio < 1 for ratio in ratios.values())} of 88 cases"
    assert faster in text
    assert faster in decision

    def of(name: str, dtypes: Iterable[str], factors: Iterable[float]) -> str:
        return span(ratios[name, dtype, factor] for dtype in dtypes for factor in factors)

    every, both = table.factors, ("fp32", "bf16")
    assert f"unet3d fp32 ({of('unet3d', ['fp32'], every)} of lazy)" in text
    assert f"bert bf16 ({of('bert', ['bf16'], every)})" in text
    assert f"gpt2-medium fp32 ({of('gpt2-medium', ['fp32'], every)})" in text
    assert f"gpt2 from 1.5 on ({of('gpt2', both, every[1:])})" in text
    assert f"cost alexnet ({of('alexnet', both, every)})" in text
    assert f"whisper-small bf16 up to 2 ({of('whisper-small', ['bf16'], every[:3])})" in text
    assert f"gpt2 bf16 at 1.25 ({ratios['gpt2', 'bf16', 1.25]:.2f})" in text
    least, most = min(ratios.values()), max(ratios.values())
    assert (least, most) == (ratios["gpt2", "bf16", 1.5], ratios["gpt2", "bf16", 1.25])
    assert f"from {least:.2f} of their time" in decision
    assert f"to {most:.2f} (gpt2 bf16 at 1.25)" in decision


def test_training_with_and_without_a_caching_allocator_is_as_in_the_document() -> None:
    result, part = kept("torch_caching"), script("_torch_caching_document")
    text = part.DOCUMENT.read_text()
    assert part.document_with(text, result) == text, (
        "run: python benchmarks/torch_caching.py --json benchmarks/results/torch_caching.json "
        "--write"
    )
    judged = script("_torch_caching_verdicts").verdicts_of(result["rows"])
    assert judged == result["verdicts"]
    assert judged["processes that failed"]["reached"]
    # Each factor in every way, of each model.
    cases: dict[tuple[str, str], set[tuple[float, str]]] = {}
    for row in result["rows"]:
        cases.setdefault((row["model"], row["dtype"]), set()).add((row["factor"], row["way"]))
    assert len(set(map(frozenset, cases.values()))) == 1
    assert {way for _, way in next(iter(cases.values()))} == {"native", "on", "on, ours", "off"}
    assert len(cases) == 5
    [other] = result["not_seen"]
    assert other == {"model": "lstm", "dtype": "bf16", "factor": 3.0, "what": "faults"}
    ratios = script("_torch_caching_verdicts").ratios_of(result["rows"])
    less = ratios["lstm", "bf16", 3.0]["faults"]
    assert f"lstm at 3 takes {less:.2f} of the faults without" in " ".join(text.split())
    apart = {row["model"] for row in result["rows"] if row["commit"] != result["rows"][0]["commit"]}
    assert apart == {"lstm", "bert"}
    assert "lstm and bert were measured on another day" in " ".join(text.split())
    used = {(one["model"], one["dtype"], one["batch"]) for one in result["kernels"]}
    assert used >= {(row["model"], row["dtype"], row["batch"]) for row in result["rows"]}


def test_embeddings_past_the_budget_are_as_in_the_document() -> None:
    result, text = kept("torch_embedding"), document("embeddings.md")
    assert result["largest_difference"] <= 1e-3
    at = {row["way"]: row for row in result["rows"]}
    for row in result["rows"]:
        times = (row["infer_seconds"], row["train_seconds"])
        assert " | ".join(f"{seconds * 1e3:.2f}" for seconds in times) in text
    ours, resident = at["ours"], at["resident"]
    assert f"{ours['hit_fraction'] * 100:.1f} % of the lookups" in text
    share = ours["train_seconds"] / resident["train_seconds"]
    assert f"takes {share:.2f} times as long" in text
    share = resident["infer_seconds"] / ours["infer_seconds"]
    assert f"Inference is {share:.2f} times as fast, short of the half" in text
    settings = result["settings"]
    lookups = settings["bags"] * settings["ids_of_bag"]
    missed_bytes = (1 - ours["hit_fraction"]) * lookups * settings["items"] * 4
    assert f"are {missed_bytes / 1e6:.0f} MB a batch" in text
    assert f"alone needs {missed_bytes / 51e9 * 1e3:.2f} ms" in text
    for what in ("infer_seconds", "train_seconds"):
        assert at["plain"][what] >= 5 * ours[what]
