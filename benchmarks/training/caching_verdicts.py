# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""Whether what is published of caching allocators on managed memory is seen in rows measured here.

Published: with one fewer page faults and more migrations, without one the other way round.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.common.harness import judged_at_least, judged_at_most
from benchmarks.training import models

NATIVE, ON, OURS, OFF = "native", "on", "on, ours", "off"
FITS = 0.0
FACTORS = (FITS, 1.25, 1.5, 2.0, 3.0)
DTYPES = ("fp32", "bf16")
Row = dict[str, Any]
Case = tuple[str, str]  # model and dtype
CASES: tuple[Case, ...] = tuple(itertools.product(models.NAMES, DTYPES))


def case_of(row: Row) -> Case:
    """Return which model in which type a row is of."""
    return row["model"], row["dtype"]


def step_seconds(row: Row) -> float:
    """Return what a step takes: the last of a process.

    Ways differ in how many there are, and in the second one torch's allocator still takes memory.
    """
    return float(row["each_seconds"][-1])


def not_measured(
    rows: Sequence[Row], cases: Iterable[Case] = CASES, factors: Sequence[float] = FACTORS
) -> dict[Case, list[float]]:
    """Return at which factors a case lacks a way, for each that lacks any.

    Without torch's own memory to compare with, all of them.
    """
    there = {(*case_of(row), row["way"], row["factor"]) for row in rows if "failed" not in row}
    missing = {
        case: [
            factor
            for factor in factors
            if not {(*case, NATIVE, FITS), *((*case, way, factor) for way in (ON, OURS, OFF))}
            <= there
        ]
        for case in cases
    }
    return {case: lacking for case, lacking in missing.items() if lacking}


def not_seen(rows: Sequence[Row]) -> list[Row]:
    """Return model by model where it is not as published, and which of the two it is."""
    return [
        {"model": model, "dtype": dtype, "factor": factor, "what": what}
        for (model, dtype, factor), ratios in sorted(ratios_of(rows).items())
        for what, ratio in ratios.items()
        if ratio < 1
    ]


def ratios_of(rows: Sequence[Row]) -> dict[tuple[str, str, float], dict[str, float]]:
    """Return faults without caching over those with, and bytes the other way round, of each case.

    Faults where both counted them; bytes past the edge, since what fits does not move.
    """
    at = {(r["model"], r["dtype"], r["factor"], r["way"]): r for r in rows if "failed" not in r}
    found: dict[tuple[str, str, float], dict[str, float]] = {}
    for (*where, way), on in at.items():
        off = at.get((*where, OFF))
        if way != ON or off is None:
            continue
        model, dtype, factor = where
        ratios = found.setdefault((model, dtype, factor), {})
        if on["gpu_faults"] is not None and off["gpu_faults"] is not None:
            ratios["faults"] = _ratio(off["gpu_faults"], on["gpu_faults"])
        if factor != FITS:
            moved = [row["to_device_bytes"] + row["to_host_bytes"] for row in (on, off)]
            ratios["bytes"] = _ratio(*moved)
    return found


def verdicts_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Judge whether what is published is seen here, and that nothing is missing."""
    ratios = ratios_of(rows)
    failures = [row for row in rows if "failed" in row]
    unknown = [row for row in rows if row.get("gpu_faults", 0) is None]
    verdicts: dict[str, Any] = {
        "processes that failed": judged_at_most(len(failures), 0),
        "rows whose faults are not known": judged_at_most(len(unknown), 0),
        "cases that were compared": judged_at_least(len({one[:2] for one in ratios}), 1),
    }
    # Past the edge what was moved away faults in too: faults speak of new memory where all fits.
    for factor in sorted({factor for _, _, factor in ratios}):
        what = "faults" if factor == FITS else "bytes"
        name = {
            "faults": "everything fits: faults, without caching / with",
            "bytes": f"{factor:g}x: bytes, with caching / without",
        }[what]
        values = [one.get(what) for (*_, at), one in ratios.items() if at == factor]
        if known := [value for value in values if value is not None]:
            verdicts[f"{name}, geometric mean"] = judged_at_least(
                statistics.geometric_mean(known), 1.0
            )
    return verdicts


def _ratio(value: float, other: float) -> float:
    """Return a ratio of counts; less than 1 where both are 0: nothing was seen there."""
    return max(value, 0.5) / max(other, 1)
