# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What training and embeddings took on a GPU: as the documents say, and what has to be reached."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def kept(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return result


def document(name: str) -> str:
    return " ".join((RESULTS.parents[1] / "docs" / name).read_text().split())


def test_training_past_the_budget_is_as_in_the_document() -> None:
    result, text = kept("torch_training"), document("training.md")
    at = {(row["factor"], row["way"]): row for row in result["rows"]}
    assert {row["model"] for row in result["rows"]} == {"resnet50"}  # what the text speaks of
    ratio = at[0.0, "managed"]["least_seconds"] / at[0.0, "native"]["least_seconds"]
    assert f"{ratio:.2f} of the time of torch's own allocator" in text
    assert ratio <= 1.02
    for factor, least in {1.25: 2, 1.5: 3, 2.0: 3, 3.0: 2}.items():
        fault_driven, lazy, eager = (
            at[factor, way]["seconds"] for way in ("fault-driven", "lazy", "eager")
        )
        ratio = fault_driven / min(lazy, eager)
        assert ratio >= least
        times = " | ".join(f"{seconds * 1e3:.0f}" for seconds in (fault_driven, lazy, eager))
        assert f"| {factor:g} | {times} | {ratio:.1f} |" in text


def test_losses_past_the_budget_are_those_of_the_run_that_fits() -> None:
    losses = kept("torch_training")["losses"]
    assert losses
    for row in losses:
        assert row["equal_steps"] == row["steps"] == 50
        assert row["evicted_bytes"] > 1 << 30


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
