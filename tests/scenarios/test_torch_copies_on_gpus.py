# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What copied activations took on a GPU: as docs/training.md and decision 0016 say."""

from __future__ import annotations

import statistics
from itertools import pairwise
from typing import Any

from .documents import document, span
from .residency_scripts import committed, script

WHISPER = ("whisper-small", "bf16")
BY_HAND = "ours / save_on_cpu in its memory"


def test_full_batches_are_told() -> None:
    result, text = committed("torch_training_full_batch"), document("training.md")
    part = script("training/training_verdicts")
    assert result["verdicts"] == part.all_verdicts(result)
    assert {row["commit"] for row in result["rows"]} == {"f7cdf37"}
    assert result["failed"] == []
    full, half = part.Table(result["rows"]), part.Table(committed("torch_training")["rows"])
    times = [
        full.row(case, 0.0, "native")["batch"] / half.row(case, 0.0, "native")["batch"]
        for case in full.cases
    ]
    assert (min(times), max(times)) == (2, 4)
    assert {len(row["each_seconds"]) for row in result["rows"] if row["way"] == "copy"} == {24}
    bounds = {name: one for name, one in result["verdicts"].items() if "time / bound" in name}
    by_hand = {name: one for name, one in result["verdicts"].items() if "save_on_cpu" in name}
    assert (len(bounds), len(by_hand)) == (16, 8)
    assert all(one["reached"] for one in bounds.values())
    [missed] = [name for name, one in by_hand.items() if not one["reached"]]
    assert missed == f"{' '.join(WHISPER)}: {BY_HAND}"
    told = "all sixteen reach 1.25, and seven of eight are faster than `save_on_cpu`."
    assert f"twice to four times that of the tables below, 24 steps a run: {told}" in text
    for case in (" ".join(one) for one in full.cases):
        both = " and ".join(
            f"{bounds[f'{case} at {at}x: time / bound']['ratio']:.2f}" for at in (1.25, 1.5)
        )
        assert f"| {case} | {both} | {by_hand[f'{case}: {BY_HAND}']['ratio']:.2f} |" in text


def test_the_one_at_the_edge_is_told_with_its_other_runs() -> None:
    part, text = script("training/training_verdicts"), document("training.md")
    runs = committed("torch_training_full_batch_whisper")["runs"]
    judged = [part.verdicts_of(run["rows"]) for run in runs]
    assert [run["commit"] for run in runs] == ["e83dd95", "f7cdf37", "f7cdf37"]
    name = " ".join(WHISPER)
    bounds = [one[f"{name} at 1.25x: time / bound"]["ratio"] for one in judged]
    by_hand = [one[f"{name}: {BY_HAND}"]["ratio"] for one in judged]
    told = (
        "{:.2f}, {:.2f} and {:.2f} of the bound at 1.25, and {:.2f}, {:.2f} and {:.2f} of the time"
    )
    assert f"it took {told.format(*bounds, *by_hand)} of `save_on_cpu`;" in text
    assert [run["beside"] == "nothing" for run in runs] == [True, True, False]
    full = part.Table(committed("torch_training_full_batch")["rows"])
    native, copy = full.row(WHISPER, 0.0, "native"), full.row(WHISPER, 1.25, "copy")
    median, least = (f"{native[of] * 1e3:.0f}" for of in ("seconds", "least_seconds"))
    assert f"torch's own step takes {median} ms" in text
    assert f"and {least} at least;" in text
    all_native = [native, *(part.Table(run["rows"]).row(WHISPER, 0.0, "native") for run in runs)]
    each = [seconds for row in all_native for seconds in row["each_seconds"]]
    assert (
        f"the shortest takes {min(each) * 1e3:.0f} ms, and the longest {max(each) * 1e3:.0f}."
        in text
    )
    share, copied = copy["host_seconds"] / copy["seconds"], copy["seconds"] * 1e3
    assert f"issued a step after {share:.2f} of its {copied:.0f} ms at 1.25, and after" in text


def test_both_in_one_cap_are_told() -> None:
    text = document("training.md")
    [case] = committed("torch_save_on_cpu")["cases"]
    assert (case["model"], case["dtype"]) == WHISPER
    cap, too_little, peak = (
        f"{nbytes / (1 << 20):,.0f}"
        for nbytes in (case["cap_bytes"], max(case["too_little_bytes"]), case["peak_bytes"])
    )
    told = f"({cap} MiB: {too_little} are too little, though its tensors take {peak} at most)"
    assert f"trains whisper-small bf16 {told}" in text
    part = script("training/save_on_cpu")
    took: dict[str, list[float]] = {}
    for row in case["rows"]:
        took.setdefault(row["way"], []).append(row["seconds"] * 1e3)
    assert {len(each) for each in took.values()} == {3}
    ours, capped, alone = (
        f"{min(took[way]):.0f} to {max(took[way]):.0f}"
        for way in (part.OURS, part.CAPPED, part.UNCAPPED)
    )
    assert f"ours takes {ours} ms, `save_on_cpu` {capped} there and {alone} without a cap." in text
    assert took[part.OURS][0] < min(took[part.CAPPED][0], took[part.UNCAPPED][0])
    ratios = [one["ratio"] for one in part.verdicts_of([case]).values()]
    assert f"By medians that is {ratios[1]:.2f} and {ratios[0]:.2f} times as long." in text


def test_what_is_short_in_the_memory_of_save_on_cpu_is_told() -> None:
    text = document("training.md")
    [row] = [
        row
        for row in committed("torch_training_full_batch")["rows"]
        if (row["model"], row["dtype"]) == WHISPER and "memory of save_on_cpu" in row["way"]
    ]
    share, least = row["host_seconds"] / row["seconds"], row["least_seconds"] * 1e3
    told = f"after {share:.2f} of its {row['seconds'] * 1e3:.0f} in the memory of `save_on_cpu`"
    assert f"{told}, {least:.0f} at least." in text
    activations, residency = row["activations"], row["residency"]
    needed = activations["needed_bytes"] >> 20
    of_all = (activations["copied_bytes"], residency["evicted_bytes"], residency["dropped_bytes"])
    copied, evicted, dropped = (one / len(row["each_seconds"]) / 2**20 for one in of_all)
    assert needed > copied
    assert f"of {needed:,} MiB what can be copied is {copied:,.0f}, {evicted:.0f} MiB" in text
    assert f"migrate in each step, and {dropped:,.0f} MiB of dead memory are dropped" in text


def test_rates_of_one_link_are_told() -> None:
    rates = sorted(committed("torch_copies_tight")["duplex_bytes_per_second"])
    assert len(rates) == 3
    told = f"found {rates[0] / 1e9:.1f} to {rates[-1] / 1e9:.1f} GB/s each way"
    assert f"three runs on one machine, within four minutes, {told}" in document("training.md")


def test_what_evicted_in_tight_budgets_is_told() -> None:
    runs = {(run["commit"], run["factor"]): run for run in committed("torch_copies_tight")["runs"]}
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
    result, text = committed("torch_training_full_batch_h100"), document("training.md")
    part = script("training/training_verdicts")
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
    result, text = committed("torch_training_quarter_batch"), document("training.md")
    part = script("training/training_verdicts")
    assert result["verdicts"] == part.all_verdicts(result)
    tables = [part.Table(one["rows"]) for one in (result, committed("torch_training"))]
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
        for row in committed(name)["rows"]:
            if row["way"] == "copy" and "host_seconds" in row:
                shares[row["dtype"]].append(row["host_seconds"] / row["seconds"])
    assert [len(found) for found in shares.values()] == [10, 10]
    assert f"it has issued a step after {span(shares['bf16'])} of the step's time" in text
    assert f"in fp32 after {span(shares['fp32'])}." in text


def test_kernels_beside_copies_are_told() -> None:
    result, text = committed("torch_copies"), document("training.md")
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
