# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs all sides in turn, each run in a process of its own, and keeps the rows.

A repetition is a timed run of each side, one after the other. Then each side with a budget has a
watched run, beside which a sampler looks at the page tables, and a twin, stopped at a moment of its
own. What people use instead has one watched run in all: its device memory has a fixed limit. So
sides take turns (A B A B), what drifts is in all, and nothing looks on while time is taken.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def in_process(script: Path, request: Row, most_seconds: float) -> Row:
    """Run a script with a request in a process of its own; return its row, or how it failed.

    The script is given ``--child REQUEST --answer FILE``.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "row.json")
        command = [sys.executable, str(script), "--child", json.dumps(request)]
        try:
            ended = subprocess.run(
                [*command, "--answer", str(answer)],
                env=pinned(os.environ),
                timeout=most_seconds,
                capture_output=True,
                text=True,
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"it took more than {most_seconds:.0f} s"}
        if not answer.exists():
            lines = ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"]
            print(ended.stderr[-2000:], file=sys.stderr)
            return {"failed": lines[-1][:300]}
        row: Row = json.loads(answer.read_text())
        if ended.returncode:  # after all was measured: told, and nothing more
            row["exit_status"] = ended.returncode
        return row
