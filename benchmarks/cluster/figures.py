# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The cluster's figures as a table, from results/, for every document that has a place for it.

    python benchmarks/cluster/figures.py            # prints the table
    python benchmarks/cluster/figures.py --write    # and puts it into the documents

A place is what lies between the lines `<!-- cluster figures -->`, or `<!-- cluster sentence -->`,
and `<!-- end -->`. A figure without a result file is "not measured". Needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "benchmarks" / "results"
DOCUMENTS = (
    *("README.md", "benchmarks/README.md"),
    *("docs/use/dask.md", "docs/understand/communication.md"),
)
PLACE = re.compile(r"(<!-- cluster (figures|sentence) -->\n).*?(<!-- end -->)", re.DOTALL)
CHAINS = ("ours", "stock-cuda", "stock-managed")
SIZES = ("1 GiB", "64 MiB", "16 MiB", "1 MiB")
UNKNOWN = "not measured"


def load(results: Path, name: str) -> dict[str, Any] | None:
    """Return a result, or None if it is not there."""
    path = results / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def three_digits(value: float) -> str:
    """Return a figure with three digits, or as a whole number where that has more."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def speeds_row(results: dict[str, Any] | None, size: str) -> list[str]:
    """Return the speeds of a size, by chain."""
    found = (results or {}).get("client_gb_per_second", {})
    return [
        f"{three_digits(found[chain][size])} GB/s" if chain in found else UNKNOWN
        for chain in CHAINS
    ]


def seconds_row(results: dict[str, Any] | None) -> list[str]:
    """Return the medians of the shuffle, by chain."""
    return medians((results or {}).get("seconds", {}))


def medians(found: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the medians of times, by chain."""
    return [
        f"{three_digits(statistics.median(found[chain]))} s" if chain in found else UNKNOWN
        for chain in CHAINS
    ]


def pipeline_row(results: dict[str, Any] | None) -> list[str]:
    """Return the medians of the mortgage pipeline, by chain."""
    return medians((results or {}).get("seconds", {}).get("end to end", {}))


def exhaustion(results: dict[str, Any] | None) -> str:
    """Return the speed through the pool that is too small."""
    if results is None:
        return UNKNOWN
    return f"{three_digits(results['verdicts']['GB/s']['value'])} GB/s, and a warning"


def killed(results: dict[str, Any] | None) -> str:
    """Return after how long the right result was there, and the memory whole."""
    if results is None:
        return UNKNOWN
    outcomes = results["outcomes"].values()
    right = max(each["recovery_seconds"] for each in outcomes)
    whole = max(each["whole_again_after_seconds"] for each in outcomes)
    return f"the right result after {right:.2g} s, all memory back {whole:.1f} s later"


def table(results: Path = RESULTS) -> str:
    """Return the table, in Markdown."""
    exchanged, shuffled = load(results, "dask_results"), load(results, "dask_shuffle")
    rows = [
        ["between two workers on two GPUs", "rmm-uvm", "stock, cudaMalloc pool", "stock, managed"],
        ["---"] * 4,
        *([f"a result of {size}", *speeds_row(exchanged, size)] for size in SIZES),
        ["shuffle of a cuDF frame, 8 GiB", *seconds_row(shuffled)],
        ["mortgage pipeline, all fitting", *pipeline_row(load(results, "mortgage_cluster"))],
        [
            "results of 4 GiB through an IPC pool of 64 MiB",
            *(exhaustion(load(results, "ipc_exhaustion")), "", ""),
        ],
        ["a worker killed in mid-transfer", killed(load(results, "worker_killed")), "", ""],
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def sentence(results: Path = RESULTS) -> str:
    """Return the speeds of the largest result, in a sentence of lines that documents have."""
    exchanged = load(results, "dask_results")
    ours, cuda, managed = speeds_row(exchanged, SIZES[0])
    if exchanged is None:
        return f"The speed of a result of 1 GiB between two GPUs is {UNKNOWN} yet.\n"
    return (
        f"Between two GPUs a result of 1 GiB travels at {ours}; between stock workers at {cuda}\n"
        f"on cudaMalloc pools, and at {managed} on managed ones.\n"
    )


def filled(text: str, results: Path = RESULTS) -> str:
    """Return a document's text with what belongs there in every place."""
    makers = {"figures": table, "sentence": sentence}
    return PLACE.sub(lambda found: found[1] + makers[found[2]](results) + found[3], text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    print(table(), end="")
    for path in (REPOSITORY / name for name in DOCUMENTS if arguments.write):
        if path.exists() and (text := path.read_text()) != filled(text):
            path.write_text(filled(text))
            print("written:", path.relative_to(REPOSITORY))


if __name__ == "__main__":
    main()
