# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs all sides in turn, each run in a process of its own, and keeps the rows.

A repetition is a timed run of each side, one after the other. Then each side with a budget has a
watched run, beside which a sampler looks at the page tables, and a twin, stopped at a moment of its
own. What people use instead has one watched run in all: its device memory has a fixed limit. So
sides take turns (A B A B), what drifts is in all, and nothing looks on while time is taken.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.common.past_the_edge.memory import pinned
from benchmarks.common.past_the_edge.sides import Side

Row = dict[str, Any]
KINDS = ("timed", "watched", "twin")
"""Of jobs, and of rows."""


@dataclass(frozen=True)
class Job:
    """A process to run.

    Parameters
    ----------
    side : Side
        Under which memory.
    repetition : int
        From 0 on.
    stop : sequence of int or None
        The moment of a twin.
    watched : bool
        A sampler looks on: its times do not count.
    """

    side: Side
    repetition: int
    stop: Sequence[int] | None = None
    watched: bool = False

    @property
    def key(self) -> tuple[str, int, str]:
        """What no two jobs share."""
        kind = "twin" if self.stop is not None else "watched" if self.watched else "timed"
        return self.side.name, self.repetition, kind


def jobs(
    sides: Sequence[Side],
    repetitions: int,
    moments: Sequence[Sequence[int]],
    *,
    watched: bool = True,
) -> list[Job]:
    """Return what is to run, in order: with each repetition a watched run, and a twin."""
    found = []
    budgeted = [side for side in sides if side.budgeted]
    for repetition in range(max(repetitions, len(moments))):
        if repetition < repetitions:
            found += [Job(side, repetition) for side in sides]
            if watched:
                found += [
                    Job(side, repetition, watched=True)
                    for side in sides
                    if side.budgeted or (side.instead and repetition == 0)
                ]
        if repetition < len(moments):
            stop = moments[repetition]
            found += [Job(side, repetition, stop) for side in budgeted]
    return found


def key_of(row: Row) -> tuple[str, int, str]:
    """Return the key of the job that a row is of."""
    kind = "twin" if "moment" in row else "watched" if row.get("watched") else "timed"
    return row["side"], row["repetition"], kind


def in_turn(rows: Sequence[Row], wanted: Sequence[Job]) -> list[Row]:
    """Return the rows of an earlier call that stay.

    What failed is run again. So are the timed runs of a repetition that has not all of them: what
    is measured later is not in turn with them.
    """
    well = [row for row in rows if "failed" not in row]
    lacks = {job.key for job in wanted} - set(map(key_of, well))
    again = {repetition for _, repetition, kind in lacks if kind == "timed"}
    sides = {job.side.name for job in wanted}
    return [
        row
        for row in well
        if key_of(row)[2] != "timed" or row["side"] not in sides or row["repetition"] not in again
    ]


def run_all(
    wanted: Sequence[Job],
    run: Callable[[Job], Row],
    kept: Sequence[Row] = (),
    most_seconds: float = float("inf"),
    now: Callable[[], float] = time.monotonic,
) -> Iterator[Row]:
    """Run what is not kept already, and hand out each row.

    Parameters
    ----------
    run : callable
        Runs one job.
    kept : sequence of dict
        Rows of an earlier call.
    most_seconds : float
        No job but the first begins that would end later, if it took as long as the longest before.
    """
    done = set(map(key_of, kept))
    begin = now()
    longest = 0.0
    for job in wanted:
        if job.key in done:
            continue
        since = now()
        if longest and since - begin + longest > most_seconds:
            return
        row = {"side": job.side.name, "repetition": job.repetition, "begun": round(time.time())}
        row |= run(job)
        if job.watched:
            row["watched"] = True
        if job.stop is not None:
            row["moment"] = list(job.stop)
        longest = max(longest, now() - since)
        yield {**row, "process_seconds": round(now() - since, 2)}


class Processes:
    """Runs a script for each request in a process of its own, one after the other.

    Where modules are named, the next process begins meanwhile, imports them and waits for its
    request, so that no device waits for imports. Importing them may not touch the device.

    Parameters
    ----------
    script : pathlib.Path
        It is given ``--child MODULES --answer FILE``; the request is a line of standard input.
    modules : sequence of str
        With none, a process begins when it is needed.
    """

    def __init__(self, script: Path, modules: Sequence[str] = ()) -> None:
        self._script, self._modules = script, modules
        self._waiting: _Process | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._waiting is not None:
            self._waiting.end()

    def run(self, request: Row, most_seconds: float) -> Row:
        """Return the row that a process answers with, or how it failed."""
        process = self._waiting or _Process(self._script, self._modules)
        self._waiting = None
        try:
            process.ask(request)
            if self._modules:
                self._waiting = _Process(self._script, self._modules)
            return process.answer(most_seconds)
        finally:
            process.end()


class _Process:
    """One process, from its begin on."""

    def __init__(self, script: Path, modules: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._answer = Path(self._folder.name, "row.json")
        self._said = Path(self._folder.name, "stderr")
        command = [sys.executable, str(script), "--child", ",".join(modules)]
        with self._said.open("w") as said:
            self._started = subprocess.Popen(
                [*command, "--answer", str(self._answer)],
                env=pinned(os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                text=True,
            )

    def ask(self, request: Row) -> None:
        """Have it begin. One that has ended already is found by its answer."""
        assert self._started.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._started.stdin as line:
            line.write(json.dumps(request) + "\n")

    def answer(self, most_seconds: float) -> Row:
        """Wait for its row."""
        try:
            status = self._started.wait(most_seconds)
        except subprocess.TimeoutExpired:
            return {"failed": f"it took more than {most_seconds:.0f} s"}
        if not self._answer.exists():
            said = self._said.read_text()
            lines = said.strip().splitlines() or [f"exit status {status}"]
            print(said[-2000:], file=sys.stderr)
            return {"failed": lines[-1][:300]}
        row: Row = json.loads(self._answer.read_text())
        if status:  # after all was measured: told, and nothing more
            row["exit_status"] = status
        return row

    def end(self) -> None:
        """End it, whatever it does, and forget its files."""
        with self._started:  # closes its input, and waits
            self._started.kill()
        self._folder.cleanup()
