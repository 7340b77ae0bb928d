# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""What training past a budget has to reach, of the rows that `past_the_edge.py` keeps."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.common import harness

TRANSFORMERS = ("gpt2", "gpt2-medium", "bert", "whisper-small")
OURS = ("lazy", "eager", "copy")
BY_HAND = ("checkpointing", "save_on_cpu")
FITS_BOUND = 1.02
LINK_BOUND = 1.25  # transformers, at the first two factors
LINK_FACTORS = (1.25, 1.5)
SPEED_UPS = {1.25: 2.0, 1.5: 3.0, 2.0: 3.0, 3.0: 2.0}  # geometric means over the models

Row = Mapping[str, Any]
Case = tuple[str, str]


class Table:
    """Rows by model, type, factor and way.

    Parameters
    ----------
    rows : sequence of mappings
        Of any models; where a model failed, its last rows are not there.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._at = {(*case_of(row), row["factor"], row["way"]): row for row in rows}
        self._rows = rows
        self.cases = sorted({case_of(row) for row in rows})
        copies = any(row["way"] == "copy" for row in rows)  # not before they were there
        self.ours_there = OURS if copies else OURS[:-1]
        self.factors = sorted({row["factor"] for row in rows if row["way"] == "fault-driven"})

    def row(self, case: Case, factor: float, way: str) -> Row | None:
        """Return a row, or None where it is not there."""
        return self._at.get((*case, factor, way))

    def first_of_ours(self, case: Case, factor: float) -> Row | None:
        """Return a row of one of ours: the bounds are the same in all."""
        found = (self.row(case, factor, way) for way in OURS)
        return next((row for row in found if row is not None), None)

    def ours(self, case: Case, factor: float) -> float | None:
        """Return the seconds of the best of ours, where there is one."""
        found = [self.row(case, factor, way) for way in OURS]
        return min((row["seconds"] for row in found if row is not None), default=None)

    def speed_up(self, case: Case, factor: float) -> float | None:
        """Return how many times as fast as fault-driven ours is."""
        theirs, ours = self.row(case, factor, "fault-driven"), self.ours(case, factor)
        return None if theirs is None or ours is None else float(theirs["seconds"] / ours)

    def speed_ups(self, factor: float) -> list[float]:
        """Return that of every model."""
        found = (self.speed_up(case, factor) for case in self.cases)
        return [one for one in found if one is not None]

    def copies_over_lazy(self, factor: float) -> dict[Case, float]:
        """Return the time of copies over that of lazy, of every model that has both."""
        pairs = {
            case: [self.row(case, factor, way) for way in ("copy", "lazy")] for case in self.cases
        }
        return {
            case: float(copy["seconds"] / lazy["seconds"])
            for case, (copy, lazy) in pairs.items()
            if copy is not None and lazy is not None
        }

    def fits(self, case: Case) -> float | None:
        """Return managed memory that fits, over torch's own allocator."""
        managed, native = (self.row(case, 0.0, way) for way in ("managed", "native"))
        if managed is None or native is None:
            return None
        # The least: what managed memory costs is less than what steps differ by.
        return float(managed["least_seconds"] / native["least_seconds"])

    def in_memory_of(self, case: Case, way: str) -> float | None:
        """Return the seconds of ours in the memory that a way by hand needed."""
        found = [
            row["seconds"]
            for row in self._rows
            if case_of(row) == case and row["way"].endswith(f"memory of {way}")
        ]
        return min(found, default=None)


def case_of(row: Row) -> Case:
    """Return the model and the type of a row."""
    return row["model"], row["dtype"]


def verdicts_of(rows: Sequence[Row], fits: Sequence[Row] = ()) -> dict[str, Any]:
    """Judge ours, the best of its ways; what fits at the full batch, where that was measured."""
    table, at_full_batch = Table(rows), Table(fits)
    verdicts: dict[str, Any] = {}
    for case in sorted({*table.cases, *at_full_batch.cases}):
        name = " ".join(case)
        found = (each.fits(case) for each in (at_full_batch, table))
        if (ratio := next((each for each in found if each is not None), None)) is not None:
            verdicts[f"{name}: everything fits, managed / native"] = harness.judged(
                ratio, FITS_BOUND
            )
        for factor in LINK_FACTORS:
            row, ours = table.first_of_ours(case, factor), table.ours(case, factor)
            if case[0] in TRANSFORMERS and row is not None and ours is not None:
                bound = max(row["compute_seconds"], row["link_seconds"])
                verdicts[f"{name} at {factor}x: time / bound"] = harness.judged(
                    ours / bound, LINK_BOUND
                )
        theirs, ours = table.row(case, 0.0, "save_on_cpu"), table.in_memory_of(case, "save_on_cpu")
        if theirs is not None and ours is not None:
            verdicts[f"{name}: ours / save_on_cpu in its memory"] = harness.judged(
                ours / theirs["seconds"], 1.0
            )
    for factor, least in SPEED_UPS.items():
        if there := table.speed_ups(factor):
            mean = statistics.geometric_mean(there)
            verdicts[f"{factor}x: fault-driven / ours, geometric mean"] = {
                "value": mean,
                "must_be_at_least": least,
                "reached": mean >= least,
            }
    return verdicts


def verdicts_of_losses(losses: Sequence[Row]) -> dict[str, Any]:
    """Judge that no loss differs, in a run that did move memory.

    Where an operator has no deterministic kernel, two runs that fit may differ, too: then losses
    have to be equal for as many steps as theirs are.
    """
    verdicts = {}
    for row in losses:
        least, what = row["steps"], f"losses of {row['steps']} steps are equal"
        if not row.get("deterministic", True):
            least = row["equal_steps_of_two_that_fit"]
            what = "losses are equal as far as those of two runs that fit"
        verdicts[f"{' '.join(case_of(row))}: {what}"] = {
            "value": row["equal_steps"],
            "must_be_at_least": least,
            "reached": row["equal_steps"] >= least
            and row["evicted_bytes"] > 0
            # Rows of before copies were compared, too, have none.
            and row.get("copied_bytes", 1) > 0,
        }
    return verdicts


def verdicts_of_failures(failed: Sequence[Row]) -> dict[str, Any]:
    """Count what could not be measured as missed."""
    return {
        f"{' '.join(case_of(one))}: {one['part']} were measured": {
            "value": one["reason"],
            "reached": False,
        }
        for one in failed
    }


def all_verdicts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return every verdict of a result file."""
    return {
        **verdicts_of(result["rows"], result.get("fits", [])),
        **verdicts_of_losses(result["losses"]),
        **verdicts_of_failures(result.get("failed", [])),
    }
