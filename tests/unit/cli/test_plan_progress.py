# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The bar of a plan: which step runs, and whether its length is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.progress import Progress

from rmm_uvm.cli import progress
from rmm_uvm.planner import PlanProgress


def test_bar_of_a_step_of_unknown_length_does_not_keep_the_length_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Progress] = []

    @contextmanager
    def kept() -> Iterator[Progress]:
        made.append(Progress(disable=True))
        yield made[0]

    monkeypatch.setattr(progress, "vanishing_bar", kept)
    steps = [
        (PlanProgress("reading", 5, 10, 0), 10, "planning"),
        (PlanProgress("8.00 GiB", 1, 40, 3), 40, "replay 3"),
        (PlanProgress("reading", 7, 0, 0), None, "planning"),
        (PlanProgress("8.00 GiB", 2, 40, 0, 4), 40, "pool trial 4"),
    ]
    with progress.replay_bar() as show:
        for step, total, said in steps:
            show(step)
            (task,) = made[0].tasks
            assert (task.completed, task.total) == (step.done, total)
            assert (task.description, task.fields["what"]) == (said, step.what)
