# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Progress bars of the command line, on the error stream so that a report can be piped."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rmm_uvm.cli.console import make_console

if TYPE_CHECKING:
    from rmm_uvm.planner import PlanProgress

__all__ = ["part_bar", "replay_bar", "vanishing_bar"]


def vanishing_bar() -> Progress:
    """Return a bar that vanishes when it is done, and prints nothing where there is no terminal."""
    console = make_console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[what]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextlib.contextmanager
def part_bar(title: str) -> Iterator[Callable[[str], None]]:
    """Show which part of something is being done."""
    with vanishing_bar() as bar:
        task = bar.add_task(title, total=None, what="")
        yield lambda part: bar.update(task, what=part)


@contextlib.contextmanager
def replay_bar() -> Iterator[Callable[[PlanProgress], None]]:
    """Show what of a plan is being read, replayed or tried: the bar is that of the step.

    How many steps there will be depends on what they find, and so is not shown. A step of unknown
    length has a bar that only moves.
    """
    with vanishing_bar() as bar:
        task = bar.add_task("planning", total=None, what="")

        def show(progress: PlanProgress) -> None:
            step = f"replay {progress.replays}" if progress.replays else "planning"
            step = f"pool trial {progress.trials}" if progress.trials else step
            # update() takes None for "as before".
            for one in bar.tasks:
                one.total = progress.total or None
            bar.update(task, description=step, completed=progress.done, what=progress.what)

        yield show
