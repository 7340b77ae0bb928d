# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The bounds of a run of `scripts.py`: all ran, where it had to, and gave right answers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

TOLERANCE = 1e-12  # of float sums of one array, whose parts may be added in another order


def verdicts_of(
    found: Mapping[str, Mapping[str, Mapping[str, float]]],
    runs: Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]],
) -> dict[str, bool]:
    """Return whether each cluster's answers are what they have to be, and the same as the others'.

    Parameters
    ----------
    found : mapping
        By chain, then by kind of answer: figures. One that ends in ``_expected`` is what another
        has to be; of a shuffle the others differ by design.
    runs : mapping
        By script, then by chain: what the script wrote of each of its runs.
    """
    verdicts = {
        f"{chain}, {what}: as expected": all(
            _same(figures[name.removesuffix("_expected")], value)
            for name, value in figures.items()
            if name.endswith("_expected")
        )
        for chain, kinds in found.items()
        for what, figures in kinds.items()
    }
    for what in ("merge", "array"):
        answers = [kinds.get(what, {}) for kinds in found.values()]
        verdicts[f"{what}: the same on all"] = any(answers) and all(
            one.keys() == answers[0].keys()
            and all(_same(one[name], answers[0][name]) for name in one)
            for one in answers
        )
    for script, chains in runs.items():
        seen = {run["data_bytes"] for each in chains.values() for run in each}
        verdicts[f"{script}: processes the same on all"] = len(seen) == 1
    return verdicts


def run_verdicts(
    scripts: Iterable[str], chains: Collection[str], failures: Iterable[Mapping[str, str]]
) -> dict[str, bool]:
    """Return of each script on each chain, and of the answers, whether nothing of it failed."""
    failed = {(one["script"], one["chain"]) for one in failures}
    return {
        f"{script}, {name}: runs": (script, name) not in failed
        for script in (*scripts, "answers")
        for name in chains
    }


def pool_verdict(memory: Mapping[str, Sequence[Mapping[str, Any]]], kind: str) -> dict[str, bool]:
    """Return whether all workers of ours have our pool and, on a GPU, took memory from it.

    `memory` is by chain: what each worker says of its resource.
    """
    ours = [each for name, each in memory.items() if name.startswith("ours")]
    return {
        "ours: in our pool": bool(ours)
        and all(
            "UvmResourceAdaptor" in one["resource"] and (kind == "cpu" or one["peak_bytes"] > 0)
            for each in ours
            for one in each
        )
    }


def _same(a: float, b: float) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return math.isclose(a, b, rel_tol=TOLERANCE)
