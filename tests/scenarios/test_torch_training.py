# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The verdicts of the training benchmark, on rows that are made up."""

from __future__ import annotations

from typing import Any

import pytest

from .residency_scripts import script

training = script("torch_training")


def rows(ours_seconds: float = 0.3, managed_seconds: float = 0.1) -> list[dict[str, Any]]:
    """Return rows of one transformer: 0.1 s to compute, 0.25 s on the link, faults 1.2 s."""
    seconds = {
        (0.0, "native"): 0.1,
        (0.0, "managed"): managed_seconds,
        (1.25, "fault-driven"): 1.2,
        (1.25, "lazy"): 2 * ours_seconds,
        (1.25, "eager"): ours_seconds,
    }
    return [
        {
            "model": "gpt2",
            "dtype": "bf16",
            "factor": factor,
            "way": way,
            "seconds": value,
            "least_seconds": 0.9 * value,
            "compute_seconds": 0.1,
            "link_seconds": 0.25 if factor else 0.0,
        }
        for (factor, way), value in seconds.items()
    ]


def test_verdicts_take_the_better_of_ours_and_the_larger_of_the_bounds() -> None:
    verdicts = training.verdicts_of(rows())
    assert all(verdict["reached"] for verdict in verdicts.values())
    assert verdicts["gpt2 bf16 at 1.25x: time / bound"]["ratio"] == pytest.approx(1.2)
    assert verdicts["1.25x: fault-driven / ours, geometric mean"]["value"] == pytest.approx(4.0)
    assert len(verdicts) == 3  # of the factors that ran


def test_verdicts_say_what_is_missed() -> None:
    verdicts = training.verdicts_of(rows(ours_seconds=0.7, managed_seconds=0.11))
    assert not any(verdict["reached"] for verdict in verdicts.values())


def test_fault_driven_run_is_that_of_a_smaller_card() -> None:
    budget = training.budgets(64 << 20)["fault-driven"]
    assert (budget.policy, budget.fetch, budget.discard_dead) == ("fifo", False, False)
