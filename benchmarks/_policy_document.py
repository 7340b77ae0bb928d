# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/residency-policies.md that is computed from the result file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from _document import around_part

DOCUMENT = Path(__file__).parents[1] / "docs" / "residency-policies.md"
BEGIN = "<!-- begin: written by benchmarks/residency_policies.py --write -->"
END = "<!-- end -->"
_MIB = 1 << 20


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `around_part`."""
    head, tail = around_part(text, DOCUMENT, BEGIN, END)
    return f"{head}{computed_part(result)}{tail}"


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
