# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Ours beside what people use instead: the tables of past-the-edge.md, from the results.

python benchmarks/past_the_edge/alternatives.py            # prints them
python benchmarks/past_the_edge/alternatives.py --write    # and puts them into the document

`run.py` makes the results, by the protocol.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.document import with_part

DOCUMENT = Path(__file__).parents[2] / "docs" / "measure" / "past-the-edge.md"
RESULTS = Path(__file__).parents[1] / "results"
BEGIN = "<!-- begin: written by benchmarks/past_the_edge/alternatives.py --write -->"
END = "<!-- end: alternatives -->"
LOOP = ("past_the_edge_cudf", "past_the_edge_cudf_three_budgets")
OTHERS = "past_the_edge_cudf_alternatives"
QUERIES = ("past_the_edge_pds_h_eager", "past_the_edge_pds_h_eager_three_budgets")
WAYS = {
    "resident": "all in device memory, which is more than the budget",
    "default": "**rmm-uvm**, no hints",
    "by-hand-buffered": "by hand: pinned memory, the next frame copied in meanwhile",
    "by-hand": "by hand: pinned memory, each frame copied in before its step",
    "fault-driven": "managed memory by page faults",
    "pinned-behind": "device memory, then pinned memory that kernels read in place",
    "polars-streaming": "cudf-polars, streaming executor",
    "cudf-spilling": "cuDF's spilling",
    "dask-spilling": "Dask-CUDA's spilling, one worker",
}


def load() -> dict[str, Any]:
    """Return the results, by name."""
    names = (*LOOP, OTHERS, *QUERIES)
    return {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in names}


def document_with(text: str, results: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(results))


def computed_part(results: Mapping[str, Any]) -> str:
    """Return tables of the loop, and of the queries."""
    loops = [results[name] for name in LOOP]
    factors = [_side(each, "default")["factor"] for each in loops]
    rows = [
        f"{words} | "
        + " | ".join(f"{_of_loop(each, side)} | {_beyond(each, side)}" for each in loops)
        for side, words in WAYS.items()
        if any(_side(each, side) for each in loops)
    ]
    others = [
        f"{WAYS[side]} | {_of_others(results[OTHERS], side)} | {_beyond(results[OTHERS], side)}"
        for side in WAYS
        if side == "resident" or not any(_side(each, side) for each in loops)
    ]
    return "\n".join(
        [
            f"Seconds a round, and how often as long as all in device memory ({_of(loops[0])}):",
            "",
            *_table(
                f"way | {factors[0]:.2f} budgets | beyond the budget "
                f"| {factors[1]:.2f} budgets | beyond the budget",
                rows,
            ),
            "",
            f"The others at the first of the two, {_runs(results[OTHERS])} "
            f"({_of(results[OTHERS])}):",
            "",
            *_table("way | seconds a round | beyond the budget", others),
            *(line for name in QUERIES for line in ("", *_of_queries(results[name]))),
        ]
    )


def _of(result: Mapping[str, Any]) -> str:
    made = result["environment"]
    gib = result["settings"]["budget_bytes"] / 2**30
    device = made["device"].removeprefix("NVIDIA ")
    return f"budget {gib:.2f} GiB, {device}, {made['commit'][:8]}, {made['date']}"


def _runs(result: Mapping[str, Any]) -> str:
    count = max(row["repetition"] for row in result["runs"]) + 1
    return "one run each, so no results" if count == 1 else f"medians of {count} runs"


def _side(result: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next((row for row in result["sides"] if row["side"] == name), {})


def _of_loop(result: Mapping[str, Any], side: str) -> str:
    row = _side(result, side)
    if not row:
        return "not measured"
    if side == "resident":
        return f"{row['seconds']:.2f}"
    [ratio] = [
        each for each in result["ratios"] if (each["of"], each["over"]) == (side, "resident")
    ]
    low, high = min(ratio["ratios"]), max(ratio["ratios"])
    return f"{row['seconds']:.2f}: {ratio['seconds_ratio']:.2f} ({low:.2f} to {high:.2f})"


def _of_others(result: Mapping[str, Any], side: str) -> str:
    failed = {row["failed"] for row in result["runs"] if row["side"] == side and "failed" in row}
    if failed:
        return "ends in " + "; ".join(sorted({each.partition(":")[0] for each in failed}))
    return f"{_side(result, side)['seconds']:.2f}"


def _of_queries(result: Mapping[str, Any]) -> list[str]:
    rows = []
    for name in ("default", "polars-streaming"):
        ratio = next((each for each in result["ratios"] if each["over"] == name), None)
        of = "" if ratio is None else _ratio(ratio)
        words = "**rmm-uvm**, cudf.pandas, no hints" if name == "default" else WAYS[name]
        seconds, beyond = _side(result, name)["seconds"], _beyond(result, name)
        rows.append(f"{words} | {seconds:.2f} | {beyond} | {of}")
    return [
        f"The 22 queries of PDS-H at {_side(result, 'default')['factor']:.2f} budgets, "
        f"seconds for all of them ({_of(result)}):",
        "",
        *_table("way | seconds | beyond the budget | ours / it", rows),
    ]


def _beyond(result: Mapping[str, Any], side: str) -> str:
    """Return what lay beyond the budget, of it; of page faults the average counts."""
    row, budget_bytes = _side(result, side), result["settings"]["budget_bytes"]
    if side == "resident" or "seconds" not in row:
        return ""
    if side in ("by-hand", "by-hand-buffered"):
        return "nothing: its pool has that size"
    told = [judge for judge in row.get("beyond", {}).values() if isinstance(judge, dict)]
    if not told or any(judge["most_bytes"] is None for judge in told):
        return "not looked at; RMM refuses more"
    parts = {
        which: max(judge.get(f"{which}_bytes") or 0 for judge in told) / budget_bytes
        for which in ("average", "most")
    }
    if row["counts"] == "average":
        return f"{_percent(parts['average'])} on average, {_percent(parts['most'])} at most"
    return f"{_percent(parts['most'])} at most"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def _ratio(ratio: Mapping[str, Any]) -> str:
    text = f"{ratio['seconds_ratio']:.2f}"
    if len(ratio["ratios"]) > 1:
        text += f" ({min(ratio['ratios']):.2f} to {max(ratio['ratios']):.2f})"
    if "operations_ratio" in ratio:
        text += f", a query {ratio['operations_ratio']:.2f} (geometric mean)"
    return text if ratio["result"] else f"{text}, no result by the protocol"


def _table(header: str, rows: Sequence[str]) -> list[str]:
    columns = header.count("|") + 1
    ruler = "|---|" + "--:|" * (columns - 1)
    return [f"| {header} |", ruler, *(f"| {row} |" for row in rows)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the tables into the document")
    results = load()
    if parser.parse_args().write:
        DOCUMENT.write_text(document_with(DOCUMENT.read_text(), results))
    else:
        print(computed_part(results))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
