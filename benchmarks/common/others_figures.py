# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of others in our pool: the tables of benchmarks/README.md.

python benchmarks/common/others_figures.py            # prints them
python benchmarks/common/others_figures.py --write    # and puts them into the document
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `benchmarks`

from benchmarks.common.document import with_part

DOCUMENT = Path(__file__).parents[1] / "README.md"
RESULTS = Path(__file__).parents[1] / "results"
BEGIN = "<!-- begin: written by benchmarks/common/others_figures.py --write -->"
END = "<!-- end: others_figures -->"
NAMES = ("tpch", "dask_scripts")
LIBRARIES = {"pandas-pdsh": "cudf.pandas (PDS-H)", "pdsh": "cudf-polars (PDS-H)"}
_GIB = 1 << 30


def load() -> dict[str, Any]:
    """Return the results, by name."""
    return {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in NAMES}


def document_with(text: str, results: Mapping[str, Any]) -> str:
    """Return the document with the computed part anew; errors as `with_part`."""
    return with_part(text, DOCUMENT, BEGIN, END, computed_part(results))


def computed_part(results: Mapping[str, Any]) -> str:
    """Return a table of the queries, and one of the scripts."""
    tpch, scripts = (results[name] for name in NAMES)
    answers = {library: _answers(tpch, library) for library in LIBRARIES}
    return "\n".join(
        [
            f"Queries at scale {tpch['scale']:g}, on one {tpch['environment']['device']}. Ratios "
            "of times are medians over the queries, in brackets those of the least and most one:",
            "",
            *_table(
                "queries | all answers right | ours / stock | ours / cudaMalloc",
                (
                    f"{title} | {answers[library]} | {_ratio(tpch, library, 'stock')} "
                    f"| {_ratio(tpch, library, 'cuda')}"
                    for library, title in LIBRARIES.items()
                ),
            ),
            "",
            "Scripts of dask-cuda, with the same answers; medians. Each cluster has "
            f"{scripts['workers']} workers, each on a GPU of its own:",
            "",
            *_table(
                "script | data, GiB | stock on cudaMalloc, s | ours, s | ours / stock",
                _scripts(scripts),
            ),
        ]
    )


def _answers(tpch: Mapping[str, Any], library: str) -> str:
    queries = {one["query"] for one in tpch["answers"] if one["library"] == library}
    failed = {one["query"] for one in tpch["failures"] if one["library"] == library}
    right = [reached for name, reached in tpch["verdicts"].items() if f"{library}: answers" in name]
    return f"{len(queries - failed) if all(right) else 'not all'} of {len(queries)}"


def _ratio(tpch: Mapping[str, Any], library: str, way: str) -> str:
    seconds = {
        (row["query"], row["way"]): row["seconds"]
        for row in tpch["rows"]
        if row["library"] == library and row["in_ratios"]
    }
    each = [seconds[query, "ours"] / one for (query, of), one in seconds.items() if of == way]
    return f"{tpch['ratios'][f'{library}: ours / {way}']:.2f} ({min(each):.2f} to {max(each):.2f})"


def _scripts(results: Mapping[str, Any]) -> Iterable[str]:
    at = {(row["script"], row["chain"]): row for row in results["rows"]}
    for script, ratio in results["ratios"].items():
        stock, ours = at[script, "stock-cuda"], at[script, "ours"]
        seconds = (f"{row['seconds']:.3f}" for row in (stock, ours))
        yield f"`{script}` | {ours['data_bytes'] / _GIB:.1f} | {' | '.join(seconds)} | {ratio:.2f}"


def _table(head: str, lines: Iterable[str]) -> list[str]:
    columns = head.count("|")
    return [f"| {head} |", f"|---|{'--:|' * columns}", *(f"| {line} |" for line in lines)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    if not parser.parse_args().write:
        print(computed_part(load()))
        return
    DOCUMENT.write_text(document_with(DOCUMENT.read_text(), load()))


if __name__ == "__main__":
    main()
