# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/planner.md that is computed from the result file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.document import with_part

DOCUMENT = Path(__file__).parents[2] / "docs" / "planner.md"
RESULT = Path(__file__).parents[1] / "results" / "advice_on_gpus.json"
BEGIN = "<!-- begin: written by benchmarks/planner/advice_on_gpus.py --write -->"
END = "<!-- end: advice_on_gpus -->"


def document_with(text: str, result: Mapping[str, Any] | None) -> str:
    """Return the document with the computed part anew; None for a result that is not there.

    Errors as `with_part`.
    """
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(result))


def computed_part(result: Mapping[str, Any] | None) -> str:
    """Return a table of workloads and cards, with what was advised and what came of it."""
    if result is None:
        return "Not measured on a GPU yet."
    lines = [
        f"Measured on: {result['environment']['device']}, medians of "
        f"{result['settings']['rounds']} rounds in turn.",
        "",
        "| program | card | advised | advised / default | on a true card | spread | ways "
        "| pairs out of order | on a true card |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    return "\n".join([*lines, *(_line(one, result["rows"]) for one in result["summaries"])])


def _line(one: Mapping[str, Any], rows: Any) -> str:
    ways = sum((row["workload"], row["card"]) == (one["workload"], one["card"]) for row in rows)
    return (
        f"| {one['workload']} | {one['card']} | {one['advised']} "
        f"| {one['advised_over_default']:.2f} | {one['advised_over_default_true']:.2f} "
        f"| {one['spread']:.1%} | {ways} "
        f"| {len(one['out_of_order'])} | {len(one['out_of_order_on_a_true_card'])} |"
    )
