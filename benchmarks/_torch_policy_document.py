# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/training-policies.md that is computed from the result file."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from _document import around_part

DOCUMENT = Path(__file__).parents[1] / "docs" / "training-policies.md"
BEGIN = "<!-- begin: written by benchmarks/torch_policies.py --write -->"
END = "<!-- end -->"
_MIB, _GIB = 1 << 20, 1 << 30


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `around_part`."""
    head, tail = around_part(text, DOCUMENT, BEGIN, END)
    return f"{head}{computed_part(result)}{tail}"


def computed_part(result: Mapping[str, Any]) -> str:
    """Return what it comes to, what the models are, and a table of each."""
    parts = [_summary(result), _models(result["models"])]
    for model in result["models"]:
        lines = [
            f"### {model}",
            "",
            "| peak / card | way | ms | / on-demand | to the device, GiB | to the host, GiB "
            "| there already |",
            "|--:|---|--:|--:|--:|--:|--:|",
        ]
        rows = [row for row in result["rows"] if row["model"] == model]
        base = {row["factor"]: row["seconds"] for row in rows if row["way"] == "on-demand"}
        lines += [_line(row, base[row["factor"]]) for row in rows]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _summary(result: Mapping[str, Any]) -> str:
    """Return geometric means over the models, for each factor."""
    rows = {(row["model"], row["factor"], row["way"]): row for row in result["rows"]}
    factors = sorted({row["factor"] for row in result["rows"]})

    def mean(factor: float, figure: str, way: str, other: str) -> float:
        ratios = [
            rows[model, factor, way][figure] / rows[model, factor, other][figure]
            for model in result["models"]
        ]
        return statistics.geometric_mean(ratios)

    lines = [
        "| peak / card | known order: times as fast as on-demand | as driver prefetch "
        "| bytes to the device / ideal | driver prefetch: bytes to the device / ideal "
        "| ideal: times as fast as known order |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    known, moved = "known order", "to_device_bytes"
    lines += [
        f"| {factor:g} | {mean(factor, 'seconds', 'on-demand', known):.1f} "
        f"| {mean(factor, 'seconds', 'driver prefetch', known):.1f} "
        f"| {mean(factor, moved, known, 'ideal'):.2f} "
        f"| {mean(factor, moved, 'driver prefetch', 'ideal'):.2f} "
        f"| {mean(factor, 'seconds', known, 'ideal'):.1f} |"
        for factor in factors
    ]
    slower = [f"{model} at {factor:g}" for model, factor in result["slower_than_on_demand"]]
    lines += ["", f"Known order is slower than on-demand on: {', '.join(slower) or 'no card'}."]
    return "\n".join(["Geometric means over the models:", "", *lines])


def _models(models: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        "| model | peak, GiB | kernels in a step | one kernel uses, mean, MiB | at most, GiB "
        "| computing, ms |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {name} | {one['peak_bytes'] / _GIB:.2f} | {one['kernels']} "
        f"| {one['mean_used_bytes'] / _MIB:.0f} | {one['most_used_bytes'] / _GIB:.2f} "
        f"| {one['compute_seconds'] * 1e3:.1f} |"
        for name, one in models.items()
    ]
    return "\n".join(lines)


def _line(row: Mapping[str, Any], base_seconds: float) -> str:
    moved = " | ".join(f"{row[name] / _GIB:.2f}" for name in ("to_device_bytes", "to_host_bytes"))
    return (
        f"| {row['factor']:g} | {row['way']} | {row['seconds'] * 1e3:.1f} "
        f"| {row['seconds'] / base_seconds:.3f} | {moved} | {row['hit_rate']:.1%} |"
    )
