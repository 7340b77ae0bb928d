# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What copied activations took on a GPU: as docs/training.md and decision 0016 say."""

from __future__ import annotations

import statistics
from itertools import pairwise
from typing import Any

from .documents import document, span
from .residency_scripts import committed, script


def test_full_batches_are_told() -> None:
    result, text = committed("torch_training_full_batch"), document("training.md")
    part = script("_training_verdicts")
    assert result["verdicts"] == part.all_verdicts(result)
    commits = {(row["commit"], row["model"], row["dtype"]) for row in result["rows"]}
    assert {one for one in commits if one[0] != "bb713f6"} == {("e83dd95", "whisper-small", "bf16")}
    assert "copies as they are now (whisper-small bf16) or were shortly before, 24 steps" in text
    full, half = part.Table(result["rows"]), part.Table(committed("torch_training")["rows"])
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
    result, text = committed("torch_training_quarter_batch"), document("training.md")
    part = script("_training_verdicts")
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
    assert [len(found) for found in shares.values()] == [10, 8]
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
