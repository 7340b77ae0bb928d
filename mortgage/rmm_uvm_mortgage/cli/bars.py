# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Progress bars of ``rmm-uvm mortgage``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rmm_uvm.cli.progress import vanishing_bar

if TYPE_CHECKING:
    from rmm_uvm_mortgage import generate
    from rmm_uvm_mortgage.pipeline import PipelineProgress

__all__ = ["comparison_bar", "generator_bar", "stage_bar"]


@contextlib.contextmanager
def generator_bar() -> Iterator[Callable[[generate.GeneratorProgress], None]]:
    """Show how many rows have been generated."""
    with vanishing_bar() as bar:
        task = bar.add_task("generating data", total=None, what="", visible=False)

        def show(progress: generate.GeneratorProgress) -> None:
            bar.update(
                task,
                completed=progress.performance_rows,
                total=progress.expected_performance_rows,
                what=f"{progress.performance_rows:,} rows",
                visible=True,
            )

        yield show


@contextlib.contextmanager
def stage_bar(title: str) -> Iterator[Callable[[PipelineProgress], None]]:
    """Show which stage of a run is running."""
    with comparison_bar([title]) as show:
        yield lambda progress: show(0, progress)


@contextlib.contextmanager
def comparison_bar(titles: Sequence[str]) -> Iterator[Callable[[int, PipelineProgress], None]]:
    """Show which of several runs is running, and its stage."""
    with vanishing_bar() as bar:
        task = bar.add_task(titles[0] if titles else "", total=None, what="")
        count = len(titles)

        def show(number: int, progress: PipelineProgress) -> None:
            title = titles[number] if count == 1 else f"{number + 1}/{count} {titles[number]}"
            part = f", {progress.part}" if progress.part else ""
            bar.update(
                task,
                description=title,
                completed=progress.stages_begun - 1,
                total=progress.stages_total,
                what=f"{progress.stage}{part}",
            )

        yield show
