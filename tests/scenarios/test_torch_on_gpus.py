# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What training and embeddings took on a GPU: as the documents say, and what has to be reached.

That docs/training.md is what the result gives, test_benchmark_documents.py looks at.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .residency_scripts import script

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


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
            assert row["equal_steps"] >= row["equal_steps_of_two_that_fit"]


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
