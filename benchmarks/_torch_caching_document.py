# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/training.md that is computed from what torch_caching.py measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _document import around_part

DOCUMENT = Path(__file__).parents[1] / "docs" / "training.md"
RESULT = Path(__file__).parent / "results" / "torch_caching.json"
BEGIN = "<!-- begin: written by benchmarks/torch_caching.py --write -->"
END = "<!-- end -->"
_MIB, _GIB = 1 << 20, 1 << 30
_MANY = 100  # ratios from there on have no decimals
_WAYS = {"native": "torch's own memory", "on": "on", "on, ours": "on, ours", "off": "off"}


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `around_part`."""
    head, tail = around_part(text, DOCUMENT, BEGIN, END)
    return f"{head}{computed_part(result)}{tail}"


def computed_part(result: Mapping[str, Any]) -> str:
    """Return geometric means over the models, each row, and what could not be measured."""
    rows = [row for row in result["rows"] if "failed" not in row]
    failed = [row for row in result["rows"] if "failed" in row]
    parts = [_summary(rows), _table(rows, result["kernels"])]
    if failed:
        missing = [f"{row['model']} {row['dtype']}, {row['way']}" for row in failed]
        parts.append(f"Not measured to the end: {'; '.join(missing)}.")
    return "\n\n".join(parts)


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    at = {(row["model"], row["dtype"], row["factor"], row["way"]): row for row in rows}
    lines = [
        "Geometric means over the models:",
        "",
        "| peak / budget | faults, off / on | bytes moved, on / off | time, off / on "
        "| time, on / ours |",
        "|--:|--:|--:|--:|--:|",
    ]

    def mean(factor: float, figure: Any, way: str, other: str) -> str:
        pairs = [
            (figure(row), figure(at[*case, factor, other]))
            for (*case, of_row, of_way), row in at.items()
            if (of_row, of_way) == (factor, way) and (*case, factor, other) in at
        ]
        known = [(max(a, 1e-9), max(b, 1e-9)) for a, b in pairs if None not in (a, b)]
        if not known:
            return "not known"
        found = statistics.geometric_mean(a / b for a, b in known)
        return f"{found:.2f}" if found < _MANY else f"{found:,.0f}"

    def faults(row: Mapping[str, Any]) -> int | None:
        return None if row["gpu_faults"] is None else max(row["gpu_faults"], 1)

    def moved_bytes(row: Mapping[str, Any]) -> float:
        return max(float(row["to_device_bytes"] + row["to_host_bytes"]), 1.0)

    for factor in sorted({row["factor"] for row in rows}):
        columns = [
            mean(factor, faults, "off", "on"),
            # What fits does not move.
            mean(factor, moved_bytes, "on", "off") if factor else "",
            mean(factor, lambda row: row["seconds"], "off", "on"),
            mean(factor, lambda row: row["seconds"], "on", "on, ours"),
        ]
        lines.append(f"| {_factor(factor)} | {' | '.join(columns)} |")
    return "\n".join(lines)


def _table(rows: Sequence[Mapping[str, Any]], kernels: Sequence[Mapping[str, Any]]) -> str:
    used = {(one["model"], one["dtype"], one["batch"]): one for one in kernels}
    lines = [
        "| model | peak / budget | caching | ms | faults | to the device, MiB | to the host, MiB "
        "| evictions | footprint, GiB | held, GiB | one kernel uses, median, MiB | at most, MiB |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        of_kernels = used.get((row["model"], row["dtype"], row["batch"]))
        sizes = ("median_used_bytes", "most_used_bytes")
        columns = [
            f"{row['model']} {row['dtype']}",
            _factor(row["factor"]),
            _WAYS[row["way"]],
            f"{row['seconds'] * 1e3:.1f}",
            "not known" if row["gpu_faults"] is None else f"{row['gpu_faults']:,}",
            f"{row['to_device_bytes'] / _MIB:.0f}",
            f"{row['to_host_bytes'] / _MIB:.0f}",
            f"{row['evictions']:.0f}",
            f"{row['peak_bytes'] / _GIB:.2f}",
            f"{row['reserved_bytes'] / _GIB:.2f}",
            *(["", ""] if of_kernels is None else [_mib(of_kernels[name]) for name in sizes]),
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def _mib(nbytes: float) -> str:
    return f"{nbytes / _MIB:.1f}" if nbytes < 10 * _MIB else f"{nbytes / _MIB:.0f}"


def _factor(factor: float) -> str:
    return f"{factor:g}" if factor else "fits"
