# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/measure/neighbours.md that is computed from neighbors_consolidation.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.document import with_part

DOCUMENT = Path(__file__).parents[2] / "docs" / "measure" / "neighbours.md"
BEGIN = "<!-- begin: written by benchmarks/neighbors/consolidation.py --write -->"
END = "<!-- end -->"
_MIB = 1 << 20
_SHOWN_SPARE = 0.4  # of the table of techniques; the others are in the result file


def document_with(text: str, result: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(result))


def computed_part(result: Mapping[str, Any]) -> str:
    """Return the tables: techniques, spare memory, look-ahead, kernels, bursts."""
    return "\n\n".join(
        part(result) for part in (_techniques, _spare, _look_ahead, _kernels, _bursts)
    )


def _in_order(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))


def _table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---", *("--:" for _ in head[1:])], *lines]
    return "\n".join([f"{title}:", "", *(f"| {' | '.join(row)} |" for row in rows)])


def _techniques(result: Mapping[str, Any]) -> str:
    rows = [row for row in result["rows"] if row["spare_fraction"] == _SHOWN_SPARE]
    cases = [
        (gpus, scenario)
        for gpus in _in_order(rows, "gpus")
        for scenario in _in_order(rows, "scenario")
    ]
    at = {(row["gpus"], row["scenario"], row["way"]): row for row in rows}
    lines = []
    for way in _in_order(rows, "way"):
        cells = [at[*case, way] for case in cases]
        lines.append([way, *(f"{row['speedup']:.2f}" for row in cells)])
    worst = [
        max(row["owner_slowdown"] for row in rows if (row["gpus"], row["scenario"]) == case)
        for case in cases
    ]
    lines.append(["slowdown of owners, the worst", *(f"{value:.3f}" for value in worst)])
    title = f"Times as fast as the first row, with {_SHOWN_SPARE:.0%} of each owner's GPU idle"
    return _table(title, ["", *(f"{name}, {gpus} GPUs" for gpus, name in cases)], lines)


def _spare(result: Mapping[str, Any]) -> str:
    rows = result["against_host"]
    spares = _in_order(rows, "spare_fraction")
    at = {(row["gpus"], row["scenario"], row["spare_fraction"]): row["speedup"] for row in rows}
    lines = [
        [f"{scenario}, {gpus} GPUs", *(f"{at[gpus, scenario, spare]:.2f}" for spare in spares)]
        for gpus in _in_order(rows, "gpus")
        for scenario in _in_order(rows, "scenario")
    ]
    title = "Look-ahead with neighbours against look-ahead with the host only, by idle memory"
    told = _table(title, ["scenario", *(f"{spare:.0%}" for spare in spares)], lines)
    return f"{told}\n\nThe best is {result['best_against_host']:.2f}; the paper's is 2.71."


def _look_ahead(result: Mapping[str, Any]) -> str:
    rows = result["look_aheads"]
    far = _in_order(rows, "ahead_bytes")
    at = {(row["scenario"], row["ahead_bytes"]): row["speedup"] for row in rows}
    lines = [
        [scenario, *(f"{at[scenario, nbytes]:.2f}" for nbytes in far)]
        for scenario in _in_order(rows, "scenario")
    ]
    spare = rows[0]["spare_fraction"]
    title = f"Times as fast as without look-ahead, with neighbours, {spare:.0%} idle, 4 GPUs"
    return _table(title, ["scenario", *(f"{nbytes // _MIB} MiB" for nbytes in far)], lines)


def _kernels(result: Mapping[str, Any]) -> str:
    rows = result["kernels"]
    at_once = [row for row in rows if row["way"] == rows[1]["way"]]
    sizes = _in_order(rows, "kernel_bytes")
    at = {(row["scenario"], row["kernel_bytes"]): row["speedup"] for row in at_once}
    lines = [
        [scenario, *(f"{at[scenario, nbytes]:.2f}" for nbytes in sizes)]
        for scenario in _in_order(rows, "scenario")
    ]
    spare = rows[0]["spare_fraction"]
    title = (
        "Times as fast by parallel fetch as from a place after the other, past libcuda, by what a "
        f"kernel uses, {spare:.0%} idle, 4 GPUs"
    )
    return _table(title, ["scenario", *(f"{nbytes // _MIB} MiB" for nbytes in sizes)], lines)


def _bursts(result: Mapping[str, Any]) -> str:
    rows = result["bursts"]
    ways = ("halves in turn", "halves at once", "over its own link", "over both links")

    def cell(row: Mapping[str, Any], way: str) -> str:
        return f"{row['bytes'] / row[way] / 1e9:.1f}" if way in row else ""

    lines = [
        [row["joined"], *(cell(row, way) for way in ways), f"{row['staged_bytes'] // _MIB}"]
        for row in rows
    ]
    size = f"{rows[0]['bytes'] // _MIB} MiB"
    title = f"A burst of {size} comes back, GB/s: half from a neighbour, then all from the host"
    head = ["GPUs joined by", *ways, "MiB by way of the neighbour"]
    notes = [
        f"{row['joined']}, no neighbour: {row['refused']}." for row in rows if "refused" in row
    ]
    return "\n".join([_table(title, head, lines), "", *notes])
