# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What training and embeddings took on a GPU: as the documents say, and what has to be reached.

That docs/training.md is what the result gives, test_benchmark_documents.py looks at.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from itertools import pairwise
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


def test_fitting_models_are_told_with_what_small_batches_differ_by() -> None:
    table, verdicts, text = trained()
    full = script("_training_verdicts").Table(kept("torch_training")["fits"])
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
    for case in table.cases:
        for factor in (1.25, 1.5) if case[0] in script("_training_verdicts").TRANSFORMERS else ():
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
    names = script("_training_verdicts").TRANSFORMERS
    slow, others = set(), set()
    for row in kept("torch_training")["rows"]:
        alone = row["model"] in names and row["factor"] not in (2.0, 3.0)
        (slow if alone else others).add(row["duplex_bytes_per_second"])
    each_way = [
        f"{min(rates) / 1e9:.1f} to {max(rates) / 1e9:.1f} GB/s" for rates in (slow, others)
    ]
    assert f"measured alone, where migrations go at {each_way[0]} each way" in text
    assert f"two models at once, on a host with {each_way[1]}." in text
    commits: dict[str, set[tuple[str, str]]] = {}
    for row in kept("torch_training")["rows"]:
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
        if case[0] in script("_training_verdicts").TRANSFORMERS
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


def test_full_batches_are_told() -> None:
    result, text = kept("torch_training_full_batch"), document("training.md")
    part = script("_training_verdicts")
    assert result["verdicts"] == part.all_verdicts(result)
    commits = {(row["commit"], row["model"], row["dtype"]) for row in result["rows"]}
    assert {one for one in commits if one[0] != "bb713f6"} == {("e83dd95", "whisper-small", "bf16")}
    assert "copies as they are now (whisper-small bf16) or were shortly before, 24 steps" in text
    full, half = part.Table(result["rows"]), part.Table(kept("torch_training")["rows"])
    times = [
        full.row(case, 0.0, "native")["batch"] / half.row(case, 0.0, "native")["batch"]
        for case in full.cases
    ]
    assert (min(times), max(times)) == (2, 4)
    assert {len(row["each_seconds"]) for row in result["rows"] if row["way"] == "copy"} == {24}
    bounds = {name: one for name, one in result["verdicts"].items() if "time / bound" in name}
    by_hand = {name: one for name, one in result["verdicts"].items() if "save_on_cpu" in name}
    assert all(one["reached"] for one in (*bounds.values(), *by_hand.values()))
    assert (len(bounds), len(by_hand)) == (14, 7)
    assert "all fourteen reach 1.25, and all seven are faster than `save_on_cpu`." in text
    for case in (" ".join(one) for one in full.cases):
        both = " and ".join(
            f"{bounds[f'{case} at {at}x: time / bound']['ratio']:.2f}" for at in (1.25, 1.5)
        )
        ours = by_hand[f"{case}: ours / save_on_cpu in its memory"]["ratio"]
        assert f"| {case} | {both} | {ours:.2f} |" in text
    [failed] = result["failed"]
    assert (failed["model"], failed["dtype"]) == ("gpt2-medium", "fp32")
    assert "gpt2-medium fp32 did not fit in the cap of its run." in text
    whisper = ("whisper-small", "bf16")
    native, copy = full.row(whisper, 0.0, "native"), full.row(whisper, 1.25, "copy")
    median, least = (f"{native[name] * 1e3:.0f}" for name in ("seconds", "least_seconds"))
    assert f"torch's own step takes {median} ms" in text
    assert f"and {least} at least." in text
    share, copied = copy["host_seconds"] / copy["seconds"], copy["seconds"] * 1e3
    assert f"issued a step after {share:.2f} of its {copied:.0f} ms." in text


def test_rates_of_one_link_are_told() -> None:
    rates = sorted(kept("torch_copies_tight")["duplex_bytes_per_second"])
    assert len(rates) == 3
    told = f"found {rates[0] / 1e9:.1f} to {rates[-1] / 1e9:.1f} GB/s each way"
    assert f"three runs on one machine, within four minutes, {told}" in document("training.md")


def test_what_evicted_in_tight_budgets_is_told() -> None:
    runs = {(run["commit"], run["factor"]): run for run in kept("torch_copies_tight")["runs"]}
    text = document("decisions/0016-copied-activations.md")
    before, now, first = (runs[one, 2.5666] for one in ("a6823f3", "e83dd95", "0688868"))

    def of(run: dict[str, Any]) -> str:
        evicts = [step["evicted_bytes"] > 0 for step in run["steps"]]
        return f"{sum(evicts)} of {len(evicts)}"

    def took(run: dict[str, Any]) -> str:
        half = run["steps"][len(run["steps"]) // 2 :]
        return f"{statistics.median(step['seconds'] for step in half) * 1e3:.0f}"

    assert f"evicted in {of(before)} steps, and took {took(before)} ms." in text
    assert f"With this it evicts in {of(now)}, and takes {took(now)} (" in text
    assert f"0688868 took {took(first)} there and evicted in {of(first)}; but" in text
    beside, budget = (first[name] >> 20 for name in ("overshoot_bytes", "budget_bytes"))
    assert f"but {beside} MiB were on the device beside the budget of {budget:,} by then" in text
    assert max(before["overshoot_bytes"], now["overshoot_bytes"]) < 2 << 20
    fell, stayed = (
        [step["needed_bytes"] for step in runs[one, 1.25]["steps"]]
        for one in ("a6823f3", "e83dd95")
    )
    [drop] = [a - b for a, b in pairwise(fell) if a > b]
    assert f"lower by {drop >> 20} MiB, with a margin of" in text
    assert stayed[-8:] == stayed[-1:] * 8
    assert not any(step["evicted_bytes"] for step in runs["e83dd95", 1.25]["steps"][3:])


def test_the_full_batch_on_another_card_is_told() -> None:
    result, text = kept("torch_training_full_batch_h100"), document("training.md")
    part = script("_training_verdicts")
    assert result["verdicts"] == part.all_verdicts(result)
    assert "H100" in result["environment"]["device"]
    assert part.Table(result["rows"]).cases == [("whisper-small", "fp32")]
    assert {len(row["each_seconds"]) for row in result["rows"]} == {3, 12}
    at, by_hand = "at {}x: time / bound", "ours / save_on_cpu in its memory"
    first, second, third = (
        result["verdicts"][f"whisper-small fp32{what}"]["ratio"]
        for what in (f" {at.format(1.25)}", f" {at.format(1.5)}", f": {by_hand}")
    )
    assert f"takes {first:.2f} and {second:.2f} of the bound and {third:.2f} of the time" in text
    [cut_off] = result["failed"]
    assert "torch's own 185.0," in cut_off["reason"]
    assert "copy 523.0 with 0.16 GiB to the host" in cut_off["reason"]
    assert "needs 185 ms a step, copies 523 at 1.25" in text


def test_a_quarter_of_the_batch_is_told() -> None:
    result, text = kept("torch_training_quarter_batch"), document("training.md")
    part = script("_training_verdicts")
    assert result["verdicts"] == part.all_verdicts(result)
    tables = [part.Table(one["rows"]) for one in (result, kept("torch_training"))]
    [case] = tables[0].cases
    assert case == ("whisper-small", "bf16")

    def of(way: str) -> str:
        rows = (tables[0].row(case, factor, way) for factor in (1.25, 1.5))
        return " and ".join(f"{row['seconds'] * 1e3:.0f}" for row in rows)

    assert f"takes {of('copy')} ms at 1.25 and 1.5, lazy {of('lazy')}: slower" in text
    now, before = (table.row(case, 1.25, "copy") for table in tables)
    assert now["seconds"] > before["seconds"]
    assert len(now["each_seconds"]) == 10
    needed = [row["activations"]["needed_bytes"] // 2**20 for row in (now, before)]
    assert f"{needed[0]:,} MiB were to leave, where {needed[1]:,} were" in text


def test_time_of_the_host_is_told_where_copies_are_as_they_are_now() -> None:
    text = document("training.md")
    shares: dict[str, list[float]] = {"bf16": [], "fp32": []}
    for name in ("torch_training", "torch_training_full_batch"):
        for row in kept(name)["rows"]:
            if row["way"] == "copy" and "host_seconds" in row:
                shares[row["dtype"]].append(row["host_seconds"] / row["seconds"])
    assert [len(found) for found in shares.values()] == [10, 8]
    assert f"it has issued a step after {span(shares['bf16'])} of the step's time" in text
    assert f"in fp32 after {span(shares['fp32'])}." in text


def test_kernels_beside_copies_are_told() -> None:
    result, text = kept("torch_copies"), document("training.md")
    rows = {(row["path"], row["way"], row["kernels"]): row for row in result["rows"]}
    paths = {"direct": "direct", "staged": "by way of device memory that is not managed"}
    for path, name in paths.items():
        cells, rates = [], []
        for kernels in ("products", "additions"):
            of = [rows[path, way, kernels] for way in ("out", "back", "both")]
            cells.append(" / ".join(f"{row['ratio']:.2f}" for row in of))
            rates.append(f"{of[-1]['copied_bytes'] / of[-1]['copies_seconds'] / 1e9:.0f}")
        assert f"| {name} | {' | '.join(cells)} | {', '.join(rates)} |" in text
    judged = {
        f"{row['kernels']} beside staged copies {row['way']}": row["ratio"] <= 1.05
        for row in result["rows"]
        if row["path"] == "staged"
    }
    assert len(judged) == 6
    assert {name: one["reached"] for name, one in result["verdicts"].items()} == judged


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
