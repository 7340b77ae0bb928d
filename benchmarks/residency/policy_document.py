# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of docs/measure/policies.md that are computed from the result file."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.document import with_part
from benchmarks.residency.policy_card import BASELINES, DRIVER_ALONE

DOCUMENT = Path(__file__).parents[2] / "docs" / "measure" / "policies.md"
BEGIN = "<!-- begin: written by benchmarks/residency/policies.py --write -->"
END = "<!-- end -->"
SAID = "<!-- begin: sentences, written likewise -->"
SAID_END = "<!-- end of sentences -->"
# "Cards that lack little" have the peak over no more than this.
LITTLE = 1.25
_FASTEST = "the fastest baseline"
_MIB = 1 << 20


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed parts anew; errors as `with_part`."""
    text = with_part(text, DOCUMENT, BEGIN, END, computed_part(result))
    return with_part(text, DOCUMENT, SAID, SAID_END, sentences(result))


def sentences(result: Mapping[str, Any]) -> str:
    """Return what the document says of the figures in the tables."""
    default = result["default"]
    rows = {(row["program"], row["factor"], row["way"]): row for row in result["rows"]}
    for program, factor in {(name, factor) for name, factor, _ in rows}:
        rows[program, factor, _FASTEST] = min(
            (row for way in BASELINES if (row := rows.get((program, factor, way)))),
            key=lambda row: row["seconds"],
        )

    def ratios(figure: str, way: str, other: str, program: str, most: float) -> list[float]:
        return [
            row[figure] / rows[program, factor, other][figure]
            for (name, factor, its), row in rows.items()
            if (name, its) == (program, way) and factor <= most
        ]

    slower = {
        program: ratios("seconds", "lru", default, program, LITTLE)
        for program in result["peak_bytes"]
    }
    parts = ", ".join(f"{program} {_span(times, '.2f')}" for program, times in slower.items())
    worst = _span([time for times in slower.values() for time in times], ".2f")
    every = math.inf
    over_fastest = [
        " | ".join(
            _span(ratios("seconds", way, _FASTEST, program, every), ".2f")
            for program in result["peak_bytes"]
        )
        for way in (*BASELINES, default)
    ]
    slower_at = {
        f"{program} at {factor:g}": row["seconds"] / rows[program, factor, _FASTEST]["seconds"]
        for (program, factor, way), row in rows.items()
        if way == default
    }
    alone = [
        ratio
        for program in result["peak_bytes"]
        for ratio in ratios("seconds", default, DRIVER_ALONE, program, every)
    ]
    behind = [f"{card} ({ratio:.2f})" for card, ratio in slower_at.items() if round(ratio, 2) > 1]
    lru, fifo = (
        _span([100 * share for share in ratios("to_host_bytes", way, _FASTEST, "mortgage", every)])
        for way in ("lru", "fifo")
    )
    table = [
        f"| seconds over the fastest baseline of each card | {' | '.join(result['peak_bytes'])} |",
        f"|---|{'--:|' * len(result['peak_bytes'])}",
        *(
            f"| {way} | {said} |"
            for way, said in zip((*BASELINES, default), over_fastest, strict=True)
        ),
    ]
    return (
        "\n".join(table) + "\n\n"
        f'- "{default}" takes {_span(alone, ".2f")} times as long as the kernel driver alone, '
        f"{statistics.median(alone):.2f} in the\n  median of all cards.\n"
        f'- "{default}" is slower than the fastest baseline on {len(behind)} of {len(slower_at)} '
        f"cards:\n  {', '.join(behind) or 'none'}.\n"
        f'- On cards that lack little, up to {LITTLE:g} times, "lru" takes {worst} times as long '
        f'as "{default}":\n  {parts}.\n'
        f'- On the recording, "lru" sends {lru} % of the bytes to the host that the fastest\n'
        f'  baseline sends there, and "fifo" {fifo} %: what is dead is not copied.'
    )


def _span(figures: Sequence[float], form: str = ".0f") -> str:
    least, most = format(min(figures), form), format(max(figures), form)
    return least if least == most else f"{least} to {most}"


def computed_part(result: Mapping[str, Any]) -> str:
    """Return a table of each program."""
    parts = []
    for program, peak_bytes in result["peak_bytes"].items():
        lines = [
            f"### {program}: {peak_bytes / _MIB:.0f} MiB at most",
            "",
            "| peak / card | way | s | to the device, MiB | to the host, MiB | dropped, MiB "
            "| by the kernel driver, MiB | there already | as predicted |",
            "|--:|---|--:|--:|--:|--:|--:|--:|--:|",
        ]
        lines += [_line(row) for row in result["rows"] if row["program"] == program]
        lines += [
            f"| {factor:g} | {way} | did not end in {result['limit_seconds']:g} s of wall time "
            "| | | | | | |"
            for name, factor, way in result["not_ended"]
            if name == program
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _line(row: Mapping[str, Any]) -> str:
    ways = ("to_device_bytes", "to_host_bytes", "dropped_bytes", "driver_evicted_bytes")
    moved = " | ".join(f"{row[name] / _MIB:.0f}" for name in ways)
    predicted = row["prediction_rate"]
    return (
        f"| {row['factor']:g} | {row['way']} | {row['seconds']:.3f} | {moved} "
        f"| {row['hit_rate']:.1%} | {'' if predicted is None else f'{predicted:.0%}'} |"
    )
