# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What training and embeddings took on a GPU: as the documents say, and what has to be reached.

That docs/training.md is what the result gives, test_benchmark_documents.py looks at.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

import pytest

from .documents import document, span
from .residency_scripts import committed, script

BY_HAND_FP32 = ("save_on_cpu", "fp32")


def test_verdicts_of_training_are_those_of_its_rows() -> None:
    """So that test_readme_figures.py, which lists what is missed, judges what was measured."""
    result = committed("torch_training")
    assert result["verdicts"] == script("training/training_verdicts").all_verdicts(result)


def test_training_past_the_budget_moved_memory_and_nothing_failed() -> None:
    for row in committed("torch_training")["rows"]:
        if "residency" not in row:
            continue
        assert row["residency"]["failed_calls"] == 0
        if row["way"] in ("managed", "fault-driven", "lazy", "eager"):
            assert (row["residency"]["evicted_bytes"] > 0) == (row["way"] != "managed")


def test_every_model_was_trained_in_every_way() -> None:
    """Also where some are left: those that are there are whole, or their reason is kept."""
    result = committed("torch_training")
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
    losses = committed("torch_training")["losses"]
    assert losses
    for row in losses:
        assert row["steps"] == 50
        assert row["evicted_bytes"] > 0
        if row.get("deterministic", True):
            assert row["equal_steps"] == 50
        else:
            assert row["operators"]
            assert row["largest_difference"] <= row["largest_difference_of_two_that_fit"]
            assert row["equal_steps"] >= row["equal_steps_of_two_that_fit"]


def trained() -> tuple[Any, dict[str, Any], str]:
    """Return rows to ask, the verdicts, and the document."""
    result = committed("torch_training")
    table = script("training/training_verdicts").Table(result["rows"])
    return table, result["verdicts"], document("training.md")


def test_fitting_models_are_told_with_what_small_batches_differ_by() -> None:
    table, verdicts, text = trained()
    full = script("training/training_verdicts").Table(committed("torch_training")["fits"])
    ratios = {case: table.fits(case) for case in table.cases}
    above = [case for case, ratio in ratios.items() if ratio > 1.02]
    others = [ratio for case, ratio in ratios.items() if case not in above]
    assert (len(above), len(others)) == (5, 17)
    assert f"five take {span(ratios[case] for case in above)} times the shortest step" in text
    assert f"The other seventeen take {span(others)}." in text
    native = [table.row(case, 0.0, "native") for case in above]
    spread = [row["seconds"] / row["least_seconds"] for row in native]
    assert f"the median step of the five takes {span(spread)} times the shortest" in text
    assert f"where the device does: {span(full.fits(case) for case in above)}." in text
    for case in full.cases:
        small, large = table.row(case, 0.0, "native"), full.row(case, 0.0, "native")
        assert large["batch"] >= 2 * small["batch"]
    fits = [one for name, one in verdicts.items() if "everything fits" in name]
    assert len(fits) == 22
    assert all(one["reached"] for one in fits)


def test_transformers_that_miss_the_larger_of_computing_and_link_are_told() -> None:
    table, verdicts, text = trained()
    found = {name: one for name, one in verdicts.items() if name.endswith("time / bound")}
    missed = {name: one["ratio"] for name, one in found.items() if not one["reached"]}
    assert (len(found), len(missed)) == (16, 5)
    reached = (one["ratio"] for one in found.values() if one["reached"])
    assert f"eleven of sixteen reach 1.25, with {span(reached)}." in text
    whisper = [missed.pop(name) for name in list(missed) if name.startswith("whisper-small")]
    medium = missed.pop("gpt2-medium bf16 at 1.25x: time / bound")
    assert not missed
    assert f"gpt2-medium bf16 at 1.25 ({medium:.2f}) and whisper-small ({span(whisper)})" in text
    after_another: dict[bool, list[float]] = {True: [], False: []}
    transformers = script("training/training_verdicts").TRANSFORMERS
    for case in table.cases:
        for factor in (1.25, 1.5) if case[0] in transformers else ():
            row = table.row(case, factor, "lazy")
            both_seconds = row["compute_seconds"] + row["link_seconds"]
            ratio = table.ours(case, factor) / both_seconds
            after_another[case[0] == "whisper-small"].append(ratio)
    assert len(after_another[False]) == 12
    assert max(after_another[False]) < 1 < min(after_another[True])
    assert f"link one after the other ({span(after_another[False])})" in text
    assert f"whisper-small {span(after_another[True])} of that" in text


def test_hosts_of_what_was_measured_are_told() -> None:
    _, _, text = trained()
    names = script("training/training_verdicts").TRANSFORMERS
    slow, others = set(), set()
    for row in committed("torch_training")["rows"]:
        alone = row["model"] in names and row["factor"] not in (2.0, 3.0)
        (slow if alone else others).add(row["duplex_bytes_per_second"])
    each_way = [
        f"{min(rates) / 1e9:.1f} to {max(rates) / 1e9:.1f} GB/s" for rates in (slow, others)
    ]
    assert f"measured alone, where migrations go at {each_way[0]} each way" in text
    assert f"two models at once, on a host with {each_way[1]}." in text
    commits: dict[str, set[tuple[str, str]]] = {}
    for row in committed("torch_training")["rows"]:
        if row["model"] in names and row["factor"] not in (2.0, 3.0):
            commits.setdefault(row["commit"], set()).add((row["model"], row["dtype"]))
    assert commits == {
        "0688868": {("bert", "bf16"), ("bert", "fp32")},
        "7e23ee7": {(name, "bf16") for name in names if name != "bert"}
        | {("whisper-small", "fp32")},
        "15669fd": {("gpt2", "fp32"), ("gpt2-medium", "fp32")},
    }
    assert "In the tables above only bert up to 1.5 was measured with copies" in text


def test_what_is_done_by_hand_is_told_beside_ours() -> None:
    table, _, text = trained()
    ratios = {
        (way, *case): table.in_memory_of(case, way) / table.row(case, 0.0, way)["seconds"]
        for way in ("save_on_cpu", "checkpointing")
        for case in table.cases
        if case[0] in script("training/training_verdicts").TRANSFORMERS
    }
    assert all(ratio > 1 for (way, *_), ratio in ratios.items() if way == "checkpointing")
    single = [ratio for (way, _, dtype), ratio in ratios.items() if (way, dtype) == BY_HAND_FP32]
    assert len(single) == 4
    assert max(single) < 1
    assert f"seven of eight are faster than it, in fp32 ({span(single)}) and in bf16" in text
    names = ("whisper-small", "gpt2-medium", "gpt2", "bert")
    whisper, medium, gpt2, bert = (ratios["save_on_cpu", name, "bf16"] for name in names)
    assert max(medium, gpt2, bert) < 1 < whisper
    assert f"(bert takes {bert:.2f}, gpt2 {gpt2:.2f}, gpt2-medium {medium:.2f})." in text
    assert f"whisper-small bf16 takes {whisper:.2f}, with direct copies:" in text


def test_losses_are_equal_to_the_bit_and_those_of_another_card_are_told() -> None:
    losses = committed("torch_training")["losses"]
    steps = {one["equal_steps"] for one in losses} | {one["steps"] for one in losses}
    assert len(steps) == 1
    told = f"with lazy, are equal to the bit for {steps.pop()} steps, of all models and both types."
    assert f"{told} unet3d's were compared on an H100" in document("training.md")
    for one in losses:
        assert ("H100" in one.get("device", "NVIDIA H200")) is (one["model"] == "unet3d")
    volumes = [one for one in losses if one["model"] == "unet3d"]
    assert len(volumes) == 2
    assert all(one["deterministic"] and not one["operators"] for one in volumes)


def test_what_lies_beside_budgets_and_how_lazy_and_eager_compare_is_told() -> None:
    table, _, text = trained()
    beside: dict[str, list[float]] = {"lazy": [], "fault-driven": []}
    faster: list[float] = []
    longer: list[float] = []
    ratios: list[float] = []
    for factor in table.factors:
        rows = {
            way: [table.row(case, factor, way) for case in table.cases]
            for way in ("fault-driven", "lazy", "eager")
        }
        budgets = [table.row(case, 0.0, "native")["peak_bytes"] / factor for case in table.cases]
        for way, found in beside.items():
            most = [row["residency"]["peak_overshoot_bytes"] for row in rows[way]]
            pairs = zip(most, budgets, strict=True)
            found.append(statistics.median(nbytes / budget for nbytes, budget in pairs))
        for one, means in (("fault-driven", faster), ("eager", longer)):
            both = zip(rows[one], rows["lazy"], strict=True)
            ratios = [other["seconds"] / lazy["seconds"] for other, lazy in both]
            means.append(statistics.geometric_mean(ratios))

    def told(values: list[float], digits: int) -> str:
        *most, last = (f"{value:.{digits}f}" for value in values)
        return f"{', '.join(most)} and {last}"

    at = "at 1.25, 1.5, 2 and 3"
    assert f"{told(beside['lazy'], 2)} {at} with lazy, and" in text
    assert f"and {told(beside['fault-driven'], 2)} fault-driven; with copies it was not" in text
    assert f"alone** is {told(faster, 1)} times as fast as fault-driven {at}" in text
    assert f"**Eager** takes {told(longer, 2)} times as long as lazy there" in text
    wins = sum(ratio < 1 for ratio in ratios)
    assert f"at 3 it is faster in {wins} of {len(ratios)} cases." in text


def test_medians_where_everything_fits_are_told() -> None:
    fits = script("training/training_verdicts").Table(committed("torch_training")["fits"])
    ratios = {
        case: fits.row(case, 0.0, "managed")["seconds"] / fits.row(case, 0.0, "native")["seconds"]
        for case in fits.cases
    }
    slow = ratios.pop(("resnet152", "bf16"))
    told = f"resnet152 bf16 takes {slow:.2f} at the full batch, and all others there at most"
    assert f"{told} {max(ratios.values()):.2f}." in document("training.md")


def test_batches_are_told() -> None:
    full = script("training/models").full_batch
    table, _, text = trained()
    parts: dict[float, set[str]] = {}
    for case in table.cases:
        batch = table.row(case, 0.0, "native")["batch"]
        parts.setdefault(full(case[0]) / batch, set()).add(case[0])
    assert parts[8] == {"alexnet", "resnet50", "resnet101", "resnet152", "densenet121", "lstm"}
    assert parts[4] == {"whisper-small"}
    assert set(parts) == {2, 4, 8}
    assert (
        "an eighth of the full one for alexnet, the ResNets, densenet121 and lstm, a quarter for "
        "whisper-small, and half for the others."
    ) in text


def test_embeddings_that_are_not_reordered_are_told() -> None:
    rows = {row["way"]: row for row in committed("torch_embedding")["rows"]}
    infer, train = (
        rows["resident"][of] / rows["ours, not reordered"][of]
        for of in ("infer_seconds", "train_seconds")
    )
    told = f"it is {infer:.2f} times as fast in inference and {train:.2f} in training."
    assert f"Without a call of `reorder` {told}" in document("embeddings.md")


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
    assert f"bert ({of('bert', both, every)})" in text
    assert f"gpt2 ({of('gpt2', both, every)})" in text
    assert f"gpt2-medium ({of('gpt2-medium', both, every)})" in text
    assert f"cost alexnet ({of('alexnet', both, every)})" in text
    assert f"whisper-small bf16 up to 2 ({of('whisper-small', ['bf16'], every[:3])})" in text
    least, most = min(ratios.values()), max(ratios.values())
    assert (least, most) == (ratios["bert", "bf16", 1.25], ratios["alexnet", "fp32", 1.25])
    assert (
        f"from {least:.2f} of their time (bert bf16 at 1.25, with copies by way of a stage"
        in decision
    )
    assert f"to {most:.2f} (alexnet fp32 at 1.25, direct ones)" in decision


def test_training_with_and_without_a_caching_allocator_is_as_in_the_document() -> None:
    result, part = committed("torch_caching"), script("training/caching_document")
    text = part.DOCUMENT.read_text()
    assert part.document_with(text, result) == text, (
        "run: python benchmarks/training/caching.py --json benchmarks/results/torch_caching.json "
        "--write"
    )
    found = script("training/caching_verdicts")
    judged = found.verdicts_of(result["rows"])
    assert judged == result["verdicts"]
    assert judged["processes that failed"]["reached"]
    assert result["not_seen"] == found.not_seen(result["rows"])
    assert not found.not_measured(result["rows"])
    assert "\nAll 22 cases are measured in every way at each factor.\n" in text


def test_what_kernels_use_is_there_of_every_model_and_type_at_the_batch_of_the_rows() -> None:
    result, caching = committed("torch_caching"), script("training/caching")
    found = script("training/caching_verdicts")
    batches = {case: caching.batch_of(case, caching.BATCH_FRACTION) for case in found.CASES}
    assert {found.case_of(one): one["batch"] for one in result["kernels"]} == batches
    assert len(result["kernels"]) == len(batches)
    for row in result["rows"]:
        assert row["batch"] == batches[found.case_of(row)]
    assert caching.BATCH_FRACTION == 1 / 8
    assert "Batches are an eighth of the full one, and at least one" in document("training.md")


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_what_kernels_use_is_what_is_recorded_again(dtype: str) -> None:
    [kept] = [
        one
        for one in committed("torch_caching")["kernels"]
        if (one["model"], one["dtype"]) == ("lstm", dtype)  # the quickest to record
    ]
    again = script("training/recordings").kernels_of("lstm", dtype, kept["batch"])
    # Other versions of torch have other operators.
    for figure in ("kernels", "median_used_bytes", "most_used_bytes", "recorded_peak_bytes"):
        assert again[figure] == pytest.approx(kept[figure], rel=0.05), figure


def test_embeddings_past_the_budget_are_as_in_the_document() -> None:
    result, text = committed("torch_embedding"), document("embeddings.md")
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
    faster = [result["verdicts"][f"{what}: speed / plain managed"] for what in ("infer", "train")]
    assert all(one["must_be_at_least"] == 5 and one["reached"] for one in faster)
    infer, train = (one["value"] for one in faster)
    told = f"is {infer:,.0f} times as fast as that in inference and {train:.0f} in training;"
    assert told in " ".join(text.split())
    settings = result["settings"]
    lookups = settings["bags"] * settings["ids_of_bag"]
    missed_bytes = (1 - ours["hit_fraction"]) * lookups * settings["items"] * 4
    assert f"are {missed_bytes / 1e6:.0f} MB a batch" in text
    assert f"alone needs {missed_bytes / 51e9 * 1e3:.2f} ms" in text
    for what in ("infer_seconds", "train_seconds"):
        assert at["plain"][what] >= 5 * ours[what]
