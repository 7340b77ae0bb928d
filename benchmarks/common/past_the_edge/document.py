# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The rows of a file past the edge: runs, twins, sides and ratios, each with its verdict."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.common.past_the_edge import verdicts
from benchmarks.common.past_the_edge.rounds import COUNTED_FROM

Row = dict[str, Any]


def rows_of(
    sides: Sequence[Mapping[str, Any]],
    runs: Sequence[Row],
    watched: Sequence[Row],
    twins: Sequence[Row],
    ratios: Sequence[tuple[str, str]],
    budget_bytes: int,
) -> dict[str, Any]:
    """Return what a file has beside its settings.

    Parameters
    ----------
    sides : sequence of mapping
        As `Side.as_row` says.
    watched : sequence of dict
        Rows of runs beside which page tables were looked at; none where a timed run is not
        disturbed by that, and has its own.
    ratios : sequence of pair of str
        Names of sides: the first one's seconds over the second one's.
    """
    told = {
        side["name"]: verdicts.side_row(
            side,
            _of(runs, side["name"]),
            _of(watched, side["name"]),
            _of(twins, side["name"]),
            budget_bytes,
        )
        for side in sides
    }
    seconds = {name: _seconds(_of(runs, name)) for name in told}
    by_operation = {name: _operation_seconds(_of(runs, name)) for name in told}
    begun = {name: {run["repetition"]: run["begun"] for run in _of(runs, name)} for name in told}
    return {
        "protocol": bounds(),
        "ratios": [
            verdicts.ratio_row(told[one], told[other], seconds, budget_bytes, begun, by_operation)
            for one, other in ratios
            if one in told and other in told
        ],
        "sides": list(told.values()),
        "runs": list(runs),
        "watched": list(watched),
        "stops": list(twins),
    }


def bounds() -> Row:
    """Return the bounds of the rules."""
    return {
        "most_beyond_of_budget": verdicts.MOST_BEYOND,
        "same_bytes": verdicts.SAME_BYTES,
        "same_bytes_floor_of_budget": verdicts.SAME_BYTES_FLOOR,
        "judges_agree_of_budget": verdicts.JUDGES_AGREE,
        "least_repetitions": verdicts.LEAST_REPETITIONS,
        "least_stops": verdicts.LEAST_STOPS,
        "in_turn_seconds": verdicts.IN_TURN_SECONDS,
        "rounds_count_from": COUNTED_FROM,
    }


def lines(told: Mapping[str, Any]) -> list[str]:
    """Return what is printed of a file."""
    found = []
    for row in told["sides"]:
        seconds = row.get("seconds")
        text = "no run" if seconds is None else f"{seconds:8.3f} s a round"
        text += f", factor {row['factor']}" if row["factor"] else ""
        found.append(f"{row['side']:23} {text}{_beyond_text(row)}")
    for row in told["ratios"]:
        ratio = row["seconds_ratio"]
        text = "no ratio" if ratio is None else f"{ratio:.3f}"
        verdict = "a result" if row["result"] else "no result: " + "; ".join(row["reasons"])
        if "operations_ratio" in row:
            text += f" ({row['operations_ratio']:.3f} by the geometric mean of operations)"
        found.append(f"{row['of']} / {row['over']}: {text}, {verdict}")
        found += [f"    {what}" for what in row["said"]]
    return found


def _beyond_text(row: Mapping[str, Any]) -> str:
    if not row.get("beyond"):
        return ""
    parts = []
    for judge in ("stops", "page_tables", "device"):
        told = row["beyond"].get(judge)
        if told is not None and told["most_bytes"] is not None:
            text = f"{judge} {told['most_bytes'] / 2**20:.0f} MiB"
            average = told.get("average_bytes")
            parts.append(text if average is None else f"{text}, on average {average / 2**20:.0f}")
    return ", beyond the budget by " + "; ".join(parts) if parts else ""


def _of(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if row["side"] == name]


def _seconds(runs: Sequence[Row]) -> dict[int, float]:
    return {
        run["repetition"]: statistics.median(each["seconds"] for each in verdicts.counted(run))
        for run in runs
        if verdicts.counted(run)
    }


def _operation_seconds(runs: Sequence[Row]) -> dict[int, list[float]]:
    """Return by repetition the medians of each operation, of runs that timed them."""
    of_rounds = {
        run["repetition"]: [each.get("operation_seconds", ()) for each in verdicts.counted(run)]
        for run in runs
    }
    return {
        repetition: [statistics.median(times) for times in zip(*rounds, strict=True)]
        for repetition, rounds in of_rounds.items()
    }
