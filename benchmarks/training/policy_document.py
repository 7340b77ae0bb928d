# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/measure/training-policies.md that is computed from the result file."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.document import with_part

DOCUMENT = Path(__file__).parents[2] / "docs" / "measure" / "training-policies.md"
BEGIN = "<!-- begin: written by benchmarks/training/policies.py --write -->"
END = "<!-- end -->"
_BASELINES = ("on-demand", "driver prefetch", "RMM's prefetches")
_FASTEST = "the fastest baseline"
_MIB, _GIB = 1 << 20, 1 << 30


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(result))


def computed_part(result: Mapping[str, Any]) -> str:
    """Return what it comes to, what the models are, and a table of each in both types."""
    parts = [_summary(result), _models(result["models"])]
    of_model: dict[str, list[Mapping[str, Any]]] = {}
    for row in result["rows"]:
        of_model.setdefault(row["model"], []).append(row)
    parts += [_side_by_side(model, rows) for model, rows in of_model.items()]
    return "\n\n".join(parts)


def _summary(result: Mapping[str, Any]) -> str:
    """Return geometric means over the models, for each type and factor."""
    rows = {(row["model"], row["dtype"], row["factor"], row["way"]): row for row in result["rows"]}
    for *card, way in list(rows):
        if way == "ideal":
            of_card = [rows[*card, one] for one in _BASELINES]
            rows[*card, _FASTEST] = min(of_card, key=lambda row: row["seconds"])
    cards = dict.fromkeys((row["dtype"], row["factor"]) for row in result["rows"])

    def mean(card: tuple[str, float], figure: str, way: str, other: str) -> float:
        dtype, _ = card
        ratios = [
            rows[one["model"], *card, way][figure] / rows[one["model"], *card, other][figure]
            for one in result["models"]
            if one["dtype"] == dtype
        ]
        return statistics.geometric_mean(ratios)

    lines = [
        "| type | peak / card | known order: times as fast as on-demand | as driver prefetch "
        "| as RMM's prefetches | as the fastest of these | bytes to the device / ideal "
        "| driver prefetch: bytes to the device / ideal | RMM's prefetches: likewise "
        "| ideal: times as fast as known order |",
        f"|---|{'--:|' * 9}",
    ]
    known, moved = "known order", "to_device_bytes"
    lines += [
        f"| {card[0]} | {card[1]:g} "
        + "".join(f"| {mean(card, 'seconds', way, known):.1f} " for way in (*_BASELINES, _FASTEST))
        + "".join(f"| {mean(card, moved, way, 'ideal'):.2f} " for way in (known, *_BASELINES[1:]))
        + f"| {mean(card, 'seconds', known, 'ideal'):.1f} |"
        for card in cards
    ]
    for words, key in (("on-demand", "on_demand"), ("the fastest of these", "a_baseline")):
        slower = [
            f"{model} {dtype} at {factor:g}"
            for model, dtype, factor in result[f"slower_than_{key}"]
        ]
        lines += ["", f"Known order is slower than {words} on: {', '.join(slower) or 'no card'}."]
    return "\n".join(["Geometric means over the models:", "", *lines])


def _models(models: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| model | peak, GiB | kernels in a step | one kernel uses, mean, MiB | at most, GiB "
        "| computing, ms |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {one['model']} {one['dtype']} | {one['peak_bytes'] / _GIB:.2f} | {one['kernels']} "
        f"| {one['mean_used_bytes'] / _MIB:.0f} | {one['most_used_bytes'] / _GIB:.2f} "
        f"| {one['compute_seconds'] * 1e3:.1f} |"
        for one in models
    ]
    return "\n".join(lines)


def _side_by_side(model: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a line for each card of a model, with all ways in it."""
    ways = list(dict.fromkeys(row["way"] for row in rows))
    cards: dict[tuple[str, float], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        cards.setdefault((row["dtype"], row["factor"]), {})[row["way"]] = row
    lines = [
        f"### {model}",
        "",
        f"| type | peak / card | {', ms | '.join(ways)}, ms | to the device, GiB |",
        f"|---|--:|{'--:|' * len(ways)}---|",
    ]
    for (dtype, factor), of_way in cards.items():
        times = [f"{of_way[way]['seconds'] * 1e3:.1f}" for way in ways]
        moved = [f"{of_way[way]['to_device_bytes'] / _GIB:.2f}" for way in ways]
        lines.append(f"| {dtype} | {factor:g} | {' | '.join(times)} | {' / '.join(moved)} |")
    return "\n".join(lines)
