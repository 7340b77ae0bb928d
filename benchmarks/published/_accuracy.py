# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/measure/simulator-accuracy.md that is computed from the result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from _published import HERE

DOCUMENT = HERE.parents[1] / "docs" / "measure" / "simulator-accuracy.md"
BEGIN = "<!-- begin: written by benchmarks/published/all.py --write -->"
END = "<!-- end -->"


def document_with(text: str, tables: Sequence[Mapping[str, Any]]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    from benchmarks.common.document import with_part

    return with_part(text, DOCUMENT, BEGIN, END, computed_part(tables))


def computed_part(tables: Sequence[Mapping[str, Any]]) -> str:
    """Return a summary of all tables, then each of them."""
    return "\n\n".join([_summary(tables), *map(_section, tables)])


def _summary(tables: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| table | machine | figures | within 15 % | explained | orders right "
        "| by construction: figures, orders |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| [{table['name']}](#{table['name'].replace(' ', '-')}) | {table['machine']} "
        f"| {_counts(table['verdicts'])} |"
        for table in tables
    ]
    total = {
        verdict: sum(table["verdicts"][verdict] for table in tables)
        for verdict in tables[0]["verdicts"]
    }
    return "\n".join([*lines, f"| **all** | | {_counts(total)} |"])


def _counts(verdicts: Mapping[str, int]) -> str:
    """Return what counts as evidence, and last what does not."""
    figures = sum(verdicts[name] for name in ("within 15 %", "explained", "missed"))
    orders = sum(verdicts[f"orders {name}"] for name in ("right", "explained", "wrong"))
    return (
        f"{figures} | {verdicts['within 15 %']} | {verdicts['explained']} "
        f"| {verdicts['orders right']} of {orders} "
        f"| {verdicts['by construction']}, {verdicts['orders by construction']}"
    )


def _section(table: Mapping[str, Any]) -> str:
    scale = f" Sizes / {table['scale']}." if table["scale"] > 1 else ""
    lines = [
        f"### {table['name']}",
        f"{table['title']}. Published: {table['source']}.",
        "",
        f"Run: {table['workload']}.{scale}",
        "",
        "| case | figure | theirs | ours | ratio |",
        "|---|---|--:|--:|--:|",
    ]
    reasons: dict[str, int] = {}
    for row in table["rows"]:
        mark = ""
        if row["verdict"] == "explained":
            mark = f" ({reasons.setdefault(row['reason'], len(reasons) + 1)})"
        elif row["verdict"] == "by construction":
            mark = " (c)"
        figure = ", ".join(part for part in (row["quantity"], row["unit"]) if part)
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
        lines.append(
            f"| {row['case']} | {figure} | {row['theirs']:.4g} | {row['ours']:.4g} "
            f"| {ratio}{mark} |"
        )
    lines.append("")
    lines += [f"({number}) {reason}.  " for reason, number in reasons.items()]
    if table["verdicts"]["by construction"]:
        lines.append("(c) by construction: no evidence for the model.  ")
    for order in table["orders"]:
        ranking = " < ".join(order["names"])
        why = f" {order['reason']}." if order["verdict"] == "explained" else ""
        lines.append(f"Order {order['verdict']}: {order['claim']}: {ranking}.{why}  ")
    lines += [f"Left out: {what}: {why}.  " for what, why in table["left_out"].items()]
    return "\n".join(lines).rstrip()
